"""One tick: fire what is due, work what is ready, wait for it, end. For those who have a clock of their own."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rota import clock
from rota.db.database import Database
from rota.engine.fire import Firer
from rota.engine.worker import Worker
from rota.errors import StoreUnavailable
from rota.model import Outcome, RunState
from rota.store.reads import QueueState, Reads
from rota.store.schedules import ScheduleStore

_HEAL_MOST = 500
_LOOK_SECONDS = 0.05
_PATIENCE_SECONDS = 60.0
"""How long to wait for room that others have, or that time brings, while there is nothing to do here; and for a store
that went away in the middle."""
_AGAIN_SECONDS = 1.0

_log = logging.getLogger("rota.tick")


@dataclass(frozen=True, slots=True)
class Ticked:
    """What came of a tick."""

    fired: int
    """How many runs the schedules made."""
    outcomes: dict[Outcome, int]
    """How many attempts ended how; a run that waits to be tried again is a `retry`."""
    left: dict[str, int]
    """How many due runs it left, by queue: of queues that it does not work, without room, or for lack of time."""
    in_time: bool
    """False where the time was over and something that it was to do is left."""

    @property
    def ok(self) -> bool:
        """Whether all was done in time, and nothing has failed for good."""
        return self.in_time and not self.outcomes.get("failed")


class Tick:
    """Fires and works until nothing that is due is left."""

    def __init__(self, database: Database, declare: Callable[[], Awaitable[None]], worker: Worker) -> None:
        self._db = database
        self._declare = declare
        self._worker = worker
        self._reads = Reads(database)
        self._schedules = ScheduleStore(database)
        self._firer = Firer(database, self._schedules, self._tell, worker.admitter.bell.ring, worker.measured)
        self._answered = clock.monotonic()

    async def run(self, queues: tuple[str, ...], seconds: float | None) -> Ticked:
        """Do all that is due, for so long at most; what begins in the meantime counts as due only if it is ready.

        Cancelled, it takes no new work, and ends when what runs has ended or the grace is over; a second time, at once.
        """
        until = None if seconds is None else clock.monotonic() + seconds
        await self._declare()
        await self._db.write(lambda: self._schedules.heal(_HEAL_MOST))
        fired = await self._fire()
        working = asyncio.create_task(self._worker.run())
        try:
            in_time = await self._done(queues, working, until)
        finally:
            await self._stop(working)
        left: Counter[str] = Counter()
        for each in await self._queues():
            left[each.queue] += each.due if _is_due(each) else 0
        all_done = not self._worker.worn_out and not any(left[queue] for queue in queues)
        return Ticked(fired, dict(self._worker.outcomes), dict(+left), in_time or all_done)

    async def _stop(self, working: "asyncio.Task[None]") -> None:
        """End the worker in order, also where this is cancelled meanwhile."""
        cancelled: asyncio.CancelledError | None = None
        told, own = 0, asyncio.current_task()
        while not working.done():
            asked = 0 if own is None else own.cancelling()  # twice at once is one error
            for _ in range(min(2, max(told + 1, asked)) - told):
                self._worker.stop()
                told += 1
            try:
                await asyncio.wait([working])
            except asyncio.CancelledError as again:
                cancelled = again
        working.result()
        if cancelled is not None:
            raise cancelled

    async def _tell(self, _ready: dict[str, int]) -> None:
        await self._db.notify("ready")

    async def _fire(self) -> int:
        """Fire once what is due now; an interval that is over again before the tick ends is for the next one."""
        while (await self._firer.fire()).schedules:
            pass
        return self._firer.fired

    async def _done(self, queues: tuple[str, ...], working: "asyncio.Task[None]", until: float | None) -> bool:
        """Wait until nothing is left to do here; tells whether that was in time."""
        idle_since = clock.monotonic()
        while not working.done():
            due = await self._due(queues)
            now = clock.monotonic()
            if self._worker.busy or due is None or "ready" in due:
                idle_since = now
            elif not due or now - idle_since > _PATIENCE_SECONDS:
                return True
            if until is not None and now >= until:
                return False
            await asyncio.wait([working], timeout=_LOOK_SECONDS)
        return not self._worker.worn_out

    async def _due(self, queues: tuple[str, ...]) -> set[RunState] | None:
        """Return in which states there are due runs of these queues; None while the store is away for a moment."""
        try:
            found = await self._queues()
        except StoreUnavailable as error:
            away = clock.monotonic() - self._answered
            if away > _PATIENCE_SECONDS:
                raise
            _log.warning("the store is away: %s", error)
            await asyncio.sleep(_AGAIN_SECONDS)
            return None
        self._answered = clock.monotonic()
        return {each.state for each in found if each.queue in queues and _is_due(each)}

    async def _queues(self) -> list[QueueState]:
        return await self._db.read(self._reads.queues)


def _is_due(found: QueueState) -> bool:
    return found.state in ("ready", "waiting") and found.due > 0
