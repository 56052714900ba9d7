"""Sweeping: what a dead worker held goes back to the queue, what it had of limits to others, and old history goes."""

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress

from rota import clock
from rota.db.database import Database
from rota.engine.admit import Knock
from rota.engine.counts import Counts
from rota.errors import StoreUnavailable
from rota.settings import KEEP
from rota.store.history import History
from rota.store.hours import Hours
from rota.store.idempotency import Idempotency
from rota.store.limits import LimitStore
from rota.store.workers import Leases, WorkerStore

_EVERY_SECONDS = 2.0
_HISTORY_SECONDS = 60.0
_HISTORY_FIRST_SECONDS = 10
"""Within how long a worker looks at the history first: not all that start together at once."""
_HISTORY_PAUSE_SECONDS = 0.02
"""Between two full batches, so that others get in."""
_HISTORY_MOST = 1_000
_STEP_SECONDS = 1.0
"""By how much two clocks may part between two looks before one of them was set."""


class Sweeper:
    """Repairs what crashes left behind, and removes what is old."""

    def __init__(
        self,
        database: Database,
        workers: WorkerStore,
        knock: Knock,
        room: Callable[[], None],
        *,
        lease: float = 30.0,
        keep: int = KEEP,
        counts: Counts | None = None,
    ) -> None:
        self._counts = Counts() if counts is None else counts
        self._db = database
        self._workers = workers
        self._limits = LimitStore(database)
        self._knock = knock
        self._room = room
        self._keep = keep
        self._history = History(database)
        self._answers = Idempotency(database)
        self._hours = Hours(database)
        self._lease = lease
        self._apart: float | None = None
        """By how many seconds the store's clock and the monotonic one differ."""
        self._seen: dict[str, tuple[int, float]] = {}
        """Of each worker the lease that was seen last, and when it ends by the monotonic clock."""

    async def run_once(self) -> int:
        """Take back what expired leases held and what nobody has of limits; returns how many runs are ready again."""
        ready = await self._db.write(lambda: self._workers.sweep(self._ended))
        self._counts.sweeps += 1
        self._counts.swept += sum(ready.values())
        if ready:
            await self._knock(ready)
        if await self._db.write(self._limits.sweep):
            self._room()
        return sum(ready.values())

    async def history_once(self) -> bool:
        """Sum up an hour, and remove a batch of what was over long ago; tells whether there may be more."""
        summed = await self._db.read(self._hours.next)
        if summed is not None:
            await self._db.write(lambda: self._hours.put(summed))
        removed = await self._db.write(lambda: self._history.sweep(self._keep, _HISTORY_MOST))
        forgotten = await self._db.write(lambda: self._answers.sweep(_HISTORY_MOST))
        return _HISTORY_MOST in (removed, forgotten) or bool(summed and summed.rows)

    def _ended(self, leases: Leases) -> list[tuple[str, int]]:
        """Tell which leases have ended. A clock that somebody sets ends none, and makes none last.

        The store's clock tells how much is left of a lease when it is seen first, and from then on the monotonic one
        counts. Where the store's was set meanwhile, it cannot tell either: then it is a whole lease, as they are here.
        """
        now = self._db.clock.monotonic()
        apart, seen = self._apart, self._seen
        if leases:
            self._apart = leases[0][2] / 1_000_000 - now
        was_set = apart is not None and self._apart is not None and abs(self._apart - apart) > _STEP_SECONDS
        self._seen = {}
        for worker, lease, _, left in leases:
            before, end = seen.get(worker, (None, 0.0))
            first = now + (self._lease if was_set else left / 1_000_000)
            self._seen[worker] = (lease, end if before == lease else first)
        return [(worker, lease) for worker, (lease, end) in self._seen.items() if end < now]

    async def run(self) -> None:
        """Sweep for ever; a long history in short batches, with all else in between."""
        due = clock.monotonic() + secrets.randbelow(_HISTORY_FIRST_SECONDS + 1)
        while True:
            pause = _EVERY_SECONDS
            with suppress(StoreUnavailable):  # the next round comes soon
                await self.run_once()
                if clock.monotonic() >= due:
                    if await self.history_once():
                        pause = _HISTORY_PAUSE_SECONDS
                    else:
                        due = clock.monotonic() + _HISTORY_SECONDS
            await asyncio.sleep(pause)
