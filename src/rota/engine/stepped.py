"""The engine by steps: one process's scheduler and worker, without loops; it does what can be done, and then stands."""

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from rota.clock import VirtualClock
from rota.db.database import Database
from rota.engine import outcome
from rota.engine.scheduler import Scheduler
from rota.engine.worker import Worker, WorkerSettings
from rota.errors import TimedOut
from rota.schedule import read_retry
from rota.store.look import Look, Looks
from rota.store.runs import Claimed, Settled
from rota.store.schedule_rows import Fired
from rota.store.workers import NewWorker
from rota.tasks import Registry
from rota.times.backoff import Retry
from rota.times.moments import LATEST, SECOND, Instant

_MOST_ROUNDS = 10_000
"""How often to look again at one instant: an engine that does not come to rest by then never will."""
_LOST_AGAIN = SECOND
"""How long until runs that were lost are looked for again."""
_REPAIR_SECONDS = 3_600
"""How often to look for what needs repair, beside what ends by itself."""
_NOTHING_AHEAD = 500


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What an attempt is made to do."""

    lasts: int = 0
    """How long it takes, in microseconds of a virtual clock."""
    error: BaseException | None = None
    """What it raises instead of being called."""


@dataclass(frozen=True, slots=True)
class Going:
    """An attempt that was executed, and whose end is still to come."""

    run: Claimed
    ends: Instant
    ended: Settled


class Stepped(Worker):
    """Fires, admits, claims, executes and settles when it is told to.

    By a virtual clock an attempt is executed when it starts, and settled when it ends, and the lease lasts while it
    lives. What ends at an instant has ended before what is due at that instant is decided. By the real clock attempts
    take as long as they take.
    """

    def __init__(
        self,
        database: Database,
        tasks: Registry,
        settings: WorkerSettings,
        declare: Callable[[], Awaitable[None]],
        *,
        name: str = "stepped",
        behaviour: Callable[[Claimed], Behaviour] = lambda _: Behaviour(),
    ) -> None:
        super().__init__(database, tasks, settings)
        self._declare = declare
        self._name = name
        self._number = 0
        self._behaviour = behaviour
        self._queues: tuple[str, ...] = settings.queues
        self._looks = Looks(database)
        self._repaired_at = 0
        self.scheduler = Scheduler(database, declare, self.measured)
        self.going: list[Going] = []
        self.counts: Counter[str] = Counter()
        """How many attempts ended in which way, and how many runs were fired."""

    @property
    def now(self) -> Instant:
        """What time it is."""
        clock = self._db.clock
        return clock.at if isinstance(clock, VirtualClock) else round(clock.now().timestamp() * SECOND)

    # Begin and end

    async def begin(self) -> None:
        """Bring what is declared into the store, and come in as a worker."""
        self._loop = asyncio.get_running_loop()
        await self.declare()
        await self._enter()

    async def declare(self) -> None:
        """Bring what is declared into the store: more may be by now."""
        await self._declare()

    async def end(self) -> None:
        """Give back what is not at its end, and go."""
        self.going.clear()
        if self._renewer is not None:
            self._renewer.stop()
        await self._db.write(lambda: self.workers.leave(self.id))
        await self._progress.close()
        await self._executor.close()

    async def crash(self) -> None:
        """Die without a word, and come back under another name: what was going is lost, once the lease has ended."""
        self.going.clear()
        self._quarantined.clear()
        await self._db.write(lambda: self.workers.renew(self.id, int(self._settings.lease * SECOND)))
        await self._enter()

    async def _enter(self) -> None:
        if not isinstance(self._db.clock, VirtualClock):
            await super()._enter()
            return
        self._number += 1
        self.id = f"{self._name}-{self._number}"
        new = NewWorker(self.id, socket.gethostname(), os.getpid(), self._queues, self._settings.slots)
        await self._db.write(lambda: self.workers.enter(new, LATEST - self.now))

    def _settled(self, *, scheduled: bool) -> None:
        """Hear nothing: it looks by itself."""

    # Work

    async def repair(self) -> None:
        """Do what is done now and then: give back what was left behind, and a next to what has none."""
        self._repaired_at = self.now
        await self.sweeper.run_once()
        await self.scheduler.heal_once()
        await self.admitter.run_once()

    async def work(self, *, up: bool = True) -> Instant | None:
        """Do all that can be done now; returns when there will be more. While it is not up, things only end."""
        if up and self.now - self._repaired_at >= _REPAIR_SECONDS * SECOND:
            await self.repair()
        for _ in range(_MOST_ROUNDS):
            await self._settle([each for each in self.going if each.ends <= self.now])
            if not up:
                return min((each.ends for each in self.going), default=None)
            look = await self._db.read(lambda: self._looks.look(self.id))
            if not await self._step(look):
                return self._following(look)
        raise RuntimeError(f"the engine does not come to rest at {self._db.clock.now().isoformat()}")

    async def _step(self, look: Look) -> bool:
        """Do a round of what is to be done; tells whether anything was."""
        now = self.now
        unknown = (look.ready | look.unworked) - set(self._queues)
        if unknown:
            await self._take_on(unknown)
        if look.lost is not None and look.lost <= now:
            await self.sweeper.run_once()
        if look.cancel:
            await self._stop_going(dict(look.cancel))
        if look.wake is not None and look.wake <= now:
            fired = await self._fire()
            if not look.ready and set(fired.ready) & set(self._queues):
                await self._claim(lost=False)
            return True  # what else it made, or cancelled, is seen by another look
        waiting = [each for each in (look.due, look.rested) if each is not None and each <= now]
        if waiting or unknown:
            await self.admitter.run_once()
        claimed = await self._claim(lost=look.gone) if look.ready else 0
        return bool(unknown or look.cancel or waiting or claimed) or (look.lost is not None and look.lost <= now)

    async def _fire(self) -> Fired:
        fired = await self.scheduler.firer.fire()
        self.counts["fired"] += fired.runs
        return fired

    def _following(self, look: Look) -> Instant | None:
        events = [*look.events, *(each.ends for each in self.going)]
        if look.ready and len(self.going) < self._settings.slots:
            events.append(self.now + _LOST_AGAIN)
        return min(events, default=None)

    async def _take_on(self, queues: set[str] | frozenset[str]) -> None:
        """Work more queues."""
        self._queues = (*self._queues, *sorted(queues))
        self._claimer.work(self._queues)
        await self._db.write(lambda: self.workers.take_on(self.id, self._queues))

    async def _claim(self, *, lost: bool) -> int:
        free = self._settings.slots - len(self.going)
        if free <= 0:
            return 0
        found = await self._claimer.run_once(free, _NOTHING_AHEAD, quarantine=not self._quarantined, lost=lost)
        await self._learn_traces(found)
        if isinstance(self._db.clock, VirtualClock):
            for run in found:  # one after the other: always in the same order
                await self._begin(run)
        else:
            await asyncio.gather(*(self._begin(run) for run in found))
        await self._settle([each for each in self.going if each.ends <= self.now])
        return len(found)

    async def _begin(self, run: Claimed) -> None:
        if run.lost > 1:
            self._quarantined.add(run.id)
        behaviour = self._behaviour(run)
        began = self.now
        retry, limit = self._options(run)
        if behaviour.error is None:
            ended = await self._executor.execute(run)
        else:
            ended = outcome.raised(run, behaviour.error, retry)
        lasts = behaviour.lasts
        if limit is not None and lasts > limit:
            lasts = limit
            ended = outcome.raised(run, TimedOut(f"took longer than {limit / SECOND:g} s"), retry)
        self.going.append(Going(run, began + lasts, replace(ended, progress=self._progress.take(run))))

    def _options(self, run: Claimed) -> tuple[Retry, int | None]:
        """Return how a run is retried, and how long it may take."""
        task = self.tasks.get(run.task) if run.task in self.tasks else None
        own = None if task is None or task.options.timeout is None else task.options.timeout
        limit = run.timeout if run.timeout is not None or own is None else round(own.total_seconds() * SECOND)
        if run.retry is not None:
            return read_retry(run.retry), limit
        return (Retry() if task is None else task.options.retry), limit

    async def _stop_going(self, why: dict[int, str]) -> None:
        stopped = [each for each in self.going if each.run.id in why]
        for each in stopped:
            self.going.remove(each)
        await self._settle([replace(each, ended=outcome.cancelled(each.run, why[each.run.id])) for each in stopped])

    async def _settle(self, ended: Sequence[Going]) -> None:
        if not ended:
            return
        for each in sorted(ended, key=lambda each: (each.ends, each.run.id)):
            self._settler.add(each.ended)
            self._quarantined.discard(each.run.id)
            took = (each.ends - each.run.started_at) / SECOND
            if each.ended.completed:
                self._completed[each.run.id, each.run.attempt] = each.run, took
            else:
                self.counts[each.ended.outcome] += 1
                self.measured.ended(each.run, each.ended.outcome, took)
        gone = {(each.run.id, each.run.attempt) for each in ended}
        self.going = [each for each in self.going if (each.run.id, each.run.attempt) not in gone]
        before = self._settler.completed.copy()
        while await self._settler.run_once():
            pass
        self.counts.update(self._settler.completed - before)
