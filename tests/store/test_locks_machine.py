"""Locks under random orders: three clients, time that passes, and a small model beside the store."""

import asyncio
import tempfile
from collections.abc import Coroutine
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.stores import SECOND, Clock, emptied, on_clock

from rota.store.locks import Holding, LockStore

T = TypeVar("T")

CLIENTS = ("ann", "ben", "cem")
NAMES = ("invoices", "reports")

clients = st.sampled_from(CLIENTS)
names = st.sampled_from(NAMES)
ttls = st.sampled_from([SECOND, 5 * SECOND, 60 * SECOND])


class Locking(RuleBasedStateMachine):
    """Everything that may happen to locks, in any order; whoever ever had a token may come back with it."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = Clock()
        self.current: dict[str, tuple[str, str, int]] = {}
        """The token that counts for a name, whose it is, and when it ends."""
        self.tokens: dict[tuple[str, str], list[str]] = {}
        """All that a client ever had of a name."""
        self.fences: dict[str, list[int]] = {name: [] for name in NAMES}
        self.taken = 0

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.address = self.url or f"sqlite:///{Path(self.folder.name) / 'rota.db'}"
        if self.url:
            self.do(emptied(self.url))
        self.connect()

    def connect(self) -> None:
        self.db = self.do(on_clock(self.address, self.clock))
        self.store = LockStore(self.db)

    def teardown(self) -> None:
        if hasattr(self, "db"):
            self.do(self.db.close())
            self.folder.cleanup()
        self.loop.close()

    # What may happen

    @rule(seconds=st.sampled_from([0.5, 1, 4.999_999, 60]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(name=names, client=clients, ttl=ttls)
    def take(self, name: str, client: str, ttl: int) -> None:
        self.taken += 1
        token = f"token-{self.taken}"
        fence = self.do(self.db.write(lambda: self.store.take(name, token, client, ttl), single=True))
        assert (fence is None) == self.is_held(name)
        if fence is not None:
            self.current[name] = token, client, self.clock.now + ttl
            self.tokens.setdefault((name, client), []).append(token)
            self.fences[name].append(fence)

    @rule(name=names, client=clients, ttl=ttls, data=st.data())
    def extend(self, name: str, client: str, ttl: int, data: st.DataObject) -> None:
        token = self.some_token(name, client, data)
        counts = self.counts(name, token)
        assert self.do(self.db.write(lambda: self.store.extend(name, token, ttl), single=True)) == counts
        if counts:
            self.current[name] = token, client, self.clock.now + ttl

    @rule(name=names, client=clients, data=st.data())
    def release(self, name: str, client: str, data: st.DataObject) -> None:
        token = self.some_token(name, client, data)
        found = self.do(self.db.write(lambda: self.store.release(name, token), single=True))
        assert (found is not None) == self.counts(name, token)
        if found is not None:
            assert found.left == self.current.pop(name)[2] - self.clock.now

    @rule()
    def restart(self) -> None:
        self.do(self.db.close())
        self.connect()

    # What is known of it

    def some_token(self, name: str, client: str, data: st.DataObject) -> str:
        return data.draw(st.sampled_from([*self.tokens.get((name, client), []), "never given"]))

    def counts(self, name: str, token: str) -> bool:
        return name in self.current and self.current[name][0] == token

    def is_held(self, name: str) -> bool:
        return name in self.current and self.clock.now < self.current[name][2]

    # What always holds

    @invariant()
    def the_holder_is_the_one_whose_token_counts_until_its_end(self) -> None:
        if not hasattr(self, "db"):
            return
        for name in NAMES:
            _, client, ends = self.current.get(name, ("", "", 0))
            expected = Holding(client, ends, ends - self.clock.now) if self.is_held(name) else None
            assert self.do(self.db.read(lambda name=name: self.store.holding(name))) == expected

    @invariant()
    def fences_grow(self) -> None:
        for fences in self.fences.values():
            assert all(later > before for before, later in pairwise(fences))


class LockingOnPostgres(Locking):
    """The same on PostgreSQL."""


def drive(machine: type[Locking], examples: int, steps: int) -> None:
    chosen = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(machine, settings=chosen)


def test_a_lock_has_one_holder_in_any_order_on_sqlite() -> None:
    drive(Locking, 50, 50)


def test_a_lock_has_one_holder_in_any_order_on_postgres(postgres_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LockingOnPostgres, "url", postgres_store)
    drive(LockingOnPostgres, 15, 50)
