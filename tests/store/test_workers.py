"""Workers, their leases, and the sweep that takes back what a dead one held."""

from typing import Any

import pytest
from tests.stores import SECOND, START, Clock, ask, claim, claim_one, ended, get, put, settle, worker

from rota.db.database import Database
from rota.model import RunState
from rota.store.runs import RunStore
from rota.store.workers import Renewal, WorkerStore
from rota.times.moments import moment

LEASE = 30 * SECOND


async def enter(db: Database, workers: WorkerStore, name: str = "w") -> None:
    await db.write(lambda: workers.enter(worker(name), LEASE))


async def renew(db: Database, workers: WorkerStore, name: str = "w") -> Renewal:
    return await db.write(lambda: workers.renew(name, LEASE))


async def lost_once(db: Database, workers: WorkerStore, clock: Clock) -> dict[str, int]:
    """Claim what is there for a worker that dies, and sweep."""
    name = f"w-{clock.now}"
    await enter(db, workers, name)
    await claim(db, name)
    clock.advance(31)
    return await db.write(workers.sweep)


async def test_a_worker_that_renews_keeps_its_lease(db: Database, workers: WorkerStore, clock: Clock) -> None:
    await enter(db, workers)
    await put(db)
    held = await claim_one(db)
    for _ in range(3):
        clock.advance(29)
        assert await renew(db, workers) == Renewal(held=True, draining=False, cancel=())
        assert await db.write(workers.sweep) == {}
    assert (await get(db, held.id)).state == "running"


async def test_a_lease_holds_until_its_end(db: Database, workers: WorkerStore, clock: Clock) -> None:
    await enter(db, workers)
    await put(db)
    await claim_one(db)
    clock.advance(30)
    assert await db.write(workers.sweep) == {}
    clock.advance(0.000_001)
    assert await db.write(workers.sweep) == {"default": 1}


async def test_a_dead_workers_runs_are_ready_again(
    db: Database, workers: WorkerStore, runs: RunStore, clock: Clock
) -> None:
    await enter(db, workers)
    for queue in ("a", "a", "b"):
        await put(db, queue=queue)
    held = [*await claim(db, queue="a"), *await claim(db, queue="b")]
    clock.advance(31)
    assert await db.write(workers.sweep) == {"a": 2, "b": 1}
    for each in held:
        run = await get(db, each.id)
        assert (run.state, run.lost, run.attempt, run.finished_at) == ("ready", 1, 1, None)
        (attempt,) = await db.read(lambda each=each: runs.attempts(each.id))
        assert (attempt.number, attempt.outcome, attempt.worker) == (1, "lost", "w")
    assert await db.write(workers.sweep) == {}
    (again,) = await claim(db, "w2", 1, queue="b")
    assert (again.attempt, again.lost, again.failures) == (2, 1, 0)


async def test_a_swept_worker_hears_that_it_has_no_lease(db: Database, workers: WorkerStore, clock: Clock) -> None:
    await enter(db, workers)
    clock.advance(31)
    await db.write(workers.sweep)
    assert not (await renew(db, workers)).held


async def test_a_late_worker_that_nobody_swept_gets_its_lease_back(
    db: Database, workers: WorkerStore, clock: Clock
) -> None:
    await enter(db, workers)
    clock.advance(300)
    assert (await renew(db, workers)).held
    assert await db.write(workers.sweep) == {}


async def test_a_zombies_result_is_refused(db: Database, workers: WorkerStore, runs: RunStore, clock: Clock) -> None:
    await enter(db, workers)
    await put(db)
    zombies = await claim_one(db)
    clock.advance(31)
    await db.write(workers.sweep)
    assert await settle(db, "w", [ended(zombies, "succeeded", result='"zombie"')]) == set()
    held = await claim_one(db, "w2")
    assert await settle(db, "w", [ended(zombies, "succeeded", result='"zombie"')]) == set()
    assert await settle(db, "w2", [ended(held, "succeeded", result='"right"')]) == {held.id}
    assert (await get(db, held.id)).result == '"right"'
    assert [each.outcome for each in await db.read(lambda: runs.attempts(held.id))] == ["lost", "succeeded"]


