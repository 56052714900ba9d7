"""`app.schedules`: durable rules for calls; changing, pausing, running and asking about them."""

import builtins
import heapq
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any, get_args

from rota.answers import answer_words, held_words, now_words
from rota.db.borrowed import run_on
from rota.db.database import Database, Work
from rota.errors import (
    Invalid,
    InvalidSchedule,
    OutdatedVersion,
    ScheduleExists,
    UnknownSchedule,
    UnknownTask,
    UnreadableArguments,
)
from rota.limit import keys as limit_keys
from rota.schedule import (
    Schedule,
    schedule_description,
    schedule_key,
    schedule_retry,
    schedule_tags,
    write_policies,
    write_retry,
)
from rota.store.schedule_reads import (
    FiringState,
    Revision,
    ScheduleReads,
    SchedulesStatus,
    ScheduleState,
    State,
)
from rota.store.schedule_rows import Author, Definition, Triggered
from rota.store.schedules import ScheduleStore
from rota.tasks import Call, Registry, TaskOptions, priority_number
from rota.times.choices import one_of, sendable, whole_number
from rota.times.durations import duration
from rota.times.exclusion import excluded
from rota.times.intervals import Every
from rota.times.moments import Instant, instant, micros, moment
from rota.times.policies import Length, Policies
from rota.times.rule import Rule
from rota.times.spread import distribute

_BATCH = 1_000
_FIRST = datetime.min.replace(tzinfo=UTC)
MOST_BACKFILLED = 10_000
_LONGEST_NOTE = 1_000
_ALL_TOPICS = ("ready", "waiting", "cancel", "schedules")
"""Who is to hear of what may touch runs, too."""
_POLICIES = ("overlap", "max_running", "missed", "max_missed", "grace", "spread", "jitter", "exclude", "max_runs")
_POLICY_VALUES = (*_POLICIES, "on_failure", "adaptive")
_OTHERS = ("call", "rule", "queue", "priority", "limits", "timeout", "retry", "tags", "description")


@dataclass(frozen=True, slots=True)
class PutCounts:
    """What a call that put schedules did."""

    made: int = 0
    changed: int = 0
    same: int = 0


@dataclass(frozen=True, slots=True)
class Upcoming:
    """A due instant that lies ahead."""

    key: str
    due: datetime


@dataclass(frozen=True, slots=True)
class Why:
    """What came of a due instant, and why, in words; with what is known of it."""

    key: str
    at: datetime
    text: str
    firing: FiringState | None = None


