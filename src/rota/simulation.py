"""What schedules would do: every firing and every skip with its reason. Pure: no store, no clock."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from rota.errors import InvalidMoment, InvalidSchedule
from rota.times.decision import Decision, Firing, Past, Reason, Skip
from rota.times.due import decide
from rota.times.durations import duration
from rota.times.moments import Instant, instant, moment
from rota.times.policies import Length, Policies
from rota.times.rule import Rule

MOST = 1_000_000
"""How many firings and skips one schedule may come to: more is a mistake."""

Takes = Length | Callable[[datetime], Length]
"""How long a run takes: always as long, or by the due instant that it stands for."""


class Planned(Protocol):
    """What a schedule needs to be simulated: a `rota.Schedule` has it, and so has a `rota.ScheduleState`."""

    @property
    def key(self) -> str:
        """Its key."""

    @property
    def rule(self) -> Rule:
        """What names its instants."""

    @property
    def policies(self) -> Policies:
        """What decides about them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A rule with its policies, without a task."""

    key: str
    rule: Rule
    policies: Policies = field(default_factory=Policies)


@dataclass(frozen=True, slots=True)
class Simulated:
    """A due instant and what would come of it; neighbouring skips of one reason are one, from `first` to `due`."""

    key: str
    due: datetime
    at: datetime
    """When it was decided."""
    reason: Reason | None = None
    """Why it is skipped; None where it is a run."""
    first: datetime | None = None
    count: int = 1
    late: bool = False
    """Whether the run catches up: it is made more than 60 s after it was due."""
    started: datetime | None = None
    """When its run starts; None where the simulation ends before, or a newer run takes its place."""
    ended: datetime | None = None
    """When its run ends; None where the simulation ends before."""
    cancelled: bool = False
    """Whether a newer run took its place."""


def simulate(
    schedules: Planned | Iterable[Planned],
    start: datetime | str,
    end: datetime | str,
    *,
    outages: Iterable[tuple[datetime | str, datetime | str]] = (),
    durations: Mapping[str, Takes] | None = None,
) -> list[Simulated]:
    """Return what schedules that are made at `start` would do until `end`, by due instant and key.

    In an outage, between its two moments, nothing fires and nothing begins; what runs already ends in its time. Runs
    succeed, at their first attempt, in no time, or in what `durations` says for their schedule's key. Nothing waits
    for limits or for a free worker.
    """
    first, last = instant(start, "start"), instant(end, "end")
    if last < first:
        raise InvalidMoment(
            "end", moment(last).isoformat(), "use a moment that is not before the start", "is too early"
        )
    down = [_outage(each) for each in outages]
    wanted = _planned(schedules)
    lengths = _lengths(durations, wanted)
    found: list[Simulated] = []
    for each in wanted:
        found += _Simulation(each, first, lengths.get(each.key, 0)).until(last, down)
    return sorted(found, key=lambda one: (one.due, one.key))


def length_of(takes: Takes, due: datetime) -> int:
    """Return how long a run for this due instant takes, in microseconds."""
    return duration(takes(due) if callable(takes) else takes, "durations")


def _planned(schedules: object) -> list[Planned]:
    """Return the schedules to simulate, or refuse what is none."""
    wanted: list[Any] = list(schedules) if isinstance(schedules, Iterable) else [schedules]
    for each in wanted:
        if not isinstance(getattr(each, "rule", None), Rule) or not isinstance(
            getattr(each, "policies", None), Policies
        ):
            allowed = "use a rota.Schedule, a rota.ScheduleState, or a list of them, such as app.declared"
            raise InvalidSchedule("schedules", each, allowed, "is no schedule")
    keys = [each.key for each in wanted]
    if len(set(keys)) < len(keys):
        raise InvalidSchedule("key", max(keys, key=keys.count), "use each key once", "is there twice")
    return wanted


def _lengths(durations: Mapping[str, Takes] | None, wanted: list[Planned]) -> Mapping[str, Takes]:
    """Return how long runs take, by key; a key that no schedule has is a mistake, as is what is no length."""
    if not isinstance(durations, Mapping | None):
        raise InvalidSchedule("durations", durations, "use lengths by key: {'feed-42': '5m'}", "is no mapping")
    known = {each.key for each in wanted}
    for key, takes in (durations or {}).items():
        if key not in known:
            raise InvalidSchedule("durations", key, "use the keys of the schedules", "is no key of these schedules")
        if not callable(takes):
            duration(takes, "durations")
    return durations or {}


def _outage(given: tuple[datetime | str, datetime | str]) -> tuple[Instant, Instant]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidMoment("outages", given, "use pairs of moments: [(from, until)]", "is no pair")
    begin, end = instant(given[0], "outages"), instant(given[1], "outages")
    if end < begin:
        raise InvalidMoment("outages", given[1], "use an end that is not before its beginning", "is too early")
    return begin, end


@dataclass(slots=True, eq=False)
class _Run:
    firing: Firing
    number: int
    """Its place in what was found."""
    started: Instant | None = None
    ends: Instant | None = None


class _Simulation:
    """One schedule, from event to event, as the engine does it."""

    def __init__(self, plan: Planned, start: Instant, takes: Takes) -> None:
        self._plan = plan
        self._takes = takes
        self._now = start
        self._past = Past(since=start)
        self._wake: Instant | None = start
        self._under_way: list[_Run] = []
        self._found: list[Simulated] = []
        self._newest: tuple[Instant, int] | None = None
        """The newest skip: its last instant, and its place in what was found."""

    def until(self, end: Instant, outages: list[tuple[Instant, Instant]]) -> list[Simulated]:
        """Go on until then, and return all that came of it."""
        while True:
            up = not any(begin < self._now < over for begin, over in outages)
            self._at_once(up=up)
            ahead = [each for each in self._events(up=up) if each > self._now]
            ahead += [over for begin, over in outages if begin < self._now < over]
            if not ahead or min(ahead) > end:
                return self._found
            if len(self._found) > MOST:
                problem = f"brings more than {MOST:,} firings and skips of {self._plan.key}"
                raise InvalidMoment("end", moment(end).isoformat(), "use an earlier one", problem)
            self._now = min(ahead)

    def _events(self, *, up: bool) -> Iterator[Instant]:
        yield from (run.ends for run in self._under_way if run.ends is not None)
        if up:
            yield from (run.firing.at for run in self._under_way if run.started is None and not run.firing.queued)
            if self._wake is not None:
                yield self._wake

    def _at_once(self, *, up: bool) -> None:
        """Do all that happens at this instant: what ends, what is due, what begins, and again."""
        while True:
            ended = [run for run in self._under_way if run.ends is not None and run.ends <= self._now]
            for run in sorted(ended, key=lambda run: run.number):
                self._end(run, "succeeded")
            if up and self._wake is not None and self._wake <= self._now:
                self._fire()
            if not (up and self._begin()):
                return

    def _decision(self) -> Decision:
        past = replace(self._past, under_way=len(self._under_way))
        return decide(self._plan.key, self._plan.rule, self._plan.policies, past, self._now)

    def _fire(self) -> None:
        decision = self._decision()
        before = len(self._under_way)
        if decision.cancel:
            self._cancel()
        alone = decision.cancel and before and not self._under_way
        through = self._past.through
        for number, firing in enumerate(decision.fire):
            queued = firing.queued and not (alone and number == 0)
            self._under_way.append(_Run(replace(firing, queued=queued), len(self._found)))
            due, at = moment(firing.due), moment(self._now)
            self._found.append(Simulated(self._plan.key, due, at, late=firing.late))
        for number, skip in enumerate(decision.skips):
            self._skip(skip, through if number == 0 else None)
        fired = decision.fire
        self._past = replace(
            self._past,
            through=decision.through,
            due=fired[-1].due if fired else self._past.due,
            runs=self._past.runs + len(fired),
        )
        self._wake = decision.wake

    def _skip(self, skip: Skip, through: Instant | None) -> None:
        """Note a skip; one that goes on where the last one ended, for the same reason, lengthens it."""
        newest = self._newest
        if newest is not None and newest[0] == through and self._found[newest[1]].reason == skip.reason:
            last = self._found[newest[1]]
            self._found[newest[1]] = replace(last, due=moment(skip.last), count=last.count + skip.count)
            self._newest = (skip.last, newest[1])
            return
        first, due, at = moment(skip.first), moment(skip.last), moment(self._now)
        self._found.append(Simulated(self._plan.key, due, at, skip.reason, first, skip.count))
        if newest is None or skip.last >= newest[0]:
            self._newest = (skip.last, len(self._found) - 1)

    def _cancel(self) -> None:
        """End what is under way: a newer run takes its place."""
        for run in list(self._under_way):
            if run.started is None:
                self._under_way.remove(run)
                self._note(run, cancelled=True, ended=moment(self._now))
            else:
                self._end(run, "cancelled")

    def _begin(self) -> bool:
        """Start what may start; tells whether anything did."""
        ready = [
            run
            for run in self._under_way
            if run.started is None and not run.firing.queued and run.firing.at <= self._now
        ]
        for run in ready:
            run.started = self._now
            run.ends = self._now + length_of(self._takes, moment(run.firing.due))
            self._note(run, started=moment(self._now))
        return bool(ready)

    def _end(self, run: _Run, how: str) -> None:
        """End a run: what waited for it may begin, and what is next is known."""
        self._under_way.remove(run)
        self._note(run, ended=moment(self._now), cancelled=how == "cancelled")
        good = how == "succeeded"
        self._past = replace(
            self._past,
            started=run.started,
            finished=self._now,
            ended="succeeded" if good else "cancelled",
            succeeded=self._now if good else self._past.succeeded,
            asked=None,
        )
        self._open()
        decision = self._decision()
        if decision.fire or decision.skips:
            self._wake = self._now
        else:
            self._past = replace(self._past, through=decision.through)
            self._wake = decision.wake

    def _open(self) -> None:
        """Let runs that waited for others begin; what is on time goes before what is late."""
        policies = self._plan.policies
        queued = [run for run in self._under_way if run.firing.queued]
        going = len(self._under_way) - len(queued)
        most = policies.max_running if policies.overlap == "allow" else 1
        best = heapq.nsmallest(max(0, most - going), queued, key=lambda run: (run.firing.late, run.firing.due))
        for run in best:
            run.firing = replace(run.firing, queued=False)

    def _note(self, run: _Run, **more: object) -> None:
        self._found[run.number] = replace(self._found[run.number], **more)  # type: ignore[arg-type]
