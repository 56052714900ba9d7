"""Admitting: waiting runs become ready when their time comes."""

import asyncio
from collections.abc import Callable

from rota.db.database import Database
from rota.engine.bell import Bell
from rota.errors import StoreUnavailable
from rota.store.runs import RunStore

_MOST = 1_000
_LONGEST_SECONDS = 5.0
"""How long to sleep at most: whoever stored a run may have died before he could say so."""
_AGAIN_SECONDS = 1.0


class Admitter:
    """Makes due runs ready."""

    def __init__(self, database: Database, runs: RunStore, knock: Callable[[str, int], None]) -> None:
        self._db = database
        self._runs = runs
        self._knock = knock
        self.bell = Bell()
        """Rings when a run was stored that waits."""

    async def run_once(self) -> float:
        """Make ready what is due; returns in how many seconds to come again."""
        ready = await self._db.write(lambda: self._runs.admit(_MOST))
        for queue, count in ready.items():
            self._knock(queue, count)
        if sum(ready.values()) == _MOST:
            return 0.0
        wait = await self._db.read(self._runs.next_due)
        return _LONGEST_SECONDS if wait is None else min(max(wait / 1_000_000, 0.0), _LONGEST_SECONDS)

    async def run(self) -> None:
        """Admit for ever."""
        while True:
            try:
                wait = await self.run_once()
            except StoreUnavailable:
                wait = _AGAIN_SECONDS
            if wait > 0:
                await self.bell.wait(wait)
            else:
                await asyncio.sleep(0)
