"""`/api/firings`: due instants of all schedules and what came of them: what ran, what did not, and why."""

from typing import Annotated

from fastapi import APIRouter, Query

from rota.server.auth import Reader
from rota.server.cursor import CursorText, Limit, Page, Secret
from rota.server.here import Here
from rota.server.routers.parts import Key, page, place
from rota.server.routers.schedule_models import FiringOut
from rota.store.schedule_reads import FiringsPlace
from rota.times.decision import Reason

router = APIRouter(prefix="/firings", tags=["firings"])


@router.get("", operation_id="list_firings")
async def list_firings(
    here: Here,
    _: Reader,
    secret: Secret,
    schedule: Annotated[Key | None, Query(description="The key of a schedule.")] = None,
    ran: Annotated[bool | None, Query(description="Only those that became runs, or only those that did not.")] = None,
    reason: Annotated[Reason | None, Query(description="Only those that did not run for this reason.")] = None,
    cursor: CursorText = None,
    limit: Limit = 50,
) -> Page[FiringOut]:
    """List due instants and what came of them, those decided last first."""
    before = place(secret, cursor, "firings")
    found, end = await here.schedules.newest_firings(
        schedule=schedule,
        ran=ran,
        reason=reason,
        before=None if before is None else FiringsPlace(*map(int, map(str, before))),
        limit=limit,
    )
    return page(secret, "firings", [FiringOut.of(each) for each in found], limit, end.run, end.skip)
