"""Sweeping: what a dead worker held goes back to the queue."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from rota import clock
from rota.db.database import Database
from rota.errors import StoreUnavailable
from rota.store.workers import WorkerStore

_EVERY_SECONDS = 2.0
_STEP_SECONDS = 1.0
"""By how much two clocks may part between two looks before one of them was set."""


class Sweeper:
    """Repairs what crashes left behind."""

    def __init__(
        self, database: Database, workers: WorkerStore, knock: Callable[[str, int], None], lease: float = 30.0
    ) -> None:
        self._db = database
        self._workers = workers
        self._knock = knock
        self._lease = lease
        self._apart: float | None = None
        """By how many seconds the store's clock and the monotonic one differ."""
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

        The store's clock tells how much is left of a lease when it is seen first, and from then on the monotonic one
        counts. Where the store's was set meanwhile, it cannot tell either: then it is a whole lease, as they are here.
        """
        now = clock.monotonic()
        apart, seen = self._apart, self._seen
        if leases:
            self._apart = (leases[0][1] - leases[0][2]) / 1_000_000 - now
        was_set = apart is not None and self._apart is not None and abs(self._apart - apart) > _STEP_SECONDS
        self._seen = {}
        for worker, lease, left in leases:
            before, end = seen.get(worker, (None, 0.0))
            first = now + (self._lease if was_set else left / 1_000_000)
            self._seen[worker] = (lease, end if before == lease else first)
        return [(worker, lease) for worker, (lease, end) in self._seen.items() if end < now]

    async def run(self) -> None:
        """Sweep for ever."""
        while True:
            with suppress(StoreUnavailable):  # the next round comes soon
                await self.run_once()
            await asyncio.sleep(_EVERY_SECONDS)
