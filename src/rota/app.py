"""`Rota`: the facade, and where the parts are put together."""

import asyncio
import contextlib
import copy
import os
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rota import clock, settings, tracing
from rota.alerts import FAILURES, TASK, Alerts, Tell, Watch, by_notify
from rota.application import Application
from rota.batches import in_batches
from rota.builtin import built_in
from rota.context import current_run
from rota.db.borrowed import run_on
from rota.db.connect import database
from rota.db.database import Database, Work
from rota.db.migrate import Migrations
from rota.engine.counts import Counts
from rota.engine.scheduler import Scheduler
from rota.engine.tick import Tick, Ticked
from rota.engine.worker import Worker, WorkerSettings
from rota.errors import Invalid, InvalidDuration, InvalidSchedule, StoreUnavailable, UnknownWorker
from rota.limit import keys as limit_keys
from rota.limits import Limits
from rota.locks import Lock
from rota.masking import hide_environment
from rota.model import Run
from rota.runs import Runs
from rota.schedule import Schedule
from rota.schedules import Schedules
from rota.store.queues import QueueSum, summed
from rota.store.reads import QueueState, Reads
from rota.store.runs import NewRun, RunStore
from rota.store.traces import TraceStore
from rota.store.workers import WorkerRecord, WorkerStore
from rota.tasks import Call, Priority, Registry, Task, TaskDecorator, TaskOptions, priority_number
from rota.times.choices import sendable, some, whole_number
from rota.times.durations import duration, duration_text
from rota.times.intervals import Every
from rota.times.moments import SECOND, instant
from rota.times.policies import Length
from rota.times.rule import Rule
from rota.tokens import Tokens

if TYPE_CHECKING:
    from fastapi import FastAPI

    from rota.server.auth import Auth

R = TypeVar("R")
T = TypeVar("T")

_BATCH = 5_000
_PLAIN = (0, None, None, None, None, 0)
"""What an enqueue is told that says nothing but the call."""
_BRIEF_LENGTH = 4_000
"""How long the arguments of a run are at most that is stored in no time."""
_REST_SECONDS = 0.005
"""How long after a word to the workers the next one of its kind is told: who enqueues much tells less."""
MOST_SLOTS = 1_000
MOST_QUEUES = 100
_LONGEST_KEY = 1_000