async def test_a_run_is_lost_so_often_and_then_fails(db: Database, workers: WorkerStore, clock: Clock) -> None:
    run = await put(db, max_lost=3)
    for _ in range(3):
        assert await lost_once(db, workers, clock) == {"default": 1}
    assert await lost_once(db, workers, clock) == {}
    now = await get(db, run.id)
    assert (now.state, now.attempt, now.lost) == ("failed", 4, 4)
    assert now.error is not None
    assert (now.error.kind, now.error.message) == ("Lost", "its worker was lost once too often")
    assert now.finished_at == moment(clock.now)


async def test_a_run_that_must_not_run_twice_fails_when_it_is_lost(
    db: Database, workers: WorkerStore, clock: Clock
) -> None:
    run = await put(db, max_lost=0)
    assert await lost_once(db, workers, clock) == {}
    now = await get(db, run.id)
    assert (now.state, now.attempt) == ("failed", 1)
    assert now.error is not None
    assert now.error.message == "its worker was lost, and it must not run again"


async def test_a_lost_run_that_somebody_cancelled_is_cancelled(
    db: Database, workers: WorkerStore, runs: RunStore, clock: Clock
) -> None:
    run = await put(db)
    await enter(db, workers)
    await claim_one(db)
    await db.write(lambda: runs.cancel(run.id, "enough"))
    clock.advance(31)
    assert await db.write(workers.sweep) == {}
    assert (await get(db, run.id)).state == "cancelled"


async def test_the_sweep_leaves_the_living_and_the_ended_alone(
    db: Database, workers: WorkerStore, clock: Clock
) -> None:
    for _ in range(3):
        await put(db)
    await enter(db, workers, "dead")
    await enter(db, workers, "alive")
    done = await claim_one(db, "dead")
    await settle(db, "dead", [ended(done, "succeeded", result="1")])
    theirs, dead = await claim_one(db, "alive"), await claim_one(db, "dead")
    clock.advance(20)
    await renew(db, workers, "alive")
    clock.advance(20)
    assert await db.write(workers.sweep) == {"default": 1}
    states = [(await get(db, each.id)).state for each in (done, theirs, dead)]
    assert states == ["succeeded", "running", "ready"]


async def test_what_a_worker_holds_that_nobody_knows_is_taken_back(db: Database, workers: WorkerStore) -> None:
    run = await put(db)
    await claim_one(db, "never-entered")
    assert await db.write(workers.sweep) == {"default": 1}
    assert (await get(db, run.id)).lost == 1


@pytest.mark.parametrize(("max_lost", "state"), [(3, "ready"), (1, "ready"), (0, "failed")])
async def test_who_leaves_gives_back_what_he_holds_and_nothing_counts_as_lost(
    db: Database, workers: WorkerStore, max_lost: int, state: RunState
) -> None:
    run = await put(db, max_lost=max_lost)
    await enter(db, workers)
    await claim_one(db)
    await db.write(lambda: workers.leave("w"))
    now = await get(db, run.id)
    assert (now.state, now.lost) == (state, 0)
    assert not (await renew(db, workers)).held


async def test_a_renewal_tells_what_to_stop(db: Database, workers: WorkerStore, runs: RunStore) -> None:
    await enter(db, workers)
    run = await put(db)
    await claim_one(db)
    await db.write(lambda: runs.cancel(run.id, "enough"))
    assert (await renew(db, workers)).cancel == ((run.id, 1, "enough"),)


async def test_a_renewal_tells_a_worker_to_drain(db: Database, workers: WorkerStore) -> None:
    await enter(db, workers)
    await ask(db, "UPDATE rota_workers SET draining = 1")
    assert (await renew(db, workers)).draining


async def test_workers_are_listed_with_what_is_left_of_their_lease(
    db: Database, workers: WorkerStore, clock: Clock
) -> None:
    await enter(db, workers)
    clock.advance(10)

    def listed() -> Any:
        return (yield db.query("workers.list"))

    (row,) = await db.read(listed)
    assert (row["id"], row["queues"], row["slots"], row["left_over"]) == ("w", '["default"]', 10, 20 * SECOND)
    assert row["started_at"] == START
