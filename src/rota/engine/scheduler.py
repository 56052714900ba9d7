"""A scheduler: fires what is due, heals what has no next, and sleeps in between."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from rota import clock
from rota.db.database import Database
from rota.engine.admit import Admitter
from rota.engine.counts import Counts
from rota.engine.fire import Firer
from rota.engine.supervise import for_ever
from rota.errors import StoreUnavailable
from rota.store.runs import RunStore
from rota.store.schedule_reads import ScheduleReads
from rota.store.schedules import ScheduleStore

_log = logging.getLogger("rota.scheduler")

_HEAL_SECONDS = 30.0
_HEAL_MOST = 1_000
_REPORT_SECONDS = 3_600.0


class Scheduler:
    """Works the schedules of a store until it is stopped. Any number may work on one store."""

    def __init__(
        self, database: Database, declare: Callable[[], Awaitable[None]], counts: Counts | None = None
    ) -> None:
        self._counts = Counts() if counts is None else counts
        self._db = database
        self._declare = declare
        self._stop = asyncio.Event()
        self._schedules = ScheduleStore(database)
        self._reads = ScheduleReads(database)
        self.admitter = Admitter(database, RunStore(database), self._tell)
        self.firer = Firer(database, self._schedules, self._tell, self.admitter.bell.ring, self._counts)

    async def run(self) -> None:
        """Fire until `stop` is called or this is cancelled."""
        self._db.listen(self.heard)
        try:
            await self._declared()
            loops = [asyncio.create_task(for_ever(each)) for each in (self.firer.run, self.admitter.run, self._heal)]
            try:
                await self._stop.wait()
            finally:
                for each in loops:
                    each.cancel()
                await asyncio.gather(*loops, return_exceptions=True)
        finally:
            self._db.unlisten(self.heard)

    def stop(self) -> None:
        """Fire no more."""
        self._stop.set()

    def heard(self, topic: str | None) -> None:
        """Hear that something changed in the store."""
        if topic in (None, "schedules"):
            self.firer.bell.ring()
        if topic in (None, "waiting"):
            self.admitter.bell.ring()

    async def heal_once(self) -> int:
        """Find schedules that would wait for ever, or by a clock that was set back; returns how many go on."""
        found = await self._db.write(lambda: self._schedules.heal(_HEAL_MOST))
        self._counts.healed += found
        if found:
            _log.warning("%s schedules had no next instant, or one by a clock that was set back; they go on", found)
            self.firer.bell.ring()
        return found

    async def report_once(self) -> None:
        """Write into the log how the schedules are."""
        found = await self._db.read(self._reads.status)
        counts = ", ".join(f"{number} {state}" for state, number in found.counts.items()) or "none"
        said = "schedules: %s; %s overdue, %s failing; next due %s"
        facts = {"verb": "counted", "schedules": found.counts, "overdue": found.overdue, "failing": found.failing}
        due = found.next_due and found.next_due.isoformat()
        _log.info(
            said, counts, found.overdue, found.failing, found.next_due or "never", extra=facts | {"next_run": due}
        )

    async def _heal(self) -> None:
        """Heal again and again, and once an hour say how things are."""
        report = clock.monotonic() + _REPORT_SECONDS
        while True:
            with contextlib.suppress(StoreUnavailable):  # the next round comes soon
                await self.heal_once()
                if clock.monotonic() >= report:
                    report += _REPORT_SECONDS
                    await self.report_once()
            await asyncio.sleep(_HEAL_SECONDS)

    async def _declared(self) -> None:
        """Bring the declared schedules into the store; where it is away, wait for it."""
        while not self._stop.is_set():
            try:
                await self._declare()
            except StoreUnavailable as error:
                _log.warning("the store is away: %s", error)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), 1.0)
            else:
                return

    async def _tell(self, _ready: dict[str, int]) -> None:
        await self._db.notify("ready")
