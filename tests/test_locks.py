"""`app.lock`: what its holder may rely on, and what everybody else hears."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from tests.stores import ask, until

from rota import clock, locks
from rota.app import Rota
from rota.errors import Invalid, InvalidDuration, LockHeld, LockLost, StoreUnavailable
from rota.locks import Lock


@pytest.fixture
async def other(app: Rota, store: str) -> AsyncIterator[Rota]:
    """Another process's application, as far as the store can tell."""
    async with Rota(store) as other:
        yield other


@pytest.fixture
def only_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits does not look by itself."""
    monkeypatch.setattr(locks, "_LOOK_SECONDS", 1_000.0)


async def end(app: Rota) -> None:
    """Let all locks end now."""
    await ask(app._db, "UPDATE rota_locks SET ends_at = 1")


async def stolen(app: Rota, other: Rota) -> Lock:
    """Let the lock end, and another take it."""
    await end(app)
    thief = other.lock("invoices")
    assert await thief.acquire()
    return thief


async def waiting(app: Rota) -> None:
    """Wait until somebody waits."""
    while not await ask(app._db, "SELECT name FROM rota_locks WHERE wanted_until IS NOT NULL"):
        pass


# Taking it


async def test_who_holds_a_lock_holds_it_alone(app: Rota, other: Rota) -> None:
    async with app.lock("invoices", ttl="60s") as lock:
        assert lock.held
        assert lock.fence == 1
        assert not await other.lock("invoices").acquire()
        assert not await lock.acquire()  # not even a second time
        assert lock.held
    assert not lock.held
    async with other.lock("invoices") as later:
        assert later.fence == 2


async def test_a_lock_that_is_held_says_by_whom_and_until_when(app: Rota, other: Rota) -> None:
    began = clock.now()
    async with app.lock("invoices", ttl="1h"):
        with pytest.raises(LockHeld) as caught:
            async with other.lock("invoices"):
                pytest.fail("two are inside")
    error = caught.value
    assert error.name == "invoices"
    assert error.holder is not None
    assert error.holder.endswith(f"-{os.getpid()}")
    assert error.until is not None
    assert timedelta(minutes=59) < error.until - began < timedelta(minutes=61)
    assert str(error) == f"lock: 'invoices' is held by {error.holder} until {error.until}"
    assert str(LockHeld("invoices")) == "lock: 'invoices' is held by another"


async def test_inside_a_run_the_holder_is_the_run(app: Rota) -> None:
    @app.task(name="held")
    async def held() -> str:
        async with app.lock("invoices"):
            return str((await ask(app._db, "SELECT holder FROM rota_locks"))[0][0])

    worker = app.worker(grace=0)
    work = asyncio.ensure_future(worker.run())
    run = await held.enqueue()
    await app.runs.wait(run.id)
    worker.stop()
    await work
    assert (await app.runs.result(run.id)).startswith(f"run {run.id} on ")


async def test_a_lock_may_be_taken_and_given_back_by_hand_and_again(app: Rota, other: Rota) -> None:
    lock = app.lock("invoices")
    assert (lock.fence, lock.held) == (0, False)
    for fence in (1, 2):
        assert await lock.acquire()
        assert (lock.fence, lock.held) == (fence, True)
        assert await lock.release()
        assert not await lock.release()
        assert not lock.held
    assert await other.lock("invoices").acquire()


@pytest.mark.parametrize("name", ["", " x", "x ", "a\nb", "a\0b", "x" * 201, 42, None])
async def test_a_name_that_cannot_be_is_refused(name: Any) -> None:
    with pytest.raises(Invalid, match=r"^name: .* is not allowed; use 1 to 200 printable characters"):
        Rota("sqlite://").lock(name)


@pytest.mark.parametrize(
    "wrong", [{"ttl": "999ms"}, {"ttl": "1d1s"}, {"ttl": 0}, {"ttl": "soon"}, {"wait": -1}, {"wait": "soon"}]
)
async def test_a_length_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidDuration, match=rf"^{next(iter(wrong))}: "):
        Rota("sqlite://").lock("invoices", **wrong)


@pytest.mark.parametrize("name", ["a", "x" * 200, "Rechnungen für März", "order:42/€"])
async def test_any_printable_name_will_do(app: Rota, name: str) -> None:
    async with app.lock(name, ttl="1d") as lock:
        assert lock.held


async def test_a_cancelled_acquire_leaves_nothing_taken(
    app: Rota, other: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, real = asyncio.Event(), app._db.write

    async def write(*args: Any, **kwargs: Any) -> Any:
        found = await real(*args, **kwargs)
        if not written.is_set():
            written.set()
            await asyncio.Event().wait()  # the answer never comes
        return found

    monkeypatch.setattr(app._db, "write", write)
    lock = app.lock("invoices", ttl="1h")
    asked = asyncio.ensure_future(lock.acquire())
    await written.wait()
    asked.cancel()
    await asyncio.wait([asked])
    assert asked.cancelled()
    await until(lambda: not lock._giving_back)
    assert await other.lock("invoices").acquire()


# Waiting for it


@pytest.mark.parametrize("wait", [None, 0, "10ms"])
async def test_nobody_waits_longer_than_asked(app: Rota, other: Rota, wait: Any) -> None:
    async with app.lock("invoices"):
        assert not await other.lock("invoices", wait=wait).acquire()
        with pytest.raises(LockHeld):
            await other.lock("invoices", wait=wait).__aenter__()


@pytest.mark.usefixtures("only_told")
async def test_a_release_elsewhere_wakes_whoever_waits(app: Rota, other: Rota) -> None:
    lock = app.lock("invoices", ttl="1d")
    await lock.acquire()
    waits = asyncio.ensure_future(other.lock("invoices", wait="1h").acquire())
    await waiting(app)
    await lock.release()
    assert await asyncio.wait_for(waits, 60)


@pytest.mark.usefixtures("only_told")
async def test_a_release_beside_it_wakes_whoever_waits(app: Rota) -> None:
    lock = app.lock("invoices", ttl="1d")
    await lock.acquire()
    waits = asyncio.ensure_future(app.lock("invoices", wait="1h").acquire())
    await waiting(app)
    await lock.release()
    assert await asyncio.wait_for(waits, 60)


@pytest.mark.usefixtures("only_told")
async def test_who_waits_gets_it_when_the_holders_time_is_over(app: Rota, other: Rota) -> None:
    await app.lock("invoices", ttl="1s").acquire()
    async with asyncio.timeout(60), other.lock("invoices", wait="1h") as lock:
        assert lock.fence == 2


async def test_what_a_waiter_was_not_told_it_sees_by_itself(
    app: Rota, other: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(other._db, "listen", lambda _: None)
    monkeypatch.setattr(other._db, "unlisten", lambda _: None)
    lock = app.lock("invoices", ttl="1d")
    await lock.acquire()
    waits = asyncio.ensure_future(other.lock("invoices", wait="1h").acquire())
    await waiting(app)
    await lock.release()
    assert await asyncio.wait_for(waits, 60)


async def test_all_who_wait_get_it_one_after_the_other(app: Rota, other: Rota) -> None:
    inside: list[int] = []
    fences: list[int] = []

    async def work(app: Rota) -> None:
        async with app.lock("invoices", wait="1h") as lock:
            assert inside == []
            inside.append(lock.fence)
            await asyncio.sleep(0)
            fences.append(inside.pop())

    await asyncio.gather(*(work(each) for each in (app, other) * 5))
    assert fences == list(range(1, 11))
    assert app._db._listeners == []  # type: ignore[attr-defined]


async def test_workers_do_not_hear_of_locks(app: Rota) -> None:
    worker = app.worker()
    worker.heard("lock:invoices")
    assert not await worker._bell.wait(0)
    worker.heard("ready")
    assert await worker._bell.wait(0)


# Losing it


async def test_an_extended_lock_is_held_for_longer(app: Rota, other: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(clock, "monotonic", lambda: now)
    async with app.lock("invoices", ttl="60s") as lock:
        now += 59
        await lock.extend()
        now += 59
        assert lock.held
        await lock.extend("1h")
        now += 3_599
        assert lock.held
        now += 1
        assert not lock.held
        with pytest.raises(LockHeld) as caught:
            await other.lock("invoices").__aenter__()
        assert caught.value.until is not None
        assert caught.value.until - clock.now() > timedelta(minutes=59)
        with pytest.raises(InvalidDuration):
            await lock.extend("1ms")


async def test_a_lost_lock_cannot_be_extended_or_released_and_the_other_keeps_his(app: Rota, other: Rota) -> None:
    lock = app.lock("invoices")
    await lock.acquire()
    thief = await stolen(app, other)
    with pytest.raises(LockLost, match=r"^lock: 'invoices' is not held here any more"):
        await lock.extend()
    assert not lock.held
    assert not await lock.release()
    assert thief.fence > lock.fence
    await thief.extend()


async def test_what_was_never_held_cannot_be_extended(app: Rota) -> None:
    with pytest.raises(LockLost):
        await app.lock("invoices").extend()


async def test_leaving_a_lost_lock_is_an_error(app: Rota, other: Rota) -> None:
    with pytest.raises(LockLost):
        async with app.lock("invoices"):
            thief = await stolen(app, other)
    assert await thief.release()


async def test_a_lost_lock_does_not_hide_what_went_wrong_before(
    app: Rota, other: Rota, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        async with app.lock("invoices"):
            await stolen(app, other)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        await fail()
    assert caught.value.__notes__ == [str(LockLost("invoices"))]
    assert "not held here any more" in caplog.text


async def test_who_heard_of_the_loss_hears_of_it_once(app: Rota, other: Rota) -> None:
    async with app.lock("invoices") as lock:
        await stolen(app, other)
        with pytest.raises(LockLost):
            await lock.extend()


async def test_who_gave_it_back_inside_may_leave(app: Rota, other: Rota) -> None:
    async with app.lock("invoices") as lock:
        await lock.release()
        await other.lock("invoices").acquire()


async def test_leaving_late_is_no_error_where_nobody_took_it_but_it_is_logged(
    app: Rota, caplog: pytest.LogCaptureFixture
) -> None:
    async with app.lock("invoices"):
        await end(app)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("rota.lock", logging.WARNING)
    assert "longer than its ttl; nobody took it meanwhile" in record.message


@pytest.mark.parametrize("late", [False, True], ids=["in time", "late"])
async def test_a_store_that_is_away_at_the_end_matters_only_where_the_lock_may_be_lost(
    app: Rota, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, late: bool
) -> None:
    async def write(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("away")

    now = 1_000.0
    monkeypatch.setattr(clock, "monotonic", lambda: now)
    lock = app.lock("invoices", ttl="60s")
    await lock.__aenter__()
    monkeypatch.setattr(app._db, "write", write)
    if late:
        now += 60
        with pytest.raises(StoreUnavailable):
            await lock.__aexit__(None, None, None)
    else:
        await lock.__aexit__(None, None, None)
        assert "ends with its ttl" in caplog.text
