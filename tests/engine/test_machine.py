"""The promises under random orders: a small model of all runs' lives beside the store's own."""

import asyncio
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.stores import SECOND, Clock, ask, emptied, new, on_clock, put, worker

from rota.model import Outcome
from rota.store.runs import Claimed, RunStore, Settled
from rota.store.workers import WorkerStore

T = TypeVar("T")

LEASE = 30 * SECOND
MAX_LOST = 2
KEYS = ("a", "b")
OUTCOMES: tuple[Outcome, ...] = ("succeeded", "failed", "cancelled", "retry", "snoozed")
UNDER_WAY = ("waiting", "ready", "running")


@dataclass
class Known:
    """What the model knows of a run."""

    priority: int
    due: int
    max_lost: int
    key: str | None = None
    state: str = "ready"
    attempt: int = 0
    lost: int = 0
    worker: str | None = None
    cancelled: bool = False
    result: str | None = None
    rows: list[tuple[int, str]] = field(default_factory=list)
    """The attempts that are kept."""


class Lives(RuleBasedStateMachine):
    """Everything that may happen to runs, in any order."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = Clock()
        self.runs: dict[int, Known] = {}
        self.alive: dict[str, int] = {}
        """The workers, and when their leases end."""
        self.held: list[tuple[str, Claimed]] = []
        """Every claim that was ever made: those who made them may come back at any time."""
        self.workers_made = 0

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        url = self.url or f"sqlite:///{Path(self.folder.name) / 'rota.db'}"
        if self.url:
            self.do(emptied(url))
        self.db = self.do(on_clock(url, self.clock))
        self.store = RunStore(self.db)
        self.workers = WorkerStore(self.db, self.store)
        for _ in range(2):
            self.enter()
            self.enqueue(50, 0, MAX_LOST)

    def teardown(self) -> None:
        if hasattr(self, "db"):
            self.do(self.db.close())
            self.folder.cleanup()
        self.loop.close()

    # What may happen

    @rule(
        priority=st.sampled_from([25, 50, 75]),
        delay=st.sampled_from([0, 0, 5, 60]),
        max_lost=st.sampled_from([0, 1, MAX_LOST]),
    )
    def enqueue(self, priority: int, delay: int, max_lost: int) -> None:
        made = self.do(put(self.db, priority=priority, delay=delay * SECOND, max_lost=max_lost))
        assert made.id not in self.runs
        due = self.clock.now + delay * SECOND
        self.runs[made.id] = Known(priority, due, max_lost, state="waiting" if delay else "ready")

    @rule(key=st.sampled_from(KEYS))
    def enqueue_unique(self, key: str) -> None:
        made = self.do(self.db.write(lambda: self.store.insert_unique(new(unique=key, max_lost=MAX_LOST))))
        twins = [number for number, run in self.runs.items() if run.key == key and run.state in UNDER_WAY]
        assert made.created == (not twins)
        if twins:
            assert [made.id] == twins
        else:
            self.runs[made.id] = Known(50, self.clock.now, MAX_LOST, key)

    @rule(seconds=st.sampled_from([1, 5, 20]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def admit(self) -> None:
        due = [run for run in self.runs.values() if run.state == "waiting" and run.due <= self.clock.now]
        found = self.do(self.db.write(lambda: self.store.admit(1_000)))
        assert sum(found.values()) == len(due)
        for run in due:
            run.state = "ready"

    @precondition(lambda self: len(self.alive) < 3)
    @rule()
    def enter(self) -> None:
        self.workers_made += 1
        name = f"w{self.workers_made}"
        self.do(self.db.write(lambda: self.workers.enter(worker(name), LEASE)))
        self.alive[name] = self.clock.now + LEASE

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.alive)))
        heard = self.do(self.db.write(lambda: self.workers.renew(name, LEASE)))
        assert heard.held
        assert {run for run, _, _ in heard.cancel} == {
            number for number, run in self.runs.items() if self.holds(name, run) and run.cancelled
        }
        self.alive[name] = self.clock.now + LEASE

    @precondition(lambda self: self.alive)
    @rule(data=st.data(), most=st.sampled_from([1, 1, 3]))
    def claim(self, data: st.DataObject, most: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.alive)))
        ready = [number for number, run in self.runs.items() if run.state == "ready"]
        best = sorted(ready, key=lambda n: (-self.runs[n].priority, self.runs[n].due, n))[:most]
        found = self.do(
            self.db.write(lambda: self.store.claim(name, "default", most, lost_least=0, lost_most=99), single=True)
        )
        assert [each.id for each in found] == best
        for each in found:
            run = self.runs[each.id]
            run.attempt += 1
            run.state, run.worker = "running", name
            assert (each.attempt, each.lost, each.previous_result) == (run.attempt, run.lost, run.result)
            self.held.append((name, each))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), outcome=st.sampled_from(OUTCOMES), delay=st.sampled_from([0, 5]))
    def settle(self, data: st.DataObject, outcome: Outcome, delay: int) -> None:
        """Whoever ever claimed a run says how it ended: he may be late, or say it twice."""
        batch = data.draw(
            st.lists(st.sampled_from(self.held), min_size=1, max_size=3, unique_by=lambda each: each[1].id)
        )
        name = batch[0][0]
        again = outcome in ("retry", "snoozed")
        ends = [
            Settled(each.id, each.attempt, outcome, f'"{name}-{each.attempt}"' if outcome == "succeeded" else None)
            if not again
            else Settled(each.id, each.attempt, outcome, delay=delay * SECOND)
            for _, each in batch
        ]
        mine = {each.id for _, each in batch if self.is_current(name, each)}
        assert self.do(self.db.write(lambda: self.store.settle(name, ends))) == mine
        for number in mine:
            run = self.runs[number]
            if outcome != "succeeded" or run.attempt > 1:
                run.rows.append((run.attempt, outcome))
            if again:
                run.due = self.clock.now + delay * SECOND
                run.state = "cancelled" if run.cancelled else "waiting"
            else:
                run.state = outcome
            if outcome == "succeeded":
                run.result = f'"{name}-{run.attempt}"'

    @precondition(lambda self: any(run.state == "running" for run in self.runs.values()))
    @rule(data=st.data(), outcome=st.sampled_from(OUTCOMES))
    def settle_what_another_holds(self, data: st.DataObject, outcome: Outcome) -> None:
        """Only the holder, and only of this attempt, may speak of a run that is under way."""
        number = data.draw(st.sampled_from([n for n, run in self.runs.items() if run.state == "running"]))
        run = self.runs[number]
        names = [f"w{n + 1}" for n in range(self.workers_made)]
        triples = [(name, attempt) for name in names for attempt in range(1, run.attempt + 2)]
        name, attempt = data.draw(st.sampled_from([each for each in triples if each != (run.worker, run.attempt)]))
        late = Settled(number, attempt, outcome, '"late"', delay=0 if outcome in ("retry", "snoozed") else None)
        assert self.do(self.db.write(lambda: self.store.settle(name, [late]))) == set()

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def hand_back(self, data: st.DataObject) -> None:
        name, each = data.draw(st.sampled_from(self.held))
        current = self.is_current(name, each)
        self.do(self.db.write(lambda: self.store.hand_back(name, [(each.id, each.attempt)])))
        self.held.remove((name, each))  # who gives it back never speaks of it again
        if current:
            run = self.runs[each.id]
            run.attempt -= 1
            run.state, run.worker = ("cancelled" if run.cancelled else "ready"), None

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.alive)))
        self.do(self.db.write(lambda: self.workers.leave(name)))
        del self.alive[name]
        self.lose(name, counts=False)

    @rule()
    def sweep(self) -> None:
        expired = [name for name, until in self.alive.items() if until < self.clock.now]
        for name in expired:
            del self.alive[name]
        ready = sum(self.lose(name, counts=True) for name in expired)
        assert sum(self.do(self.db.write(self.workers.sweep)).values()) == ready

    @precondition(lambda self: self.runs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.runs)))
        run = self.runs[number]
        found = self.do(self.db.write(lambda: self.store.cancel(number, "enough")))
        if run.state not in UNDER_WAY or run.cancelled:
            assert found is None
            return
        run.cancelled = True
        run.state = "running" if run.state == "running" else "cancelled"
        assert found == run.state

    @precondition(lambda self: self.runs)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.runs)))
        run = self.runs[number]
        twin = run.key and any(each.key == run.key and each.state in UNDER_WAY for each in self.runs.values())
        found = self.do(self.db.write(lambda: self.store.retry(number)))
        assert (found is not None) == (run.state not in UNDER_WAY and not twin)
        if found is not None:
            run.state, run.due, run.cancelled, run.lost = "ready", self.clock.now, False, 0

    # What is known of it

    def holds(self, name: str, run: Known) -> bool:
        return run.state == "running" and run.worker == name

    def is_current(self, name: str, claimed: Claimed) -> bool:
        run = self.runs[claimed.id]
        return self.holds(name, run) and run.attempt == claimed.attempt

    def lose(self, name: str, *, counts: bool) -> int:
        ready = 0
        for run in self.runs.values():
            if self.holds(name, run):
                run.rows.append((run.attempt, "lost"))
                too_often = run.max_lost == 0 or (counts and run.lost >= run.max_lost)
                run.state = "cancelled" if run.cancelled else "failed" if too_often else "ready"
                run.lost += counts
                ready += run.state == "ready"
        return ready

    # What always holds

    @invariant()
    def every_run_is_as_the_model_says(self) -> None:
        if not hasattr(self, "db"):
            return
        rows = self.do(ask(self.db, "SELECT * FROM rota_runs"))
        assert {row["id"] for row in rows} == set(self.runs)  # nothing is lost
        for row in rows:
            run = self.runs[row["id"]]
            found = (row["state"], row["attempt"], row["lost"], row["due"], row["result"])
            assert found == (run.state, run.attempt, run.lost, run.due, run.result)
            assert (row["finished_at"] is None) == (run.state in UNDER_WAY)
            assert (row["cancel"] is not None) == run.cancelled

    @invariant()
    def attempts_are_numbered_and_each_ended_once(self) -> None:
        if not hasattr(self, "db"):
            return
        rows = self.do(ask(self.db, "SELECT run, number, outcome FROM rota_attempts ORDER BY run, number"))
        kept = sorted((number, *row) for number, run in self.runs.items() for row in run.rows)
        assert [tuple(row) for row in rows] == kept

    @invariant()
    def a_key_has_at_most_one_run_under_way(self) -> None:
        for key in KEYS:
            assert sum(run.key == key and run.state in UNDER_WAY for run in self.runs.values()) <= 1


class LivesOnPostgres(Lives):
    """The same on PostgreSQL."""


def drive(machine: type[Lives], examples: int, steps: int) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=chosen)


def test_the_promises_hold_in_any_order_on_sqlite() -> None:
    drive(Lives, 60, 50)


def test_the_promises_hold_in_any_order_on_postgres(postgres_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LivesOnPostgres, "url", postgres_store)
    drive(LivesOnPostgres, 15, 50)
