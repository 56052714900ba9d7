"""One tick: fire what is due, work what is ready, wait for it, end. For those who have a clock of their own."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rota import clock
from rota.db.database import Database
from rota.engine.worker import Worker
from rota.model import Outcome
from rota.store.reads import QueueState, Reads
from rota.store.schedules import ScheduleStore

_MOST = 500
_LOOK_SECONDS = 0.05
_PATIENCE_SECONDS = 60.0
"""How long to wait for room that others have, or that time brings, while there is nothing to do here."""


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
    """False where the time was over before all was done."""

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

    async def run(self, queues: tuple[str, ...], seconds: float | None) -> Ticked:
        """Do all that is due, for so long at most; what begins in the meantime counts as due only if it is ready."""
        until = None if seconds is None else clock.monotonic() + seconds
        await self._declare()
        await self._db.write(lambda: self._schedules.heal(_MOST))
        fired = await self._fire()
        working = asyncio.create_task(self._worker.run())
        in_time = True
        try:
            in_time = await self._done(queues, working, until)
        finally:
            if not working.done():
                self._worker.stop()
            await working
        left: Counter[str] = Counter()
        for each in await self._queues():
            left[each.queue] += each.due if each.state in ("ready", "waiting") else 0
        return Ticked(fired, dict(self._worker.outcomes), dict(+left), in_time)

    async def _fire(self) -> int:
        """Fire once what is due now; an interval that is over again before the tick ends is for the next one."""
        fired = 0
        while (found := await self._db.write(lambda: self._schedules.fire(_MOST))).schedules:
            fired += found.runs
            if found.cancelled:
                await self._db.notify("cancel")
        await self._db.notify("ready")
        return fired

    async def _done(self, queues: tuple[str, ...], working: "asyncio.Task[None]", until: float | None) -> bool:
        """Wait until nothing is left to do here; tells whether that was in time."""
        idle_since = clock.monotonic()
        while not working.done():
            due = [each for each in await self._queues() if each.queue in queues and _is_due(each)]
            now = clock.monotonic()
            if self._worker.busy or any(each.state == "ready" for each in due):
                idle_since = now
            elif not due or now - idle_since > _PATIENCE_SECONDS:
                return True
            if until is not None and now >= until:
                return False
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(working), _LOOK_SECONDS)
        return not self._worker.worn_out

    async def _queues(self) -> list[QueueState]:
        return await self._db.read(self._reads.queues)


def _is_due(found: QueueState) -> bool:
    return found.state in ("ready", "waiting") and found.due > 0