class Rota(TaskDecorator):
    """A store, the tasks of an application, and what is done with them."""

    def __init__(self, store: str | None = None, *, name: str = "rota", keep: Length | None = None) -> None:
        self.name = name
        self._keep = settings.keep(keep)
        self.tasks = Registry(self, built_in)
        self._knocks: set[asyncio.Task[None]] = set()
        self._pending: set[str] = set()
        self._told: dict[str, float] = {}
        """When the workers were told last, by topic."""
        self._entered = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._left: list[object] = []
        """What belongs to the process that this one was forked from; to let it go might close it."""
        self._declared: dict[str, Schedule] = {}
        self._applications: tuple[Application, ...] = ()
        self.counts = Counts()
        """What its workers and schedulers have done in this process."""
        self._watch = Watch()
        url = store or settings.store_url()
        hide_environment(os.environ)
        hide_environment({"ROTA_STORE": url})  # which may be said in code
        self.move(store_database(url))
        if settings.notify():
            self.watch()

    def move(self, database: Database) -> None:
        """Work on this database from now on, as it is: opening and closing are left to the caller."""
        for each in self._applications:
            database.statements.include(each.statements)
        self._db = database
        self._store = RunStore(database)
        self._traces = TraceStore(database)
        self.runs = Runs(database, self._store, self.tasks, self._knock)
        self.limits = Limits(database, self._knock)
        self.schedules = Schedules(database, self.name, self._knock)
        self.tokens = Tokens(database)
        self.alerts = Alerts(database, self.name, self._watch)

    def beside(self, database: Database) -> Self:
        """Return the same app on another database, which is open or closed as it is; the tasks stay with this one."""
        other = copy.copy(self)
        other.move(database)
        return other

    @property
    def database(self) -> Database:
        """Where its state is."""
        return self._db

    @property
    def entered(self) -> bool:
        """Whether `async with app` is open."""
        return self._entered > 0

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop in which the store is open, if any."""
        return None if self._loop is None or self._loop.is_closed() else self._loop

    @property
    def declared(self) -> list[Schedule]:
        """The schedules that the code declares."""
        return list(self._declared.values())

    @property
    def applications(self) -> tuple[Application, ...]:
        """What was included, in order."""
        return self._applications

    def include(self, *applications: Application) -> None:
        """Take in what applications bring: their tasks are known at once.

        Their tables are made when the store is opened, their limits and schedules are put when a scheduler starts.
        """
        for each in applications:
            if not isinstance(each, Application):
                raise Invalid("application", each, "use a rota.Application", "is no application")
            if self._loop is not None:
                raise Invalid("application", each.name, "include it before the app is opened", "comes too late")
            if each.name in {known.name for known in self._applications}:
                raise Invalid("application", each.name, "include each once", "is included already")
            self._take_in(each)

    def _take_in(self, application: Application) -> None:
        for owner, package in self._owners(application):
            strange = [table for table in Migrations(owner, package, self._db).tables if not _named_for(table, owner)]
            if strange:
                raise Invalid("table", strange[0], f"name it {owner}, or {owner}_…", f"is not named for {owner}")
        for task in application.tasks:
            self.tasks.check(task)
        for schedule in application.schedules:
            self._refuse_twice(schedule)
        self._db.statements.include(application.statements)
        for task in application.tasks:
            self.tasks.add(task, bind=False)
        self._declared |= {each.key: each for each in application.schedules}
        self._applications += (application,)

    @staticmethod
    def _owners(*applications: Application) -> list[tuple[str, str]]:
        """Return the owners of tables, each with the package of its migrations."""
        return [(each.name, each.migrations) for each in applications if each.migrations is not None]

    async def connect(self) -> None:
        """Connect to the store as it is."""
        await self._db.open()
        self._loop = asyncio.get_running_loop()

    async def open(self) -> None:
        """Open the store, and bring its tables up to date."""
        await self.connect()
        try:
            await self.migrate()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the store."""
        self._loop = None
        await self.told()
        await self._db.close()

    async def told(self) -> None:
        """Wait until the workers have been told of all that was done so far."""
        await asyncio.gather(*self._knocks, return_exceptions=True)

    def begin_anew(self) -> None:
        """Be closed, in a process that was forked: what was open belongs to the other process, and is left alone."""
        self._left += [self._db, self._loop, self._knocks]
        self._entered, self._loop, self._knocks, self._pending = 0, None, set(), set()
        self.move(self._db.anew())

    async def __aenter__(self) -> Self:
        """Open the store; entered again inside, it is open already, and stays so until the outermost is left."""
        if self.loop not in (None, asyncio.get_running_loop()):
            raise Invalid(
                "app", self.name, "close it there first, or work with it there", "is open in another event loop"
            )
        if not self._entered:
            await self.open()
        self._entered += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self._entered -= 1
        if not self._entered:
            await self.close()

    async def migrate(self) -> list[str]:
        """Bring the store's tables up to date, and those of the applications; returns what was applied."""
        owners = [("rota", "rota.store.migrations"), *self._owners(*self._applications)]
        return [name for owner in owners for name in await Migrations(*owner, self._db).apply()]

    async def workers(self) -> list[WorkerRecord]:
        """Return the workers that said they are there."""
        return await self._db.read(WorkerStore(self._db, self._store).list)

    async def drain(self, worker: str) -> None:
        """Let a worker take no new work, and end when what it runs has ended; in whatever process it is.

        It hears of it when it renews its lease next: after a sixth of the lease at most. Raises `UnknownWorker` where
        there is none of this name.
        """
        store = WorkerStore(self._db, self._store)
        if not sendable(worker) or not await self._db.write(lambda: store.drain(worker), single=True):
            raise UnknownWorker(worker)

    async def queues(self) -> list[QueueState]:
        """Return how many runs are under way, by queue and state."""
        return await self._db.read(Reads(self._db).queues)

    async def queue_sums(self) -> list[QueueSum]:
        """Return the queues by name, each with what is in it, how old that is, and who works it."""
        return summed(await self.queues(), await self.workers())

    async def enqueue(
        self,
        call: Call[R],
        /,
        *,
        delay: Length = 0,
        at: datetime | None = None,
        priority: Priority | None = None,
        queue: str | None = None,
        unique: str | None = None,
        unique_for: Length = 0,
        limits: Iterable[str] = (),
        connection: Any = None,
    ) -> Run[R]:
        """Store a run; once this returns it is not lost, whatever dies.

        It becomes ready when its time has come and there is room under its task's limits and these. With `unique` it is
        stored only where no run of this key is under way, or was made within `unique_for`; its `created` tells. With
        `connection` it exists if and only if the caller's transaction on it commits.
        """
        usual = _new_run(call, limit_keys(limits) if limits else ())
        plain = (delay, at, priority, queue, unique, unique_for) == _PLAIN
        new = (
            usual
            if plain
            else replace(
                usual,
                queue=usual.queue if queue is None else TaskOptions(queue=queue).queue,
                priority=usual.priority if priority is None else priority_number(priority),
                delay=_delay(delay, at),
                at=None if at is None else instant(at, "at"),
                unique=_key(unique, unique_for),
                unique_for=self._within_keep(unique_for),
            )
        )
        insert = self._store.insert_one if unique is None else self._store.insert_unique
        brief = len(new.args) <= _BRIEF_LENGTH
        with tracing.enqueuing(call.name) as trace:
            if trace is None:
                found: Run[R] = await self._write(lambda: insert(new), connection, single=unique is None, brief=brief)
            else:
                kept = partial(self._traces.around, runs=lambda made: [made.id] if made.created else [], trace=trace)
                found = await self._write(lambda: kept(insert(new)), connection, single=False, brief=brief)
        if connection is None:
            self._knock("waiting" if found.state == "waiting" else "ready")
        return found

    async def enqueue_many(self, calls: Iterable[Call[Any]], *, connection: Any = None) -> list[int]:
        """Store many runs, and return their ids in order."""
        new = (_new_run(call) for call in calls)
        insert = partial(self._insert, connection=connection)
        return [*chain(*await in_batches(new, _BATCH, insert, beside=connection is None))]

    async def _insert(self, batch: list[NewRun], connection: Any) -> list[int]:
        with tracing.enqueuing(batch[0].task, len(batch)) as trace:
            if trace is None:
                found: list[int] = await self._write(lambda: self._store.insert(batch), connection, single=True)
            else:
                kept = partial(self._traces.around, runs=list[int], trace=trace)
                found = await self._write(lambda: kept(self._store.insert(batch)), connection, single=False)
        if connection is None:
            self._knock("ready")
            self._knock("waiting")  # some may be under limits of their task or queue
        return found

    def lock(self, name: str, *, ttl: Length = "60s", wait: Length | None = None) -> Lock:
        """Return a lock for `async with`, which takes it, after so long a `wait` at most where another holds it."""
        return Lock(self._db, name, ttl=ttl, wait=wait)

    def schedule(self, key: str, rule: Rule, /, *args: Any, **options: Any) -> Callable[[T], T]:
        """Declare a schedule of a task in code, above its `@app.task`; `args=` and `kwargs=` are those of the call.

        The scheduler brings what is declared into the store when it starts, and retires what is gone from the code.
        """
        named = options.pop("kwargs", {})
        given = (*args, *options.pop("args", ()))

        def declare(task: T) -> T:
            if not isinstance(task, Task):
                raise InvalidSchedule("schedule", key, "put @app.schedule above @app.task", "needs a task")
            self.declare(Schedule(key, task.call(*given, **named), rule, **options))
            return task

        return declare

    def declare(self, schedule: Schedule) -> None:
        """Declare a schedule in code; a key may be declared once."""
        self._refuse_twice(schedule)
        self._declared[schedule.key] = schedule

    def _refuse_twice(self, schedule: Schedule) -> None:
        if schedule.key in self._declared:
            raise InvalidSchedule("key", schedule.key, "declare each key once", "is declared twice")

    def watch(
        self, tell: Tell = by_notify, *, every: Length = "1m", failures: int = FAILURES, queue: str = "default"
    ) -> None:
        """Look for troubles again and again, and tell somebody of each once, and once when it is over.

        Where `ROTA_NOTIFY` names targets it goes by itself; to say more about it, leave that out and call this. A
        trouble is a schedule that failed so many times in a row (or as often as its own `alert_after`), is parked,
        or had no success for twice its interval; and a worker that went silent. It is a schedule like any other,
        declared under the key `rota.alerts`.
        """
        whole_number("failures", failures, 1, 1_000, Invalid)
        self._watch.tell, self._watch.failures = tell, failures

        async def check() -> int:
            return await self.alerts.check()

        found = self.task(name=TASK, queue=queue, priority="high", timeout="5m")(check)
        self.declare(Schedule(TASK, found.call(), Every(every), description="Tells of troubles."))

    async def put_declared(self) -> None:
        """Bring the declared schedules into the store, and retire those that are gone from the code.

        Before that, the limits of the applications, where nobody has put another under the same key.
        """
        wanted = {key: limit for each in self._applications for key, limit in each.limits.items()}
        known = {each.key for each in await self.limits.list()} if wanted else set()
        for key, limit in wanted.items():
            if key not in known:
                await self.limits.put(key, limit)
        await self.schedules.put_declared(self.declared, self.tasks)

    async def pause(self, *, note: str | None = None, by: str | None = None) -> None:
        """Keep every schedule from firing, until `resume`; it outlives restarts."""
        await self.schedules.pause_all(paused=True, note=note, by=by)

    async def resume(self, *, note: str | None = None, by: str | None = None) -> None:
        """Let the schedules go on with the future; what passed is recorded as skipped."""
        await self.schedules.pause_all(paused=False, note=note, by=by)

    @contextlib.asynccontextmanager
    async def running(
        self,
        *,
        scheduler: bool = True,
        worker: bool = True,
        queues: Iterable[str] = ("default",),
        slots: int = 10,
        lease: Length = "30s",
        grace: Length = "30s",
    ) -> AsyncIterator[Worker | None]:
        """Open the store, fire the schedules and work the queues while this is entered."""
        async with self:
            firing = self.scheduler() if scheduler else None
            working = self.worker(queues=queues, slots=slots, lease=lease, grace=grace) if worker else None
            going = [asyncio.create_task(each.run()) for each in (firing, working) if each is not None]
            try:
                yield working
            finally:
                for each in (firing, working):
                    if each is not None:
                        each.stop()
                await asyncio.gather(*going)

    async def tick(
        self,
        *,
        queues: Iterable[str] | None = None,
        slots: int = 10,
        timeout: Length | None = None,
        grace: Length = "30s",
    ) -> Ticked:
        """Fire what is due, work what is ready and due in this process, wait for it, and return what came of it.

        Works the queues of the app's tasks and declared schedules where none are named. Does not wait for what is due
        later. After the `timeout` nothing more begins, and what runs has the `grace`.
        """
        seconds = None if timeout is None else duration(timeout, "timeout", least=1) / SECOND
        lanes = tuple(self.own_queues() if queues is None else queues)
        async with self:
            worker = self.worker(queues=lanes, slots=slots, grace=grace)
            return await Tick(self._db, self.put_declared, worker).run(lanes, seconds)

    def own_queues(self) -> list[str]:
        """Return the queues of the app's tasks and of the schedules that it declares."""
        named = {each.options.queue for each in self.tasks}
        return sorted(named | {each.queue for each in self.declared if each.queue} | {"default"})

    def web(self, *, auth: "Auth | None" = None, hosts: Iterable[str] = ()) -> "FastAPI":
        """Return the HTTP API, to be mounted under any prefix of an ASGI application, or served as it is.

        `auth` finds out who asks, in the place of tokens. Where `hosts` are named, a request must call the server by
        one of them.
        """
        from rota.server.web import web  # noqa: PLC0415 (FastAPI is loaded where somebody wants it)

        return web(self, auth=auth, hosts=hosts)

    @contextlib.asynccontextmanager
    async def lifespan(self, _: object = None) -> AsyncIterator[None]:
        """Open the store, fire the schedules and work the queues of the app's tasks while an ASGI application lives.

        As it is: `FastAPI(lifespan=app.lifespan)`; inside another: `async with app.lifespan(): …`.
        """
        async with self.running(queues=self.own_queues()):
            yield

    def scheduler(self) -> Scheduler:
        """Return a scheduler on the open store; `run` it. Any number may work on one store."""
        return Scheduler(self._db, self.put_declared, self.counts)

    def worker(
        self, *, queues: Iterable[str] = ("default",), slots: int = 10, lease: Length = "30s", grace: Length = "30s"
    ) -> Worker:
        """Return a worker on the open store; `run` it."""
        seconds = [
            duration(lease, "lease", least=SECOND) / SECOND,  # less would be lost before it could be renewed
            duration(grace, "grace") / SECOND,
        ]
        whole_number("slots", slots, 1, MOST_SLOTS, Invalid)
        lanes = tuple(TaskOptions(queue=each).queue for each in some("queues", queues, MOST_QUEUES, Invalid))
        chosen = WorkerSettings(lanes, slots, seconds[0], seconds[1], keep=self._keep)
        return Worker(self._db, self.tasks, chosen, self.counts)

    def _within_keep(self, unique_for: Length) -> int:
        """Refuse a time that outlives history: a run that is gone cannot keep its twin away."""
        found = duration(unique_for, "unique_for")
        if found > self._keep:
            allowed = f"ended runs are kept for {duration_text(self._keep)}: use at most that, or a longer keep"
            raise InvalidDuration("unique_for", unique_for, allowed, "is too long")
        return found

    async def _write(self, work: Work[T], connection: Any, *, single: bool, brief: bool = False) -> T:
        if connection is not None:
            return await run_on(connection, self._db, work, "ready", "waiting")
        return await self._db.write(work, single=single, brief=brief)

    def _knock(self, topic: str) -> None:
        """Tell the workers at once; what is to be told soon after is told together."""
        if topic in self._pending:
            return
        self._pending.add(topic)

        async def tell() -> None:
            await asyncio.sleep(max(0.0, self._told.get(topic, 0.0) + _REST_SECONDS - clock.monotonic()))
            self._pending.discard(topic)
            self._told[topic] = clock.monotonic()
            with contextlib.suppress(StoreUnavailable):
                await self._db.notify(topic)

        task = asyncio.get_running_loop().create_task(tell())
        self._knocks.add(task)
        task.add_done_callback(self._knocks.discard)