class Schedules:
    """The schedules of a store."""

    def __init__(self, database: Database, name: str, knock: Callable[[str], None]) -> None:
        self._db = database
        self._name = name
        self._knock = knock
        self._store = ScheduleStore(database)
        self._reads = ScheduleReads(database)

    # Change

    async def put(
        self,
        schedule: Schedule,
        *,
        create: bool = False,
        note: str | None = None,
        by: str | None = None,
        connection: Any = None,
    ) -> ScheduleState:
        """Make a schedule, or change what differs from the one under its key.

        What exists keeps its pause and, where the rule stays, its next due instant. With `create` one that exists is
        left as it is, and that is a `ScheduleExists`. With `connection` it happens if and only if the caller's
        transaction on it commits.
        """
        new = self.definition(schedule)
        author = _author(by, note)

        def work() -> Any:
            made, _ = yield from self._store.put([new], author, create=create)
            if create and not made:
                raise ScheduleExists(new.key)
            return (yield from self._reads.get(new.key))

        found: ScheduleState = await self._write(work, connection, "schedules")
        return found

    async def put_many(
        self,
        schedules: Iterable[Schedule],
        *,
        note: str | None = None,
        by: str | None = None,
        progress: Callable[[int], None] | None = None,
        connection: Any = None,
    ) -> PutCounts:
        """Make or change many, a thousand in a transaction; `progress` hears how many are done.

        With `connection` all of it happens if and only if the caller's transaction on it commits.
        """
        author = _author(by, note)
        made = changed = done = 0
        seen: set[str] = set()
        several = iter(schedules)
        while batch := [self.definition(each) for each in islice(several, _BATCH)]:
            for each in batch:
                if each.key in seen:
                    raise InvalidSchedule("key", each.key, "use each key once", "is there twice")
                seen.add(each.key)
            work = partial(self._store.put, batch, author)
            new, other = await self._write(work, connection, "schedules")
            made, changed, done = made + len(new), changed + len(other), done + len(batch)
            if progress is not None:
                progress(done)
        return PutCounts(made, changed, done - made - changed)

    def definition(self, schedule: Schedule, *, declared: bool = False) -> Definition:
        """Write a schedule as the store keeps it."""
        if not isinstance(schedule, Schedule):
            raise InvalidSchedule("schedule", schedule, "use a rota.Schedule", "is not a schedule")
        options = schedule.call.options
        own, brought = _limits(schedule.limits, [*options.limits, *schedule.call.limits])
        return Definition(
            key=schedule.key,
            app=self._name,
            declared=declared,
            task=schedule.call.name,
            args=schedule.call.args_json,
            rule=str(schedule.rule),
            policies=write_policies(schedule.policies),
            queue=options.queue if schedule.queue is None else schedule.queue,
            priority=options.priority if schedule.priority is None else schedule.priority,
            limits=own,
            call_limits=brought,
            max_lost=_lost_allowed(options),
            timeout=None if schedule.timeout is None else micros(schedule.timeout),
            retry=write_retry(schedule.retry),
            tags=schedule.tags,
            description=schedule.description,
        )

    async def change(
        self,
        /,
        key: str | None = None,
        *,
        tag: str | None = None,
        prefix: str | None = None,
        note: str | None = None,
        by: str | None = None,
        version: int | None = None,
        last_success: datetime | None = None,
        connection: Any = None,
        **values: Any,
    ) -> int:
        """Change what is named and keep the rest, of one schedule or of all with a tag or a prefix; returns how many.

        Takes what `Schedule` takes, or in place of a value a function that makes it from the `ScheduleState`: that
        changes a part of what each has. With `version` nothing is changed where somebody else did so since.
        `last_success` says by hand when the last success was. With `connection` it happens if and only if the caller's
        transaction on it commits; so for pause, resume and remove.
        """
        unknown = set(values) - {*_POLICY_VALUES, *_OTHERS}
        if unknown:
            allowed = f"use {', '.join((*_OTHERS, *_POLICY_VALUES))}, last_success"
            raise InvalidSchedule("change", min(unknown), allowed, "is nothing that a schedule has")
        author = _author(by, note)

        def work(keys: builtins.list[str]) -> Any:
            rows = yield from self._store.rows(keys)
            for row in rows:
                if version is not None and row["version"] != version:
                    raise OutdatedVersion(version, row["version"])
            new = [_changed(row, values) for row in rows]
            changed: set[str] = set()
            if values:
                _, changed = yield from self._store.put(new, author)
            if last_success is not None:
                yield from self._store.set_success(keys, instant(last_success, "last_success"), author)
                changed |= set(keys)
            return changed

        return await self._each(key, tag, prefix, work, connection)

    async def pause(
        self,
        key: str | None = None,
        *,
        tag: str | None = None,
        prefix: str | None = None,
        note: str | None = None,
        by: str | None = None,
        until: datetime | None = None,
        connection: Any = None,
    ) -> int:
        """Keep one schedule, or all with a tag or a prefix, from firing, perhaps until a moment; returns how many."""
        end = None if until is None else instant(until, "until")
        author = _author(by, note)
        return await self._each(key, tag, prefix, lambda keys: self._store.pause(keys, end, author), connection)

    async def resume(
        self,
        key: str | None = None,
        *,
        tag: str | None = None,
        prefix: str | None = None,
        note: str | None = None,
        by: str | None = None,
        connection: Any = None,
    ) -> int:
        """Let them go on with the future; what passed is recorded as skipped. Returns how many were held."""
        author = _author(by, note)
        return await self._each(key, tag, prefix, lambda keys: self._store.resume(keys, author), connection)

    async def remove(
        self,
        key: str | None = None,
        *,
        tag: str | None = None,
        prefix: str | None = None,
        note: str | None = None,
        by: str | None = None,
        connection: Any = None,
    ) -> int:
        """Remove them: what waits is cancelled, what runs ends, the history stays. Returns how many."""
        author = _author(by, note)
        return await self._each(key, tag, prefix, lambda keys: self._store.remove(keys, author), connection)

    async def spread(
        self,
        *,
        tag: str | None = None,
        prefix: str | None = None,
        window: Length = "1h",
        note: str | None = None,
        by: str | None = None,
    ) -> int:
        """Spread what runs next of all with a tag or a prefix evenly over a window from now on; returns how many.

        It concerns active anchored intervals with no run under way; they keep their order.
        """
        length = duration(window, "window", least=1)
        if (tag is None) == (prefix is None):
            raise InvalidSchedule("spread", tag or prefix, "say one of: tag=…, prefix=…", "does not say which")
        author = _author(by, note)
        found: builtins.list[tuple[datetime, str]] = []
        async for batch in self._states(tag, prefix):
            keys = [each.key for each in batch]
            able = await self._db.write(lambda keys=keys: self._store.askable(keys))  # type: ignore[misc]
            found += [(each.next_due or _FIRST, each.key) for each in batch if each.key in able]
        start = await self._db.read(self._reads.now)
        places = [start + offset for offset in distribute(len(found), length)]
        ordered = list(zip((key for _, key in sorted(found)), places, strict=True))
        count = 0
        for at in range(0, len(ordered), _BATCH):
            wanted = dict(ordered[at : at + _BATCH])
            count += len(await self._db.write(lambda wanted=wanted: self._store.ask(wanted, author)))  # type: ignore[misc]
        self._knock("schedules")
        return count

    async def trigger(
        self, key: str, *, note: str | None = None, by: str | None = None, connection: Any = None
    ) -> Triggered:
        """Run a schedule now, beside its rule, as its overlap policy lets it; names the run that blocks it.

        With `connection` it happens if and only if the caller's transaction on it commits.
        """
        author = _author(by, note)
        work = partial(self._store.trigger, schedule_key(key), author)
        found: Triggered = await self._write(work, connection, *_ALL_TOPICS)
        return found

    async def backfill(
        self, key: str, start: datetime, end: datetime, *, note: str | None = None, by: str | None = None
    ) -> Triggered:
        """Run the due instants from `start` on, before `end`, once more, in order, as the overlap policy lets them."""
        first, last = instant(start, "start"), instant(end, "end")
        found = await self.get(key)
        if isinstance(found.rule, Every) and found.rule.anchored:
            raise InvalidSchedule("key", key, "it counts from its last run; trigger it instead", "has no past instants")
        named = _instants(found.rule, first - 1, last)
        dues = list(islice((t for t in named if not excluded(found.policies.exclude, t)), MOST_BACKFILLED + 1))
        if not dues:
            raise InvalidSchedule("start", f"{start} to {end}", "use a range with due instants", "has none")
        if len(dues) > MOST_BACKFILLED:
            raise InvalidSchedule("end", end, f"use a range of up to {MOST_BACKFILLED:,} instants", "is too far")
        if dues[-1] > await self._db.read(self._reads.now):
            raise InvalidSchedule("end", end, "use a range that is past", "lies ahead")
        author = _author(by, note)
        made: Triggered = await self._write(partial(self._store.backfill, key, dues, author), None, *_ALL_TOPICS)
        return made

    # As a whole

    async def put_declared(self, schedules: Iterable[Schedule], tasks: Registry) -> None:
        """Bring the schedules that the code declares into the store; retire what is gone, repair what was parked.

        A schedule that was parked goes on where its task is known here and takes its arguments.
        """
        new = [self.definition(each, declared=True) for each in schedules]
        author = Author("the code")

        def work() -> Any:
            yield from self._store.put(new, author)
            kept = {each.key for each in new}
            gone = [key for key in (yield from self._reads.declared(self._name)) if key not in kept]
            if gone:
                yield from self._store.retire(gone, author)
            parked = yield from self._reads.parked()
            repaired = [key for key, task, args in parked if _resolves(tasks, task, args)]
            if repaired:
                yield from self._store.resume(repaired, Author("the code", "its task is known again"))

        await self._db.write(work)
        self._knock("schedules")

    async def pause_all(self, *, paused: bool, note: str | None, by: str | None) -> None:
        """Pause or resume everything."""
        author = _author(by, note)
        await self._db.write(lambda: self._store.pause_all(author, paused=paused))
        self._knock("schedules")

    async def _write(self, work: Work[Any], connection: Any, *topics: str) -> Any:
        if connection is not None:
            return await run_on(connection, self._db, work, *topics)
        found = await self._db.write(work)
        for topic in topics:
            self._knock(topic)
        return found

    async def _each(
        self, key: str | None, tag: str | None, prefix: str | None, work: Callable[..., Any], connection: Any
    ) -> int:
        """Do this to one schedule, or to all with a tag or a prefix, a thousand in a transaction."""
        if [key, tag, prefix].count(None) != 2:
            raise InvalidSchedule("key", key, "say one of: a key, tag=…, prefix=…", "does not say which")
        if key is not None:
            return len(await self._write(partial(work, [schedule_key(key)]), connection, *_ALL_TOPICS))
        count = 0
        async for batch in self._states(tag, prefix, connection):
            count += await self._all([each.key for each in batch], work, connection)
        return count

    async def _all(self, keys: builtins.list[str], work: Callable[..., Any], connection: Any) -> int:
        """Do this to those that are still there."""
        while keys:
            try:
                return len(await self._write(partial(work, keys), connection, *_ALL_TOPICS))
            except UnknownSchedule as gone:
                keys = [key for key in keys if key != gone.key]
        return 0

    async def _states(
        self, tag: str | None, prefix: str | None, connection: Any = None
    ) -> AsyncIterator[builtins.list[ScheduleState]]:
        if tag is not None:
            schedule_tags([tag])
        if prefix is not None:
            schedule_key(prefix)
        after = ""
        while True:
            page = partial(self._reads.list, tag=tag, prefix=prefix, after=after, most=_BATCH)
            batch = await (self._db.read(page) if connection is None else run_on(connection, self._db, page))
            if not batch:
                return
            yield batch
            after = batch[-1].key

    # Ask

    async def get(self, key: str) -> ScheduleState:
        """Return a schedule; raises `UnknownSchedule` where there is none."""
        found = await self._db.read(lambda: self._reads.get(schedule_key(key)))
        if found is None:
            raise UnknownSchedule(key)
        return found

    async def list(
        self,
        *,
        state: str | None = None,
        task: str | None = None,
        app: str | None = None,
        tag: str | None = None,
        prefix: str | None = None,
        after: str = "",
        limit: int = 50,
    ) -> "builtins.list[ScheduleState]":
        """Return schedules by key; `after` is the last key of the page before."""
        if state is not None:
            one_of("state", state, get_args(State), Invalid)
        whole_number("limit", limit, 1, 1_000, Invalid)
        for field, value in (("task", task), ("app", app), ("tag", tag), ("prefix", prefix), ("after", after)):
            if value is not None and not sendable(value):
                raise Invalid(field, value, "use text, without NUL and half characters")
        found: builtins.list[ScheduleState] = await self._db.read(
            lambda: self._reads.list(state=state, task=task, app=app, tag=tag, prefix=prefix, after=after, most=limit)
        )
        return found

    async def status(self) -> SchedulesStatus:
        """Return how many schedules there are by state, what is next, and what is wrong."""
        return await self._db.read(self._reads.status)

    async def failing(self, *, limit: int = 10) -> "builtins.list[ScheduleState]":
        """Return the active schedules that failed three times in a row or more, the worst first."""
        whole_number("limit", limit, 1, 1_000, Invalid)
        found: builtins.list[ScheduleState] = await self._db.read(lambda: self._reads.failing(limit))
        return found

    async def upcoming(self, key: str | None = None, *, limit: int = 10) -> "builtins.list[Upcoming]":
        """Return the next due instants, of one schedule or of all, as far as they are known now.

        Of what is overdue, the oldest that has no answer yet comes first; then what lies ahead.
        """
        whole_number("limit", limit, 1, 1_000, Invalid)
        known = [await self.get(key)] if key is not None else await self._db.read(lambda: self._reads.upcoming(limit))
        now = await self._db.read(self._reads.now)
        ahead = heapq.merge(*(_ahead(each, now) for each in known), key=lambda each: (each.due, each.key))
        return list(islice(ahead, limit))

    async def revisions(self, key: str, *, before: int | None = None, limit: int = 50) -> "builtins.list[Revision]":
        """Return the changes of a schedule, newest first, also of one that was removed."""
        whole_number("limit", limit, 1, 1_000, Invalid)
        if before is not None:
            whole_number("before", before, 0, 2**62, Invalid)
        found: builtins.list[Revision] = await self._db.read(
            lambda: self._reads.revisions(schedule_key(key), before, limit)
        )
        return found

    async def firings(
        self, key: str, *, before: datetime | None = None, limit: int = 50
    ) -> "builtins.list[FiringState]":
        """Return due instants and what came of them, newest first, also of a schedule that was removed."""
        whole_number("limit", limit, 1, 1_000, Invalid)
        start = None if before is None else instant(before, "before")
        found: builtins.list[FiringState] = await self._db.read(
            lambda: self._reads.firings(schedule_key(key), start, limit)
        )
        return found

    async def why(self, key: str, *, at: datetime | None = None) -> Why:
        """Say what came of a due instant, and why; without `at`, what the schedule does now, and why."""
        schedule_key(key)
        if at is None:
            found = await self.get(key)
            now, everything = await self._db.read(self._reads.now), await self._db.read(self._reads.paused)
            words = now_words(found, now)
            if everything is not None and found.state == "active":
                words = f"everything is {held_words(everything)}; else {words}"
            return Why(key, self._db.clock.now(), words)
        when = instant(at, "at")

        def work() -> Any:
            answer = yield from self._reads.answer(key, when)
            known = yield from self._reads.get(key)
            then = yield from self._reads.rule_at(key, when)
            everything = yield from self._reads.paused()
            return answer, known, then, everything, (yield from self._reads.now())

        answer, known, then, everything, now = await self._db.read(work)
        if known is None and answer is None and not await self.revisions(key, limit=1):
            raise UnknownSchedule(key)
        return Why(key, moment(when), answer_words(answer, known, then, everything, when, now), answer)


