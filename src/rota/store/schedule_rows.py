"""What the verbs of a schedule's life work with: records, and what follows from them. Nothing here asks the store."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter
from typing import Any

from rota.db.database import Rows
from rota.schedule import Kind, kind_of, read_policies, read_rule
from rota.times.decision import Decision, Firing, Hold, Past
from rota.times.due import decide
from rota.times.intervals import Every
from rota.times.moments import Instant

_LATE_PRIORITY = 25
"""Catching up goes one priority lower."""
_LEAST_PRIORITY = -32_768
DEFINED = (
    *(
        "key",
        "app",
        "declared",
        "task",
        "args",
        "rule",
        "policies",
        "queue",
        "priority",
        "limits",
        "call_limits",
        "max_lost",
    ),
    *("timeout", "retry", "tags", "description"),
)
_DEFINED = attrgetter(*DEFINED)
STATE = (
    *("key", "state", "changed", "since", "through", "next", "wake", "due", "runs", "run_count", "started", "finished"),
    *("succeeded", "ended", "error", "failures", "asked", "average"),
    *("hold_reason", "hold_at", "hold_until", "hold_by", "hold_note", "decided_at"),
)
_STATE = itemgetter(*STATE)
FIRED = ("key", "through", "next", "wake", "due", "runs", "run_count")
_FIRED = itemgetter(*FIRED)
_BY_FIRING = {*FIRED, "decided_at"}
RUN = ("schedule", "priority", "at", "limits", "gate", "kind", "nominal")
"""What a run has of its own; the rest is its schedule's."""


