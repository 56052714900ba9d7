"""`rota workers` and `rota queues`: who works, on what."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from rota import clock
from rota.cli.loading import AsJson, Where, on_store
from rota.cli.moments import relative
from rota.cli.output import as_json, lines, table
from rota.store.queues import QueueSum
from rota.store.workers import WorkerRecord
from rota.times.durations import duration_words
from rota.times.moments import SECOND

workers = typer.Typer(help="Look at workers, and let them end.", no_args_is_help=True)

Worker = Annotated[str, typer.Argument(metavar="WORKER", help="The worker's name; see list.", show_default=False)]


@workers.command("list")
def list_workers(where: Where = None, json: AsJson = False) -> None:
    """Show the workers: how they are, which queues they work, and how many runs they hold."""
    found = on_store(where, lambda app: app.workers())
    if json:
        as_json([_record(each) for each in found])
        return
    table(["worker", "state", "queues", "running", "slots", "started"], [_cells(each) for each in found])


@workers.command("drain")
def drain_worker(worker: Worker, where: Where = None) -> None:
    """Let a worker take no new work, and end when what it runs has ended; it hears within a sixth of its lease."""
    on_store(where, lambda app: app.drain(worker))
    lines(f"{worker} takes no new work, and ends when what it runs has ended")


def queues(where: Where = None, json: AsJson = False) -> None:
    """Show the queues: what is in each, how long the oldest has been due, and who works it."""
    found = on_store(where, lambda app: app.queue_sums())
    if json:
        as_json([asdict(each) | {"oldest": each.oldest / SECOND} for each in found])
        return
    heads = ["queue", "waiting", "ready", "running", "due", "oldest", "workers", "slots"]
    table(heads, [_queue_cells(each) for each in found])


def _cells(found: WorkerRecord) -> list[str]:
    since = relative(found.started_at - clock.now())
    return [found.id, _state(found), ", ".join(found.queues), str(found.running), str(found.slots), since]


def _state(found: WorkerRecord) -> str:
    return "silent" if found.left < 0 else "draining" if found.draining else "alive"


def _record(found: WorkerRecord) -> dict[str, Any]:
    return {
        "id": found.id,
        "state": _state(found),
        "host": found.host,
        "pid": found.pid,
        "queues": list(found.queues),
        "running": found.running,
        "slots": found.slots,
        "started_at": found.started_at.isoformat(),
        "lease": found.left / SECOND,
    }


def _queue_cells(found: QueueSum) -> list[str]:
    oldest = duration_words(found.oldest // SECOND * SECOND) if found.oldest >= SECOND else ""
    counts = [str(each) for each in (found.waiting, found.ready, found.running, found.due)]
    return [found.name, *counts, oldest, str(found.workers), str(found.slots)]
