"""Limits under random orders: nothing is let in that has no room, in the right order, and everything is in the end."""

import asyncio
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.engine.test_machine import drive
from tests.stores import SECOND, Clock, ask, emptied, new, on_clock, put, worker

from rota.limit import Limit
from rota.model import Outcome
from rota.store.admission import Admission
from rota.store.limits import Asked, LimitStore
from rota.store.runs import Claimed, RunStore, Settled
from rota.store.workers import WorkerStore

T = TypeVar("T")

LEASE = 30 * SECOND
KEYS = ("host:a", "host:b", "host:c", "gpu")
CHOICES = st.lists(st.sampled_from(KEYS), max_size=3, unique=True).map(lambda keys: tuple(sorted(keys)))
LIMITS = {
    "host:*": [Limit(1, gap="1s", keys_at_once=2), Limit(2, keys_at_once=1), Limit(keys_at_once=2)],
    "host:b": [Limit(2, gap="3s"), Limit(1)],
    "gpu": [Limit(1), Limit(2, gap="2s")],
    "task:some.task": [Limit(2), Limit(3)],
}


@dataclass
class Known:
    """What the model knows of a run."""

    named: tuple[str, ...]
    rank: tuple[int, int, int]
    state: str = "waiting"
    busy: bool = False
    """Whether it has room: it was let in, and has not ended."""


