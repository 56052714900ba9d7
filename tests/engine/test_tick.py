"""One tick does what is due and ready, waits for it, and says what it left: on either store."""

import asyncio
from typing import Any

import pytest

import rota
from rota import clock
from rota.engine import tick
from rota.engine.claim import Claimer
from rota.engine.tick import Tick, Ticked
from rota.engine.worker import Worker
from rota.errors import StoreUnavailable

ANCHORED = rota.Every("1d", since="finish")


class Stops:
    """Hears when a worker is told to stop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.first = asyncio.Event()
        real = Worker.stop

        def stop(worker: Worker) -> None:
            real(worker)
            self.first.set()

        monkeypatch.setattr(Worker, "stop", stop)


class Hours:
    """The clock by which a tick knows that its time is over."""

    def __init__(self) -> None:
        self.passed = 0.0

    def pass_by(self) -> None:
        self.passed = 7_200.0

    def monotonic(self) -> float:
        return clock.monotonic() + self.passed


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> Hours:
    found = Hours()
    monkeypatch.setattr(tick, "clock", found)
    return found


@pytest.fixture
async def stops(monkeypatch: pytest.MonkeyPatch) -> Stops:
    return Stops(monkeypatch)


async def states(app: rota.Rota) -> list[str]:
    return [run.state for run in reversed(await app.runs.list())]


async def test_where_nothing_is_due_a_tick_does_nothing(app: rota.Rota) -> None:
    done = await app.tick()
    assert done == Ticked(fired=0, outcomes={}, left={}, in_time=True)
    assert done.ok
    assert await app.workers() == []


async def test_a_tick_declares_fires_works_and_waits(app: rota.Rota) -> None:
    @app.schedule("s", ANCHORED)
    @app.task(queue="own")
    async def work() -> None: ...

    assert await app.tick() == Ticked(fired=1, outcomes={"succeeded": 1}, left={}, in_time=True)
    assert await app.tick() == Ticked(fired=0, outcomes={}, left={}, in_time=True)


async def test_what_a_task_enqueues_meanwhile_is_worked_too(app: rota.Rota) -> None:
    @app.task
    async def count(number: int) -> None:
        if number:
            await count.enqueue(number - 1)

    await count.enqueue(3)
    assert (await app.tick()).outcomes == {"succeeded": 4}


async def test_a_run_that_fails_for_good_is_not_well(app: rota.Rota) -> None:
    @app.task
    async def work() -> None:
        raise ValueError

    await work.enqueue()
    done = await app.tick()
    assert (done.outcomes, done.in_time, done.ok) == ({"failed": 1}, True, False)


async def test_a_retry_that_waits_is_left_for_later_and_is_well(app: rota.Rota) -> None:
    @app.task(retry=rota.Retry(attempts=2, first="1h"))
    async def work() -> None:
        raise ValueError

    await work.enqueue()
    done = await app.tick()
    assert (done.outcomes, done.left, done.ok) == ({"retry": 1}, {}, True)
    assert await states(app) == ["waiting"]


async def test_what_is_due_later_is_left_for_later(app: rota.Rota) -> None:
    @app.task
    async def work() -> None: ...

    await app.enqueue(work.call(), delay="1h")
    assert (await app.tick()) == Ticked(fired=0, outcomes={}, left={}, in_time=True)


async def test_queues_that_are_not_named_are_left_to_others(app: rota.Rota) -> None:
    @app.task
    async def work() -> None: ...

    await app.enqueue(work.call(), queue="a")
    await app.enqueue(work.call(), queue="b")
    done = await app.tick(queues=["a"])
    assert (done.outcomes, done.left, done.ok) == ({"succeeded": 1}, {"b": 1}, True)


async def test_a_due_run_that_finds_no_room_is_left_after_a_while(
    app: rota.Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task(limits=["host"])
    async def work() -> None: ...

    monkeypatch.setattr(tick, "_PATIENCE_SECONDS", 0.0)
    await app.limits.put("host", rota.Limit(at_once=1))
    async with app.limits.hold("host"):
        await work.enqueue()
        done = await app.tick()
    assert (done.outcomes, done.left, done.ok) == ({}, {"default": 1}, True)
    monkeypatch.undo()
    assert (await app.tick()).outcomes == {"succeeded": 1}


async def test_what_ends_within_the_grace_after_the_time_was_done(app: rota.Rota, hours: Hours, stops: Stops) -> None:
    @app.task
    async def work() -> None:
        hours.pass_by()
        await stops.first.wait()

    await work.enqueue()
    done = await app.tick(timeout="1h", grace="1h")
    assert done == Ticked(fired=0, outcomes={"succeeded": 1}, left={}, in_time=True)


async def test_what_does_not_end_within_the_grace_goes_back_to_its_queue(app: rota.Rota, hours: Hours) -> None:
    @app.task
    async def work() -> None:
        hours.pass_by()
        await asyncio.Event().wait()

    await work.enqueue()
    done = await app.tick(timeout="1h", grace=0)
    assert (done.outcomes, done.left, done.in_time, done.ok) == ({}, {"default": 1}, False, False)
    assert await states(app) == ["ready"]


async def test_after_the_time_nothing_more_begins(app: rota.Rota, hours: Hours, stops: Stops) -> None:
    @app.task
    async def work() -> None:
        hours.pass_by()
        await stops.first.wait()

    await app.enqueue_many([work.call()] * 3)
    done = await app.tick(timeout="1h", grace="1h", slots=1)
    assert (done.outcomes, done.left, done.in_time) == ({"succeeded": 1}, {"default": 2}, False)


async def test_a_tick_that_is_cancelled_waits_for_what_runs(app: rota.Rota, stops: Stops) -> None:
    begun = asyncio.Event()

    @app.task
    async def work() -> None:
        begun.set()
        await stops.first.wait()

    await work.enqueue()
    ticking = asyncio.create_task(app.tick(grace="1h"))
    await begun.wait()
    ticking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ticking
    assert await states(app) == ["succeeded"]
    assert await app.workers() == []


async def test_a_tick_that_is_cancelled_twice_gives_back_what_runs(app: rota.Rota, stops: Stops) -> None:
    begun = asyncio.Event()

    @app.task
    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    await work.enqueue()
    ticking = asyncio.create_task(app.tick(grace="1h"))
    await begun.wait()
    ticking.cancel()
    await stops.first.wait()
    ticking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ticking
    assert await states(app) == ["ready"]
    assert await app.workers() == []


async def test_a_tick_does_not_end_while_a_claim_is_under_way(app: rota.Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = asyncio.Event()
    look, claim = Tick._queues, Claimer.run_once

    async def queues(ticking: Tick) -> Any:
        found = await look(ticking)
        looked.set()
        return found

    async def run_once(claimer: Claimer, *args: Any, **more: Any) -> Any:
        found = await claim(claimer, *args, **more)
        if found:  # the store says that they run, and the worker does not know yet
            looked.clear()
            await looked.wait()
        return found

    monkeypatch.setattr(Tick, "_queues", queues)
    monkeypatch.setattr(Claimer, "run_once", run_once)

    @app.task
    async def work() -> None: ...

    await work.enqueue()
    assert (await app.tick()).outcomes == {"succeeded": 1}


class Away:
    """A store that does not answer a tick's look so many times, from when a task says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        self.left = 0
        self.times = times
        look = Tick._queues

        async def queues(ticking: Tick) -> Any:
            if self.left:
                self.left -= 1
                raise StoreUnavailable("nobody is there")
            return await look(ticking)

        monkeypatch.setattr(Tick, "_queues", queues)
        monkeypatch.setattr(tick, "_AGAIN_SECONDS", 0.0)

    def begin(self) -> None:
        self.left = self.times


async def test_a_tick_outlives_a_store_that_is_away_for_a_moment(
    app: rota.Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Away(monkeypatch, 3)

    @app.task
    async def work() -> None:
        away.begin()

    await work.enqueue()
    assert await app.tick() == Ticked(fired=0, outcomes={"succeeded": 1}, left={}, in_time=True)
    assert not away.left


async def test_a_store_that_stays_away_ends_the_tick(app: rota.Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    away = Away(monkeypatch, 1_000_000)
    monkeypatch.setattr(tick, "_PATIENCE_SECONDS", 0.0)

    @app.task
    async def work() -> None:
        away.begin()

    await work.enqueue()
    with pytest.raises(StoreUnavailable, match="nobody is there"):
        await app.tick()
    assert await states(app) == ["succeeded"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"timeout": 0}, "timeout: 0 is too short"),
        ({"timeout": "soon"}, "timeout: 'soon' is not a duration"),
        ({"queues": []}, "queues"),
        ({"queues": ["no queue"]}, "queue: 'no queue'"),
        ({"slots": 0}, "slots: 0"),
        ({"grace": -1}, "grace: -1"),
    ],
)
async def test_what_makes_no_sense_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(rota.Invalid, match=problem):
        await rota.Rota("sqlite://").tick(**options)
