"""`/api/alerts` and `/api/doctor`: the troubles that somebody is told of, and all that is wrong now."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from rota import masking
from rota.doctor import examine
from rota.server.auth import Reader
from rota.server.cursor import CursorText, Limit, Page, Secret
from rota.server.here import Here
from rota.server.routers.parts import Told, page, place
from rota.store.troubles import Kind, Trouble

router = APIRouter(tags=["alerts"])

_MOST = 1_000
"""How many troubles there are to look through at most."""


class TroubleOut(Told):
    """Something that somebody should know of."""

    subject: str = Field(description="What is in trouble.", examples=["schedule feed-42"])
    kind: Kind
    said: str
    began: datetime
    over: datetime | None
    told: bool = Field(description="Whether all is told that was to be.")


class FindingOut(Told):
    """One thing that was looked at."""

    ok: bool
    what: str
    advice: str


@router.get("/alerts", operation_id="list_alerts")
async def list_alerts(
    here: Here,
    _: Reader,
    secret: Secret,
    over: Annotated[bool, Query(description="Also those that are over.")] = False,
    cursor: CursorText = None,
    limit: Limit = 50,
) -> Page[TroubleOut]:
    """List the troubles that somebody is told of, the newest first."""
    found = sorted(await here.alerts.list(over=over, limit=_MOST), key=_place, reverse=True)
    ended = place(secret, cursor, "alerts")
    rest = [each for each in found if ended is None or _place(each) < tuple(map(str, ended))][:limit]
    items = [TroubleOut.model_validate(each) for each in rest]
    return page(secret, "alerts", items, limit, *(_place(rest[-1]) if rest else ()))


def _place(found: Trouble) -> tuple[str, str]:
    return found.began.isoformat(timespec="microseconds"), found.subject


@router.get("/doctor", operation_id="examine")
async def examined(here: Here, _: Reader) -> list[FindingOut]:
    """Say what is wrong with the store and what works on it, and what to do about each."""
    found = await examine(here)
    return [FindingOut(ok=each.ok, what=masking.masked(each.what), advice=each.advice) for each in found]
