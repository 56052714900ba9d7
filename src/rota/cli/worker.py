"""`rota worker`: work the queues of an app."""

import asyncio
import signal
from typing import Annotated

import typer

from rota.cli.leaving import leave, leave_soon
from rota.cli.loading import Target, load_app
from rota.cli.logs import configure_logs
from rota.cli.metrics_port import MetricsHost, MetricsPort, measured
from rota.cli.output import lines
from rota.cli.streams import discard_output
from rota.engine.worker import Worker


def worker(
    target: Target = None,
    queue: Annotated[list[str] | None, typer.Option("--queue", "-q", help="A queue; may be given again.")] = None,
    slots: Annotated[int, typer.Option("--slots", help="How many runs at once.", min=1, max=1000)] = 10,
    lease: Annotated[str, typer.Option("--lease", help="After how long a silent worker's runs go to others.")] = "30s",
    grace: Annotated[str, typer.Option("--grace", help="How long what runs may take when told to stop.")] = "30s",
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = "127.0.0.1",
) -> None:
    """Execute the runs of an app until stopped; a first signal waits for what runs, a second does not.

    Exit code 1 where it ended because too many tasks do not stop when told to.
    """
    configure_logs()
    app = load_app(target)

    async def work() -> Worker:
        async with app, measured(app, metrics_host, metrics_port):
            working = app.worker(queues=queue or ("default",), slots=slots, lease=lease, grace=grace)
            loop = asyncio.get_running_loop()
            for each in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(each, working.stop)
            try:
                lines(f"working {', '.join(queue or ['default'])} with {slots} slots; {len(app.tasks)} tasks known")
            except OSError:  # nobody reads it; that is no reason not to work
                discard_output()
            await working.run()
        leave_soon(int(working.worn_out))
        return working

    working = asyncio.run(work())
    if working.busy_threads:
        leave(int(working.worn_out))
    if working.worn_out:
        raise typer.Exit(1)
