"""A worker: what it does with its runs from the first claim to the last word, whatever happens to it."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.stores import ask, new, until

from rota.app import Rota
from rota.context import current_run
from rota.engine import claim as claiming
from rota.engine import execute
from rota.engine import settle as settling
from rota.engine.claim import Claimer
from rota.engine.worker import Worker
from rota.errors import StoreUnavailable, UnknownWorker
from rota.store.runs import RunStore

LONG = 60


class Stage:
    """Tasks that begin and end when the test says so."""

    def __init__(self, app: Rota) -> None:
        self.app = app
        self.begun: asyncio.Queue[int] = asyncio.Queue()
        self.go_on = asyncio.Event()
        self.stopped: asyncio.Queue[int] = asyncio.Queue()

        @app.task(name="long")
        async def long() -> str:
            me = current_run()
            self.begun.put_nowait(me.id)
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.stopped.put_nowait(me.id)
                raise
            return f"by attempt {me.attempt}"

        self.long = long

    async def running(self, count: int = 1) -> list[int]:
        """Enqueue runs and wait until they have begun."""
        ids = [(await self.app.enqueue(self.long.call())).id for _ in range(count)]
        assert sorted([await self.begun.get() for _ in ids]) == ids
        return ids


@pytest.fixture
def stage(app: Rota) -> Stage:
    return Stage(app)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "_PATIENCE", 0.01)
    monkeypatch.setattr("rota.engine.worker._AGAIN_SECONDS", 0.01)


@contextlib.asynccontextmanager
async def working(app: Rota, **settings: Any) -> AsyncIterator[tuple[Worker, "asyncio.Task[None]"]]:
    """A worker that works; it is stopped in the end, if it has not been before."""
    worker = app.worker(**settings)
    work = asyncio.ensure_future(worker.run())
    await until(lambda: worker.id)
    try:
        yield worker, work
    finally:
        for _ in range(2):
            worker.stop()
        await work


async def renewed(worker: Worker) -> None:
    """Renew the lease now, as its thread does every few seconds."""
    assert worker._renewer is not None
    worker._renewed(await asyncio.to_thread(worker._renewer.run_once))


async def state(app: Rota, run: int) -> tuple[str, int, int]:
    found = await app.runs.get(run)
    return found.state, found.attempt, found.lost


async def test_a_worker_works_what_is_there_and_what_comes(app: Rota) -> None:
    @app.task
    async def double(n: int) -> int:
        return n * 2

    @app.task
    def triple(n: int) -> int:
        return n * 3

    before = await app.enqueue(double.call(1))
    async with working(app):
        after = [await app.enqueue(double.call(n)) for n in range(20)] + [await app.enqueue(triple.call(5))]
        ended = [await app.runs.wait(run.id, timeout=LONG) for run in (before, *after)]
    assert [run.result for run in ended] == ["2", *(str(n * 2) for n in range(20)), "15"]
    assert {run.state for run in ended} == {"succeeded"}


async def test_a_worker_uses_no_more_than_its_slots(app: Rota, stage: Stage) -> None:
    async with working(app, slots=2) as (worker, _):
        for _ in range(5):
            await app.enqueue(stage.long.call())
        for _ in range(2):
            await stage.begun.get()
        assert len(worker._running) == 2
        stage.go_on.set()
        for _ in range(3):
            await stage.begun.get()


async def test_a_worker_takes_from_its_queues_alone(app: Rota) -> None:
    @app.task
    async def where() -> str:
        return current_run().queue

    other = await app.enqueue(where.call(), queue="other")
    mine = [await app.enqueue(where.call(), queue=queue) for queue in ("a", "b")]
    async with working(app, queues=("a", "b")):
        assert [(await app.runs.wait(run.id, timeout=LONG)).result for run in mine] == ['"a"', '"b"']
    assert (await app.runs.get(other.id)).state == "ready"


async def test_a_graceful_stop_waits_for_what_runs_and_begins_nothing(app: Rota, stage: Stage) -> None:
    async with working(app, slots=2) as (worker, work):
        ids = await stage.running(2)
        waiting = [(await app.enqueue(stage.long.call())).id for _ in range(3)]
        worker.stop()
        stage.go_on.set()
        await work
    assert [await state(app, run) for run in ids] == [("succeeded", 1, 0)] * 2
    assert [await state(app, run) for run in waiting] == [("ready", 0, 0)] * 3
    assert await ask(app._db, "SELECT id FROM rota_workers") == []


async def test_what_does_not_end_in_time_is_handed_back_at_once(app: Rota, stage: Stage) -> None:
    async with working(app, grace=0) as (worker, work):
        (run,) = await stage.running()
        worker.stop()
        await work
    assert await stage.stopped.get() == run
    assert await state(app, run) == ("ready", 1, 0)
    assert [each.outcome for each in await app.runs.attempts(run)] == ["lost"]


async def test_a_second_stop_does_not_wait(app: Rota, stage: Stage) -> None:
    async with working(app, grace="1h") as (worker, work):
        (run,) = await stage.running()
        worker.stop()
        await asyncio.sleep(0)
        assert not work.done()
        worker.stop()
        await work
    assert await state(app, run) == ("ready", 1, 0)


async def test_a_thread_that_does_not_end_holds_up_no_stop(app: Rota) -> None:
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @app.task
    def deaf() -> None:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait()

    run = await app.enqueue(deaf.call())
    async with working(app) as (worker, work):
        await begun.wait()
        worker.stop()
        worker.stop()
        await work
    go_on.set()
    assert await state(app, run.id) == ("ready", 1, 0)


async def test_what_must_not_run_twice_fails_when_it_is_handed_back(app: Rota) -> None:
    begun = asyncio.Event()

    @app.task(on_lost="fail")
    async def pay() -> None:
        begun.set()
        await asyncio.Event().wait()

    run = await app.enqueue(pay.call())
    async with working(app, grace=0):
        await begun.wait()
    assert await state(app, run.id) == ("failed", 1, 0)


async def test_a_worker_whose_task_is_cancelled_ends_in_order(app: Rota, stage: Stage) -> None:
    worker = app.worker(grace=0)
    work = asyncio.ensure_future(worker.run())
    (run,) = await stage.running()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert await state(app, run) == ("ready", 1, 0)


async def test_a_worker_that_is_told_to_drain_stops_gracefully(app: Rota, stage: Stage) -> None:
    async with working(app) as (worker, work):
        (run,) = await stage.running()
        await app.drain(worker.id)
        assert [(each.draining, each.running, each.id) for each in await app.workers()] == [(True, 1, worker.id)]
        for _ in range(3):  # it is told at every renewal; that is no second stop
            await renewed(worker)
            await asyncio.sleep(0)
        stage.go_on.set()
        await work
    assert await state(app, run) == ("succeeded", 1, 0)


@pytest.mark.parametrize("name", ["nobody", "a\0", 7])
async def test_a_worker_that_is_not_there_cannot_be_drained(app: Rota, name: Any) -> None:
    with pytest.raises(UnknownWorker, match="there is no worker"):
        await app.drain(name)


async def test_a_worker_that_lost_its_lease_stops_its_runs_and_comes_back_under_a_new_name(
    app: Rota, stage: Stage
) -> None:
    async with working(app) as (worker, _):
        (run,) = await stage.running()
        before = worker.id
        await ask(app._db, "DELETE FROM rota_workers")
        await renewed(worker)
        assert await stage.stopped.get() == run
        await until(lambda: worker.id != before)
        await worker.sweeper.run_once()
        stage.go_on.set()
        assert (await app.runs.wait(run, timeout=LONG)).result == '"by attempt 2"'
        assert [row[0] for row in await ask(app._db, "SELECT id FROM rota_workers")] == [worker.id]
    assert await state(app, run) == ("succeeded", 2, 1)


async def test_a_worker_that_cannot_trust_its_lease_acts_as_if_it_were_lost(app: Rota, stage: Stage) -> None:
    async with working(app) as (worker, _):
        (run,) = await stage.running()
        before = worker.id
        assert worker._renewer is not None
        worker._renewer._until = 0
        worker.knock()
        assert await stage.stopped.get() == run
        await until(lambda: worker.id != before)
        await ask(app._db, "UPDATE rota_workers SET lease = 0 WHERE id = :id", id=before)
        await worker.sweeper.run_once()
        stage.go_on.set()
        await app.runs.wait(run, timeout=LONG)
    assert await state(app, run) == ("succeeded", 2, 1)


async def test_a_run_whose_lease_was_lost_before_it_began_keeps_no_slot(
    app: Rota, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = Claimer.run_once
    stood_still = False

    async def long_claim(self: Claimer, *free: int, quarantine: bool) -> Any:
        nonlocal stood_still
        found = await claim(self, *free, quarantine=quarantine)
        if found and not stood_still:
            stood_still = True
            assert worker._renewer is not None
            worker._renewer._until = 0
        return found

    monkeypatch.setattr(Claimer, "run_once", long_claim)
    async with working(app, slots=2) as (worker, _):
        before = worker.id
        run = await app.enqueue(stage.long.call())
        await until(lambda: worker.id != before)
        assert not worker._running
        await ask(app._db, "UPDATE rota_workers SET lease = 0 WHERE id = :id", id=before)
        await worker.sweeper.run_once()
        stage.go_on.set()
        await app.runs.wait(run.id, timeout=LONG)
    assert await state(app, run.id) == ("succeeded", 2, 1)


async def test_a_late_result_is_refused_and_counted(app: Rota) -> None:
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @app.task
    def freeze() -> str:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait()
        return f"by attempt {current_run().attempt}"

    run = await app.enqueue(freeze.call())
    async with working(app) as (worker, _):
        await begun.wait()
        await ask(app._db, "UPDATE rota_workers SET lease = 0")
        await app.worker().sweeper.run_once()  # while the worker knows nothing of it
        go_on.set()
        assert (await app.runs.wait(run.id, timeout=LONG)).result == '"by attempt 2"'
        await until(lambda: worker.fenced == 1)
    assert [each.outcome for each in await app.runs.attempts(run.id)] == ["lost", "succeeded"]


async def test_a_worker_that_gets_its_own_lost_run_again_keeps_the_attempts_apart(app: Rota) -> None:
    begun: asyncio.Queue[int] = asyncio.Queue()
    go_on = {1: asyncio.Event(), 2: asyncio.Event()}

    @app.task
    async def slow() -> str:
        attempt = current_run().attempt
        begun.put_nowait(attempt)
        await go_on[attempt].wait()
        return f"by attempt {attempt}"

    run = await app.enqueue(slow.call())
    async with working(app) as (worker, _):
        assert await begun.get() == 1
        await ask(app._db, "UPDATE rota_workers SET lease = 0")
        await app.worker().sweeper.run_once()
        worker.knock()
        assert await begun.get() == 2
        assert len(worker._running) == 2  # each has its slot
        go_on[1].set()
        await until(lambda: worker.fenced == 1)
        go_on[2].set()
        ended = await app.runs.wait(run.id, timeout=LONG)
    assert (ended.state, ended.result, ended.error) == ("succeeded", '"by attempt 2"', None)


async def test_a_running_run_is_cancelled_by_word_to_its_worker(app: Rota, stage: Stage) -> None:
    async with working(app):
        (run,) = await stage.running()
        assert await app.runs.cancel(run, note="enough") == "running"
        ended = await app.runs.wait(run, timeout=LONG)
    assert await stage.stopped.get() == run
    assert (ended.state, ended.cancel) == ("cancelled", "enough")
    assert ended.error is not None
    assert ended.error.message == "enough"


async def test_who_hears_that_anything_changed_looks_for_what_to_cancel(app: Rota, stage: Stage) -> None:
    async with working(app) as (worker, _):
        (run,) = await stage.running()
        await app._db.write(lambda: worker.runs.cancel(run, "from another process"))
        worker.heard(None)  # all that a SQLite file says
        assert (await app.runs.wait(run, timeout=LONG)).state == "cancelled"


async def test_a_renewal_brings_word_of_what_to_cancel(app: Rota, stage: Stage) -> None:
    async with working(app) as (worker, _):
        (run,) = await stage.running()
        await app._db.write(lambda: worker.runs.cancel(run, "quietly"))
        await renewed(worker)
        assert (await app.runs.wait(run, timeout=LONG)).state == "cancelled"


async def test_a_run_that_is_held_ahead_is_cancelled_before_it_begins(
    app: Rota, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "_AHEAD_SECONDS", 100)
    monkeypatch.setattr("rota.engine.worker._HELD_SECONDS", LONG)
    ids = [(await app.enqueue(stage.long.call())).id for _ in range(3)]
    async with working(app, slots=1) as (worker, _):
        await stage.begun.get()
        assert [each.id for each in worker._held] == ids[1:]
        assert await app.runs.cancel(ids[1], note="enough") == "running"
        assert (await app.runs.wait(ids[1], timeout=LONG)).state == "cancelled"
        stage.go_on.set()
        await app.runs.wait(ids[2], timeout=LONG)
    assert await state(app, ids[2]) == ("succeeded", 1, 0)
    assert await stage.begun.get() == ids[2]


async def test_what_is_held_ahead_goes_back_untouched_when_the_worker_stops(
    app: Rota, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "_AHEAD_SECONDS", 100)
    monkeypatch.setattr("rota.engine.worker._HELD_SECONDS", LONG)
    ids = [(await app.enqueue(stage.long.call())).id for _ in range(5)]
    async with working(app, slots=1) as (worker, work):
        await stage.begun.get()
        assert len(worker._held) == 4
        worker.stop()
        stage.go_on.set()
        await work
    assert [await state(app, run) for run in ids] == [("succeeded", 1, 0)] + [("ready", 0, 0)] * 4
    assert stage.begun.empty()


async def test_what_is_held_behind_long_runs_goes_to_another_worker(
    app: Rota, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "_AHEAD_SECONDS", 100)
    ids = [(await app.enqueue(stage.long.call())).id for _ in range(4)]
    async with working(app, slots=1) as (first, _):
        assert await stage.begun.get() == ids[0]
        async with working(app, slots=3) as (second, _):
            assert sorted([await stage.begun.get() for _ in ids[1:]]) == ids[1:]
            assert [(await app.runs.get(run)).worker for run in ids] == [first.id, *[second.id] * 3]
            stage.go_on.set()
            for run in ids:
                await app.runs.wait(run, timeout=LONG)
    assert [await state(app, run) for run in ids] == [("succeeded", 1, 0)] * 4


async def test_a_worker_that_gave_runs_back_does_not_take_them_again_while_what_runs_is_long(
    app: Rota, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "_AHEAD_SECONDS", 100)
    monkeypatch.setattr("rota.engine.worker._HELD_SECONDS", 0.0)
    handed: list[Any] = []
    again = asyncio.Semaphore(0)
    hand_back, once = RunStore.hand_back, claiming.Claimer.run_once

    def counted(self: RunStore, worker: str, held: Any) -> Any:
        handed.append(held)
        return hand_back(self, worker, held)

    async def looked(self: claiming.Claimer, free: int, held: int, *, quarantine: bool) -> Any:
        if handed:
            again.release()
        return await once(self, free, held, quarantine=quarantine)

    monkeypatch.setattr(RunStore, "hand_back", counted)
    monkeypatch.setattr(claiming.Claimer, "run_once", looked)
    ids = [(await app.enqueue(stage.long.call())).id for _ in range(4)]
    async with working(app, slots=1) as (worker, _):
        assert await stage.begun.get() == ids[0]
        for _ in range(3):
            await again.acquire()
            worker.knock()
        assert not worker._held
        assert [len(held) for held in handed] == [3]
        stage.go_on.set()
        for run in ids:
            await app.runs.wait(run, timeout=LONG)


async def test_what_was_lost_twice_runs_alone_of_its_kind(
    app: Rota, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "_LOST_SECONDS", -1.0)
    ids = [(await app.enqueue(stage.long.call())).id for _ in range(4)]
    await ask(app._db, "UPDATE rota_runs SET lost = 2 WHERE id <= :id", id=ids[2])
    async with working(app) as (worker, _):
        begun = [await stage.begun.get() for _ in range(2)]
        for _ in range(3):
            worker.knock()
            await worker._claimer.run_once(0, 0, quarantine=False)
        assert stage.begun.empty()
        assert len(worker._quarantined & set(begun)) == 1
        stage.go_on.set()
        for run in ids:
            assert (await app.runs.wait(run, timeout=LONG)).state == "succeeded"


async def test_poison_ends_failed_and_the_others_flow(app: Rota) -> None:
    @app.task
    async def fine(n: int) -> int:
        return n

    poison = [new("nobody.knows"), new(fine.name, args="not JSON"), new(fine.name, args='{"m":1}')]
    bad = await app._db.write(lambda: app._store.insert(poison))
    await ask(app._db, "UPDATE rota_runs SET failures = 9 WHERE id = :id", id=bad[0])
    good = await app.enqueue_many(fine.call(n) for n in range(20))
    async with working(app):
        for run in good:
            assert (await app.runs.wait(run, timeout=LONG)).state == "succeeded"
        ended = [await app.runs.wait(run, timeout=LONG) for run in bad]
    assert [(run.state, run.error and run.error.kind) for run in ended] == [
        ("failed", "UnknownTask"),
        ("failed", "UnreadableArguments"),
        ("failed", "UnreadableArguments"),
    ]


async def test_a_worker_outlives_an_outage_of_the_store(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.engine.settle._AGAIN_SECONDS", 0.01)
    monkeypatch.setattr("rota.engine.supervise._AGAIN_SECONDS", 0.01)

    @app.task
    async def echo(n: int) -> int:
        return n

    real: Any = app._db.write
    tries = asyncio.Semaphore(0)

    async def away(*_: Any, **__: Any) -> Any:
        tries.release()
        raise StoreUnavailable("away")

    async with working(app) as (worker, work):
        monkeypatch.setattr(app._db, "write", away)
        worker.knock()
        for _ in range(3):
            await tries.acquire()
        monkeypatch.setattr(app._db, "write", real)
        run = await app.enqueue(echo.call(7))
        assert (await app.runs.wait(run.id, timeout=LONG)).result == "7"
        assert not work.done()


async def test_what_a_claim_took_whose_answer_was_lost_is_given_back_and_run(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task(name="short")
    async def short() -> str:
        return "done"

    claim, lost = claiming.Claimer._claim, []

    async def answer_is_lost(self: claiming.Claimer, *values: Any, **more: Any) -> Any:
        found = await claim(self, *values, **more)
        if found and not lost:
            lost.extend(found)
            raise StoreUnavailable("the answer was lost")
        return found

    monkeypatch.setattr(claiming.Claimer, "_claim", answer_is_lost)
    async with working(app):
        run = await app.enqueue(short.call())
        ended = await app.runs.wait(run.id, timeout=LONG)
    assert (ended.state, ended.attempt, ended.lost) == ("succeeded", 1, 0)
    assert [each.id for each in lost] == [run.id]


async def test_a_loop_that_failed_begins_again(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    @app.task(name="short")
    async def short() -> str:
        return "done"

    once = settling.Settler.run_once
    failures = iter([RuntimeError("a mistake of ours")])

    async def fails_once(self: settling.Settler) -> int:
        for failure in failures:
            raise failure
        return await once(self)

    monkeypatch.setattr(settling.Settler, "run_once", fails_once)
    async with working(app):
        first = await app.enqueue(short.call())
        second = await app.enqueue(short.call())
        for run in (first, second):
            assert (await app.runs.wait(run.id, timeout=LONG)).state == "succeeded"


async def test_a_stop_is_heard_while_the_store_is_away(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = asyncio.Semaphore(0)

    async def away(*_: Any, **__: Any) -> Any:
        tries.release()
        raise StoreUnavailable("away")

    real: Any = app._db.write
    async with working(app) as (worker, work):
        monkeypatch.setattr(app._db, "write", away)
        assert worker._renewer is not None
        worker._renewer._until = 0
        worker.knock()
        for _ in range(3):
            await tries.acquire()
        worker.stop()
        await work
        monkeypatch.setattr(app._db, "write", real)


async def test_a_worker_with_too_much_that_does_not_stop_ends_so_that_another_takes_its_place(app: Rota) -> None:
    go_on = threading.Event()

    @app.task(timeout="1ms")
    def deaf() -> None:
        go_on.wait()

    for _ in range(10):
        await app.enqueue(deaf.call())
    worker = app.worker(slots=10)
    await worker.run()
    assert worker._executor.worn_out
    go_on.set()


async def test_a_worker_that_ended_listens_no_more(app: Rota) -> None:
    listeners: list[object] = vars(app._db)["_listeners"]
    async with working(app):
        assert len(listeners) == 1
    assert listeners == []


async def test_workers_beside_each_other_run_each_run_once(app: Rota) -> None:
    seen: list[int] = []

    @app.task
    async def once() -> None:
        seen.append(current_run().id)

    ids = await app.enqueue_many(once.call() for _ in range(300))
    async with working(app, slots=5), working(app, slots=5):
        for run in ids:
            await app.runs.wait(run, timeout=LONG)
    assert sorted(seen) == ids
