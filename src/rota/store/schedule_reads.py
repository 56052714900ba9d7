"""What people ask about schedules."""

import builtins
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from rota.db.database import Database, Operation
from rota.model import Run, RunError, RunState
from rota.schedule import Kind, read_policies, read_retry, read_rule
from rota.store.reads import holding
from rota.times.backoff import Retry
from rota.times.decision import Reason
from rota.times.exclusion import excluded
from rota.times.moments import Instant, instant, moment
from rota.times.policies import Policies
from rota.times.rule import Rule

State = Literal["active", "paused", "parked", "finished", "retired"]
_LATEST = 2**62
_LATE = 60_000_000
_FAILING = 3


@dataclass(frozen=True, slots=True)
class HeldState:
    """Who keeps a schedule from firing, why, since when, and until when if that is known."""

    reason: Literal["paused", "parked"]
    by: str | None
    note: str | None
    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """A schedule as the store has it."""

    key: str
    state: State
    task: str
    args: str
    rule: Rule
    policies: Policies
    queue: str
    priority: int
    limits: tuple[str, ...]
    """Those that are said of the schedule itself."""
    call_limits: tuple[str, ...]
    """Those that its task and its call bring; its runs are under both."""
    timeout: timedelta | None
    retry: Retry | None
    tags: tuple[str, ...]
    description: str
    app: str
    declared: bool
    version: int
    """It grows with every change; two people who edit can tell whether they met."""
    created_at: datetime
    changed_at: datetime
    next_due: datetime | None
    last_due: datetime | None
    """The due instant of the last run that the rule made."""
    last_run: datetime | None
    """When its last run began."""
    last_finish: datetime | None
    last_success: datetime | None
    last_outcome: str | None
    last_error: RunError | None
    failures: int
    """How many runs failed in a row."""
    run_count: int
    own_runs: int
    """How many of them the rule made: what `max_runs` counts."""
    answered_through: datetime | None
    """Every due instant up to here has its answer."""
    held: HeldState | None

    @classmethod
    def read(cls, row: Any) -> "ScheduleState":
        """Make the record from the store's row."""
        held = None
        if row["state"] in ("paused", "parked"):
            since, until = _moment(row["hold_at"]), _moment(row["hold_until"])
            held = HeldState(row["hold_reason"], row["hold_by"], row["hold_note"], since, until)
        return cls(
            key=row["key"],
            state=row["state"],
            task=row["task"],
            args=row["args"],
            rule=read_rule(row["rule"]),
            policies=read_policies(row["policies"]),
            queue=row["queue"],
            priority=row["priority"],
            limits=Run.read_limits(row["limits"]),
            call_limits=Run.read_limits(row["call_limits"]),
            timeout=None if row["timeout"] is None else timedelta(microseconds=row["timeout"]),
            retry=None if row["retry"] is None else read_retry(row["retry"]),
            tags=tuple(json.loads(row["tags"])),
            description=row["description"],
            app=row["app"],
            declared=bool(row["declared"]),
            version=row["version"],
            created_at=moment(row["created_at"]),
            changed_at=moment(row["changed_at"]),
            next_due=_moment(row["next"]),
            last_due=_moment(row["due"]),
            last_run=_moment(row["started"]),
            last_finish=_moment(row["finished"]),
            last_success=_moment(row["succeeded"]),
            last_outcome=row["ended"],
            last_error=RunError.read(row["error"]),
            failures=row["failures"],
            run_count=row["run_count"],
            own_runs=row["runs"],
            answered_through=_moment(row["through"]),
            held=held,
        )


@dataclass(frozen=True, slots=True)
class Revision:
    """One change of a schedule: who, when, what, why."""

    version: int
    at: datetime
    by: str | None
    what: str
    note: str | None
    changes: dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class FiringState:
    """One due instant and what came of it; neighbouring skips of one reason are one, from `first` to `due`."""

    due: datetime
    run: int | None = None
    state: RunState | None = None
    trigger: Kind | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error: RunError | None = None
    reason: Reason | None = None
    first: datetime | None = None
    count: int = 1
    schedule: str | None = None
    """The key of the schedule."""


@dataclass(frozen=True, slots=True)
class FiringsPlace:
    """A place in the list of all firings: only runs and skips with lower numbers come after it."""

    run: int = _LATEST
    skip: int = _LATEST


