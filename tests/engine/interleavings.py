"""Three schedulers, three workers and two clients on one store, by virtual time, with every fault that may come.

All of them are the real thing, with their own loops, on an event loop whose time jumps. Each reaches the store through
a door of its own, where chance delays what is asked, refuses it, does it and loses the answer, freezes whoever asks or
kills him, and loses knocks; beside that the store's clock is set forward and back. All chance comes from one seed. On
SQLite nothing else decides, so that a seed does the same again, step by step; on PostgreSQL operations of several are
under way at once, and the server decides how they meet.

`python -m tests.engine.interleavings SECONDS` tries ever new seeds on SQLite, and stops at the first that fails.
"""

import asyncio
import contextlib
import contextvars
import copy
import logging
import math
import os
import random
import re
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, SimpleNamespace
from typing import Any, ClassVar, TypeVar, cast
from unittest.mock import patch

from tests.engine.virtual_loop import VirtualLoop
from tests.engine.witness import (
    ANSWERS,
    GOING,
    LIMITED,
    LOSSES,
    NEW_MOVES,
    OWN,
    WATCH,
    Witness,
    check_answers,
    stretches,
)
from tests.stores import SECOND, SQL, START, ask, sql

from rota import clock
from rota.app import Rota
from rota.clock import VirtualClock
from rota.context import current_run
from rota.control import Cancel, RetryLater, Snooze
from rota.db.database import Database, Rows, Snapshot, Work
from rota.db.migrate import Migrations
from rota.db.postgres import PostgresDatabase
from rota.db.sqlite import SqliteDatabase
from rota.db.statements import Statement, Statements
from rota.db.transaction import Transaction
from rota.engine.renew import Renewer
from rota.engine.scheduler import Scheduler
from rota.engine.worker import Worker
from rota.errors import Invalid, InvalidSchedule, StoreUnavailable, UnknownRun, UnknownSchedule
from rota.limit import Limit
from rota.schedule import Schedule
from rota.store.workers import Renewal
from rota.times.backoff import Retry
from rota.times.cron import Cron
from rota.times.intervals import Every
from rota.times.moments import moment
from rota.times.policies import OnFailure
from rota.times.rule import Rule

T = TypeVar("T")

LEASE = 6.0
HOUR = 3_600
KEEP = HOUR * SECOND
UNIQUE_FOR = 600 * SECOND
QUIET_SECONDS = 400.0
"""How long all that is under way may take to end when the faults are over, without a single knock."""
SHOWN = 40
RULES: dict[str, Rule] = {
    "short": Every("5s"),
    "long": Every("20s"),
    "cron": Cron("* * * * *"),
    "after": Every("4s", since="finish"),
    "success": Every("3s", since="success"),
}
STEPS = {str(RULES[name]): step * SECOND for name, step in (("short", 5), ("long", 20), ("cron", 60))}
OVERLAPS: list[dict[str, Any]] = [
    {"overlap": "skip"},
    {"overlap": "queue_one"},
    {"overlap": "queue_all"},
    {"overlap": "cancel_running"},
    {"overlap": "allow", "max_running": 2},
]
MISSED: list[dict[str, Any]] = [{}, {"missed": "all", "max_missed": 3}, {"missed": "none"}, {"grace": "30s"}]
TABLES = ("rota_schedules", "rota_runs", "rota_attempts", "rota_skips", "rota_revisions", "rota_taken", "rota_workers")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")

WORLD: contextvars.ContextVar["World"] = contextvars.ContextVar("world")
ME: contextvars.ContextVar["Process"] = contextvars.ContextVar("me")

tasks = Rota("sqlite://", name="world", keep="1h")


@tasks.task(retry=Retry(attempts=3, first="1s", jitter=0))
async def work() -> list[Any]:
    return await WORLD.get().execute()


@tasks.task(on_lost="fail")
async def once() -> list[Any]:
    return await WORLD.get().execute()


@tasks.task(limits=["host:x"], max_lost=1, timeout="3s")
async def limited() -> list[Any]:
    return await WORLD.get().execute()


TASKS = (work, once, limited)


class Mistake(Exception):
    """A law that did not hold, with what went before."""


