"""The test kit: an app by virtual time, what it enqueued, and all that is due worked off in this process."""

import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from inspect import Parameter, signature
from typing import Any

from rota import clock
from rota.app import MOST_SLOTS, Rota, store_database
from rota.clock import VirtualClock
from rota.engine.stepped import Behaviour, Stepped
from rota.engine.worker import WorkerSettings
from rota.errors import Invalid, InvalidMoment, UnknownTask, UnreadableArguments
from rota.model import Run
from rota.simulation import Takes, length_of
from rota.store.runs import Claimed
from rota.tasks import Call, Task
from rota.times.choices import whole_number
from rota.times.durations import duration
from rota.times.moments import LATEST, SECOND, Instant, instant, moment
from rota.times.policies import Length

__all__ = ["Counts", "TimeTravel", "assert_enqueued", "drain", "enqueued", "refute_enqueued", "travel"]

_PAGE = 200
_MADE_TO_FAIL = "made to fail by the test"


@dataclass(frozen=True, slots=True)
class Counts:
    """What was done: runs that schedules made, and attempts by how they ended."""

    fired: int = 0
    succeeded: int = 0
    failed: int = 0
    retry: int = 0
    snoozed: int = 0
    cancelled: int = 0

    @classmethod
    def since(cls, before: Counter[str], after: Counter[str]) -> "Counts":
        """Return what was counted between two counts."""
        return cls(**{name: after[name] - before[name] for name in cls.__slots__})


class TimeTravel:
    """An app's time. It stands still; it goes on when it is told to, from event to event."""

    def __init__(self, virtual: VirtualClock, seed: int, durations: Mapping[Any, Takes]) -> None:
        self._clock = virtual
        self._takes = {_name(task): takes for task, takes in durations.items()}
        self._failing: dict[str, list[BaseException]] = {}
        self._engine: Stepped | None = None
        self.random = random.Random(seed)  # noqa: S311 (it is to be the same each time)
        """Chance, the same for the same seed."""

    @property
    def now(self) -> datetime:
        """What time it is, in UTC."""
        return self._clock.now()

    async def advance(self, length: Length) -> Counts:
        """Let so much time pass, and do all that falls into it; returns what was done."""
        return await self._go_to(self._clock.at + duration(length, "length"))

    async def travel_to(self, moment: datetime | str) -> Counts:
        """Let time pass until then, and do all that falls into it; returns what was done."""
        target = instant(moment, "moment")
        if target < self._clock.at:
            raise InvalidMoment("moment", moment, f"it is {self.now.isoformat()} already", "is past")
        return await self._go_to(target)

    async def down(self, length: Length) -> Counts:
        """Be away for so long: nothing fires and nothing begins until it is over; then what was missed is caught up.

        What runs already ends in its time. `crash` first for a worker that dies.
        """
        engine, before = self._going()
        end = self._clock.at + duration(length, "length")
        while (event := await engine.work(up=False)) is not None and event < end:
            self._clock.set(event)
        self._clock.set(end)
        await engine.work()
        return Counts.since(before, engine.counts)

    async def drain(self) -> Counts:
        """Work off all that is due and ready now, and wait for it; returns what was done.

        The clock goes on only until what has begun by then has ended. What waits for its time, such as a retry, waits.
        """
        engine, before = self._going()
        await engine.declare()
        await engine.repair()
        await engine.work()
        begun = {each.run.id for each in engine.going}
        while ends := [each.ends for each in engine.going if each.run.id in begun]:
            await self._go_to(min(ends))
        return Counts.since(before, engine.counts)

    async def crash(self) -> None:
        """Let the worker die; what it was at is lost, and comes back when its lease has ended, 30 s after."""
        engine, _ = self._going()
        await engine.crash()

    def takes(self, task: Task[..., Any] | str, length: Takes) -> None:
        """Let a task, or the runs of the schedule with this key, take so long; a function is asked by due instant."""
        if not callable(length):
            duration(length, "length")
        self._takes[_name(task)] = length

    def fail(self, task: Task[..., Any] | str, *, times: int = 1, error: BaseException | None = None) -> None:
        """Let the next attempts of a task, or of the schedule with this key, fail instead of being called."""
        whole_number("times", times, 1, 1_000_000, Invalid)
        self._failing.setdefault(_name(task), []).extend([error or RuntimeError(_MADE_TO_FAIL)] * times)

    def _going(self) -> tuple[Stepped, Counter[str]]:
        if self._engine is None:
            raise Invalid("time", self.now.isoformat(), "use it inside of its async with", "has ended")
        return self._engine, Counter(self._engine.counts)

    async def _go_to(self, target: Instant) -> Counts:
        engine, before = self._going()
        if target > LATEST:
            raise InvalidMoment("length", f"{target / SECOND:.0f} s since 1970", "stay before 2200", "is too far")
        await engine.declare()
        await engine.repair()
        while (event := await engine.work()) is not None and event <= target:
            self._clock.set(event)
        if self._clock.at < target:
            self._clock.set(target)
        return Counts.since(before, engine.counts)

    def _behaviour(self, run: Claimed) -> Behaviour:
        """Say what an attempt does; the schedule's key goes before the task."""
        names = [each for each in (run.schedule, run.task) if each is not None]
        failing = next((self._failing[each] for each in names if self._failing.get(each)), None)
        takes: Takes = next((self._takes[each] for each in names if each in self._takes), 0)
        due = moment(run.due if run.nominal is None else run.nominal)
        return Behaviour(length_of(takes, due), failing.pop(0) if failing else None)


