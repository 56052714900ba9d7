"""Sweeping: what a dead worker held goes back to the queue."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from rota import clock
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
        self._seen: dict[str, tuple[int, float]] = {}
        """Of each worker the lease that was seen last, and when it ends by the monotonic clock."""

    async def run_once(self) -> int:
        """Take back what expired leases held; returns how many runs are ready again."""
        ready = await self._db.write(lambda: self._workers.sweep(self._ended))
        for queue, count in ready.items():
            self._knock(queue, count)
        return sum(ready.values())

    def _ended(self, leases: Sequence[tuple[str, int, int]]) -> list[tuple[str, int]]:
        """Tell which leases have ended. A clock that somebody sets ends none, and makes none last.

        The store's clock tells how much is left of a lease when it is seen first; from then on only the monotonic one
        counts.
        """
        now = clock.monotonic()
        seen = self._seen
        self._seen = {
            worker: seen[worker] if worker in seen and seen[worker][0] == lease else (lease, now + left / 1_000_000)
            for worker, lease, left in leases
        }
        return [(worker, lease) for worker, (lease, end) in self._seen.items() if end < now]

    async def run(self) -> None:
        """Sweep for ever."""
        while True:
            with suppress(StoreUnavailable):  # the next round comes soon
                await self.run_once()
            await asyncio.sleep(_EVERY_SECONDS)
