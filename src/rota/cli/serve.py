"""`rota serve`: HTTP, the scheduler and a worker in one process."""

import asyncio
import resource
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from rota.app import Rota
from rota.cli.leaving import leave, leave_soon
from rota.cli.loading import Store, load_app
from rota.cli.logs import configure_logs
from rota.cli.output import lines
from rota.cli.streams import discard_output
from rota.db.connect import masked
from rota.engine.worker import Worker
from rota.settings import store_url

if TYPE_CHECKING:
    from rota.server.serve import Serving, Started


def serve(
    target: Annotated[
        str | None,
        typer.Argument(metavar="[MODULE:APP]", help="Where the app is; else one without tasks.", show_default=False),
    ] = None,
    *,
    store: Store = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port; 0 for any that is free.", min=0, max=65_535)] = 8080,
    auth: Annotated[
        bool, typer.Option("--auth/--no-auth", help="Whether a token is needed; without, only on this machine.")
    ] = True,
    scheduler: Annotated[
        bool, typer.Option("--scheduler/--no-scheduler", help="Whether to fire the schedules here.")
    ] = True,
    worker: Annotated[bool, typer.Option("--worker/--no-worker", help="Whether to work the queues here.")] = True,
    slots: Annotated[int, typer.Option("--slots", help="How many runs at once.", min=1, max=1000)] = 10,
    grace: Annotated[str, typer.Option("--grace", help="How long what runs may take when told to stop.")] = "30s",
) -> None:
    """Serve the HTTP API, fire the schedules and work the queues, in one process, until stopped.

    The first start on a store makes an admin token and shows it, once. A first signal waits for what runs, a second
    does not. Exit code 1 where it ended because too many tasks do not stop when told to.
    """
    from rota.server.serve import Serving

    configure_logs()
    app = load_app(target, store)
    place = masked(store or store_url()) if target is None or store is not None else app.database.address
    serving = Serving(host, port, auth=auth, scheduler=scheduler, worker=worker, slots=slots, grace=grace)
    serve_until_stopped(app, serving, lambda found: where_to_look(found, place, auth=auth))


def serve_until_stopped(
    app: Rota,
    serving: "Serving",
    said: Callable[["Started"], list[str]],
    before: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serve an app, and say where; `before` is done first, in its open store."""
    from rota.server.serve import serve as run

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # it would hold tokens

    def started(found: "Started") -> None:
        try:
            lines(*said(found))
        except OSError:  # nobody reads it; that is no reason not to serve
            discard_output()

    async def work() -> Worker | None:
        worker = await run(app, serving, started, before)
        leave_soon(int(worker is not None and worker.worn_out))
        return worker

    ended = asyncio.run(work())
    if ended is not None and ended.busy_threads:
        leave(int(ended.worn_out))
    if ended is not None and ended.worn_out:
        raise typer.Exit(1)


def where_to_look(found: "Started", place: str, *, auth: bool) -> list[str]:
    """Say where a server is, and who may ask it."""
    said = [
        f"Rota serves at {found.address} until Ctrl-C; its state is in {place}",
        f"  the API, described   {found.address}/docs",
        f"  is it well?          {found.address}/healthz, {found.address}/readyz",
    ]
    if found.first_token is not None:
        return [
            *said,
            f"  an admin token, shown this once   {found.first_token}",
            f"  log in with it       {found.address}/docs#token={found.first_token}",
        ]
    if auth:
        return [*said, "  who may ask          those with a token of rota tokens create, or with ROTA_TOKEN"]
    return [*said, "  who may ask          everybody who is on this machine, for everything: there is no auth"]
