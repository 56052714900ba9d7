"""`/api/doctor`: what is wrong with the store and what works on it."""

from fastapi import APIRouter

from rota.doctor import examine
from rota.masking import masked
from rota.server.auth import Reader
from rota.server.here import Here
from rota.server.routers.parts import Told

router = APIRouter(prefix="/doctor", tags=["doctor"])


class FindingOut(Told):
    """One thing that was looked at."""

    ok: bool
    what: str
    advice: str


@router.get("", operation_id="examine")
async def examined(here: Here, _: Reader) -> list[FindingOut]:
    """Say what is wrong with the store and what works on it, and what to do about each."""
    found = await examine(here)
    return [FindingOut(ok=each.ok, what=masked(each.what), advice=each.advice) for each in found]