@asynccontextmanager
async def travel(
    app: Rota,
    start: datetime | str | None = None,
    *,
    seed: int = 0,
    store: str | None = None,
    durations: Mapping[Any, Takes] | None = None,
    slots: int = MOST_SLOTS,
) -> AsyncIterator[TimeTravel]:
    """Let an app live by virtual time: `async with travel(app, start="2027-03-27T00:00Z") as time`.

    The real engine on a real store: that of the app where it is open, else for as long that of `store`, or a temporary
    SQLite file, so that no test touches what the app works on. Nothing happens in the background.
    """
    whole_number("slots", slots, 1, MOST_SLOTS, Invalid)
    virtual = VirtualClock(clock.micros() if start is None else instant(start, "start"))
    time = TimeTravel(virtual, seed, durations or {})
    async with _on_store(app, store):
        app.database.live_by(virtual)
        settings = WorkerSettings(slots=slots)
        name = f"travel-{seed}"
        engine = Stepped(
            app.database,
            app.tasks,
            settings,
            app.put_declared,
            name=name,
            behaviour=time._behaviour,  # noqa: SLF001
        )
        try:
            await engine.begin()
            time._engine = engine  # noqa: SLF001
            yield time
        finally:
            time._engine = None  # noqa: SLF001
            await engine.end()
            app.database.live_by(None)


@asynccontextmanager
async def _on_store(app: Rota, store: str | None) -> AsyncIterator[None]:
    """Open the store that the app is to be on."""
    if app.entered:
        if store is not None:
            raise Invalid("store", store, "leave it out: the app is open, on a store of its own", "cannot be used")
        async with app:
            yield
        return
    own = app.database
    app.move(store_database(store or "sqlite://"))
    try:
        async with app:
            yield
    finally:
        app.move(own)


async def drain(app: Rota, *, slots: int = 10) -> Counts:
    """Work off all that is due and ready now, in this process and by the real clock; returns what was done.

    What is declared is brought into the store, what is due fires, and what is ready is executed and waited for, in
    every queue. What waits for its time, such as a retry, waits on.
    """
    whole_number("slots", slots, 1, MOST_SLOTS, Invalid)
    async with app:
        engine = Stepped(app.database, app.tasks, WorkerSettings(slots=slots), app.put_declared)
        await engine.begin()
        try:
            await engine.repair()
            await engine.work()
        finally:
            await engine.end()
        return Counts.since(Counter(), engine.counts)


async def enqueued(
    app: Rota,
    task: Task[..., Any] | Call[Any] | str | None = None,
    /,
    *,
    state: str | None = None,
    queue: str | None = None,
    schedule: str | None = None,
    **args: Any,
) -> list[Run[Any]]:
    """Return the runs of a task in the app's open store, oldest first, also those that have ended.

    Named arguments are those that the task is called with, as far as they matter; a `task.call(…)` says all of them.
    """
    if isinstance(task, Call) and args:
        raise Invalid("args", args, "say them in the call, or name the task alone", "do not go with a call")
    if isinstance(task, Task):
        _check_names(task, args)
    name = task.name if isinstance(task, Task | Call) else task
    found: list[Run[Any]] = []
    before: int | None = None
    while page := await app.runs.list(state=state, task=name, queue=queue, before=before, limit=_PAGE):
        found += [run for run in page if schedule in (None, run.schedule) and _matches(app, run, task, args)]
        before = page[-1].id
    return found[::-1]


