"""`rota worker`: work the queues of an app."""

import asyncio
import logging
import os
import signal
import sys
from typing import Annotated

import typer

from rota.cli.loading import load_app
from rota.cli.logs import configure_logs
from rota.cli.output import lines


def worker(
    target: Annotated[str, typer.Argument(metavar="MODULE:APP", help="Where the app is.", show_default=False)],
    queue: Annotated[list[str] | None, typer.Option("--queue", "-q", help="A queue; may be given again.")] = None,
    slots: Annotated[int, typer.Option("--slots", help="How many runs at once.", min=1, max=1000)] = 10,
    lease: Annotated[str, typer.Option("--lease", help="After how long a silent worker's runs go to others.")] = "30s",
    grace: Annotated[str, typer.Option("--grace", help="How long what runs may take when told to stop.")] = "30s",
) -> None:
    """Execute the runs of an app until stopped; a first signal waits for what runs, a second does not."""
    configure_logs()
    app = load_app(target)

    async def work() -> None:
        async with app:
            working = app.worker(queues=queue or ("default",), slots=slots, lease=lease, grace=grace)
            loop = asyncio.get_running_loop()
            for each in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(each, working.stop)
            lines(f"working {', '.join(queue or ['default'])} with {slots} slots; {len(app.tasks)} tasks known")
            await working.run()
        if working.stuck:
            # Python would wait for the threads and coroutines that do not stop, perhaps for ever.
            logging.shutdown()
            sys.stdout.flush()
            os._exit(0)

    asyncio.run(work())
