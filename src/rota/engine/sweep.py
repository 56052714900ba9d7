"""Sweeping: what a dead worker held goes back to the queue, and what it had of limits to others."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from rota.db.database import Database
from rota.engine.admit import Knock
from rota.errors import StoreUnavailable
from rota.store.limits import LimitStore
from rota.store.workers import WorkerStore

_EVERY_SECONDS = 2.0


class Sweeper:
    """Repairs what crashes left behind."""

    def __init__(self, database: Database, workers: WorkerStore, knock: Knock, room: Callable[[], None]) -> None:
        self._db = database
        self._workers = workers
        self._limits = LimitStore(database)
        self._knock = knock
        self._room = room

    async def run_once(self) -> int:
        """Take back what expired leases held and what nobody has of limits; returns how many runs are ready again."""
        ready = await self._db.write(self._workers.sweep)
        if ready:
            await self._knock(ready)
        if await self._db.write(self._limits.sweep):
            self._room()
        return sum(ready.values())

    async def run(self) -> None:
        """Sweep for ever."""
        while True:
            with suppress(StoreUnavailable):  # the next round comes soon
                await self.run_once()
            await asyncio.sleep(_EVERY_SECONDS)
