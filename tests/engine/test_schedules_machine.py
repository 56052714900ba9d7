"""Schedules under random orders: every due instant has one answer, whatever happens around it."""

import asyncio
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.engine.test_machine import drive
from tests.scheduling import Bench, at
from tests.stores import SECOND, START, Clock, ask, emptied, on_clock

from rota.model import Outcome
from rota.store.runs import Claimed
from rota.times.intervals import Every

T = TypeVar("T")

RULES = {"10s": Every("10s"), "15s": Every("15s"), "anchored": Every("20s", since="success")}
STEPS = {"10s": 10 * SECOND, "15s": 15 * SECOND, "anchored": 20 * SECOND}
OVERLAPS: list[dict[str, Any]] = [
    {"overlap": "skip"},
    {"overlap": "queue_one"},
    {"overlap": "queue_all"},
    {"overlap": "cancel_running"},
    {"overlap": "allow", "max_running": 2},
]
MISSED: list[dict[str, Any]] = [{"missed": "latest"}, {"missed": "all", "max_missed": 2}]
UNDER_WAY = ("waiting", "ready", "running")
OWN = ("cron", "interval", "once")


@dataclass
class Epoch:
    """A time in which the schedule had one rule."""

    rule: str
    since: int
    until: int | None = None

    def named(self, until: int) -> list[int]:
        """Return the instants after its beginning, up to this one or its end. By counting, as a person would."""
        last = until if self.until is None else min(until, self.until)
        step = STEPS[self.rule]
        return [] if self.rule == "anchored" else list(range(self.since // step * step + step, last + 1, step))


class Firings(RuleBasedStateMachine):
    """Everything that may happen to a schedule, in any order."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = Clock()
        self.epochs: list[Epoch] = []
        """The rules of the schedule that there is; empty where there is none."""
        self.options: dict[str, Any] = {}
        self.paused = self.all_paused = False
        self.held: list[Claimed] = []

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @initialize(name=st.sampled_from(sorted(RULES)), overlap=st.sampled_from(OVERLAPS), missed=st.sampled_from(MISSED))
    def open(self, name: str, overlap: dict[str, Any], missed: dict[str, Any]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        url = self.url or f"sqlite:///{Path(self.folder.name) / 'rota.db'}"
        if self.url:
            self.do(emptied(url))
        self.db = self.do(on_clock(url, self.clock))
        self.bench = Bench(self.db, self.clock)
        self.options = overlap | missed  # for the whole example: so much may go at once at any time
        self.put(name)

    def teardown(self) -> None:
        if hasattr(self, "db"):
            try:
                self.everything_ends()
            finally:
                self.do(self.db.close())
                self.folder.cleanup()
        self.loop.close()

    # What may happen

    @rule(name=st.sampled_from(sorted(RULES)))
    def put(self, name: str) -> None:
        if not self.epochs:
            self.clock.advance(1)
            self.paused = False
        self.do(self.bench.put(rule=RULES[name], **self.options))
        if not self.epochs or self.epochs[-1].rule != name:
            if self.epochs:
                self.epochs[-1].until = self.clock.now
            self.epochs.append(Epoch(name, self.clock.now))

    @rule(seconds=st.sampled_from([1, 4, 10, 10, 35]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def fire(self) -> None:
        fired = self.do(self.bench.fire())
        assert fired.lost == 0
        assert not (self.paused or self.all_paused) or fired.runs == 0
        if self.epochs and not self.paused and not self.all_paused:
            self.check_that_nothing_is_owed()

    @precondition(lambda self: self.epochs)
    @rule()
    def pause(self) -> None:
        self.do(self.bench.facade.pause("s"))
        self.paused = True

    @precondition(lambda self: self.epochs)
    @rule()
    def resume(self) -> None:
        assert self.do(self.bench.facade.resume("s")) == self.paused
        self.paused = False

    @rule()
    def pause_or_resume_everything(self) -> None:
        self.all_paused = not self.all_paused
        self.do(self.bench.facade.pause_all(paused=self.all_paused, note=None, by=None))

    @precondition(lambda self: self.epochs)
    @rule()
    def trigger(self) -> None:
        busy = [row["id"] for row in self.rows() if row["state"] in UNDER_WAY]
        found = self.do(self.bench.facade.trigger("s"))
        assert found.blocker == (busy[0] if busy else None)
        most = self.options.get("max_running", 1)
        waiting = {"skip": 0, "queue_one": 1, "allow": 0}.get(self.options["overlap"], 10**6)
        assert (found.run is None) == (len(busy) >= most + waiting)

    @precondition(lambda self: self.epochs and self.epochs[-1].rule != "anchored")
    @rule()
    def backfill(self) -> None:
        self.do(self.bench.facade.backfill("s", at(-30), at(1)))

    @precondition(lambda self: self.epochs)
    @rule()
    def remove(self) -> None:
        self.do(self.bench.facade.remove("s"))
        assert not [row for row in self.rows() if row["state"] in ("waiting", "ready")]
        self.epochs = []

    @rule()
    def claim(self) -> None:
        self.held += self.do(self.bench.claim())

    @precondition(lambda self: self.held)
    @rule(data=st.data(), outcome=st.sampled_from(["succeeded", "failed", "cancelled", "retry"]))
    def settle(self, data: st.DataObject, outcome: Outcome) -> None:
        one = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.do(self.bench.end(one, outcome, delay=3 * SECOND if outcome == "retry" else None))

    @rule()
    def crash(self) -> None:
        self.do(self.bench.die())
        self.held = []

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        busy = [row["id"] for row in self.rows() if row["state"] in UNDER_WAY]
        if busy:
            number = data.draw(st.sampled_from(busy))
            self.do(self.db.write(lambda: self.bench.runs.cancel(number, "enough")))

    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        over = [row["id"] for row in self.rows() if row["state"] not in UNDER_WAY]
        if over and self.epochs:
            number = data.draw(st.sampled_from(over))
            self.do(self.db.write(lambda: self.bench.runs.retry(number)))

    # What must hold

    def rows(self) -> list[Any]:
        return self.do(self.bench.rows())

    @invariant()
    def no_more_go_at_once_than_the_policy_says(self) -> None:
        if hasattr(self, "db"):
            going = [
                row
                for row in self.rows()
                if row["state"] in UNDER_WAY and (row["gate"] is None or not row["gate"].startswith("@"))
            ]
            assert len(going) <= self.options.get("max_running", 1)

    @invariant()
    def every_instant_has_one_answer(self) -> None:
        if not self.epochs:
            return
        (row,) = self.do(ask(self.db, "SELECT * FROM rota_schedules"))
        first = self.epochs[0].since
        ran = [each["nominal"] for each in self.rows() if each["kind"] in OWN and each["nominal"] >= first]
        assert len(set(ran)) == len(ran)
        skips = [
            each for each in self.do(ask(self.db, "SELECT * FROM rota_skips ORDER BY first")) if each["first"] >= first
        ]
        for one, following in pairwise(skips):
            assert one["last"] < following["first"]
        through = row["through"] or 0
        for epoch in self.epochs:
            named = epoch.named(through if epoch.until is None else epoch.until)
            for instant in named:
                answers = ran.count(instant) + sum(e["first"] <= instant <= e["last"] for e in skips)
                assert answers == 1, (instant - START) / SECOND
        everything = {t for epoch in self.epochs for t in epoch.named(self.clock.now)}
        spans = [(e.since, e.until or self.clock.now) for e in self.epochs if e.rule == "anchored"]
        for instant in ran:
            assert instant in everything or any(since <= instant <= until for since, until in spans)
        for each in skips:
            inside = [t for t in everything if each["first"] <= t <= each["last"]]
            # what an interval named lies between them where neighbours of two rules are one
            other = any(since <= each["last"] and each["first"] <= until for since, until in spans)
            assert each["count"] >= len(inside) if other else each["count"] == len(inside)

    @invariant()
    def an_active_schedule_goes_on(self) -> None:
        for row in self.do(ask(self.db, "SELECT * FROM rota_schedules")) if self.epochs else ():
            assert row["state"] == ("paused" if self.paused else "active")
            busy = [each for each in self.rows() if each["state"] in UNDER_WAY]
            assert self.paused or row["wake"] is not None or busy

    def check_that_nothing_is_owed(self) -> None:
        """After firing nothing up to now is open, and the next is the right one."""
        (row,) = self.do(ask(self.db, "SELECT * FROM rota_schedules"))
        epoch = self.epochs[-1]
        if epoch.rule != "anchored":
            named = epoch.named(self.clock.now)
            assert not named or row["through"] >= named[-1]
            assert row["next"] == self.clock.now // STEPS[epoch.rule] * STEPS[epoch.rule] + STEPS[epoch.rule]
            return
        busy = [each for each in self.rows() if each["state"] in UNDER_WAY]
        if busy:
            assert row["next"] is None
        else:
            ends = [each["finished_at"] for each in self.rows() if each["finished_at"] >= row["created_at"]]
            assert row["next"] == max(ends) + STEPS["anchored"]
            assert row["next"] > self.clock.now

    def everything_ends(self) -> None:
        """Once nothing new comes, all that is under way comes to its end."""
        if self.epochs:
            self.pause()
        for _ in range(2 * len(self.rows()) + 5):
            if not [row for row in self.rows() if row["state"] in UNDER_WAY]:
                return
            self.clock.advance(5)
            self.crash()
            self.claim()
            while self.held:
                self.do(self.bench.end(self.held.pop()))
        raise AssertionError("some runs wait for ever")


class FiringsOnPostgres(Firings):
    """The same on PostgreSQL."""


def test_every_due_instant_has_one_answer_in_any_order_on_sqlite() -> None:
    drive(Firings, 60, 40)


def test_every_due_instant_has_one_answer_in_any_order_on_postgres(
    postgres_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FiringsOnPostgres, "url", postgres_store)
    drive(FiringsOnPostgres, 10, 40)
