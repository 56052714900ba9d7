"""The loops of the engine, one round at a time: admit, claim, settle, renew, sweep."""

import asyncio
from typing import Any

import pytest
from tests.stores import SECOND, Clock, ask, claim, claim_one, ended, get, new, put, worker

from rota import clock as real_clock
from rota.db.database import Database
from rota.engine import claim as claiming
from rota.engine import sweep as sweeping
from rota.engine.admit import Admitter
from rota.engine.bell import Bell
from rota.engine.claim import Claimer
from rota.engine.renew import Renewer
from rota.engine.settle import Settler
from rota.engine.sweep import Sweeper
from rota.errors import StoreUnavailable
from rota.store.runs import RunStore
from rota.store.workers import Renewal, WorkerStore

LEASE = 30.0


class Knocks(list[tuple[str, int]]):
    """Hears knocks."""

    async def __call__(self, ready: dict[str, int]) -> None:
        self += ready.items()


class Outage:
    """Makes a database fail until it is over."""

    def __init__(self, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tries = asyncio.Semaphore(0)
        self._real: Any = db.write
        self._away = True
        monkeypatch.setattr(db, "write", self._write)

    def over(self) -> None:
        self._away = False

    async def _write(self, *args: Any, **kwargs: Any) -> Any:
        if self._away:
            self.tries.release()
            raise StoreUnavailable("away")
        return await self._real(*args, **kwargs)


# The bell


async def test_a_ring_that_nobody_waited_for_is_heard_by_the_next() -> None:
    bell = Bell()
    bell.ring()
    bell.ring()
    assert await bell.wait(None)
    assert not await bell.wait(0)


# Admit


async def test_admitting_makes_ready_what_is_due_and_knocks(db: Database, runs: RunStore, clock: Clock) -> None:
    knocks = Knocks()
    admitter = Admitter(db, runs, knocks)
    assert await admitter.run_once() == 5.0
    run = await put(db, delay=2 * SECOND, queue="feeds")
    assert await admitter.run_once() == 2.0
    assert knocks == []
    clock.advance(2)
    assert await admitter.run_once() == 5.0
    assert knocks == [("feeds", 1)]
    assert (await get(db, run.id)).state == "ready"


async def test_admitting_sleeps_no_longer_than_it_may_and_comes_back_at_once_for_more(
    db: Database, runs: RunStore, clock: Clock
) -> None:
    admitter = Admitter(db, runs, Knocks())
    await put(db, delay=3600 * SECOND)
    assert await admitter.run_once() == 5.0
    await db.write(lambda: runs.insert([new(delay=SECOND)] * 1_001))
    clock.advance(1)
    assert await admitter.run_once() == 0.0
    assert await admitter.run_once() == 5.0


# Claim


def claimer(db: Database, runs: RunStore, *queues: str, slots: int = 10) -> Claimer:
    return Claimer(db, runs, lambda: "w", queues or ("default",), slots)


async def lose(db: Database, times: int, *ids: int) -> None:
    for run in ids:
        await ask(db, "UPDATE rota_runs SET lost = CAST(:n AS INTEGER) WHERE id = :id", n=times, id=run)


async def test_claiming_takes_for_free_slots_and_ahead_only_while_runs_are_short(db: Database, runs: RunStore) -> None:
    await db.write(lambda: runs.insert([new()] * 2_000))
    one = claimer(db, runs)
    for _ in range(100):
        one.learn(60)
    assert len(await one.run_once(3, 0, quarantine=True)) == 3
    assert await one.run_once(0, 0, quarantine=True) == []
    for _ in range(200):
        one.learn(0.01)
    ahead = len(await one.run_once(0, 0, quarantine=True))
    assert 150 <= ahead <= 200  # 10 slots, 0.2 s of runs that take 10 ms
    assert len(await one.run_once(4, 150, quarantine=True)) == 4 + ahead - 150
    for _ in range(200):
        one.learn(0.000_001)
    assert len(await one.run_once(0, 0, quarantine=True)) == 500


async def test_claiming_begins_with_another_queue_each_time(db: Database, runs: RunStore) -> None:
    for queue in ("a", "b"):
        await db.write(lambda queue=queue: runs.insert([new(queue=queue)] * 10))
    one = claimer(db, runs, "a", "b", slots=0)
    assert {(await one.run_once(1, 0, quarantine=True))[0].queue for _ in range(2)} == {"a", "b"}
    assert len(await one.run_once(15, 0, quarantine=True)) == 15  # all of one, the rest from the other


async def test_what_was_lost_is_not_taken_ahead(db: Database, runs: RunStore) -> None:
    lost, fresh = await put(db), await put(db)
    await lose(db, 1, lost.id)
    one = claimer(db, runs, slots=1_000)
    assert [each.id for each in await one.run_once(0, 0, quarantine=True)] == [fresh.id]
    assert [each.id for each in await one.run_once(1, 0, quarantine=True)] == [lost.id]


async def test_what_was_lost_has_its_turn_however_much_is_ready(db: Database, runs: RunStore) -> None:
    lost = await put(db, priority=1)
    await lose(db, 1, lost.id)
    await db.write(lambda: runs.insert([new()] * 100))
    one = claimer(db, runs, slots=0)
    assert lost.id in {each.id for each in await one.run_once(2, 0, quarantine=True)}


async def test_what_was_lost_twice_is_taken_one_at_a_time(
    db: Database, runs: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "_LOST_SECONDS", -1.0)
    suspects = [(await put(db, queue=queue)).id for queue in ("a", "a", "b")]
    await lose(db, 2, *suspects)
    one = claimer(db, runs, "a", "b")
    assert len(await one.run_once(5, 0, quarantine=True)) == 1
    assert await one.run_once(5, 0, quarantine=False) == []
    assert len(await one.run_once(5, 0, quarantine=True)) == 1


async def test_what_was_lost_is_looked_for_now_and_then(db: Database, runs: RunStore) -> None:
    one = claimer(db, runs)
    await one.run_once(5, 0, quarantine=True)
    lost = await put(db)
    await lose(db, 1, lost.id)
    assert await one.run_once(5, 0, quarantine=True) == []


# Settle


async def test_what_ended_together_is_written_together(
    db: Database, runs: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await db.write(lambda: runs.insert([new()] * 5))
    waiting: list[bool] = []
    settler = Settler(db, runs, lambda: "w", lambda **_: waiting.append(True))
    held = await claim(db)
    for run in held:
        settler.add(ended(run, "succeeded", result="1"))
    writes = []
    real: Any = db.write

    async def counted(*args: Any, **kwargs: Any) -> Any:
        writes.append(kwargs)
        return await real(*args, **kwargs)

    monkeypatch.setattr(db, "write", counted)
    assert await settler.run_once() == 5
    assert await settler.run_once() == 0
    assert writes == [{"single": True}]
    assert waiting == []
    assert {(await get(db, run.id)).state for run in held} == {"succeeded"}
    await settler.settled()


async def test_a_batch_has_its_bound(db: Database, runs: RunStore) -> None:
    await db.write(lambda: runs.insert([new()] * 1_200))
    settler = Settler(db, runs, lambda: "w", lambda **_: None)
    for run in await claim(db, most=1_200):
        settler.add(ended(run, "succeeded", result="1"))
    assert [await settler.run_once() for _ in range(3)] == [1_000, 200, 0]


async def test_who_admits_is_told_of_what_waits_again(db: Database, runs: RunStore) -> None:
    waiting: list[bool] = []
    settler = Settler(db, runs, lambda: "w", lambda **_: waiting.append(True))
    await put(db)
    settler.add(ended(await claim_one(db), "retry", delay=SECOND))
    await settler.run_once()
    assert waiting == [True]


async def test_results_are_kept_while_the_store_is_away(
    db: Database, runs: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.engine.settle._AGAIN_SECONDS", 0)
    ids = await db.write(lambda: runs.insert([new()] * 3))
    settler = Settler(db, runs, lambda: "w", lambda **_: None)
    held = await claim(db)
    outage = Outage(db, monkeypatch)
    settler.add(ended(held[0], "succeeded", result="0"))
    with pytest.raises(StoreUnavailable):
        await settler.run_once()
    loop = asyncio.ensure_future(settler.run())
    await outage.tries.acquire()
    for number in (1, 2):
        settler.add(ended(held[number], "succeeded", result=str(number)))
        await outage.tries.acquire()
    outage.over()
    await settler.settled()
    loop.cancel()
    assert [(await get(db, run)).result for run in ids] == ["0", "1", "2"]
    assert settler.fenced == 0


async def test_a_result_that_was_written_without_an_answer_is_not_counted_as_late(
    db: Database, runs: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await db.write(lambda: runs.insert([new()] * 2))
    settler = Settler(db, runs, lambda: "w", lambda **_: None)
    mine, lost = await claim_one(db), await claim_one(db, "another")
    real: Any = db.write
    answers = iter([StoreUnavailable("the answer was lost")])

    async def answered(*args: Any, **kwargs: Any) -> Any:
        found = await real(*args, **kwargs)
        for trouble in answers:
            raise trouble
        return found

    monkeypatch.setattr(db, "write", answered)
    settler.add(ended(mine, "succeeded", result="1"))
    with pytest.raises(StoreUnavailable):
        await settler.run_once()
    assert (await get(db, mine.id)).state == "succeeded"
    settler.add(ended(lost, "succeeded", result="1"))
    assert await settler.run_once() == 2
    assert settler.fenced == 1  # the one that is another's
    assert settler._doubtful == set()


async def test_late_results_are_refused_and_counted(db: Database, runs: RunStore) -> None:
    await db.write(lambda: runs.insert([new()] * 3))
    settler = Settler(db, runs, lambda: "w", lambda **_: None)
    for run in await claim(db, "another"):
        settler.add(ended(run, "succeeded", result="1"))
    await settler.run_once()
    assert settler.fenced == 3


async def test_results_are_written_under_the_name_that_the_worker_had(db: Database, runs: RunStore) -> None:
    """It came back under another one after an outage, and nobody had taken its runs meanwhile."""
    await db.write(lambda: runs.insert([new()] * 2))
    names = ["before"]
    settler = Settler(db, runs, lambda: names[-1], lambda **_: None)
    before = await claim(db, "before", 1)
    settler.add(ended(before[0], "succeeded", result="1"))
    names.append("after")
    after = await claim(db, "after", 1)
    settler.add(ended(after[0], "succeeded", result="2"))
    assert [await settler.run_once() for _ in range(3)] == [1, 1, 0]
    assert [(await get(db, run.id)).result for run in (*before, *after)] == ["1", "2"]
    assert settler.fenced == 0


async def test_a_result_that_is_refused_does_not_hold_up_a_later_one_of_the_same_run(
    db: Database, runs: RunStore
) -> None:
    run = await put(db)
    names = ["before"]
    settler = Settler(db, runs, lambda: names[-1], lambda **_: None)
    await claim_one(db, "another")
    await db.write(lambda: runs.lose("another"))
    settler.add(ended(await claim_one(db, "before"), "failed"))
    await db.write(lambda: runs.lose("before"))
    names.append("after")
    settler.add(ended(await claim_one(db, "after"), "succeeded", result="3"))
    while await settler.run_once():
        pass
    assert (await get(db, run.id)).state == "succeeded"
    assert [each.outcome for each in await db.read(lambda: runs.attempts(run.id))] == ["lost", "lost", "succeeded"]


async def test_a_write_without_an_answer_does_not_hold_up_the_next_attempt_of_its_run(
    db: Database, runs: RunStore
) -> None:
    run = await put(db)
    settler = Settler(db, runs, lambda: "w", lambda **_: None)
    first = ended(await claim_one(db), "retry", delay=0)
    await db.write(lambda: runs.settle("w", [first]))  # it happened, and the answer was lost
    settler.add(first)
    await db.write(lambda: runs.admit(10))
    settler.add(ended(await claim_one(db), "succeeded", result="2"))
    while await settler.run_once():
        pass
    assert (await get(db, run.id)).state == "succeeded"
    assert [each.outcome for each in await db.read(lambda: runs.attempts(run.id))] == ["retry", "succeeded"]


async def test_what_a_task_completed_by_itself_is_not_counted_as_late(db: Database, runs: RunStore) -> None:
    await put(db)
    held = await claim_one(db)
    await db.write(lambda: runs.settle("w", [ended(held, "succeeded", result='"by itself"')]))
    settler = Settler(db, runs, lambda: "w", lambda **_: None)
    settler.add(ended(held, "failed", completed=True))
    await settler.run_once()
    assert (await get(db, held.id)).result == '"by itself"'
    assert settler.fenced == 0


# Renew


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The hands of the monotonic clock."""
    found = [1_000.0]
    monkeypatch.setattr(real_clock, "monotonic", lambda: found[0])
    return found


def renewer(db: Database, workers: WorkerStore, heard: list[Renewal] | None = None) -> Renewer:
    return Renewer(db, workers, "w", LEASE, (heard if heard is not None else []).append)


async def test_a_lease_is_trusted_by_the_monotonic_clock(
    db: Database, workers: WorkerStore, clock: Clock, hands: list[float]
) -> None:
    await db.write(lambda: workers.enter(worker("w"), round(LEASE * SECOND)))
    one = renewer(db, workers)
    hands[0] += 29
    assert one.trusted
    assert (await asyncio.to_thread(one.run_once)).held
    clock.advance(-86_400)  # whatever the wall says
    hands[0] += 29
    assert one.trusted
    hands[0] += 1
    assert not one.trusted


async def test_a_lease_is_counted_from_before_the_question(
    db: Database, workers: WorkerStore, hands: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    await db.write(lambda: workers.enter(worker("w"), round(LEASE * SECOND)))
    one = renewer(db, workers)
    real: Any = db.write_from_thread

    def slow(work: Any) -> Any:
        answer = real(work)
        hands[0] += 20
        return answer

    monkeypatch.setattr(db, "write_from_thread", slow)
    await asyncio.to_thread(one.run_once)
    hands[0] += 9
    assert one.trusted
    hands[0] += 1
    assert not one.trusted


async def test_a_lease_that_is_gone_is_not_trusted(db: Database, workers: WorkerStore) -> None:
    one = renewer(db, workers)
    assert one.trusted
    assert not (await asyncio.to_thread(one.run_once)).held
    assert not one.trusted


@pytest.mark.parametrize("trouble", [StoreUnavailable("away"), TimeoutError(), LookupError("whatever")])
async def test_renewing_goes_on_after_whatever_the_store_says(
    db: Database, workers: WorkerStore, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    await db.write(lambda: workers.enter(worker("w"), round(LEASE * SECOND)))
    renewed = asyncio.Event()
    loop = asyncio.get_running_loop()
    one = Renewer(db, workers, "w", 0.06, lambda _: loop.call_soon_threadsafe(renewed.set))
    real, tries = db.write_from_thread, []

    def at_first(work: Any) -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise trouble
        return real(work)

    monkeypatch.setattr(db, "write_from_thread", at_first)
    one.start()
    await asyncio.wait_for(renewed.wait(), 20)
    one.stop()
    await asyncio.to_thread(one._thread.join)


# Sweep


async def test_sweeping_takes_back_what_the_dead_held_and_knocks(
    db: Database, workers: WorkerStore, runs: RunStore, clock: Clock, hands: list[float]
) -> None:
    knocks = Knocks()
    sweeper = Sweeper(db, workers, knocks, Bell().ring)
    await db.write(lambda: workers.enter(worker("w"), round(LEASE * SECOND)))
    await db.write(lambda: runs.insert([new()] * 3))
    await claim(db)
    assert await sweeper.run_once() == 0
    clock.advance(31)
    hands[0] += 31
    assert await sweeper.run_once() == 3
    assert knocks == [("default", 3)]
    assert await sweeper.run_once() == 0


async def test_of_two_who_sweep_at_once_one_takes_each_run_back(
    db: Database, workers: WorkerStore, runs: RunStore, clock: Clock
) -> None:
    for name in ("a", "b", "c"):
        await db.write(lambda name=name: workers.enter(worker(name), round(LEASE * SECOND)))
        await db.write(lambda: runs.insert([new()] * 5))
        await claim(db, name)
    clock.advance(31)
    found = await asyncio.gather(*(Sweeper(db, workers, Knocks(), Bell().ring).run_once() for _ in range(4)))
    assert sum(found) == 15
    assert {each.lost for each in await claim(db)} == {1}


async def ended_long_ago(db: Database, runs: RunStore, number: int) -> None:
    await db.write(lambda: runs.insert([new()] * number))
    await ask(db, "UPDATE rota_runs SET state = 'failed', finished_at = id")


async def left(db: Database) -> int:
    return int((await ask(db, "SELECT count(*) FROM rota_runs"))[0][0])


async def test_sweeping_removes_old_history_in_batches(
    db: Database, workers: WorkerStore, runs: RunStore, clock: Clock
) -> None:
    sweeper = Sweeper(db, workers, Knocks(), Bell().ring, keep=60 * SECOND)
    await ended_long_ago(db, runs, 2_500)
    young = await put(db)
    await db.write(lambda: runs.cancel(young.id, "no more"))
    assert [await sweeper.history_once() for _ in range(3)] == [True, True, False]
    assert await left(db) == 1
    clock.advance(3_600 + 120)  # then its hour is full
    while await sweeper.history_once():
        pass
    assert await left(db) == 0


async def test_a_long_history_is_removed_at_once_and_leases_are_looked_after_in_between(
    db: Database, workers: WorkerStore, runs: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "_EVERY_SECONDS", 1_000.0)
    monkeypatch.setattr(sweeping, "_HISTORY_FIRST_SECONDS", 0)
    sweeper = Sweeper(db, workers, Knocks(), Bell().ring)
    done, rounds = asyncio.Event(), []
    lease_once, history_once = sweeper.run_once, sweeper.history_once

    async def leases() -> int:
        rounds.append("leases")
        return await lease_once()

    async def history() -> bool:
        rounds.append("history")
        more = await history_once()
        if not more:
            done.set()
        return more

    monkeypatch.setattr(sweeper, "run_once", leases)
    monkeypatch.setattr(sweeper, "history_once", history)
    await ended_long_ago(db, runs, 2_500)
    loop = asyncio.ensure_future(sweeper.run())
    await asyncio.wait_for(done.wait(), 60)
    loop.cancel()
    await asyncio.wait([loop])
    assert rounds == ["leases", "history"] * 3
    assert await left(db) == 0


@pytest.mark.parametrize("unseen", [False, True])
@pytest.mark.parametrize("step", [3_600, -3_600])
async def test_a_clock_that_is_set_ends_no_lease_and_makes_none_last(
    db: Database, workers: WorkerStore, runs: RunStore, clock: Clock, hands: list[float], step: int, unseen: bool
) -> None:
    sweeper = Sweeper(db, workers, Knocks(), Bell().ring, lease=LEASE)
    await db.write(lambda: runs.insert([new()] * 2))
    for name in ("living", "dead"):
        await db.write(lambda name=name: workers.enter(worker(name), round(LEASE * SECOND)))
        await claim(db, name, 1)
    assert await sweeper.run_once() == 0
    if unseen:  # renewed after the last look and before the clock was set
        clock.advance(1)
        hands[0] += 1
        for name in ("living", "dead"):
            await db.write(lambda name=name: workers.renew(name, round(LEASE * SECOND)))
    clock.advance(step)
    assert await sweeper.run_once() == 0
    clock.advance(20)
    hands[0] += 20
    assert await sweeper.run_once() == 0
    await db.write(lambda: workers.renew("living", round(LEASE * SECOND)))
    clock.advance(11)
    hands[0] += 11
    assert await sweeper.run_once() == 1
    assert [row[0] for row in await ask(db, "SELECT id FROM rota_workers")] == ["living"]


async def test_a_lease_that_is_seen_first_after_the_clock_was_set_back_is_no_longer_than_it_was(
    db: Database, workers: WorkerStore, runs: RunStore, clock: Clock, hands: list[float]
) -> None:
    await db.write(lambda: runs.insert([new()]))
    await db.write(lambda: workers.enter(worker("dead"), round(LEASE * SECOND)))
    await claim(db, "dead", 1)
    clock.advance(-3_600)
    sweeper = Sweeper(db, workers, Knocks(), Bell().ring, lease=LEASE)
    assert await sweeper.run_once() == 0
    clock.advance(LEASE + 1)
    hands[0] += LEASE + 1
    assert await sweeper.run_once() == 1


async def test_a_lease_that_is_renewed_while_it_is_judged_has_not_ended(
    db: Database, workers: WorkerStore, runs: RunStore
) -> None:
    await put(db)
    await db.write(lambda: workers.enter(worker("w"), round(LEASE * SECOND)))
    await claim(db)
    assert await db.write(lambda: workers.sweep(lambda leases: [(name, lease - 1) for name, lease, *_ in leases])) == {}
    assert await db.write(lambda: workers.sweep(lambda leases: [each[:2] for each in leases])) == {"default": 1}
