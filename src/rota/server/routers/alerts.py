"""`/api/alerts` and `/api/doctor`: the troubles that somebody is told of, and all that is wrong now."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from rota import masking
from rota.doctor import examine
from rota.server.auth import Reader
from rota.server.cursor import Page
from rota.server.here import Here
from rota.server.routers.parts import Told
from rota.store.troubles import Kind

router = APIRouter(tags=["alerts"])


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
    over: Annotated[bool, Query(description="Also those that are over.")] = False,
    limit: Annotated[int, Query(ge=1, le=1_000, description="How many at most.")] = 100,
) -> Page[TroubleOut]:
    """List the troubles that somebody is told of, the newest first, in one page."""
    found = await here.alerts.list(over=over, limit=limit)
    return Page[TroubleOut](items=[TroubleOut.model_validate(each) for each in found])


@router.get("/doctor", operation_id="examine")
async def examined(here: Here, _: Reader) -> list[FindingOut]:
    """Say what is wrong with the store and what works on it, and what to do about each."""
    found = await examine(here)
    return [FindingOut(ok=each.ok, what=masking.masked(each.what), advice=each.advice) for each in found]
