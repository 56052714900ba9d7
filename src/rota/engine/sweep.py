"""Sweeping: what a dead worker held goes back to the queue."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from rota.db.database import Database
from rota.errors import StoreUnavailable
from rota.store.workers import WorkerStore

_EVERY_SECONDS = 2.0


class Sweeper:
    """Repairs what crashes left behind."""

    def __init__(self, database: Database, workers: WorkerStore, knock: Callable[[str, int], None]) -> None:
        self._db = database
        self._workers = workers
        self._knock = knock

    async def run_once(self) -> int:
        """Take back what expired leases held; returns how many runs are ready again."""
        ready = await self._db.write(self._workers.sweep)
        for queue, count in ready.items():
            self._knock(queue, count)
        return sum(ready.values())

    async def run(self) -> None:
        """Sweep for ever."""
        while True:
            with suppress(StoreUnavailable):  # the next round comes soon
                await self.run_once()
            await asyncio.sleep(_EVERY_SECONDS)
