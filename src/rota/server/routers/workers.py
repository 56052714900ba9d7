"""`/api/workers`: who works, on what; and how one is told to end."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import Field

from rota.app import Rota
from rota.errors import UnknownWorker
from rota.server.auth import Operator, Reader
from rota.server.cursor import CursorText, Limit, Page, Secret
from rota.server.here import Here
from rota.server.problems import responses
from rota.server.routers.parts import Seconds, Told, page, place
from rota.store.workers import WorkerRecord

router = APIRouter(prefix="/workers", tags=["workers"])

WorkerName = Annotated[str, InPath(max_length=300, description="The worker's name.")]


class WorkerOut(Told):
    """A worker that said it is there."""

    id: str = Field(examples=["web-1-4711-9f3c2a1b"])
    host: str
    pid: int
    queues: list[str]
    slots: int = Field(description="How many runs it runs at once.")
    running: int = Field(description="How many runs it holds: what it runs, and a few that it took ahead.")
    started_at: datetime
    draining: bool = Field(description="Whether it takes no new work, and ends when what it runs has ended.")
    alive: bool = Field(description="Whether its lease holds; one that is silent is taken out of the list soon.")
    lease: Seconds = Field(description="For how many more seconds its lease holds.")

    @classmethod
    def of(cls, found: WorkerRecord) -> "WorkerOut":
        """Tell of a worker."""
        names = ("id", "host", "pid", "slots", "running", "started_at", "draining")
        plain = {name: getattr(found, name) for name in names}
        return cls(**plain, queues=list(found.queues), alive=found.left >= 0, lease=found.left / 1_000_000)


@router.get("", operation_id="list_workers")
async def list_workers(
    here: Here, _: Reader, secret: Secret, cursor: CursorText = None, limit: Limit = 50
) -> Page[WorkerOut]:
    """List the workers by name."""
    after = place(secret, cursor, "workers")
    found = sorted(await here.workers(), key=lambda each: each.id)
    rest = [each for each in found if after is None or each.id > str(after[0])][:limit]
    return page(secret, "workers", [WorkerOut.of(each) for each in rest], limit, rest[-1].id if rest else None)


@router.get("/{worker}", operation_id="get_worker", responses=responses(404))
async def get_worker(worker: WorkerName, here: Here, _: Reader) -> WorkerOut:
    """Show a worker."""
    return await _worker(here, worker)


@router.post("/{worker}/drain", operation_id="drain_worker", status_code=202, responses=responses(404))
async def drain_worker(worker: WorkerName, here: Here, _: Operator) -> WorkerOut:
    """Let a worker take no new work, and end when what it runs has ended, in whatever process it is.

    It hears of it when it renews its lease next: after a sixth of the lease at most, usually 5 s.
    """
    await here.drain(worker)
    return await _worker(here, worker)


async def _worker(here: Rota, name: str) -> WorkerOut:
    for each in await here.workers():
        if each.id == name:
            return WorkerOut.of(each)
    raise UnknownWorker(name)
