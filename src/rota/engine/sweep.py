"""Sweeping: what a dead worker held goes back to the queue, what it had of limits to others, and old history goes."""

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress

from rota import clock
from rota.db.database import Database
from rota.engine.admit import Knock
from rota.errors import StoreUnavailable
from rota.settings import KEEP
from rota.store.history import History
from rota.store.limits import LimitStore
from rota.store.workers import WorkerStore

_EVERY_SECONDS = 2.0
_HISTORY_SECONDS = 60.0
_HISTORY_FIRST_SECONDS = 10
"""Within how long a worker looks at the history first: not all that start together at once."""
_HISTORY_PAUSE_SECONDS = 0.02
"""Between two full batches, so that others get in."""
_HISTORY_MOST = 1_000


class Sweeper:
    """Repairs what crashes left behind, and removes what is old."""

    def __init__(
        self, database: Database, workers: WorkerStore, knock: Knock, room: Callable[[], None], keep: int = KEEP
    ) -> None:
        self._db = database
        self._workers = workers
        self._limits = LimitStore(database)
        self._knock = knock
        self._room = room
        self._keep = keep
        self._history = History(database)

    async def run_once(self) -> int:
        """Take back what expired leases held and what nobody has of limits; returns how many runs are ready again."""
        ready = await self._db.write(self._workers.sweep)
        if ready:
            await self._knock(ready)
        if await self._db.write(self._limits.sweep):
            self._room()
        return sum(ready.values())

    async def history_once(self) -> bool:
        """Remove a batch of runs that ended long ago; tells whether there may be more."""
        removed = await self._db.write(lambda: self._history.sweep(self._keep, _HISTORY_MOST), single=True)
        return removed == _HISTORY_MOST

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
