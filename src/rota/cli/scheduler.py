"""`rota scheduler` and `rota tick`: fire the schedules of an app's store, for ever or once."""

import asyncio
import signal
from typing import Annotated

import typer

from rota.cli.leaving import leave_soon
from rota.cli.loading import Target, load_app
from rota.cli.logs import configure_logs
from rota.cli.metrics_port import MetricsHost, MetricsPort, measured
from rota.cli.output import lines
from rota.cli.streams import complain, discard_output
from rota.engine.tick import Ticked


def scheduler(target: Target = None, metrics_port: MetricsPort = None, metrics_host: MetricsHost = "127.0.0.1") -> None:
    """Fire the schedules of an app's store until stopped. It works no queue: that is for rota worker.

    Brings the schedules that the app declares into the store when it starts. Any number may run at once.
    """
    configure_logs()
    app = load_app(target)

    async def fire() -> None:
        async with app, measured(app, metrics_host, metrics_port):
            firing = app.scheduler()
            for each in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(each, firing.stop)
            try:
                lines(f"firing; {len(app.declared)} schedules declared by {app.name}")
            except OSError:  # nobody reads it; that is no reason not to fire
                discard_output()
            await firing.run()

    asyncio.run(fire())


def tick(
    target: Target = None,
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", "-q", help="A queue; may be given again. Those of the app's tasks if left out."),
    ] = None,
    slots: Annotated[int, typer.Option("--slots", help="How many runs at once.", min=1, max=1000)] = 10,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="T", help="After how long nothing more begins; never if left out."),
    ] = None,
    grace: Annotated[str, typer.Option("--grace", help="How long what runs may take after that.")] = "30s",
) -> None:
    """Fire all that is due, work all that is ready and due, wait for it, then exit: for system cron.

    Does not wait for what is due later. Two at once are harmless. A first signal waits for what runs, a second does
    not. Exit code 1 where a run has failed for good, or not all was done.
    """
    configure_logs("warning")
    app = load_app(target)

    async def work() -> Ticked:
        going = asyncio.current_task()
        for each in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(each, lambda: going and going.cancel())
        done = await app.tick(queues=queue or None, slots=slots, timeout=timeout, grace=grace)
        leave_soon(int(not done.ok))
        return done

    try:
        done = asyncio.run(work())
    except asyncio.CancelledError:
        complain("stopped before all was done; what was not ended goes on later")
        leave_soon(1)
        raise typer.Exit(1) from None
    ended = ", ".join(f"{number} {outcome}" for outcome, number in sorted(done.outcomes.items()))
    nothing = "nothing ended" if done.fired or done.left else "nothing to do"
    lines(f"{done.fired} fired; {ended or nothing}")
    for name, number in sorted(done.left.items()):
        lines(f"queue {name}: {number} due left for others, or for the next tick")
    if not done.in_time:
        complain("the time was over before all was done; what was not ended goes on later")
    if not done.ok:
        raise typer.Exit(1)