def current_app() -> Rota:
    """Return the app whose worker runs this code: for the tasks of an application, which belong to no app."""
    run = current_run()
    found = run.host.app()
    if not isinstance(found, Rota):
        allowed = 'make a rota.Rota(…) there: a task with isolation="process" is alone'
        raise Invalid("task", run.task, allowed, "has no app in its process")
    return found


def _named_for(table: str, owner: str) -> bool:
    return table == owner or table.startswith(f"{owner}_")


def store_database(url: str) -> Database:
    """Return the database of a store's address; it is not opened yet."""
    return database(url, ["rota.store.sql"])


def _new_run(call: Call[Any], more: tuple[str, ...] = ()) -> NewRun:
    """Return the run of a call as its task's options want it."""
    if not isinstance(call, Call):
        raise Invalid("call", call, "use what task.call(…) returns", "is not a call")
    options = call.options
    lost = 0 if options.on_lost == "fail" else options.max_lost
    named = (*options.limits, *call.limits, *more)
    limits = limit_keys(named) if named else ()
    return NewRun(call.name, call.args_json, options.queue, options.priority, limits=limits, max_lost=lost)


def _delay(delay: Length, at: datetime | None) -> int:
    length = duration(delay, "delay")
    if length and at is not None:
        raise Invalid("delay", delay, "use delay= or at=, not both", "does not go with at=")
    return length


def _key(unique: str | None, unique_for: Length) -> str | None:
    if unique is None:
        if unique_for:
            raise Invalid("unique_for", unique_for, "say which key by unique=", "has no key")
        return None
    if not isinstance(unique, str) or not 0 < len(unique) <= _LONGEST_KEY or not sendable(unique):
        raise Invalid("unique", unique, f"use text of up to {_LONGEST_KEY} characters, without NUL and half characters")
    return unique