class Admissions(RuleBasedStateMachine):
    """Everything that concerns limits, in any order."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = Clock()
        self.runs: dict[int, Known] = {}
        self.limits: dict[str, Limit] = {}
        self.rests: dict[str, int] = {}
        """Until when each key rests."""
        self.held: dict[int, tuple[str, Claimed]] = {}
        self.holds: dict[int, str] = {}
        self.workers_made = 0

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @initialize(first=st.sampled_from(LIMITS["host:*"]), second=st.sampled_from(LIMITS["gpu"]))
    def open(self, first: Limit, second: Limit) -> None:
        self.folder = tempfile.TemporaryDirectory()
        url = self.url or f"sqlite:///{Path(self.folder.name) / 'rota.db'}"
        if self.url:
            self.do(emptied(url))
        self.db = self.do(on_clock(url, self.clock))
        self.store, self.admission, self.limit_store = RunStore(self.db), Admission(self.db), LimitStore(self.db)
        self.workers = WorkerStore(self.db, self.store)
        self.do(self.db.write(lambda: self.workers.enter(worker("lasting"), 10**15)))
        self.put_limit("host:*", first)
        self.put_limit("gpu", second)

    def teardown(self) -> None:
        if hasattr(self, "db"):
            try:
                self.everything_is_let_in_in_the_end()
            finally:
                self.do(self.db.close())
                self.folder.cleanup()
                self.loop.close()

    # What may happen

    @rule(data=st.data(), key=st.sampled_from(sorted(LIMITS)))
    def change_limit(self, data: st.DataObject, key: str) -> None:
        self.put_limit(key, data.draw(st.sampled_from(LIMITS[key])))

    @precondition(lambda self: len(self.limits) > 1)
    @rule(data=st.data())
    def remove_limit(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.limits)))
        self.do(self.db.write(lambda: self.limit_store.remove(key)))
        del self.limits[key]
        self.read()

    @rule(keys=CHOICES, priority=st.sampled_from([25, 50, 75]), delay=st.sampled_from([0, 0, 0, 2]))
    def enqueue(self, keys: tuple[str, ...], priority: int, delay: int) -> None:
        made = self.do(put(self.db, new(limits=keys, priority=priority, delay=delay * SECOND, max_lost=1)))
        self.runs[made.id] = Known(keys, (-priority, self.clock.now + delay * SECOND, made.id), made.state)
        if made.state == "ready":
            assert delay == 0
            assert not self.governing(self.runs[made.id])

    @rule(seconds=st.sampled_from([0.5, 1, 2, 10]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule()
    def admit(self) -> None:
        before = {number for number, run in self.runs.items() if run.state == "waiting"}
        self.do(self.db.write(lambda: self.admission.admit(1_000)))
        self.read()
        self.check_let_in([self.runs[number] for number in sorted(before) if self.runs[number].state == "ready"])

    @rule(most=st.sampled_from([1, 3]), doomed=st.booleans())
    def claim(self, most: int, doomed: bool) -> None:
        name = "lasting"
        if doomed:
            self.workers_made += 1
            name = f"w{self.workers_made}"
            self.do(self.db.write(lambda: self.workers.enter(worker(name), LEASE)))
        for each in self.do(
            self.db.write(lambda: self.store.claim(name, "default", most, lost_least=0, lost_most=99), single=True)
        ):
            self.runs[each.id].state = "running"
            self.held[each.id] = (name, each)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), outcome=st.sampled_from(["succeeded", "failed", "retry"]))
    def settle(self, data: st.DataObject, outcome: Outcome) -> None:
        self.end(data.draw(st.sampled_from(sorted(self.held))), outcome)

    @precondition(lambda self: self.runs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.runs)))
        self.do(self.db.write(lambda: self.store.cancel(number, "enough")))
        self.read()

    @precondition(lambda self: self.runs)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.runs)))
        if self.do(self.db.write(lambda: self.store.retry(number))):
            self.runs[number].rank = (self.runs[number].rank[0], self.clock.now, number)
        self.read()

    @rule()
    def sweep(self) -> None:
        self.do(self.db.write(self.workers.sweep))
        self.do(self.db.write(self.limit_store.sweep))
        self.read()

    @rule(key=st.sampled_from(KEYS))
    def hold(self, key: str) -> None:
        asked = self.do(self.db.write(lambda: self.limit_store.ask(key, None, None, 10**15)))
        if asked.granted:
            assert self.has_room((key,), self.busy())
            self.holds[asked.hold] = key
        else:
            self.do(self.db.write(lambda: self.limit_store.release(key, asked, began=False)))

    @precondition(lambda self: self.holds)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        hold = data.draw(st.sampled_from(sorted(self.holds)))
        key = self.holds.pop(hold)
        self.do(self.db.write(lambda: self.limit_store.release(key, Asked(hold, granted=True), began=True)))
        self.rest(key)

    # What is known of it

    def put_limit(self, key: str, limit: Limit) -> None:
        self.do(self.db.write(lambda: self.limit_store.put(key, limit)))
        self.limits[key] = limit
        self.read()
        for run in self.runs.values():  # what is under way is counted
            run.busy |= run.state == "running"

    def end(self, number: int, outcome: Outcome) -> None:
        name, claimed = self.held.pop(number)
        delay = 2 * SECOND if outcome == "retry" else None
        ended = Settled(number, claimed.attempt, outcome, delay=delay, limited=claimed.limited)
        run = self.runs[number]
        if self.do(self.db.write(lambda: self.store.settle(name, [ended]))):
            for key in self.governing(run):
                self.rest(key)
            run.busy = False
            if delay:
                run.rank = (run.rank[0], self.clock.now + delay, number)
        self.read()

    def read(self) -> None:
        """Take over the states; whoever has ended has no room any more."""
        for row in self.do(ask(self.db, "SELECT id, state, gate FROM rota_runs")):
            run = self.runs[row["id"]]
            if run.state == "running" and row["state"] in ("failed", "cancelled"):
                for key in self.governing(run):
                    self.rest(key)
            run.state = row["state"]
            run.busy = run.state in ("ready", "running") and (run.busy or row["gate"] is not None)
            if run.state != "running":
                self.held.pop(row["id"], None)

    def limit_of(self, key: str) -> Limit | None:
        return self.limits.get(key) or self.limits.get(f"{key.partition(':')[0]}:*" if ":" in key else "")

    def governing(self, run: Known) -> set[str]:
        return {key for key in (*run.named, "task:some.task") if self.limit_of(key)}

    def rest(self, key: str) -> None:
        limit = self.limit_of(key)
        if limit:
            self.rests[key] = max(self.rests.get(key, 0), self.clock.now + round(limit.gap.total_seconds() * SECOND))

    def busy(self) -> list[str]:
        """Return the keys that have room now, one for each that has it."""
        found = [key for run in self.runs.values() if run.busy for key in self.governing(run)]
        return found + list(self.holds.values())

    def has_room(self, keys: tuple[str, ...], busy: list[str]) -> bool:
        for key in keys:
            limit = self.limit_of(key)
            if limit and limit.at_once is not None and busy.count(key) >= limit.at_once:
                return False
        return True

    def check_let_in(self, new: list[Known]) -> None:
        """Check what an admission let in: by how full it is after it."""
        busy = self.busy()
        for run in new:
            for key in self.governing(run):
                limit = self.limit_of(key)
                assert limit is not None
                assert limit.at_once is None or busy.count(key) <= limit.at_once
                assert self.clock.now >= self.rests.get(key, 0) or not limit.gap
                self.check_group(f"{key.partition(':')[0]}:", new, busy)
            same = [each for each in self.runs.values() if each.named == run.named and each.state == "waiting"]
            assert all(each.rank > run.rank for each in same if self.governing(run) and each.rank[1] <= self.clock.now)

    def check_group(self, group: str, new: list[Known], busy: list[str]) -> None:
        """Check that no key became busy beyond the cap of its group; one run of more keys is let in alone."""
        limit = self.limits.get(f"{group}*")
        after = {key for key in busy if key.startswith(group)}
        old = {key for run in self.runs.values() if run.busy and run not in new for key in run.named}
        if limit and limit.keys_at_once and after - old - set(self.holds.values()):
            most = max(sum(key.startswith(group) for key in run.named) for run in new)
            assert len(after) <= max(limit.keys_at_once, most)

    def everything_is_let_in_in_the_end(self) -> None:
        for hold in sorted(self.holds):
            key = self.holds.pop(hold)
            self.do(
                self.db.write(lambda hold=hold, key=key: self.limit_store.release(key, Asked(hold, True), began=True))
            )
        for _ in range(2 * len(self.runs) + 5):
            self.clock.advance(40)
            self.sweep()
            self.admit()
            self.admit()
            self.claim(100, doomed=False)
            for number in sorted(self.held):
                self.end(number, "succeeded")
            if not any(run.state in ("waiting", "ready", "running") for run in self.runs.values()):
                break
        else:
            raise AssertionError("some runs wait for ever")
        self.do(self.db.write(self.limit_store.sweep))
        self.clock.advance(100)
        self.do(self.db.write(lambda: self.admission.admit(1_000)))
        for table in ("rota_lines", "rota_holds", "rota_taken"):
            assert not self.do(ask(self.db, f"SELECT * FROM {table}"))


class AdmissionsOnPostgres(Admissions):
    """The same on PostgreSQL."""


def test_limits_hold_in_any_order_on_sqlite() -> None:
    drive(Admissions, 60, 50)


def test_limits_hold_in_any_order_on_postgres(postgres_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AdmissionsOnPostgres, "url", postgres_store)
    drive(AdmissionsOnPostgres, 10, 50)
