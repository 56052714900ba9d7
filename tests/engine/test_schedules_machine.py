"""Schedules under random orders, beside a model: every due instant has one answer, and it is the right one."""

import asyncio
import tempfile
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.engine.schedule_model import MINUTE, UNDER_WAY, Model, Plan, Timing, Work
from tests.engine.test_machine import drive
from tests.scheduling import Bench
from tests.stores import SECOND, START, Clock, emptied, on_clock, sql

from rota.model import Outcome, RunError
from rota.store.runs import Claimed
from rota.times import At, Cron, Every, OnFailure
from rota.times.moments import moment
from rota.times.rule import Rule

T = TypeVar("T")

TIMINGS = [
    Timing(10),
    Timing(25),
    Timing(60, cron=True),
    Timing(60, (5, 25, 45), cron=True),
    Timing(60, (0, 10, 40), cron=True),
    Timing(20, since="success"),
    Timing(12, since="finish"),
    Timing(15, since="start"),
]
POLICIES: dict[str, list[dict[str, Any]]] = {
    "overlap": [
        {"overlap": "skip"},
        {"overlap": "queue_one"},
        {"overlap": "queue_all"},
        {"overlap": "cancel_running"},
        {"overlap": "allow", "max_running": 2},
    ],
    "missed": [{"missed": "latest"}, {"missed": "all", "max_missed": 2}, {"missed": "all"}, {"missed": "none"}],
    "grace": [{"grace": 4 * SECOND}, {"grace": 30 * SECOND}, {"grace": 0}],
    "exclude": [
        {"no_minutes": (1, 3)},
        {"no_seconds": (20, 21, 22, 40)},
        {"no_moments": (START + 30 * SECOND, START + 50 * SECOND)},
    ],
    "spread": [{"spread": 4 * SECOND}, {"spread": 45 * SECOND}],
    "max_runs": [{"max_runs": 1}, {"max_runs": 3}],
    "on_failure": [
        {"double_from": 1, "cap": 50 * SECOND},
        {"double_from": 2, "cap": 5 * SECOND},
        {"double_from": 2, "cap": 300 * SECOND},
        {"pause_after": 1},
        {"pause_after": 2, "double_from": 1, "cap": 300 * SECOND},
    ],
}
BOUNDS: list[dict[str, int]] = [
    {"start": START + 47 * SECOND},
    {"end": START + 130 * SECOND},
    {"start": START + 20 * SECOND, "end": START + 300 * SECOND},
]
ORDINARY = [
    *["fire_and_work"] * 5,
    *["fire_and_leave"] * 4,
    *["time_passes", "fire", "claim", "settle", "settle", "nobody_is_there_for_long", "heal"],
]
EVENTS = {
    "edit": ["put", "change", "change"],
    "pause": ["pause", "pause", "resume"],
    "pause everything": ["pause_or_resume_everything", "pause_or_resume_everything"],
    "trigger": ["trigger", "trigger"],
    "backfill": ["backfill"],
    "by hand": ["cancel", "retry"],
    "remove": ["remove"],
    "crash": ["crash", "crash"],
    "clock": ["the_clock_is_set_back", "the_clock_is_set_back"],
}
"""What may happen besides, in examples that have it."""
LATE = st.sampled_from([0, 0, 0, 4, 10, 45, 75])
ASKED = st.sampled_from([None, None, None, None, 3 * SECOND, 12 * SECOND, 50 * SECOND])
ENDS = st.sampled_from(["succeeded", "succeeded", "failed", "failed", "cancelled", "retry", "unresolved"])
DRAWN: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "fire_and_work": {"late": LATE, "outcome": st.sampled_from(["succeeded", "failed"]), "asked": ASKED},
    "fire_and_leave": {"late": LATE, "claims": st.booleans()},
    "time_passes": {"seconds": st.sampled_from([1, 4, 10, 35])},
    "nobody_is_there_for_long": {"seconds": st.sampled_from([130, 600])},
    "the_clock_is_set_back": {"seconds": st.sampled_from([1, 15, 100])},
    "settle": {"outcome": ENDS, "asked": ASKED},
    "pause": {"seconds": st.sampled_from([None, 5, 30, 100])},
    "backfill": {"length": st.sampled_from([40, 90])},
}
"""The values that steps take."""
DRAWING = ("put", "change", "cancel", "retry", "settle")
"""The steps that choose among what there is."""


