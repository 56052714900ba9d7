"""Admitting: waiting runs become ready when their time has come and their limits have room."""

from collections.abc import Awaitable, Callable

from rota.db.database import Database
from rota.engine.bell import Bell
from rota.engine.supervise import again_and_again
from rota.store.admission import Admission, Admitted
from rota.store.runs import RunStore

_MOST = 1_000
_LONGEST_SECONDS = 5.0
"""How long to sleep at most: whoever stored a run may have died before he could say so."""
_LEAST_SECONDS = 0.02
"""How long to sleep at least where nothing could be done: somebody else is at it."""

Knock = Callable[[dict[str, int]], Awaitable[None]]
"""Tells all workers how many runs of which queues became ready."""


class Admitter:
    """Makes due runs ready."""

    def __init__(self, database: Database, runs: RunStore, knock: "Knock") -> None:
        self._db = database
        self._runs = runs
        self._knock = knock
        self._admission = Admission(database)
        self._limited = True
        self.bell = Bell()
        """Rings when a run was stored that waits, or room was given back."""

    async def run_once(self) -> float:
        """Make ready what is due and has room; returns in how many seconds to come again."""
        found = await self._admit()
        if found.ready:
            await self._knock(found.ready)
        if sum(found.ready.values()) >= _MOST:
            return 0.0
        due, self._limited = await self._db.read(self._runs.next_due)
        waits = [each for each in (due, found.wait) if each is not None]
        least = 0.0 if found.ready or not waits else _LEAST_SECONDS
        return min(max(min(waits) / 1_000_000, least), _LONGEST_SECONDS) if waits else _LONGEST_SECONDS

    async def _admit(self) -> Admitted:
        """Admit by time alone where there are no limits: that is one statement."""
        if self._limited:
            return await self._db.write(lambda: self._admission.admit(_MOST))
        return Admitted(await self._db.write(lambda: self._runs.admit(_MOST), single=True), None)

    async def run(self) -> None:
        """Admit for ever."""
        await again_and_again(self.run_once, self.bell)
