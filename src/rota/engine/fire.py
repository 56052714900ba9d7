"""Firing: schedules that are due become runs, or skips with a reason, in one transaction; then the knock."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from rota import tracing
from rota.db.database import Database
from rota.engine.admit import Knock
from rota.engine.bell import Bell
from rota.engine.counts import Counts
from rota.engine.saying import Saying
from rota.engine.supervise import again_and_again
from rota.store.schedule_rows import Fired
from rota.store.schedules import ScheduleStore
from rota.times.moments import moment

_log = logging.getLogger("rota.scheduler")

_MOST = 500
"""How many schedules one transaction decides about: more would keep others from theirs."""
_BESIDE = 2
"""How many rounds go on at once while much is due."""
_LONGEST_SECONDS = 5.0
"""How long to sleep at most: whoever changed a schedule may have died before he could say so."""


class Firer:
    """Fires what is due. Any number of them may work on one store."""

    def __init__(
        self,
        database: Database,
        schedules: ScheduleStore,
        knock: Knock,
        waiting: Callable[[], None],
        counts: Counts | None = None,
    ) -> None:
        self._counts = Counts() if counts is None else counts
        self._db = database
        self._schedules = schedules
        self._knock = knock
        self._waiting = waiting
        self.bell = Bell()
        """Rings when a schedule was changed, or one of its runs has ended."""
        self._much = False
        """Whether the last round found as much as it may take."""
        self._saying = Saying(_log)
        self.fired = 0
        """How many runs it has made."""
        self.lost = 0
        """How many firings another instance had made before."""

    async def fire(self) -> Fired:
        """Fire what is due, as far as one transaction goes, and knock."""
        with tracing.firing() as span:
            found: Fired = await self._db.write(lambda: self._schedules.fire(_MOST))
            if span is not None:
                span.set_attributes({"rota.runs": found.runs, "rota.skips": found.skips, "rota.lost": found.lost})
        self.fired += found.runs
        self.lost += found.lost
        self._counts.took_in(found)
        for row in found.stored:
            self._saying.usual("fired", "schedule fired", _facts, found, row)
        if found.ready:
            await self._knock(found.ready)
        if found.runs > sum(found.ready.values()):
            self._waiting()
        if found.cancelled:
            await self._db.notify("cancel")
        return found

    async def run_once(self) -> float:
        """Fire what is due; returns in how many seconds to come again."""
        if await self._fire_much():
            return 0.0
        wait = await self._db.read(self._schedules.next_wake)
        return _LONGEST_SECONDS if wait is None else min(max(wait / 1_000_000, 0.0), _LONGEST_SECONDS)

    async def _fire_much(self) -> bool:
        """Fire what is due; returns whether there may be more. While much is, one round decides and another stores."""
        rounds = _BESIDE if self._much and self._db.beside else 1
        found = await asyncio.gather(*(self.fire() for _ in range(rounds)), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each
        self._much = all(isinstance(each, Fired) and each.schedules >= _MOST for each in found)
        return self._much

    async def run(self) -> None:
        """Fire for ever."""
        await again_and_again(self.run_once, self.bell)


def _facts(fired: Fired, row: Any) -> dict[str, Any]:
    """Return what is said of a firing."""
    known = fired.decided[row["schedule"]]
    following = known["next"]
    return {
        "schedule_id": row["schedule"],
        "job_id": row["id"],
        "job_name": known["task"],
        "priority": known["priority"],
        "next_run": None if following is None else moment(following).isoformat(),
    }