@st.composite
def plans(draw: st.DrawFn, features: frozenset[str]) -> Plan:
    """Draw a plan that has some of these features."""
    timing = draw(st.sampled_from(TIMINGS))
    if "bounds" in features and draw(st.booleans()):
        timing = replace(timing, **draw(st.sampled_from(BOUNDS)))
    options: dict[str, Any] = {}
    for feature in sorted(features & POLICIES.keys()):
        options |= draw(st.sampled_from(POLICIES[feature]))
    return Plan(timing, **options)


def rule_of(timing: Timing) -> Rule:
    bounds = {"start": _moment(timing.start), "end": _moment(timing.end)}
    if not timing.cron:
        return Every(timing.period, since=timing.since, **bounds)  # type: ignore[arg-type]
    places = ",".join(map(str, timing.places))
    return Cron("* * * * *" if timing.places == (0,) else f"{places} * * * * *", **bounds)


def options_of(plan: Plan) -> dict[str, Any]:
    exclude: list[Rule] = [Cron(f"{minute} * * * *") for minute in plan.no_minutes]
    exclude += [Cron(f"{second} * * * * *") for second in plan.no_seconds]
    exclude += [At(moment(instant)) for instant in plan.no_moments]
    return {
        "rule": rule_of(plan.timing),
        "overlap": plan.overlap,
        "max_running": plan.max_running,
        "missed": plan.missed,
        "max_missed": plan.max_missed,
        "grace": None if plan.grace is None else plan.grace / SECOND,
        "spread": plan.spread / SECOND,
        "exclude": exclude,
        "max_runs": plan.max_runs,
        "on_failure": OnFailure(double_from=plan.double_from, cap=plan.cap / SECOND, pause_after=plan.pause_after),
    }


def _moment(instant: int | None) -> Any:
    return None if instant is None else moment(instant)


