"""The verbs of a run's life: enqueue, admit, claim, settle, hand back, cancel, retry."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from rota.db.database import Database, Operation, Query, Rows
from rota.kept import KeptLog, LogLine
from rota.model import Attempt, Outcome, Run, RunError, RunState
from rota.schedule import Kind
from rota.store.schedule_rows import EndedRun, KnownSchedule
from rota.store.schedules import ScheduleStore
from rota.times.moments import Instant, moment

_INSERTED = ("task", "queue", "priority", "delay", "at", "args", "unique_key", "limits", "max_lost")
_SETTLED = ("id", "attempt", "state", "delay", "failed", "result", "error")
_STATES: dict[Outcome, RunState] = {
    "succeeded": "succeeded",
    "failed": "failed",
    "cancelled": "cancelled",
    "retry": "waiting",
    "snoozed": "waiting",
}
_FORBIDDEN = RunError("Lost", "its worker was lost, and it must not run again").text()
_TOO_OFTEN = RunError("Lost", "its worker was lost once too often").text()

Word = tuple[float, str]
"""What a run says of its progress: how far it is, from 0 to 1, and a note."""


_REST = attrgetter("task", "queue", "priority", "delay", "at", "limits", "max_lost")


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to be stored."""

    task: str
    args: str
    queue: str
    priority: int
    delay: int = 0
    at: Instant | None = None
    unique: str | None = None
    unique_for: int = 0
    """How long after its making a run still keeps others of its key away; 0 means while it is under way."""
    limits: tuple[str, ...] = ()
    max_lost: int = 3

    def like(self, other: "NewRun") -> bool:
        """Tell whether it differs from another in its arguments alone."""
        return _REST(self) == _REST(other)

    def stored(self, number: int, state: RunState, due: Instant, created_at: Instant) -> Run[Any]:
        """Return the run as it was stored."""
        made = moment(created_at)
        return Run(
            id=number,
            task=self.task,
            queue=self.queue,
            state=state,
            priority=self.priority,
            due=made if due == created_at else moment(due),
            args=self.args,
            unique=self.unique,
            limits=self.limits,
            attempt=0,
            lost=0,
            worker=None,
            cancel=None,
            created_at=made,
            started_at=None,
            finished_at=None,
            result=None,
            error=None,
            progress=None,
            created=True,
        )

    def values(self) -> tuple[Any, ...]:
        """Return the values in the order of the columns."""
        limits = json.dumps(self.limits) if self.limits else None
        return (
            self.task,
            self.queue,
            self.priority,
            self.delay,
            self.at,
            self.args,
            self.unique,
            limits,
            self.max_lost,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Claimed:
    """A run that a worker holds, for one attempt."""

    id: int
    task: str
    args: str
    attempt: int
    failures: int
    due: Instant
    priority: int
    queue: str
    started_at: Instant
    limited: bool
    lost: int
    previous_result: str | None
    previous_error: str | None
    schedule: str | None = None
    kind: Kind | None = None
    nominal: Instant | None = None
    """The due instant of its schedule that it stands for."""
    timeout: int | None = None
    retry: str | None = None
    """What its schedule says instead of its task."""


@dataclass(frozen=True, slots=True)
class Settled:
    """How an attempt ended."""

    run: int
    attempt: int
    outcome: Outcome
    result: str | None = None
    error: RunError | None = None
    delay: int | None = None
    """How long until the next attempt, where there is one."""
    progress: Word | None = None
    """The last that the attempt said of its progress, where that may not be written yet."""
    completed: bool = False
    """Whether the task completed the run by itself: then this holds only where that was rolled back."""
    limited: bool = False
    """Whether the run took room under limits, to be given back."""
    schedule: str | None = None
    asked: int | None = None
    """How long after its end the run asked its schedule to be run next."""
    log: str | None = None
    """What the attempt logged, where that is to be kept."""

    @property
    def plain(self) -> bool:
        """Whether one statement settles it: a success at the first try that leaves nothing else to write."""
        alone = not self.limited and self.progress is None and self.schedule is None and self.log is None
        return alone and self.outcome == "succeeded" and self.attempt == 1


class RunStore:
    """The runs in a database."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._schedules = ScheduleStore(database)

    def insert(self, new: Sequence[NewRun]) -> Operation[list[int]]:
        """Store runs without a unique key, and return their ids in the same order."""
        first = new[0]
        if first.at is None and all(each.like(first) for each in new):
            rows = yield from self._insert_alike(first, [each.args for each in new])
        else:
            rows = yield self._db.many("runs.insert", _INSERTED, [each.values() for each in new])
        if self._db.dialect == "postgres":
            return [row[0] for row in rows]
        last: int = (yield self._db.query("runs.last_id"))[0][0]
        return list(range(last - len(new) + 1, last + 1))

    def _insert_alike(self, first: NewRun, args: list[str]) -> Operation[Rows]:
        """Store runs that differ in their arguments alone: most that are stored together do."""
        named = dict(zip(_INSERTED, first.values(), strict=True))
        for name in ("at", "unique_key"):
            del named[name]
        given: Any = args if self._db.dialect == "postgres" else json.dumps(args)
        return (yield self._db.query("runs.insert_alike", **named | {"args": given}))

    def insert_one(self, new: NewRun) -> Operation[Run[Any]]:
        """Store a run without a unique key."""
        given = dict(zip(_INSERTED, new.values(), strict=True))
        rows = yield Query(self._db.statements["runs.insert_one"], given)
        return new.stored(*rows[0])

    def insert_unique(self, new: NewRun) -> Operation[Run[Any]]:
        """Store a run unless its key has one; then return that one."""
        if self._db.dialect == "postgres":
            yield self._db.query("runs.lock_key", unique_key=new.unique)
        twins = yield self._db.query("runs.twin_under_way", unique_key=new.unique)
        if not twins and new.unique_for:
            twins = yield self._db.query("runs.twin", unique_key=new.unique, period=new.unique_for)
        return Run.read(twins[0]) if twins else (yield from self.insert_one(new))

    def claim(
        self, worker: str, queue: str, most: int, *, ahead: int = 0, lost_least: int, lost_most: int
    ) -> Operation[list[Claimed]]:
        """Take the best ready runs of a queue for a worker; of those ahead of its slots none that is limited."""
        rows = yield self._db.query(
            "runs.claim", worker=worker, queue=queue, most=most, ahead=ahead, lost_least=lost_least, lost_most=lost_most
        )
        return [
            Claimed(
                id=row["id"],
                task=row["task"],
                args=row["args"],
                attempt=row["attempt"],
                failures=row["failures"],
                due=row["due"],
                priority=row["priority"],
                queue=row["queue"],
                started_at=row["started_at"],
                limited=row["gate"] is not None,
                lost=row["lost"],
                previous_result=row["result"],
                previous_error=row["error"],
                schedule=row["schedule"],
                kind=row["kind"],
                nominal=row["nominal"],
                timeout=row["timeout"],
                retry=row["retry"],
            )
            for row in sorted(rows, key=lambda row: (-row["priority"], row["due"], row["id"]))
        ]

    def settle(self, worker: str, ended: Sequence[Settled]) -> Operation[set[int]]:
        """End attempts. Returns the runs that were still this worker's; for the others nothing changed."""
        if all(each.plain for each in ended):
            return (yield from self._succeed(worker, ended))
        for each in ended:
            if each.progress is not None:
                yield from self.progress(worker, each.run, each.attempt, *each.progress)
        scheduled = {each.run: each for each in ended if each.schedule is not None}
        known = yield from self._schedules.hold_rows(str(each.schedule) for each in scheduled.values())
        held = yield self._db.many("runs.settle", _SETTLED, [_values(each) for each in ended], worker=worker)
        started = {row["id"]: row["started_at"] for row in held}
        if scheduled:
            mine = [row for row in held if row["id"] in scheduled and row["state"] != "waiting"]
            yield from self._schedules.ended(known, [_ended(scheduled[row["id"]], row) for row in mine])
        # A limit may be newer than the claim: then only the store knows that the run took room.
        limited = {e.run for e in ended if e.limited} | {row["id"] for row in held if row["gate"] is not None}
        freed = [(run,) for run in sorted(limited & set(started))]
        if freed:
            yield self._db.many("taken.end", ("holder",), freed)
        kept = [e for e in ended if e.run in started and (e.outcome != "succeeded" or e.attempt > 1)]
        if kept:
            yield self._attempts(worker, ((e.run, e.attempt, started[e.run], e.outcome, _text(e.error)) for e in kept))
        logs = [(e.run, e.attempt, e.log) for e in ended if e.log is not None and e.run in started]
        if logs:
            yield self._db.many("logs.insert", ("run", "attempt", "lines"), logs)
        return set(started)

    def _succeed(self, worker: str, ended: Sequence[Settled]) -> Operation[set[int]]:
        """End attempts that succeeded at the first try and leave nothing else to write: most do."""
        rows = [(each.run, each.result) for each in ended]
        held = yield self._db.many("runs.succeed", ("id", "result"), rows, worker=worker)
        freed = [(row["id"],) for row in held if row["gate"] is not None]  # by a limit that is newer than the claim
        if freed:
            yield self._db.many("taken.end", ("holder",), sorted(freed))
        return {row["id"] for row in held}

    def hand_back(self, worker: str, held: Iterable[tuple[int, int]]) -> Operation[None]:
        """Give back runs that were claimed and never begun, as if they had not been."""
        known = yield from self._schedules_of(worker)
        rows = yield self._db.many("runs.hand_back", ("id", "attempt"), list(held), worker=worker)
        over = [row for row in rows if row["state"] == "cancelled" and row["schedule"] is not None]
        if over:
            yield from self._schedules.ended(known, [EndedRun(r["id"], r["schedule"], "cancelled") for r in over])

    def held_by(self, worker: str) -> Operation[set[tuple[int, int]]]:
        """Return what the store says a worker holds: (run, attempt)."""
        rows = yield self._db.query("runs.held_by", worker=worker)
        return {(row["id"], row["attempt"]) for row in rows}

    def admit(self, most: int) -> Operation[dict[str, int]]:
        """Make waiting runs ready whose time has come, where there are no limits; returns how many of each queue."""
        rows = yield self._db.query("runs.admit", most=most)
        found: dict[str, int] = {}
        for row in rows:
            found[row["queue"]] = found.get(row["queue"], 0) + 1
        return found

    def next_due(self) -> Operation[tuple[int | None, bool]]:
        """Return how long it is until a waiting run is due, and whether there are limits."""
        (row,) = yield self._db.query("runs.next_due")
        return row["wait"], bool(row["limited"])

    def get(self, run: int, *, created: bool = False) -> Operation[Run[Any] | None]:
        """Return one run."""
        rows = yield self._db.query("runs.get", id=run)
        return Run.read(rows[0], created=created) if rows else None

    def attempts(self, run: int) -> Operation[list[Attempt]]:
        """Return the attempts of a run that were kept: all but a success at the first try."""
        rows = yield self._db.query("attempts.of", run=run)
        return [_attempt(row) for row in rows]

    def log(self, run: int) -> Operation[list[LogLine]]:
        """Return what was kept of what a run logged, oldest first."""
        rows = yield self._db.query("logs.of", run=run)
        return [line for row in rows for line in KeptLog.read(row["attempt"], row["lines"])]

    def cancel(self, run: int, note: str) -> Operation[RunState | None]:
        """Cancel a run; returns its state then (running: its worker will hear of it), None if it was not under way."""
        known = yield from self._schedule_of(run)
        rows = yield self._db.query("runs.cancel", id=run, note=note)
        if rows and rows[0]["state"] == "cancelled" and rows[0]["gate"] is not None:
            yield self._db.many("taken.drop", ("holder",), [(run,)])
        if known and rows and rows[0]["state"] == "cancelled":
            yield from self._schedules.ended(known, [EndedRun(run, next(iter(known)), "cancelled")])
        return rows[0]["state"] if rows else None

    def _schedule_of(self, run: int) -> Operation[dict[str, KnownSchedule]]:
        """Hold the schedule of a run, if it has one: schedules come before runs."""
        rows = yield self._db.query("runs.schedule_of", id=run)
        if not rows or rows[0][0] is None:
            return {}
        return (yield from self._schedules.hold_rows([rows[0][0]]))

    def _schedules_of(self, worker: str) -> Operation[dict[str, KnownSchedule]]:
        """Hold the schedules of what a worker holds."""
        rows = yield self._db.query("runs.schedules_of", worker=worker)
        return (yield from self._schedules.hold_rows(row[0] for row in rows))

    def retry(self, run: int) -> Operation[str | None]:
        """Make an ended run ready again, with its history, and return its queue.

        None if it has not ended, or another run of its unique key is under way.
        """
        found = yield from self.get(run)
        if found is not None and found.unique is not None and self._db.dialect == "postgres":
            yield self._db.query("runs.lock_key", unique_key=found.unique)
        known = yield from self._schedule_of(run)
        gate = (yield from self._schedules.gate(next(iter(known.values())))) if known else None
        rows = yield self._db.query("runs.retry", id=run, gate=gate)
        if rows and known:
            for one in known.values():
                one.counted = False
            yield from self._schedules.look_ahead(list(known.values()))
        return rows[0]["queue"] if rows else None

    def to_cancel(self, worker: str) -> Operation[list[tuple[int, int, str]]]:
        """Return the runs of a worker that somebody wants cancelled: (run, attempt, why)."""
        rows = yield self._db.query("runs.cancelled_of", worker=worker)
        return [(row["id"], row["attempt"], row["cancel"]) for row in rows]

    def progress(self, worker: str, run: int, attempt: int, share: float, note: str) -> Operation[bool]:
        """Note how far a run is; False if it is not this worker's any more."""
        rows = yield self._db.query(
            "runs.progress", worker=worker, id=run, attempt=attempt, progress=json.dumps([share, note])
        )
        return bool(rows)

    def lose(self, worker: str, *, counts: bool = True) -> Operation[Rows]:
        """Take a worker's runs back: ready again, or failed where they were lost too often or must not run twice."""
        known = yield from self._schedules_of(worker)
        rows = yield self._db.query(
            "runs.lost", worker=worker, forbidden=_FORBIDDEN, too_often=_TOO_OFTEN, counts=int(counts)
        )
        if rows:
            yield self._attempts(worker, ((r["id"], r["attempt"], r["started_at"], "lost", None) for r in rows))
        ended = [(row["id"],) for row in rows if row["state"] != "ready" and row["gate"] is not None]
        if ended:
            yield self._db.many("taken.end", ("holder",), ended)
        over = [row for row in rows if row["state"] != "ready" and row["schedule"] is not None]
        if over:
            ends = [EndedRun(r["id"], r["schedule"], r["state"], r["started_at"], r["error"], "Lost") for r in over]
            yield from self._schedules.ended(known, ends)
        return rows

    def _attempts(self, worker: str, rows: Iterable[tuple[int, int, Instant, str, str | None]]) -> Any:
        columns = ("run", "number", "started_at", "outcome", "error")
        return self._db.many("attempts.insert", columns, list(rows), worker=worker)


def _values(ended: Settled) -> tuple[Any, ...]:
    failed = ended.outcome in ("failed", "retry")
    state = _STATES[ended.outcome]
    return ended.run, ended.attempt, state, ended.delay, int(failed), ended.result, _text(ended.error)


def _ended(settled: Settled, row: Any) -> EndedRun:
    """Say to its schedule how a run ended."""
    kind = None if settled.error is None else settled.error.kind
    error = _text(settled.error)
    return EndedRun(settled.run, str(settled.schedule), row["state"], row["started_at"], error, kind, settled.asked)


def _text(error: RunError | None) -> str | None:
    return None if error is None else error.text()


def _attempt(row: Any) -> Attempt:
    return Attempt(
        number=row["number"],
        outcome=row["outcome"],
        worker=row["worker"],
        started_at=moment(row["started_at"]),
        finished_at=moment(row["finished_at"]),
        error=RunError.read(row["error"]),
    )