async def assert_enqueued(
    app: Rota,
    task: Task[..., Any] | Call[Any] | str | None = None,
    /,
    *,
    count: int | None = None,
    state: str | None = None,
    queue: str | None = None,
    schedule: str | None = None,
    **args: Any,
) -> Run[Any]:
    """Fail unless there is such a run, or exactly `count` of them; returns the newest."""
    __tracebackhide__ = True  # what the reader wants to see is the line of the test
    if count is not None:
        whole_number("count", count, 1, 1_000_000, Invalid)
    where = {"state": state, "queue": queue, "schedule": schedule}
    found = await enqueued(app, task, **where, **args)
    if not found or (count is not None and len(found) != count):
        wanted = "a run" if count is None else "1 run" if count == 1 else f"{count} runs"
        raise AssertionError(await _said(app, wanted, len(found), task, where, args))
    return found[-1]


async def refute_enqueued(
    app: Rota,
    task: Task[..., Any] | Call[Any] | str | None = None,
    /,
    *,
    state: str | None = None,
    queue: str | None = None,
    schedule: str | None = None,
    **args: Any,
) -> None:
    """Fail if there is such a run."""
    __tracebackhide__ = True
    where = {"state": state, "queue": queue, "schedule": schedule}
    found = await enqueued(app, task, **where, **args)
    if found:
        raise AssertionError(await _said(app, "no run", len(found), task, where, args))


async def _said(
    app: Rota,
    wanted: str,
    found: int,
    task: Task[..., Any] | Call[Any] | str | None,
    where: Mapping[str, str | None],
    args: Mapping[str, Any],
) -> str:
    """Say what was looked for, how many there are, and what runs there are instead."""
    name = task.name if isinstance(task, Task | Call) else task
    of = "" if name is None else f" of {name}"
    chosen = {**{key: value for key, value in where.items() if value is not None}, **args}
    conditions = [task.args_json] if isinstance(task, Call) else []
    conditions += [f"{key}={value!r}" for key, value in chosen.items()]
    such = f" with {', '.join(conditions)}" if conditions else ""
    runs = await app.runs.list(task=name, limit=10)
    lines = [f"  run {run.id}: {run.task} {run.args} in {run.queue}, {run.state}" for run in runs]
    there = "\n".join([f"the newest runs{of}:", *lines]) if lines else f"there are no runs{of}"
    return f"expected {wanted}{of}{such}, found {found}; {there}"


def _matches(app: Rota, run: Run[Any], task: object, wanted: Mapping[str, Any]) -> bool:
    if isinstance(task, Call):
        return run.args == task.args_json
    if not wanted:
        return True
    try:
        known = app.tasks.get(run.task)
        given, named = known.load(run.args)
    except (UnknownTask, UnreadableArguments):
        return False
    taken = signature(known.function)
    bound = taken.bind(*given, **named)
    bound.apply_defaults()
    arguments = dict(bound.arguments)
    for more in [each.name for each in taken.parameters.values() if each.kind is Parameter.VAR_KEYWORD]:
        arguments |= arguments.pop(more)
    return all(name in arguments and arguments[name] == value for name, value in wanted.items())


def _check_names(task: Task[..., Any], args: Mapping[str, Any]) -> None:
    """Refuse an argument that the task does not take: no run would ever match it."""
    taken = signature(task.function).parameters
    if any(each.kind is Parameter.VAR_KEYWORD for each in taken.values()):
        return
    for name in args:
        if name not in taken:
            allowed = f"use {', '.join(taken)}" if taken else f"{task.name} takes none"
            raise Invalid("args", name, allowed, f"is no argument of {task.name}")


def _name(task: object) -> str:
    if isinstance(task, Task):
        return task.name
    if not isinstance(task, str):
        raise Invalid("task", task, "use a task, its name, or a schedule's key", "is no task")
    return task