@dataclass(frozen=True, slots=True)
class SchedulesStatus:
    """How the schedules of a store are."""

    counts: dict[str, int]
    """How many there are in each state."""
    next_due: datetime | None
    overdue: int
    """How many should have been fired more than a minute ago, and were not."""
    oldest: timedelta | None
    """For how long the oldest of these has been due."""
    failing: int
    """How many active ones failed three times in a row or more."""
    paused: HeldState | None
    """Who paused everything, if somebody did."""


@dataclass(frozen=True, slots=True)
class RuleThen:
    """Which rule a schedule had at a moment in the past."""

    state: Literal["same", "other", "absent", "forgotten"]
    """The one that it has now, another, none because there was no such schedule, or nobody knows any more."""
    rule: str | None = None
    made: datetime | None = None
    """Where there was no such schedule: when it was made."""
    removed: datetime | None = None
    """When that schedule was removed, if it was before its rule changed."""


class ScheduleReads:
    """What people ask a store about its schedules."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def get(self, key: str) -> Operation[ScheduleState | None]:
        """Return one schedule."""
        rows = yield self._db.query("schedules.get", key=key)
        return ScheduleState.read(rows[0]) if rows else None

    def list(
        self,
        *,
        state: str | None = None,
        task: str | None = None,
        queue: str | None = None,
        app: str | None = None,
        tag: str | None = None,
        prefix: str | None = None,
        text: str | None = None,
        after: str = "",
        most: int = 50,
    ) -> Operation[Any]:
        """Return schedules by key."""
        rows = yield self._db.query(
            "schedules.list",
            state=state,
            task=task,
            queue=queue,
            app=app,
            tag=tag,
            prefix=prefix or None,
            text=None if text is None else holding(text),
            after=after,
            most=most,
        )
        return [ScheduleState.read(row) for row in rows]

    def now(self) -> Operation[Instant]:
        """Return what the store's clock says."""
        (row,) = yield self._db.query("schedules.now")
        return row["now"]  # type: ignore[no-any-return]

    def declared(self, app: str) -> Operation[Any]:
        """Return the keys that an application declared and has not retired."""
        rows = yield self._db.query("schedules.declared", app=app)
        return [row[0] for row in rows]

    def parked(self) -> Operation[Any]:
        """Return what is parked: (key, task, arguments)."""
        rows = yield self._db.query("schedules.parked")
        return [(row["key"], row["task"], row["args"]) for row in rows]

    def paused(self) -> Operation[HeldState | None]:
        """Return who paused everything, if somebody did."""
        rows = yield self._db.query("pause.get")
        if not rows or not rows[0]["paused"]:
            return None
        return HeldState("paused", rows[0]["by_whom"], rows[0]["note"], moment(rows[0]["at"]), None)

    def status(self) -> Operation[SchedulesStatus]:
        """Return how the schedules are."""
        counts = yield self._db.query("schedules.counts")
        (row,) = yield self._db.query("schedules.status", late=_LATE, failures=_FAILING)
        paused = yield from self.paused()
        return SchedulesStatus(
            counts={each["state"]: each["number"] for each in counts},
            next_due=_moment(row["next_due"]),
            overdue=row["overdue"],
            oldest=timedelta(microseconds=row["oldest"]) if row["overdue"] else None,
            failing=row["failing"],
            paused=paused,
        )

    def failing(self, most: int) -> Operation[Any]:
        """Return active schedules that failed three times in a row or more, the worst first."""
        rows = yield self._db.query("schedules.failing", failures=_FAILING, most=most)
        return [ScheduleState.read(row) for row in rows]

    def upcoming(self, most: int) -> Operation[Any]:
        """Return the schedules that are due first."""
        rows = yield self._db.query("schedules.upcoming", most=most)
        return [ScheduleState.read(row) for row in rows]

    def pending(self, keys: Iterable[str]) -> Operation[Any]:
        """Return which of these schedules have a run that waits or is ready."""
        rows = yield self._db.many("schedules.pending", ("key",), [(key,) for key in keys])
        return {row[0] for row in rows}

    def busy(self, length: int, most: int) -> Operation[tuple[Instant, Any]]:
        """Return what time it is, and the rules that are due within so many microseconds, with how many have them."""
        now = yield from self.now()
        rows = yield self._db.query("schedules.busy", until=now + length, most=most)
        read = [(read_rule(row["rule"]), read_policies(row["policies"])) for row in rows]
        return now, [(*each, row["next"], row["number"]) for each, row in zip(read, rows, strict=True)]

    def revisions(self, key: str, before: int | None, most: int) -> Operation[Any]:
        """Return the changes of a schedule, newest first."""
        start = _LATEST if before is None else before
        rows = yield self._db.query("schedules.revisions", key=key, before=start, most=most)
        return [
            Revision(
                row["version"], moment(row["at"]), row["by_whom"], row["what"], row["note"], json.loads(row["changes"])
            )
            for row in rows
        ]

    def firings(self, key: str, before: Instant | None, most: int) -> Operation[Any]:
        """Return the due instants of a schedule and what came of them, newest first.

        What stands for the last of them comes with it, be it more than `most`: the next page begins before it.
        """
        start = _LATEST if before is None else before
        runs = yield self._db.query("schedules.history", key=key, before=start, most=most)
        skips = yield self._db.query("schedules.skips", key=key, before=start, most=most)
        found = sorted([_ran(row) for row in runs] + [_skipped(row) for row in skips], key=_due, reverse=True)[:most]
        if len(found) == most:
            rest = yield self._db.query("schedules.history_at", key=key, at=instant(found[-1].due))
            known = {each.run for each in found}
            found += [_ran(row) for row in rest if row["id"] not in known]
        return found

    def newest_firings(
        self, before: FiringsPlace, *, schedule: str | None, ran: bool | None, reason: str | None, most: int
    ) -> Operation[tuple[Any, FiringsPlace]]:
        """Return due instants and what came of them, of all schedules or of one, and where the list ends.

        Those that were decided last come first; a skip that goes on keeps the place that it had when it began.
        """
        which, own = ("all", {}) if schedule is None else ("new", {"key": schedule})
        runs: Any = ()
        skips: Any = ()
        if ran is not False and reason is None:
            runs = yield self._db.query(f"schedules.{which}_runs", before=before.run, most=most, **own)
        if not ran:
            place = {"before": before.skip, "most": most}
            skips = yield self._db.query(f"schedules.{which}_skips", reason=reason, **place, **own)
        found: builtins.list[FiringState] = []
        run = skip = 0
        while len(found) < most and (run < len(runs) or skip < len(skips)):
            if skip == len(skips) or (run < len(runs) and runs[run]["created_at"] >= skips[skip]["at"]):
                before = FiringsPlace(runs[run]["id"], before.skip)
                found.append(_ran(runs[run]))
                run += 1
            else:
                before = FiringsPlace(before.run, skips[skip]["id"])
                found.append(_skipped(skips[skip]))
                skip += 1
        return found, before

    def answer(self, key: str, at: Instant) -> Operation[FiringState | None]:
        """Return what came of one due instant, if that is still known."""
        runs = yield self._db.query("schedules.run_at", key=key, at=at)
        if runs:
            return _ran(runs[0])
        skips = yield self._db.query("schedules.skip_at", key=key, at=at)
        if len(skips) > 1:  # excluded instants may lie between others
            known = yield from self.get(key)
            out = known is not None and excluded(known.policies.exclude, at)
            skips = [row for row in skips if (row["reason"] == "excluded") == out] or skips
        return _skipped(skips[0]) if skips else None

    def rule_at(self, key: str, at: Instant) -> Operation[RuleThen]:
        """Return which rule a schedule had at a moment."""
        rows = yield self._db.query("schedules.rule_at", key=key, at=at)
        if rows and rows[0]["version"] > 1 and rows[0]["oldest"]:
            return RuleThen("forgotten")
        for row in rows:
            changes = json.loads(row["changes"])
            if row["what"] == "made":
                return RuleThen("absent", made=moment(row["at"]))
            if "rule" in changes:
                removed = moment(row["at"]) if row["what"] == "removed" else None
                return RuleThen("other", str(changes["rule"][0]), removed=removed)
        return RuleThen("same")


def _due(found: FiringState) -> datetime:
    return found.due


def _ran(row: Any) -> FiringState:
    return FiringState(
        due=moment(row["nominal"]),
        run=row["id"],
        state=row["state"],
        trigger=row["kind"],
        started_at=_moment(row["started_at"]),
        finished_at=_moment(row["finished_at"]),
        error=RunError.read(row["error"]),
        schedule=row["schedule"],
    )


def _skipped(row: Any) -> FiringState:
    return FiringState(
        due=moment(row["last"]),
        reason=row["reason"],
        first=moment(row["first"]),
        count=row["count"],
        schedule=row["schedule"],
    )


def _moment(found: Instant | None) -> datetime | None:
    return None if found is None else moment(found)
