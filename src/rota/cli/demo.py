"""`rota demo`: a lively example to look at."""

import asyncio
import logging
import os
import signal
import tempfile
from typing import TYPE_CHECKING, Annotated

import typer

from rota.app import Rota
from rota.cli.demo_app import demo_app, prepare
from rota.cli.logs import configure_logs
from rota.cli.serve import serve_until_stopped, where_to_look
from rota.db.connect import masked
from rota.schedule import Schedule
from rota.times.durations import duration
from rota.times.moments import SECOND

if TYPE_CHECKING:
    from rota.server.serve import Started

_TRY = (
    "rota schedules list",
    "rota runs list",
    "rota why demo.overlapping",
    "rota schedules firings demo.failing",
    "rota runs list --schedule demo.report    (then: rota runs show NUMBER)",
    "rota schedules trigger demo.every",
    "rota schedules resume demo.paused",
    "rota queues; rota limits list; rota workers list; rota doctor",
)


def demo(
    store: Annotated[
        str | None, typer.Option("--store", metavar="URL", help="Where its state is; else a temporary file.")
    ] = None,
    port: Annotated[int, typer.Option("--port", help="The port; 0 for any that is free.", min=0, max=65_535)] = 8080,
    length: Annotated[
        str | None, typer.Option("--for", metavar="T", help="For how long; until Ctrl-C if left out.")
    ] = None,
) -> None:
    """Serve an example with schedules of every kind, some failing on purpose, and say where to look.

    Its state is in a temporary SQLite file, which is removed at the end, unless --store names a place.
    """
    seconds = None if length is None else duration(length, "--for", least=SECOND) / SECOND
    configure_logs()
    for each in logging.getLogger().handlers:
        each.setLevel(logging.ERROR)  # what fails on purpose is kept with its run; the terminal says where to look
    with tempfile.TemporaryDirectory(prefix="rota-demo-") as folder:
        place = store or f"sqlite:///{folder}/rota.db"
        app, schedules = demo_app(place)
        _serve(app, schedules, masked(place), port, seconds)


def _serve(app: Rota, schedules: list[Schedule], place: str, port: int, seconds: float | None) -> None:
    from rota.server.serve import Serving

    def said(found: "Started") -> list[str]:
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, signal.raise_signal, signal.SIGTERM)
        token = "" if found.first_token is None else f" ROTA_TOKEN={found.first_token}"
        unset = "unset ROTA_STORE; " if os.environ.get("ROTA_STORE") else ""
        tries = [f"{unset}export ROTA_URL={found.address}{token}", *_TRY]
        return [
            *where_to_look(found, place, auth=True),
            "  try, in another terminal",
            *(f"    {each}" for each in tries),
        ]

    serving = Serving(port=port, grace="2s")
    serve_until_stopped(app, serving, said, lambda: prepare(app, schedules))
