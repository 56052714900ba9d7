"""`/healthz` and `/readyz`: whether the process lives, and whether it can do its work. They are for everybody."""

import asyncio
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel

from rota import clock
from rota.app import Rota
from rota.db.migrate import Migrations
from rota.errors import RotaError
from rota.server.here import Here
from rota.server.problems import Refused, responses

router = APIRouter(tags=["health"])

_SECONDS = 3.0
"""How long a store may take to answer."""
_FRESH_SECONDS = 1.0
"""For how long an answer serves all who ask: nobody can work the store through here."""


class Health(BaseModel):
    """How it is."""

    status: Literal["ok"]


@router.get("/healthz", operation_id="healthz")
async def healthz() -> Health:
    """Answer, which is all that is asked."""
    return Health(status="ok")


@router.get("/readyz", operation_id="readyz", responses=responses(503))
async def readyz(request: Request, here: Here) -> Health:
    """Tell whether the store answers, and has the tables that this server knows."""
    known: Readiness = request.app.state.readiness
    problem = await known.problem(here)
    if problem is not None:
        raise Refused(503, problem, headers={"Retry-After": "2"})
    return Health(status="ok")


class Readiness:
    """What was found when the store was looked at last."""

    def __init__(self) -> None:
        self._found: tuple[float, str | None] | None = None
        self._lock = asyncio.Lock()

    async def problem(self, app: Rota) -> str | None:
        """Return why the server cannot work; None where it can."""
        async with self._lock:
            if self._found is None or clock.monotonic() - self._found[0] > _FRESH_SECONDS:
                self._found = (clock.monotonic(), await _look(app))
            return self._found[1]


async def _look(app: Rota) -> str | None:
    try:
        async with asyncio.timeout(_SECONDS):
            missing = await app.database.read(Migrations("rota", "rota.store.migrations", app.database).missing)
    except (TimeoutError, RotaError):
        return "the store does not answer now"
    return f"the store's tables are not up to date: {len(missing)} missing; run rota migrate" if missing else None
