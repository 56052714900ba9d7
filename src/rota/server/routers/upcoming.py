"""`/api/upcoming`: what is due next, of all schedules."""

from fastapi import APIRouter

from rota.server.auth import Reader
from rota.server.cursor import Limit, Page
from rota.server.here import Here
from rota.server.routers.schedule_models import Upcoming

router = APIRouter(prefix="/upcoming", tags=["schedules"])


@router.get("", operation_id="list_all_upcoming")
async def list_all_upcoming(here: Here, _: Reader, limit: Limit = 10) -> Page[Upcoming]:
    """Show the next due instants of all schedules, as far as they are known now, in one page."""
    found = await here.schedules.upcoming(limit=limit)
    return Page[Upcoming](items=[Upcoming.model_validate(each) for each in found])