class StoreClock(VirtualClock):
    """The store's clock, which somebody sets, and beside it seconds that only go forward."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__(START)
        self._loop = loop
        self.off = 0
        self.most_off = 0
        self._latest = START
        self.set_at: list[float] = []

    def micros(self) -> int:
        return START + self.off + round(self._loop.time() * SECOND)

    def now(self) -> Any:
        return moment(self.micros())

    def monotonic(self) -> float:
        return self._loop.time()

    @property
    def latest(self) -> int:
        """The latest that it ever was."""
        return max(self._latest, self.micros())

    def turn(self, seconds: float) -> None:
        self._latest = self.latest
        self.set_at.append(self._loop.time())
        self.off += round(seconds * SECOND)
        self.most_off = max(self.most_off, self.off)


@dataclass(frozen=True)
class Faults:
    """How often what goes wrong: chances of a step. Each seed has some of them, so that none hides another."""

    refused: float
    unanswered: float
    killed: float
    frozen: float
    knocks_lost: float
    weather: tuple[str, ...]

    @classmethod
    def drawn(cls, chance: random.Random) -> "Faults":
        def some(most: float) -> float:
            return chance.choice([0.0, most / 4, most])

        kinds = [each for each in ("clock", "downtime", "freeze", "kill") if chance.random() < 0.6]
        if chance.random() < 0.1:
            kinds.append("hand")
        return cls(some(0.04), some(0.06), some(0.02), some(0.02), some(0.6), tuple(kinds))


NO_FAULTS = Faults(0.0, 0.0, 0.0, 0.0, 1.0, ())
"""When all goes well but for the knocks: without them it must end too."""


class Door(Database):
    """The way of one process to the store."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self._db = world.db
        self.name = name
        self.dialect = self._db.dialect
        self.statements = self._db.statements
        self.clock = self._db.clock
        self.now = self._db.now
        self.dead = False
        self.frozen_until = 0.0
        self._thawed = asyncio.Event()
        self.swept_at = math.inf
        """When it swept first."""
        self.swept_last = (math.inf, 0)
        """When it swept last, and how far off the store's clock was then."""
        self.answer: tuple[object, Exception | None] | None = None
        """What was answered to whoever asks without waiting."""
        self.kill: Callable[[], None] | None = None
        """Ends the process behind it; None where that is a client."""

    def live_by(self, clock: VirtualClock | None) -> None:
        raise NotImplementedError

    @property
    def address(self) -> str:
        return self._db.address

    def anew(self) -> Database:
        raise NotImplementedError  # nobody here goes elsewhere, or brings a connection

    @property
    def place(self) -> Statement | None:
        return None

    def is_here(self, place: Rows) -> bool:
        raise NotImplementedError

    async def identity(self) -> str:
        raise NotImplementedError

    def transaction(self) -> contextlib.AbstractAsyncContextManager[Transaction]:
        raise NotImplementedError

    def snapshot(self) -> contextlib.AbstractAsyncContextManager[Snapshot]:
        raise NotImplementedError

    async def open(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    async def write(self, work: Work[T], *, first: bool = False, single: bool = False) -> T:
        return await self._pass(work, lambda: self._db.write(work, first=first, single=single))

    async def read(self, work: Work[T]) -> T:
        return await self._pass(work, lambda: self._db.read(work))

    def write_from_thread(self, work: Work[T]) -> T:
        if self.answer is None:
            raise Asked(work)
        (found, error), self.answer = self.answer, None
        if error is not None:
            raise error
        return cast("T", found)

    async def notify(self, topic: str) -> None:
        if not self.dead:
            self.world.knock(topic)

    def listen(self, heard: Callable[[str | None], None]) -> None:
        self.world.listeners.append((self, heard))

    def unlisten(self, heard: Callable[[str | None], None]) -> None:
        self.world.listeners.remove((self, heard))

    async def _pass(self, work: Work[T], asked: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Go through the door, and come back with the answer, if all goes well."""
        world, chance, faults = self.world, self.world.chance, self.world.faults
        what = getattr(work, "__qualname__", "?").split(".<locals>")[0]
        await self._hold_up()
        fate = chance.random()
        if fate < faults.refused:
            raise self._away(what, "refused")
        if self.kill is not None and fate > 1 - faults.killed:
            self._die(what, "killed before")
        try:
            with world.loop.outside() if world.concurrent else contextlib.nullcontext():
                found = await asked()
        except StoreUnavailable:
            raise
        except Exception as error:
            world.note(self.name, what, type(error).__name__)
            raise
        world.note(self.name, what, found)
        world.check(self)
        if what == "Sweeper.run_once":
            world.swept(self)
        fate = chance.random()
        if fate < faults.unanswered:
            raise self._away(what, "no answer")
        if self.kill is not None and fate > 1 - faults.killed:
            self._die(what, "killed after")
        await self._hold_up()
        return found

    async def _hold_up(self) -> None:
        """Take a while; as long as it is frozen, all of it."""
        chance = self.world.chance
        fate = chance.random()
        if fate < self.world.faults.frozen:
            self.freeze(chance.choice([1.0, LEASE, 2 * LEASE, 5 * LEASE]))
        if fate > 0.7:
            await asyncio.sleep(chance.choice(self.world.delays))
        while (left := self.frozen_until - self.world.loop.time()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._thawed.wait()
        if self.dead:
            raise StoreUnavailable("the process is dead")

    def freeze(self, seconds: float) -> None:
        if self.dead:
            return
        self._thawed.clear()
        self.frozen_until = max(self.frozen_until, self.world.loop.time() + seconds)
        self.world.note(self.name, "frozen for", seconds)

    def thaw(self) -> None:
        self.frozen_until = 0.0
        self._thawed.set()

    def _away(self, what: str, how: str) -> StoreUnavailable:
        self.world.note(self.name, what, how)
        return StoreUnavailable(how)

    def _die(self, what: str, how: str) -> None:
        self.world.note(self.name, what, how)
        assert self.kill is not None
        self.kill()
        raise StoreUnavailable(how)


class Asked(BaseException):
    """Somebody asks who cannot wait."""

    def __init__(self, work: Work[Any]) -> None:
        self.work = work


class Renewals(Renewer):
    """A lease that is kept without a thread: what would wait there is called twice.

    The first time it comes to its question, which is asked; the second time it reads the same time as before, up to the
    question, and has the answer.
    """

    def start(self) -> None:
        self._stopped = asyncio.Event()
        asyncio.get_running_loop().create_task(self._keep())

    def stop(self) -> None:
        super().stop()
        self._stopped.set()

    async def _keep(self) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._lease / 6):
                    await self._stopped.wait()
                    return
            with contextlib.suppress(StoreUnavailable):
                renewal = await self._renew()
                if not self._stop.is_set():
                    self._heard(renewal)

    async def _renew(self) -> Renewal:
        door = cast("Door", self._db)
        before: list[float] = []
        with door.world.readings(record=before):
            try:
                self.run_once()
            except Asked as asked:
                work = asked.work
        try:
            door.answer = (await door.write(work), None)
        except StoreUnavailable as error:
            door.answer = (None, error)
        asked_at = before[0]
        with door.world.readings(replay=before):
            renewal = self.run_once()
        if renewal.held:
            door.world.hear_renewal(self._worker, asked_at)
        return renewal


class Process:
    """A scheduler or a worker that comes back, with nothing remembered, whenever it was killed."""

    def __init__(self, world: "World", kind: str, number: int) -> None:
        self._world = world
        self._kind = kind
        self._number = number
        self._lives = 0
        self._ended = asyncio.Event()
        self.door: Door | None = None
        self.part: Scheduler | Worker | None = None

    async def run(self) -> None:
        """Live, again and again."""
        ME.set(self)
        while not self._world.over:
            self._lives += 1
            self._ended.clear()
            door = self.door = Door(self._world, f"{self._kind} {self._number}.{self._lives}")
            door.kill = self.kill
            app = self._world.app(door)
            if self._kind == "scheduler":
                self.part = app.scheduler()
            else:
                self.part = app.worker(slots=2, lease=LEASE, grace=0)
            life = asyncio.create_task(self.part.run())
            self._world.lives.append(life)
            life.add_done_callback(lambda _, door=door: self.kill(door))  # type: ignore[misc]
            await self._ended.wait()
            await asyncio.sleep(self._world.chance.choice([0.0, 0.5, 3.0]))
            await self._world.up.wait()

    def kill(self, door: Door | None = None) -> None:
        """End it at once: whatever it still wants of the store is refused."""
        if self.door is None or self.door.dead or door not in (None, self.door):
            return
        self.door.dead = True
        self.door.thaw()
        if self.part is not None:
            self.part.stop()
            self.part.stop()
        self._ended.set()


class World:
    """One simulation."""

    def __init__(self, seed: int, db: Database, loop: VirtualLoop, turned: StoreClock, rows: "Rows | None") -> None:
        self.seed = seed
        self.db = db
        self.loop = loop
        self.clock = turned
        self.chance = random.Random(seed)
        self.faults = Faults.drawn(self.chance)
        self.witness = Witness()
        self.listeners: list[tuple[Door, Callable[[str | None], None]]] = []
        self.trace: list[tuple[float, str, str, object]] = []
        self.figures: Counter[str] = Counter()
        self.renewed: dict[str, float] = {}
        """When each worker asked for the last renewal that it got."""
        self.over = False
        self._steps: int | None = None
        self._record: list[float] | None = None
        self._replay: list[float] = []
        self.up = asyncio.Event()
        """Whether who was killed may come back."""
        self.up.set()
        self.lives: list[asyncio.Task[None]] = []
        self._rows = rows
        self._errors: list[str] = []
        self._handed = False
        self._mistake: asyncio.Future[None] = loop.create_future()
        # Where steps can meet, they are to do so.
        self.delays = [0.0, 0.1, 0.5] if self.concurrent else [0.0, 0.001, 0.003, 0.01, 0.05, 0.4]
        self.at_once = self.chance.choice([1, 2])
        self._rules = self.chance.sample(sorted(RULES), self.chance.choice([1, 2, 5]))
        """Only some, so that there are times in which nothing is due."""
        self.schedules = {key: self._drawn(key) for key in ("a", "b", "c")}
        self.declared = self._drawn("declared")
        self.processes = [Process(self, kind, n) for n in range(1, 4) for kind in ("scheduler", "worker")]

    @property
    def concurrent(self) -> bool:
        """Whether operations of several are under way at once."""
        return self._rows is None

    def _drawn(self, key: str) -> Schedule:
        chance = self.chance
        options = chance.choice(OVERLAPS) | chance.choice(MISSED)
        if chance.random() < 0.2:
            options |= {"on_failure": OnFailure(double_from=1, cap="20s")}
        return Schedule(key, chance.choice(TASKS).call(), self._rule(), **options)

    def _rule(self) -> Rule:
        return RULES[self.chance.choice(self._rules)]

    def app(self, door: Door) -> Rota:
        """Return the application of a process."""
        found = copy.copy(tasks)  # to make one anew costs more than a step
        found._knocks, found._pending, found._declared = set(), set(), {}
        found.move(door)
        found.declare(self.declared)
        return found

    def monotonic(self) -> float:
        """Return what the monotonic clock of all processes says."""
        if self._replay:
            return self._replay.pop(0)
        if self._record is not None:
            self._record.append(self.loop.time())
        return self.loop.time()

    @contextlib.contextmanager
    def readings(self, *, record: list[float] | None = None, replay: list[float] | None = None) -> Iterator[None]:
        """Note what the monotonic clock says, or have it say the same again."""
        self._record, self._replay = record, replay or []
        yield
        self._record, self._replay = None, []

    def note(self, who: str, what: str, found: object) -> None:
        self.trace.append((self.loop.time(), who, what, found))

    # What happens

    async def run(self) -> None:
        """Let it all happen, then come to rest, and account for it."""
        WORLD.set(self)
        boss = self.app(Door(self, "boss"))
        faults, self.faults = self.faults, NO_FAULTS
        await boss.limits.put("host:x", Limit(at_once=self.at_once, gap=self.chance.choice(["0s", "1s"])))
        for each in self.schedules.values():
            await boss.schedules.put(each)
        self.faults = faults
        living = [asyncio.create_task(each.run()) for each in self.processes]
        clients = [asyncio.create_task(self._client(f"client {n}")) for n in (1, 2)]
        weather = asyncio.create_task(self._weather())
        watching = asyncio.create_task(self._watch()) if self.concurrent else None
        try:
            await self._unless_broken([*living, *clients, weather], self.chance.choice([3.0, 5.0, 8.0, 20.0]))
            for each in (*clients, weather):
                each.cancel()
            await asyncio.wait([*clients, weather])
            self._calm()
            if self._handed or self.chance.random() < 0.3:
                await self._unless_broken(living, 45.0 if self._handed else 12.0)
                await self._check_that_nothing_is_owed()
            await self._quiet(boss, living)
            await self._account()
        finally:
            self.over = True
            ends = [each for each in (*living, *clients, weather, watching) if each is not None]
            for task in ends:
                task.cancel()
            for process in self.processes:
                process.kill()
            self._steps = len(self.trace)
            await asyncio.gather(*ends, *self.lives, return_exceptions=True)
            await asyncio.sleep(1)  # what was asked for renewals is answered by then
        self._broken()

    async def _unless_broken(self, tasks: list["asyncio.Task[None]"], seconds: float) -> None:
        await asyncio.wait([*tasks, self._mistake], timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        for each in tasks:
            if each.done():
                each.result()
        self._broken()

    def _broken(self) -> None:
        for each in self.lives:
            if each.done() and not isinstance(each.exception(), StoreUnavailable | NoneType):
                raise each.exception()  # type: ignore[misc]
        if self._mistake.done():
            self._mistake.result()
        assert not self._errors, self._errors[0]

    def _calm(self) -> None:
        """End the faults: all that is frozen goes on, and the clock is right again."""
        self.faults = NO_FAULTS
        self.up.set()
        for each in self.processes:
            if each.door is not None:
                each.door.thaw()
        if self.clock.off < self.clock.most_off:
            self.clock.turn((self.clock.most_off - self.clock.off) / SECOND)
        self.note("boss", "the faults are over", "")

    async def _quiet(self, boss: Rota, living: list["asyncio.Task[None]"]) -> None:
        """Let nothing new come, and wait until nothing is under way."""
        await boss.pause()
        until = self.loop.time() + QUIET_SECONDS
        count = "SELECT count(*) AS number FROM rota_runs WHERE state IN ('waiting', 'ready', 'running')"
        while left := (await self._ask(count))[0]["number"]:
            assert self.loop.time() < until, f"{left} runs do not come to their end"
            await self._unless_broken(living, 1.0)

    async def execute(self) -> list[Any]:
        """Be a task."""
        me, run = ME.get(), current_run()
        assert isinstance(me.part, Worker)
        worker = me.part.id
        self.witness.begun[run.id] += 1
        if run.task == once.name and run.id not in self.witness.asked_back:
            assert self.witness.begun[run.id] == 1, f"run {run.id} must not run twice"
        await asyncio.sleep(self.chance.choice([0.0, 0.0, 0.0, 0.01, 0.01, 0.1, 0.5, 1.0, 2.0, 7.0]))
        fate = self.chance.random()
        if fate < 0.1:
            raise RuntimeError("broken")
        if fate < 0.2:
            raise self.chance.choice([RetryLater("2s"), Snooze("3s"), Cancel("enough")])
        return [run.id, run.attempt, worker]

    def knock(self, topic: str) -> None:
        """Tell the other processes, as far as the knock does not get lost."""
        for door, heard in tuple(self.listeners):
            if door.dead or self.chance.random() < self.faults.knocks_lost:
                continue
            self.loop.call_later(self.chance.choice([0.0, 0.001, 0.1]), self._deliver, door, heard, topic)

    def _deliver(self, door: Door, heard: Callable[[str | None], None], topic: str) -> None:
        if (door, heard) in self.listeners and not door.dead and self.loop.time() >= door.frozen_until:
            heard(topic)

    # Faults beside those at the doors

    async def _weather(self) -> None:
        while True:
            await asyncio.sleep(self.chance.choice([0.3, 1.0, 3.0]))
            if self.faults.weather:
                kind = self.chance.choice(self.faults.weather)
                self.figures[kind] += 1
                await getattr(self, f"_{kind}")()

    async def _clock(self) -> None:
        seconds = self.chance.choice([HOUR, -HOUR, -300, 300, 20, -7])
        self.clock.turn(seconds)
        self.note("weather", "the clock is set by", seconds)

    async def _freeze(self) -> None:
        door = self.chance.choice(self.processes).door
        if door is not None:
            door.freeze(self.chance.choice([LEASE, 3 * LEASE]))

    async def _kill(self) -> None:
        one = self.chance.choice(self.processes)
        self.note("weather", "kills", one.door.name if one.door is not None else "")
        one.kill()

    async def _downtime(self) -> None:
        """All are away for a long time, frozen or dead."""
        seconds = self.chance.choice([30.0, 900.0, 2.0 * HOUR])
        dead = self.chance.random() < 0.5
        self.note("weather", "all are dead for" if dead else "all are frozen for", seconds)
        self.up.clear()
        for each in self.processes:
            if dead:
                each.kill()
            elif each.door is not None:
                each.door.freeze(seconds)
        await asyncio.sleep(seconds)
        self.up.set()

    async def _hand(self) -> None:
        """Somebody's hand in the store leaves a schedule without a next."""
        key = self.chance.choice(sorted(self.schedules))
        await self._ask("UPDATE rota_schedules SET wake = NULL, next = NULL WHERE key = :key", key=key)
        self._handed = True
        self.note("weather", "forgets the next of", key)

    # Clients

    async def _client(self, name: str) -> None:
        app = self.app(Door(self, name))
        while True:
            await asyncio.sleep(self.chance.choice([0.0, 0.1, 0.5, 1.5]))
            key = self.chance.choice([*sorted(self.schedules), "declared"])
            act = self.chance.choice(self.ACTS)
            self.figures["acts"] += 1
            with contextlib.suppress(StoreUnavailable, UnknownSchedule, UnknownRun, InvalidSchedule, Invalid):
                await act(self, app, key)

    async def _enqueue(self, app: Rota, _key: str) -> None:
        delay, priority = self.chance.choice([0, 0, 3]), self.chance.choice([25, 50])
        run = await app.enqueue(self.chance.choice(TASKS).call(), delay=delay, priority=priority)
        self.witness.accepted.add(run.id)

    async def _enqueue_many(self, app: Rota, _key: str) -> None:
        self.witness.accepted |= set(await app.enqueue_many([work.call(), limited.call(), once.call()]))

    async def _enqueue_unique(self, app: Rota, key: str) -> None:
        """Ask again until there is an answer, as one does who has a key."""
        while True:
            with contextlib.suppress(StoreUnavailable):
                run = await app.enqueue(work.call(), unique=f"key {key}", unique_for=UNIQUE_FOR / SECOND)
                self.witness.accepted.add(run.id)
                return
            await asyncio.sleep(0.3)

    async def _put(self, app: Rota, key: str) -> None:
        known = self.schedules.get(key)
        if known is not None:
            options = {name: getattr(known.policies, name) for name in ("overlap", "max_running")}
            await app.schedules.put(Schedule(key, known.call, self._rule(), **options))

    async def _change(self, app: Rota, key: str) -> None:
        await app.schedules.change(key, rule=self._rule())

    async def _pause(self, app: Rota, key: str) -> None:
        until = self.chance.choice([None, moment(self.clock.micros() + 4 * SECOND)])
        await app.schedules.pause(key, until=until)

    async def _resume(self, app: Rota, key: str) -> None:
        await app.schedules.resume(key)

    async def _trigger(self, app: Rota, key: str) -> None:
        found = await app.schedules.trigger(key)
        if found.run is not None:
            self.witness.accepted.add(found.run)

    async def _backfill(self, app: Rota, key: str) -> None:
        now = self.clock.micros()
        await app.schedules.backfill(key, moment(now - 40 * SECOND), moment(now))

    async def _remove(self, app: Rota, key: str) -> None:
        if key in self.schedules:
            await app.schedules.remove(key)

    async def _cancel(self, app: Rota, _key: str) -> None:
        await app.runs.cancel(self._some_run())

    async def _retry(self, app: Rota, _key: str) -> None:
        run = self._some_run()
        self.witness.asked_back.add(run)
        await app.runs.retry(run)

    async def _pause_all(self, app: Rota, _key: str) -> None:
        await app.pause()
        await asyncio.sleep(self.chance.choice([0.0, 2.0]))
        while True:
            with contextlib.suppress(StoreUnavailable):
                await app.resume()
                return

    def _some_run(self) -> int:
        return self.chance.randint(max(1, len(self.witness.lives) - 12), len(self.witness.lives) + 1)

    ACTS: ClassVar[list[Callable[..., Coroutine[Any, Any, None]]]] = [
        *(_enqueue, _enqueue, _enqueue, _enqueue_many, _enqueue_unique, _enqueue_unique),
        *(_put, _put, _put, _change, _change, _pause, _resume, _resume, _trigger, _trigger, _backfill, _remove),
        *(_cancel, _retry, _pause_all),
    ]

    # What must hold

    async def _ask(self, text: str, **values: object) -> list[Any]:
        """Ask the store beside all doors."""
        with self.loop.outside() if self.concurrent else contextlib.nullcontext():
            return await ask(self.db, text, **values)

    def check(self, door: Door) -> None:
        """Look at what the last step did, where one step is one transaction."""
        if self._rows is None or self._mistake.done():
            return
        try:
            moves = self._rows(NEW_MOVES, {"after": self.witness.heard})
            if moves:
                self.witness.hear(moves, self.clock.latest, UNIQUE_FOR)
                self._check_leases(door, {row["run_worker"] for row in moves if row["run_lost"] > row["lost_before"]})
                self._check_room(self._rows(GOING, {}), self._rows(LIMITED, {}))
        except AssertionError as error:
            self._mistake.set_exception(error)  # the engine's loops would outlive it

    def _check_leases(self, sweeper: Door, lost: set[str]) -> None:
        """See that nobody lost what he held while his lease certainly was good, by a clock that nobody can set.

        Who sweeps for the first time knows only the store's clock, and believes it; as does he who cannot see that it
        was set, because it was set back again before he looked.
        """
        last, off = sweeper.swept_last
        if off == self.clock.off and any(at > last for at in self.clock.set_at):
            return
        for worker in lost:
            renewed = self.renewed.get(worker, -math.inf)
            since = min((at for at in self.clock.set_at if at > renewed), default=math.inf)
            good = self.loop.time() < renewed + LEASE and sweeper.swept_at < since
            assert not good, f"{worker} lost its runs {self.loop.time() - renewed:.3f} s after its lease was renewed"

    def hear_renewal(self, worker: str, at: float) -> None:
        """Hear that a worker asked for a renewal then, and got it."""
        self.renewed[worker] = at
        self._forget_the_gone()

    def swept(self, sweeper: Door) -> None:
        """Hear that somebody swept."""
        sweeper.swept_at = min(sweeper.swept_at, self.loop.time())
        sweeper.swept_last = (self.loop.time(), self.clock.off)
        self._forget_the_gone()

    def _forget_the_gone(self) -> None:
        """Forget the workers that are gone: what one of them still claims is nobody's."""
        if self._rows is not None:
            there = {row["id"] for row in self._rows("SELECT id FROM rota_workers", {})}
            self.renewed = {worker: at for worker, at in self.renewed.items() if worker in there}

    async def _watch(self) -> None:
        """Look now and then, where several are at it at once."""
        while True:
            self._check_room(await self._ask(GOING), await self._ask(LIMITED))
            await asyncio.sleep(0.3)

    def _check_room(self, going: list[Any], taken: list[Any]) -> None:
        asked_back = self.witness.asked_back  # also while their schedule was gone, and nothing held them up
        counts = Counter(row["schedule"] for row in going if row["id"] not in asked_back)
        for key, number in counts.items():
            known = self.schedules.get(key, self.declared)
            assert number <= known.policies.max_running, f"{number} runs of {key} go at once"
        for row in taken:
            assert row["number"] <= self.at_once, f"{row['number']} runs are under the limit {row['limits']}"

    async def _check_that_nothing_is_owed(self) -> None:
        """When the faults are over, what was due some seconds ago has its answer, and an active schedule goes on."""
        (paused,) = await self._ask("SELECT count(*) AS number FROM rota_pause WHERE paused = 1")
        if paused["number"]:
            return
        busy = {row["schedule"] for row in await self._ask("SELECT schedule FROM rota_runs WHERE finished_at IS NULL")}
        for row in await self._ask("SELECT * FROM rota_schedules WHERE state = 'active'"):
            key, wake = row["key"], row["wake"]
            assert wake is not None or key in busy, f"{key} is active and has nothing ahead of it"
            late = None if wake is None else (self.clock.micros() - wake) / SECOND
            assert late is None or late < 10, f"{key} was due {late} s ago"

    async def _account(self) -> None:
        if self.concurrent:
            self.witness.hear(await self._ask(NEW_MOVES, after=0), None, UNIQUE_FOR)
        self.witness.account()
        for row in await self._ask(LOSSES):
            known = row["id"] in self.witness.asked_back  # who begins anew
            assert known or row["lost"] == row["number"], f"{row['id']} counts {row['lost']} of {row['number']} losses"
        answered = stretches(await self._ask(ANSWERS))
        runs = await self._ask("SELECT schedule, kind, nominal FROM rota_runs WHERE schedule IS NOT NULL")
        skips = await self._ask("SELECT * FROM rota_skips ORDER BY first")
        lives = {row["key"]: row["created_at"] for row in await self._ask("SELECT key, created_at FROM rota_schedules")}
        for key, found in answered.items():
            ran = {row["nominal"] for row in runs if row["schedule"] == key and row["kind"] in OWN}
            mine = [row for row in skips if row["schedule"] == key]
            self.figures["instants"] += check_answers(key, found, STEPS, ran, mine, lives.get(key))
        self.figures["runs"] = len(self.witness.lives)
        self.figures["steps"] = len(self.trace)

    async def empty(self) -> None:
        """Take every row out of a PostgreSQL store."""
        text = "SELECT string_agg(tablename, ', ') AS names FROM pg_tables WHERE schemaname = 'public'"
        (row,) = await self._ask(f"{text} AND tablename <> 'rota_migrations'")
        await self._ask(f"TRUNCATE {row['names']} RESTART IDENTITY")

    async def tables(self) -> list[str]:
        """Return all that is in the store, as text."""
        found = []
        for table in TABLES:
            rows = await self._ask(f"SELECT * FROM {table}")
            found += sorted(f"{table} {dict(row)}" for row in rows)
        return found

    def told(self, last: int | None = None) -> list[str]:
        """Return the steps, or the last ones, as text."""
        steps = self.trace[: self._steps] if last is None else self.trace[: self._steps][-last:]
        return [f"{at:10.3f} {who:14} {what}: {_ADDRESS.sub('', repr(found))[:160]}" for at, who, what, found in steps]


Rows = Callable[[str, dict[str, Any]], list[Any]]
"""Asks a SQLite store at once, beside everybody."""


class Lone(SqliteDatabase):
    """A SQLite file that nobody else writes to: nothing has to be looked for."""

    async def _look(self, connection: sqlite3.Connection) -> None:
        """Look for nothing."""


class SqliteStore:
    """A SQLite store that is watched, and emptied for each seed."""

    def __init__(self, folder: Path) -> None:
        path = folder / "rota.db"
        self.db = Lone(str(path), Statements(SQL, "sqlite", None), lambda: START)
        asyncio.run(self._open())
        self._beside = sqlite3.connect(path, isolation_level=None)
        self._beside.row_factory = sqlite3.Row
        tables = self.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'rota_migrations'", {})
        self._tables = sorted(row["name"] for row in tables)  # the witness's are the last, for it sees the others go

    async def _open(self) -> None:
        await self.db.open()
        self.db._looking = None  # it has ended, and belongs to this event loop
        await Migrations("rota", "rota.store.migrations", self.db).apply()
        await watch(self.db)

    def rows(self, text: str, values: dict[str, Any]) -> list[Any]:
        """Ask at once, beside everybody."""
        return self._beside.execute(text, values).fetchall()

    def empty(self) -> None:
        self._beside.execute("BEGIN IMMEDIATE")
        for table in self._tables:
            self._beside.execute(f"DELETE FROM {table}")
        self._beside.execute("COMMIT")

    def close(self) -> None:
        self._beside.close()
        asyncio.run(self.db.close())


async def watch(db: Database) -> None:
    """Have a store write down what happens in it."""
    for text in WATCH[db.dialect]:
        await db.write(lambda text=text: sql(text, db.dialect))  # type: ignore[misc]


class Told(logging.Handler):
    """Hears what the engine calls an error: none may come of a fault."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.ERROR)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        self._world._errors.append(self.format(record))


@contextlib.contextmanager
def _without_chance(world: World) -> Iterator[None]:
    """Let nothing come from the machine: no time, no threads, no names."""
    names = iter(range(1_000_000))
    with (
        patch.object(clock, "monotonic", world.monotonic),
        patch("rota.engine.worker.secrets", SimpleNamespace(token_hex=lambda _: f"{next(names)}")),
        patch("rota.engine.worker.socket", SimpleNamespace(gethostname=lambda: "host")),
        patch("rota.engine.worker.os", SimpleNamespace(getpid=lambda: 1)),
        patch("rota.engine.sweep.secrets", SimpleNamespace(randbelow=world.chance.randrange)),
        patch("rota.engine.worker.Renewer", Renewals),
    ):
        log = logging.getLogger("rota")
        handler, before = Told(world), log.propagate
        log.addHandler(handler)
        log.propagate = False
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.propagate = before


async def _simulate(world: World) -> None:
    with _without_chance(world):
        try:
            await world.run()
        except AssertionError as error:
            steps = "\n".join(world.told(SHOWN))
            raise Mistake(f"seed {world.seed} at {world.loop.time():.3f} s: {error}\n{steps}") from error


def _run(loop: VirtualLoop, work: Coroutine[Any, Any, T]) -> T:
    with contextlib.closing(loop):
        asyncio.set_event_loop(loop)
        try:
            return loop.run_until_complete(work)
        finally:
            asyncio.set_event_loop(None)


def on_sqlite(store: SqliteStore, seed: int, then: Callable[[World], Coroutine[Any, Any, None]] | None = None) -> World:
    """Run one seed on a SQLite store, and perhaps look at what it left."""
    store.empty()
    loop = VirtualLoop()
    turned = StoreClock(loop)
    store.db.live_by(turned)

    async def all_of_it() -> World:
        world = World(seed, store.db, loop, turned, store.rows)
        await _simulate(world)
        if then is not None:
            await then(world)
        return world

    try:
        return _run(loop, all_of_it())
    finally:
        store.db.live_by(None)


def on_postgres(url: str, seed: int) -> World:
    """Run one seed on a PostgreSQL store that is watched and empty."""
    loop = VirtualLoop()
    turned = StoreClock(loop)

    async def all_of_it() -> World:
        db = PostgresDatabase(url, Statements(SQL, "postgres", None), turned.micros, connections=6)
        with loop.outside():
            await db.open()
        db.live_by(turned)
        world = World(seed, db, loop, turned, None)
        try:
            await world.empty()
            await _simulate(world)
        finally:
            with loop.outside():
                await db.close()
        return world

    return _run(loop, all_of_it())


def main() -> int:
    """Try new seeds for so many seconds."""
    seconds = float(sys.argv[1])
    until = clock.monotonic() + seconds
    given = os.environ.get("ROTA_TEST_SEED")
    first = int(given) if given else random.SystemRandom().randrange(10**9)
    figures: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(SqliteStore(Path(folder))) as store:
        seed = first
        while clock.monotonic() < until:
            try:
                figures += on_sqlite(store, seed).figures
            except Exception as error:  # noqa: BLE001 (whatever it is, the seed shows it again)
                again = f"ROTA_TEST_SEED={seed} scripts/test tests/engine/test_interleavings.py"
                sys.stdout.write(f"seed {seed}: {error}\nafter {figures['seeds']} seeds; again: {again}\n")
                return 1
            figures["seeds"] += 1
            seed += 1
    said = ", ".join(f"{name} {number}" for name, number in sorted(figures.items()))
    sys.stdout.write(f"interleavings: {said}, from seed {first} on\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