@dataclass(frozen=True, slots=True)
class Definition:
    """What people say of a schedule, as the store writes it."""

    key: str
    app: str
    declared: bool
    task: str
    args: str
    rule: str
    policies: str
    queue: str
    priority: int
    limits: str | None
    """Those that are said of the schedule itself."""
    call_limits: str | None
    """Those that its task and its call bring."""
    max_lost: int
    timeout: int | None
    retry: str | None
    tags: tuple[str, ...]
    description: str

    def values(self) -> tuple[Any, ...]:
        """Return the values in the order of the columns."""
        key, app, _, *middle, _, description = _DEFINED(self)
        return (key, app, int(self.declared), *middle, json.dumps(self.tags) if self.tags else "[]", description)

    def changes(self, row: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return what differs from what is stored: the old and the new value of each."""
        new = dict(zip(DEFINED, self.values(), strict=True))
        return {name: [row[name], new[name]] for name in DEFINED[1:] if row[name] != new[name]}


@dataclass(frozen=True, slots=True)
class Author:
    """Who changes something, and why."""

    by: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class EndedRun:
    """How a run of a schedule ended, once and for all."""

    run: int
    schedule: str
    state: str
    """succeeded, failed or cancelled."""
    started_at: Instant | None = None
    error: str | None = None
    kind: str | None = None
    """The kind of its error."""
    asked: int | None = None
    """How long after its end it asked to be run next."""


@dataclass(slots=True)
class KnownSchedule:
    """A schedule while a verb works on it: its row, and what changes of it."""

    row: dict[str, Any]
    key: str = field(init=False)
    under_way: int = 0
    counted: bool = False
    """Whether its runs under way were counted, and have not changed since."""
    going: int = 0
    """How many of those under way do not wait for another to end."""
    first: int | None = None
    """The oldest run under way."""
    revised: bool = False
    new: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.key = self.row["key"]

    def __getitem__(self, name: str) -> Any:
        return self.new[name] if name in self.new else self.row[name]

    def set(self, **values: Any) -> None:
        """Change columns."""
        self.new |= values

    def values(self) -> tuple[Any, ...]:
        """Return the values in the order of the columns."""
        found: tuple[Any, ...] = _STATE({**self.row, **self.new, "changed": int(self.revised)})
        return found

    @property
    def only_fired(self) -> bool:
        """Whether nothing of it changes but what a firing changes."""
        return not self.revised and self.new.keys() <= _BY_FIRING

    def fired(self) -> tuple[Any, ...]:
        """Return the values that a firing changes, in the order of the columns."""
        found: tuple[Any, ...] = _FIRED({**self.row, **self.new})
        return found

    def _last_start(self) -> Instant | None:
        """Return when the last run started; one that ended before it began has only its end."""
        started, due, finished = self["started"], self["due"], self["finished"]
        if finished is not None and (started is None or (due is not None and started < due)):
            return finished  # type: ignore[no-any-return]
        return started  # type: ignore[no-any-return]

    def hold(self, resumed: Instant | None) -> Hold | None:
        """Return the pause or parking that is, or that ended since the last decision."""
        hold = None if self["hold_reason"] is None else Hold(self["hold_reason"], self["hold_until"])
        if resumed is not None and resumed > self.row["decided_at"]:  # all schedules were paused until then
            end = resumed if hold is None else hold.until
            return hold if hold is not None and (end is None or end > resumed) else Hold("paused", resumed)
        return hold

    def past(self, resumed: Instant | None) -> Past:
        """Return what the decision goes by."""
        now = {**self.row, **self.new} if self.new else self.row
        return Past(
            since=now["since"],
            through=now["through"],
            due=now["due"],
            runs=now["runs"],
            under_way=self.under_way,
            started=self._last_start(),
            finished=now["finished"],
            succeeded=now["succeeded"],
            ended=now["ended"],
            failures=now["failures"],
            asked=now["asked"],
            average=now["average"],
            hold=self.hold(resumed),
        )


@dataclass(frozen=True, slots=True)
class Fired:
    """What a round of firing came to."""

    schedules: int
    """How many were decided about."""
    runs: int
    skips: int
    ready: dict[str, int]
    """How many runs of each queue are ready."""
    cancelled: bool = False
    """Whether workers are to hear that runs were cancelled."""
    lost: int = 0
    """How many firings somebody else had made before."""
    lateness: tuple[int, ...] = ()
    """How late each run was fired, in microseconds."""
    stored: Rows = ()
    """The runs, as they were stored."""
    decided: Mapping[str, "KnownSchedule"] = field(default_factory=dict)
    """The schedules that they are of."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """How many instants were skipped for which reason."""
    lost_by: Mapping[str, int] = field(default_factory=dict)
    """Of which schedules somebody else had made firings before, and how many."""


@dataclass(frozen=True, slots=True)
class Triggered:
    """What came of a run that somebody wanted at once."""

    run: int | None
    """The run's number; None where the overlap policy let none in."""
    blocker: int | None
    """The run under way that it waits for, or that kept it out."""
    count: int = 0
    """How many runs were made."""


def known_schedules(rows: Rows) -> list[KnownSchedule]:
    """Make records of the store's rows."""
    names = tuple(rows[0].keys()) if rows else ()
    return [KnownSchedule(dict(zip(names, row, strict=True))) for row in rows]


def first_wake(new: Definition, now: Instant) -> tuple[str, Instant | None, Instant | None]:
    """Return the state, the next and the wake of a schedule that is made now."""
    decision = decide(new.key, read_rule(new.rule), read_policies(new.policies), Past(since=now), now)
    if decision.fire or decision.skips:
        return "active", decision.fire[0].due if decision.fire else None, now
    return "finished" if decision.finished else "active", decision.next, decision.wake


def anchored(rule: str) -> bool:
    """Tell whether a rule, as text, counts from the last run."""
    found = read_rule(rule)
    return isinstance(found, Every) and found.anchored


def decision_of(one: KnownSchedule, resumed: Instant | None, now: Instant) -> Decision:
    """Decide about a schedule."""
    return decide(one.key, read_rule(one["rule"]), read_policies(one["policies"]), one.past(resumed), now)


def take_in(one: KnownSchedule, decision: Decision, resumed: Instant | None, now: Instant) -> None:
    """Write down what was decided."""
    _lift(one, resumed, now)
    fired = decision.fire
    one.set(
        through=decision.through,
        next=decision.next,
        wake=_waking(one, decision),
        decided_at=now,
        due=fired[-1].due if fired else one["due"],
        runs=one["runs"] + len(fired),
        run_count=one["run_count"] + len(fired),
    )
    if decision.finished and one["state"] == "active":
        one.set(state="finished")


def look(one: KnownSchedule, decision: Decision, resumed: Instant | None, now: Instant) -> None:
    """Write down what is next. What is due already is left to whoever fires: it comes at once."""
    if decision.fire or decision.skips:
        due = decision.fire[0].due if decision.fire else one["next"]
        one.set(wake=now, next=due)
        return
    _lift(one, resumed, now)
    one.set(through=decision.through, next=decision.next, wake=_waking(one, decision), decided_at=now)
    if one["state"] in ("active", "finished"):
        goes_on = one["state"] == "active" or decision.next is not None
        one.set(state="finished" if decision.finished or not goes_on else "active")


def _lift(one: KnownSchedule, resumed: Instant | None, now: Instant) -> None:
    """End a hold whose end has come."""
    hold = one.hold(resumed)
    if hold is not None and not hold.open(now):
        one.set(hold_reason=None, hold_at=None, hold_until=None, hold_by=None, hold_note=None)
        if one["state"] in ("paused", "parked"):
            one.set(state="active")


def bring_back(one: KnownSchedule, now: Instant) -> None:
    """Let a schedule go on from now that was decided about by a clock which has been set back since.

    What it answered that lies ahead comes again; where that has a run, the unique index sees to it that it stays one.
    """
    ahead = one["decided_at"] - now
    for name in ("since", "through", "due", "started", "finished", "succeeded"):
        if one[name] is not None:
            one.set(**{name: min(one[name], now)})
    one.set(asked=None if one["asked"] is None else one["asked"] - ahead, decided_at=now)


def _waking(one: KnownSchedule, decision: Decision) -> Instant | None:
    """Return when to decide again: at a hold's end, so that nobody is said to be held who is not, or as decided."""
    if one["state"] not in ("paused", "parked") or one["hold_until"] is None:
        return decision.wake
    found: Instant = one["hold_until"]
    return found if decision.wake is None else min(found, decision.wake)


def closing(one: KnownSchedule, now: Instant, *, paused: bool, resumed: Instant | None) -> Decision:
    """Answer what was due up to now under a rule that is about to go; what is held is skipped, not fired."""
    retired = one["state"] == "retired"
    hold = one.hold(resumed)
    if not (paused or retired or (hold is not None and hold.open(now))):
        return decision_of(one, resumed, now)
    reason = hold.reason if hold is not None else "paused"
    past = replace(one.past(resumed), hold=Hold(reason, now + 1))
    found = decide(one.key, read_rule(one["rule"]), read_policies(one["policies"]), past, now + 1)
    through = found.through
    if through is not None and through != past.through:  # a clock that was set back takes no answer back
        through = min(through, now)
    return replace(found, fire=(), cancel=False, through=through)


def runs_of(one: KnownSchedule, decision: Decision, *, free: int) -> list[tuple[Any, ...]]:
    """Return the runs to store. Where cancelling left nothing under way, the first need not wait."""
    kind = kind_of(read_rule(one["rule"]))
    firings = decision.fire
    if decision.cancel and free == one.under_way:
        firings = (replace(firings[0], queued=False), *firings[1:])
    return [run_of(one, each, kind) for each in firings]


def run_of(one: KnownSchedule, firing: Firing, kind: Kind) -> tuple[Any, ...]:
    """Return a run to store, in the order of the columns."""
    priority = max(_LEAST_PRIORITY, one["priority"] - (_LATE_PRIORITY if firing.late else 0))
    gate = f"@{one.key}" if firing.queued else None
    return one.key, priority, firing.at, _limits(one.row), gate, kind, firing.due


def _limits(row: Mapping[str, Any]) -> str | None:
    """Return the keys of all limits that a schedule's runs are under, as the store writes them."""
    own, brought = row["limits"], row["call_limits"]
    if own is None or brought is None:
        return own or brought  # type: ignore[no-any-return]
    return json.dumps(sorted({*json.loads(own), *json.loads(brought)}))


def heard(one: KnownSchedule, run: EndedRun, now: Instant) -> list[tuple[str, str, dict[str, Any]]]:
    """Take in how a run ended; returns what that changes by itself."""
    failed = run.state == "failed"
    failures = one["failures"] + 1 if failed else 0 if run.state == "succeeded" else one["failures"]
    one.set(
        started=run.started_at or one["started"],
        finished=now,
        ended=run.state,
        failures=failures,
        asked=None if run.asked is None else now + run.asked,
        error=run.error if failed else one["error"],
        succeeded=now if run.state == "succeeded" else one["succeeded"],
    )
    if not failed or one["state"] not in ("active", "finished"):
        return []
    if run.kind in ("UnknownTask", "UnreadableArguments"):
        note = f"run {run.run} could not be called: {run.kind}"
        one.set(state="parked", hold_reason="parked", hold_at=now, hold_until=None, hold_by="rota", hold_note=note)
    elif one["state"] == "active" and read_policies(one["policies"]).on_failure.pauses(failures):
        note = f"failed {failures} times in a row"
        one.set(state="paused", hold_reason="paused", hold_at=now, hold_until=None, hold_by="rota", hold_note=note)
    else:
        return []
    one.revised = True
    return [(one.key, one["state"], {"note": [None, note]})]


def to_open(one: KnownSchedule) -> int:
    """Return how many of the runs that wait for others may begin."""
    return max(0, min(one.under_way - one.going, _most(one) - one.going))


def has_room(one: KnownSchedule) -> bool:
    """Tell whether one more of its runs may go beside those that do."""
    return one.going < _most(one)


def _most(one: KnownSchedule) -> int:
    policies = read_policies(one["policies"])
    return policies.max_running if policies.overlap == "allow" else 1