# Parts


def _author(by: str | None, note: str | None) -> Author:
    for name, value in (("by", by), ("note", note)):
        if value is not None and (not sendable(value) or len(value) > _LONGEST_NOTE):
            raise Invalid(name, value, f"use text of up to {_LONGEST_NOTE} characters, without NUL")
    return Author(by, note)


def _limits(own: Iterable[str], brought: Iterable[str]) -> tuple[str | None, str | None]:
    """Return the limits of a schedule and those of its call as the store writes them; together they may not be more."""
    named, others = limit_keys(own), limit_keys(brought)
    limit_keys([*named, *others])
    return json.dumps(named) if named else None, json.dumps(others) if others else None


def _lost_allowed(options: TaskOptions) -> int:
    return 0 if options.on_lost == "fail" else options.max_lost


def _resolves(tasks: Registry, name: str, args: str) -> bool:
    try:
        tasks.get(name).load(args)
    except (UnknownTask, UnreadableArguments):
        return False
    return True


def _changed(row: Any, values: dict[str, Any]) -> Definition:
    """Return the definition of a stored schedule with other values."""
    known = ScheduleState.read(row)
    values = {name: value(known) if callable(value) else value for name, value in values.items()}
    policies = {name: getattr(known.policies, name) for name in _POLICY_VALUES}
    policies |= {name: value for name, value in values.items() if name in _POLICY_VALUES}
    call: Call[Any] | None = values.get("call")
    if call is not None and not isinstance(call, Call):
        raise InvalidSchedule("call", call, "use what task.call(…) returns", "is not a call")
    rule = values.get("rule", known.rule)
    if not isinstance(rule, Rule):
        raise InvalidSchedule("rule", rule, "use a rule, such as Cron('0 9 * * MON')", "is not a rule")
    own, brought = _limits(
        values.get("limits", known.limits), known.call_limits if call is None else [*call.options.limits, *call.limits]
    )
    timeout: Length | None = values.get("timeout", known.timeout)
    return Definition(
        key=known.key,
        app=known.app,
        declared=known.declared,
        task=known.task if call is None else call.name,
        args=known.args if call is None else call.args_json,
        rule=str(rule),
        policies=write_policies(Policies(**policies)),
        queue=TaskOptions(queue=values.get("queue", known.queue)).queue,
        priority=priority_number(values.get("priority", known.priority)),
        limits=own,
        call_limits=brought,
        max_lost=row["max_lost"] if call is None else _lost_allowed(call.options),
        timeout=None if timeout is None else duration(timeout, "timeout", least=1),
        retry=write_retry(schedule_retry(values.get("retry", known.retry))),
        tags=schedule_tags(values.get("tags", known.tags)),
        description=schedule_description(values.get("description", known.description)),
    )


def _ahead(known: ScheduleState, now: Instant) -> Iterator[Upcoming]:
    """Yield the due instants of a schedule from its next on, as many as it may still run."""
    if known.next_due is None:
        return
    yield Upcoming(known.key, known.next_due)
    if isinstance(known.rule, Every) and known.rule.anchored:
        return  # what comes after depends on how that run goes
    following = _instants(known.rule, max(instant(known.next_due), now), None)
    named = (each for each in following if not excluded(known.policies.exclude, each))
    most = known.policies.max_runs
    for each in named if most is None else islice(named, most - known.own_runs - 1):
        yield Upcoming(known.key, moment(each))


def _instants(rule: Rule, after: Instant, before: Instant | None) -> Iterator[Instant]:
    found = rule.series.next(after)
    while found is not None and (before is None or found < before):
        yield found
        found = rule.series.next(found)
