"""`/api/queues`: the lanes of runs, what is in them, and who works them."""

from fastapi import APIRouter
from pydantic import Field

from rota.app import Rota
from rota.server.auth import Reader
from rota.server.cursor import CursorText, Limit, Page, Secret
from rota.server.here import Here
from rota.server.routers.parts import Seconds, Told, page, place

router = APIRouter(prefix="/queues", tags=["queues"])


class QueueOut(Told):
    """A lane of runs."""

    name: str = Field(examples=["default"])
    waiting: int = Field(default=0, description="How many runs wait for their time, or for room under limits.")
    ready: int = Field(default=0, description="How many wait for a worker.")
    running: int = Field(default=0, description="How many a worker holds.")
    due: int = Field(default=0, description="How many of those that have not begun are due.")
    oldest: Seconds = Field(default=0, description="For how many seconds the oldest of the ready ones has been due.")
    workers: int = Field(default=0, description="How many workers work it.")
    slots: int = Field(default=0, description="How many runs these may run at once, of all their queues.")


@router.get("", operation_id="list_queues")
async def list_queues(
    here: Here, _: Reader, secret: Secret, cursor: CursorText = None, limit: Limit = 50
) -> Page[QueueOut]:
    """List the queues by name: those that a worker works, and those with runs under way."""
    found = await _queues(here)
    after = place(secret, cursor, "queues")
    rest = [each for each in found if after is None or each.name > str(after[0])][:limit]
    return page(secret, "queues", rest, limit, rest[-1].name if rest else None)


async def _queues(here: Rota) -> list[QueueOut]:
    found: dict[str, QueueOut] = {}
    for state in await here.queues():
        queue = found.setdefault(state.queue, QueueOut(name=state.queue))
        setattr(queue, state.state, state.number)
        if state.state != "running":
            queue.due += state.due
        if state.state == "ready":
            queue.oldest = max(0, state.oldest) / 1_000_000
    for worker in await here.workers():
        for name in worker.queues if worker.left >= 0 else ():
            queue = found.setdefault(name, QueueOut(name=name))
            queue.workers += 1
            queue.slots += worker.slots
    return [found[name] for name in sorted(found)]
