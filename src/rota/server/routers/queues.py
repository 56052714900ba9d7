"""`/api/queues`: the lanes of runs, what is in them, and who works them."""

from fastapi import APIRouter
from pydantic import Field

from rota.server.auth import Reader
from rota.server.cursor import CursorText, Limit, Page, Secret
from rota.server.here import Here
from rota.server.routers.parts import Seconds, Told, page, place
from rota.store.queues import QueueSum

router = APIRouter(prefix="/queues", tags=["queues"])


class QueueOut(Told):
    """A lane of runs."""

    name: str = Field(examples=["default"])
    waiting: int = Field(description="How many runs wait for their time, or for room under limits.")
    ready: int = Field(description="How many wait for a worker.")
    running: int = Field(description="How many a worker holds.")
    due: int = Field(description="How many of those that have not begun are due.")
    oldest: Seconds = Field(description="For how many seconds the oldest of the ready ones has been due.")
    workers: int = Field(description="How many workers work it.")
    slots: int = Field(description="How many runs these may run at once, of all their queues.")

    @classmethod
    def of(cls, found: QueueSum) -> "QueueOut":
        """Tell of a queue."""
        counts = {name: getattr(found, name) for name in cls.model_fields if name != "oldest"}
        return cls(**counts, oldest=found.oldest / 1_000_000)


@router.get("", operation_id="list_queues")
async def list_queues(
    here: Here, _: Reader, secret: Secret, cursor: CursorText = None, limit: Limit = 50
) -> Page[QueueOut]:
    """List the queues by name: those that a worker works, and those with runs under way."""
    found = await here.queue_sums()
    after = place(secret, cursor, "queues")
    rest = [each for each in found if after is None or each.name > str(after[0])][:limit]
    items = [QueueOut.of(each) for each in rest]
    return page(secret, "queues", items, limit, rest[-1].name if rest else None)
