"""`/api/alerts`: the troubles that somebody is told of."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from rota.server.auth import Reader
from rota.server.cursor import CursorText, Limit, Page, Secret
from rota.server.here import Here
from rota.server.routers.parts import Told, page, place
from rota.store.troubles import Kind

router = APIRouter(prefix="/alerts", tags=["alerts"])


class TroubleOut(Told):
    """Something that somebody should know of."""

    subject: str = Field(description="What is in trouble.", examples=["schedule feed-42"])
    kind: Kind
    said: str = Field(description="What is wrong with it.", examples=["schedule feed-42 failed 3 times in a row"])
    began: datetime
    over: datetime | None = Field(description="Since when it is over; null while it is open.")
    told: bool = Field(description="Whether all is told that was to be.")


@router.get("", operation_id="list_alerts")
async def list_alerts(
    here: Here,
    _: Reader,
    secret: Secret,
    over: Annotated[bool, Query(description="Also those that are over, for 14 days.")] = False,
    cursor: CursorText = None,
    limit: Limit = 50,
) -> Page[TroubleOut]:
    """List the troubles that are open, the newest first."""
    last = place(secret, cursor, "alerts")
    after = None if last is None else (datetime.fromisoformat(str(last[0])), str(last[1]))
    found = await here.alerts.list(over=over, after=after, limit=limit)
    end = (found[-1].began.isoformat(), found[-1].subject) if found else ()
    return page(secret, "alerts", [TroubleOut.model_validate(each) for each in found], limit, *end)