class Firings(RuleBasedStateMachine):
    """Everything that may happen to a schedule, in any order."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = Clock()
        self.latest = self.clock.now
        self.model = Model()
        self.features: frozenset[str] = frozenset()
        """The policies that schedules have in this example."""
        self.events: frozenset[str] = frozenset()
        """What may happen in this example besides firing and working: all at once would leave room for little else."""
        self.held: list[Claimed] = []

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @initialize(
        features=st.frozensets(st.sampled_from([*POLICIES, "bounds"]), min_size=1, max_size=4),
        events=st.frozensets(st.sampled_from(sorted(EVENTS)), max_size=3),
        data=st.data(),
    )
    def open(self, features: frozenset[str], events: frozenset[str], data: st.DataObject) -> None:
        self.folder = tempfile.TemporaryDirectory()
        url = self.url or f"sqlite:///{Path(self.folder.name) / 'rota.db'}"
        if self.url:
            self.do(emptied(url))
        self.db = self.do(on_clock(url, self.clock))
        self.bench = Bench(self.db, self.clock)
        self.features, self.events = features, events
        self.put(data)

    def teardown(self) -> None:
        if hasattr(self, "db"):
            try:
                self.everything_ends()
            finally:
                self.do(self.db.close())
                self.folder.cleanup()
        self.loop.close()

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        """Do something: one rule for all, so that ordinary life goes on in every example."""
        events = [name for event in sorted(self.events) for name in EVENTS[event]]
        name = data.draw(st.sampled_from(ORDINARY + (events if self.model.known else ["put"] * 8)))
        values: dict[str, Any] = {key: data.draw(each) for key, each in DRAWN.get(name, {}).items()}
        getattr(self, name)(**values, **({"data": data} if name in DRAWING else {}))

    # What people do

    def put(self, data: st.DataObject) -> None:
        plan = data.draw(plans(self.features))
        if self.model.known is None:  # the history of a key stays: it may not be made again before its own past
            self.clock.now = self.latest = max(self.latest, self.clock.now) + SECOND
        self.do(self.bench.put(**options_of(plan)))
        self.model.put(plan, self.clock.now)

    def change(self, data: st.DataObject) -> None:
        """Change one thing and keep the rest."""
        known = self.model.known
        assert known
        other = data.draw(plans(self.features))
        if data.draw(st.booleans()):
            plan = replace(known.plan, timing=other.timing)
        else:
            plan = replace(other, timing=known.plan.timing)
        before, after = options_of(known.plan), options_of(plan)
        values = {name: value for name, value in after.items() if value != before[name]}
        if values:
            self.do(self.bench.facade.change("s", **values))
            self.model.put(plan, self.clock.now)

    def pause(self, seconds: int | None) -> None:
        until = None if seconds is None else (self.clock.now // SECOND // 5 * 5 + seconds) * SECOND
        self.do(self.bench.facade.pause("s", until=_moment(until)))
        self.model.pause(until, self.clock.now)

    def resume(self) -> None:
        found = self.do(self.bench.facade.resume("s"))
        assert found == self.model.resume(self.clock.now)

    def pause_or_resume_everything(self) -> None:
        paused = not self.model.all_paused
        self.do(self.bench.facade.pause_all(paused=paused, note=None, by=None))
        self.model.pause_all(paused, self.clock.now)

    def trigger(self) -> None:
        busy = self.numbers(*UNDER_WAY)
        found = self.do(self.bench.facade.trigger("s"))
        assert found.blocker == (busy[0] + 1 if busy else None)
        made = self.model.trigger([self.clock.now], "manual", self.clock.now)
        assert (found.run is not None) == bool(made)

    def backfill(self, length: int) -> None:
        known = self.model.known
        if known is None or known.plan.timing.anchored:
            return
        first, last = START - length * SECOND, START + 10 * SECOND
        named = [t for t in known.plan.timing.named(first - 1, last - 1) if not known.plan.excludes(t)]
        if named:
            found = self.do(self.bench.facade.backfill("s", moment(first), moment(last)))
            assert found.count == self.model.trigger(named, "backfill", self.clock.now)

    def remove(self) -> None:
        self.do(self.bench.facade.remove("s"))
        self.model.remove()

    def cancel(self, data: st.DataObject) -> None:
        busy = self.numbers(*UNDER_WAY)
        if busy:
            number = data.draw(st.sampled_from(busy))
            self.do(self.db.write(lambda: self.bench.runs.cancel(number + 1, "enough")))
            self.model.cancel(number, self.clock.now)

    def retry(self, data: st.DataObject) -> None:
        over = self.numbers("succeeded", "failed", "cancelled")
        if over:
            number = data.draw(st.sampled_from(over))
            self.do(self.db.write(lambda: self.bench.runs.retry(number + 1)))
            self.model.retry(number, self.clock.now)

    # What time does

    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.latest = max(self.latest, self.clock.now)

    def nobody_is_there_for_long(self, seconds: int) -> None:
        self.time_passes(seconds)

    def the_clock_is_set_back(self, seconds: int) -> None:
        """Not by more than a minute in all: what that brings back is for tests of its own."""
        self.clock.now = max(self.clock.now - seconds * SECOND, self.latest - 60 * SECOND)

    # What Rota does

    def fire(self) -> None:
        assert self.do(self.bench.fire()).lost == 0
        self.model.fire(self.clock.now)

    def heal(self) -> None:
        assert self.do(self.db.write(lambda: self.bench.store.heal(10))) == 0

    def claim(self) -> None:
        claimed = self.do(self.bench.claim())
        assert sorted(each.id - 1 for each in claimed) == self.model.claim(self.clock.now)
        self.held += claimed

    def settle(self, data: st.DataObject, outcome: str, asked: int | None) -> None:
        if self.held:
            self.end(self.held.pop(data.draw(st.integers(0, len(self.held) - 1))), outcome, asked)

    def fire_and_work(self, late: int, outcome: str, asked: int | None) -> None:
        """Fire at the next instant, or late, and begin and end all that may."""
        self.go_on(late)
        self.claim()
        while self.held:
            self.end(self.held.pop(), outcome, asked)

    def fire_and_leave(self, late: int, claims: bool) -> None:
        """Fire at the next instant, or late, and leave what is under way as it is."""
        self.go_on(late)
        if claims:
            self.claim()

    def go_on(self, late: int) -> None:
        """Go to the next instant, where there is one, and so much further; and fire."""
        known = self.model.known
        ahead = None if known is None else known.wake
        self.clock.now = max(self.clock.now, ahead or 0) + late * SECOND
        self.latest = max(self.latest, self.clock.now)
        self.fire()

    def end(self, one: Claimed, outcome: str = "succeeded", asked: int | None = None) -> None:
        more: dict[str, Any] = {"asked": asked}
        if outcome == "retry":
            more = {"delay": 3 * SECOND}
        if outcome == "unresolved":
            more["error"] = RunError("UnknownTask", "nobody knows it")
        said: Outcome = "failed" if outcome == "unresolved" else outcome  # type: ignore[assignment]
        self.do(self.bench.end(one, said, **more))
        now = self.clock.now
        self.model.settle(one.id - 1, outcome, now, again=now + 3 * SECOND, asked=asked)

    def crash(self) -> None:
        self.do(self.bench.die())
        self.held = []
        self.model.crash(self.clock.now)

    # What must hold

    def numbers(self, *states: str) -> list[int]:
        """Return the model's numbers of the runs in these states; in the store each is one higher."""
        return [number for number, each in enumerate(self.model.work) if each.state in states]

    @invariant()
    def the_store_is_as_the_model_says(self) -> None:
        """The runs and the skips are those of the model, and so are what the schedule is and what is next."""
        if not hasattr(self, "db"):
            return
        runs, skips, schedules = self.do(self.db.write(self.everything))
        assert [_run(row) for row in runs] == [_work(number, each) for number, each in enumerate(self.model.work)]
        self.check_skips(skips)
        known = self.model.known
        if known is None:
            assert list(schedules) == []
            return
        (row,) = schedules
        assert (row["state"], row["failures"]) == (known.state, known.failures)
        if known.owed:  # what had come already when somebody looked is left to whoever fires, at once
            assert _shown(row["wake"]) == _shown(known.wake)
        else:
            assert _shown(row["next"]) == _shown(known.next)
        assert row["state"] != "active" or row["wake"] is not None or self.model.under_way()

    def check_skips(self, rows: list[Any]) -> None:
        """Every row stands for the model's skips of its reason from its first to its last, and all have theirs."""
        left = dict(self.model.skipped)
        for row in rows:
            inside = [t for t, why in left.items() if row["first"] <= t <= row["last"] and why == row["reason"]]
            found = (row["reason"], _shown(row["first"]), _shown(row["last"]), row["count"])
            assert found == (row["reason"], _shown(min(inside)), _shown(max(inside)), len(inside))
            for instant in inside:
                del left[instant]
        assert [(_shown(instant), why) for instant, why in left.items()] == []

    def everything(self) -> Any:
        runs = yield from sql("SELECT * FROM rota_runs ORDER BY id", self.db.dialect)
        skips = yield from sql("SELECT * FROM rota_skips ORDER BY first", self.db.dialect)
        return runs, skips, (yield from sql("SELECT * FROM rota_schedules", self.db.dialect))

    def every_answer_can_be_asked_for(self) -> None:
        by_hand = {each.due for each in self.model.work}  # a run that stands for an instant is what came of it at last
        for instant, reason in [item for item in self.model.skipped.items() if item[0] not in by_hand][-20:]:
            _, answer = self.do(self.bench.why((instant - START) / SECOND))
            assert answer is not None, _shown(instant)
            assert answer.reason == reason, _shown(instant)

    def everything_ends(self) -> None:
        """Once nothing new comes, all that is under way comes to its end."""
        if self.model.known:
            self.pause(None)
        if not self.events & {"edit", "remove"}:  # which of two reasons it was is told by the exclusions of today
            self.every_answer_can_be_asked_for()
        for _ in range(2 * len(self.model.work) + 5):
            if not self.model.under_way():
                return
            self.clock.advance(MINUTE // SECOND)
            self.crash()
            self.claim()
            while self.held:
                self.end(self.held.pop())
        raise AssertionError("some runs wait for ever")


def _shown(instant: int | None) -> float | None:
    """Show an instant in seconds since the start."""
    return None if instant is None else (instant - START) / SECOND


def _run(row: Any) -> tuple[Any, ...]:
    """Show of a run in the store what the model knows."""
    state = "waiting" if row["state"] == "ready" else row["state"]
    gated = state == "waiting" and row["gate"] is not None
    at = _shown(row["due"]) if state == "waiting" else None
    cancelled = state == "running" and row["cancel"] is not None
    return row["id"], _shown(row["nominal"]), row["kind"], state, gated, row["priority"], at, cancelled


def _work(number: int, each: Work) -> tuple[Any, ...]:
    gated = each.state == "waiting" and each.queued
    at = _shown(each.at) if each.state == "waiting" else None
    cancelled = each.state == "running" and each.cancelled
    return number + 1, _shown(each.due), each.kind, each.state, gated, each.priority, at, cancelled


class FiringsOnPostgres(Firings):
    """The same on PostgreSQL."""


def test_every_due_instant_has_its_one_right_answer_in_any_order_on_sqlite() -> None:
    drive(Firings, 50, 30)


def test_every_due_instant_has_its_one_right_answer_in_any_order_on_postgres(
    postgres_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FiringsOnPostgres, "url", postgres_store)
    drive(FiringsOnPostgres, 8, 30)
