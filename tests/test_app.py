"""`Rota`: what an application calls, and what it may rely on."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from tests.stores import DSN, ask, until

from rota import clock
from rota.app import Rota
from rota.context import current_run
from rota.control import RetryLater, Snooze
from rota.engine import sweep
from rota.errors import (
    Invalid,
    InvalidArguments,
    InvalidDuration,
    InvalidMoment,
    InvalidTask,
    LeaseLost,
    NoCurrentRun,
    StoreUnavailable,
    TimedOut,
    UnknownRun,
)
from rota.schedule import Schedule
from rota.tasks import Task
from rota.times.backoff import Retry
from rota.times.intervals import Every

LONG = 60
FAR = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def add(app: Rota) -> Task[[int, int], int]:
    @app.task(name="add", queue="sums", priority="high")
    async def add(left: int, right: int) -> int:
        return left + right

    return add


@asynccontextmanager
async def working(app: Rota, *queues: str) -> AsyncIterator[Any]:
    """Work the queues of an app that is open."""
    worker = app.worker(queues=queues or ("default",), grace=0)
    work = asyncio.ensure_future(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await work


@asynccontextmanager
async def transaction(store: str) -> AsyncIterator[Any]:
    """A transaction of the caller's own: committed, unless something is raised."""
    if store.startswith(DSN):
        connection = await asyncpg.connect(store)
        try:
            async with connection.transaction():
                yield connection
        finally:
            await connection.close()
    else:
        file = sqlite3.connect(store.removeprefix("sqlite:///"), timeout=30)
        try:
            with file:
                file.execute("BEGIN IMMEDIATE")
                yield file
        finally:
            file.close()


async def said(connection: Any, text: str) -> None:
    """Run a statement of the caller's own."""
    done = connection.execute(text)
    if not isinstance(connection, sqlite3.Connection):
        await done


# Enqueue


async def test_a_run_takes_its_tasks_options(app: Rota, add: Task[[int, int], int]) -> None:
    run = await app.enqueue(add.call(1, right=2))
    assert (run.task, run.args, run.queue, run.priority) == ("add", '{"left":1,"right":2}', "sums", 75)
    assert (run.state, run.created) == ("ready", True)


async def test_a_task_enqueues_itself(app: Rota, add: Task[[int, int], int]) -> None:
    run = await add.enqueue(1, right=2)
    assert (run.args, run.queue, run.priority, run.created) == ('{"left":1,"right":2}', "sums", 75, True)
    assert replace(await app.runs.get(run.id), created=True) == run
    with pytest.raises(InvalidArguments):
        await add.enqueue(1, "2")  # type: ignore[arg-type]


async def test_an_enqueue_may_say_otherwise(app: Rota, add: Task[[int, int], int]) -> None:
    run = await app.enqueue(add.call(1, 2), queue="other", priority=-5, delay="5m")
    assert (run.queue, run.priority, run.state) == ("other", -5, "waiting")
    assert run.due - run.created_at == timedelta(minutes=5)
    later = await app.enqueue(add.call(1, 2), at=FAR)
    assert (later.state, later.due) == ("waiting", FAR)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"delay": "soon"}, InvalidDuration),
        ({"delay": -1}, InvalidDuration),
        ({"at": datetime(2100, 1, 1)}, InvalidMoment),  # noqa: DTZ001 (that is what is wrong with it)
        ({"priority": "urgent"}, InvalidTask),
        ({"priority": 40_000}, InvalidTask),
        ({"queue": ""}, InvalidTask),
        ({"queue": "two words"}, InvalidTask),
        ({"delay": "5m", "at": FAR}, Invalid),
        ({"unique": ""}, Invalid),
        ({"unique": 42}, Invalid),
        ({"unique": "nul\x00"}, Invalid),
        ({"unique": "x" * 1_001}, Invalid),
        ({"unique_for": "1h"}, Invalid),
        ({"connection": "a string"}, Invalid),
    ],
)
async def test_what_is_wrong_is_refused_where_it_is_said(
    app: Rota, add: Task[[int, int], int], wrong: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await app.enqueue(add.call(1, 2), **wrong)
    assert (await ask(app._db, "SELECT count(*) FROM rota_runs"))[0][0] == 0


def test_wrong_arguments_are_refused_before_anything_is_stored() -> None:
    @Rota("sqlite://").task
    async def add(left: int, right: int) -> int:
        return left + right

    with pytest.raises(InvalidArguments):
        add.call(1, "2")  # type: ignore[arg-type]


async def test_a_key_cannot_outlive_the_runs_that_are_kept(store: str) -> None:
    async with Rota(store, keep="1h") as app:

        @app.task(name="nothing")
        async def nothing() -> None: ...

        assert (await app.enqueue(nothing.call(), unique="a", unique_for="1h")).created
        with pytest.raises(InvalidDuration) as caught:
            await app.enqueue(nothing.call(), unique="b", unique_for="61m")
    message = "unique_for: '61m' is too long; ended runs are kept for 1h: use at most that, or a longer keep"
    assert str(caught.value) == message


async def test_many_runs_are_stored_in_order(app: Rota, add: Task[[int, int], int]) -> None:
    assert await app.enqueue_many([]) == []
    ids = await app.enqueue_many(add.call(n, n) for n in range(5_003))
    assert len(set(ids)) == 5_003
    assert [(await app.runs.get(ids[n])).args for n in (0, 4_999, 5_000, 5_002)] == [
        f'{{"left":{n},"right":{n}}}' for n in (0, 4_999, 5_000, 5_002)
    ]


async def test_a_key_makes_one_run(app: Rota, add: Task[[int, int], int]) -> None:
    first = await app.enqueue(add.call(1, 2), unique="sum-1")
    second = await app.enqueue(add.call(3, 4), unique="sum-1")
    assert (first.created, second.created, second.id) == (True, False, first.id)
    found = await asyncio.gather(*(app.enqueue(add.call(1, 2), unique="sum-2") for _ in range(20)))
    assert sum(run.created for run in found) == 1
    async with working(app, "sums"):
        await app.runs.wait(first.id, timeout=LONG)
    assert not (await app.enqueue(add.call(1, 2), unique="sum-1", unique_for="1h")).created
    assert (await app.enqueue(add.call(1, 2), unique="sum-1")).created


async def test_a_run_in_the_callers_transaction_exists_if_and_only_if_that_commits(
    app: Rota, store: str, add: Task[[int, int], int]
) -> None:
    async with transaction(store) as connection:
        kept = await app.enqueue(add.call(1, 2), connection=connection)
        many = await app.enqueue_many([add.call(3, 4)] * 3, connection=connection)
        unique = await app.enqueue(add.call(1, 2), unique="k", connection=connection)
        with pytest.raises(UnknownRun):
            await app.runs.get(kept.id)
    for run in (kept.id, *many, unique.id):
        assert (await app.runs.get(run)).state == "ready"
    with pytest.raises(LookupError):
        await undone(app, store, add)
    assert (await ask(app._db, "SELECT count(*) FROM rota_runs"))[0][0] == 5


async def undone(app: Rota, store: str, add: Task[[int, int], int]) -> None:
    async with transaction(store) as connection:
        await app.enqueue(add.call(5, 6), connection=connection)
        await app.enqueue_many([add.call(7, 8)] * 3, connection=connection)
        raise LookupError


async def test_what_the_callers_transaction_brought_is_worked(
    app: Rota, store: str, add: Task[[int, int], int]
) -> None:
    async with working(app, "sums"):
        async with transaction(store) as connection:
            run = await app.enqueue(add.call(1, 2), connection=connection)
        assert (await app.runs.wait(run.id, timeout=LONG)).result == "3"


async def test_a_delayed_run_is_worked_when_its_time_comes(app: Rota, add: Task[[int, int], int]) -> None:
    async with working(app, "sums"):
        run = await app.enqueue(add.call(1, 2), delay="50ms")
        ended = await app.runs.wait(run.id, timeout=LONG)
    assert ended.started_at is not None
    assert ended.started_at >= ended.due


# Runs


async def test_a_run_that_is_not_there_is_unknown(app: Rota) -> None:
    for missing in (404, 0, -1, 2**63, 2**80):
        for asked in (app.runs.get, app.runs.cancel, app.runs.retry, app.runs.wait, app.runs.result):
            with pytest.raises(UnknownRun, match=f"run: there is no {missing}"):
                await asked(missing)


async def test_waiting_for_a_run_ends_with_it_or_with_patience(app: Rota, add: Task[[int, int], int]) -> None:
    run = await app.enqueue(add.call(1, 2))
    with pytest.raises(TimedOut, match=f"run {run.id} is still ready"):
        await app.runs.wait(run.id, timeout=0)
    async with working(app, "sums"):
        ended = await app.runs.wait(run.id)
    assert (ended.state, ended.result) == ("succeeded", "3")
    assert await app.runs.wait(run.id, timeout=0) == ended


async def test_a_result_comes_back_as_it_was_returned(app: Rota) -> None:
    @app.task
    async def when() -> datetime:
        return FAR

    @app.task
    async def nothing() -> None:
        pass

    runs = [await app.enqueue(task.call()) for task in (when, nothing)]
    assert await app.runs.result(runs[0].id) is None
    async with working(app):
        for run in runs:
            await app.runs.wait(run.id, timeout=LONG)
    assert [await app.runs.result(run.id) for run in runs] == [FAR, None]


async def test_a_run_can_be_cancelled_and_tried_again(app: Rota, add: Task[[int, int], int]) -> None:
    run = await app.enqueue(add.call(1, 2), delay="1h")
    assert await app.runs.cancel(run.id, note="not today") == "cancelled"
    assert await app.runs.cancel(run.id) == "cancelled"
    assert (await app.runs.get(run.id)).cancel == "not today"
    assert (await app.runs.retry(run.id)).state == "ready"
    with pytest.raises(Invalid, match=f"run: {run.id} is ready; only a run that has ended can be tried again"):
        await app.runs.retry(run.id)
    async with working(app, "sums"):
        assert (await app.runs.wait(run.id, timeout=LONG)).result == "3"


@pytest.mark.parametrize("note", ["nul \0", "x" * 1_001, "half a pair \ud800", None, b"bytes"])
async def test_a_note_that_no_store_can_keep_is_refused(app: Rota, add: Task[[int, int], int], note: Any) -> None:
    run = await app.enqueue(add.call(1, 2))
    with pytest.raises(Invalid, match=r"note: .* is not allowed; use text of up to 1,000 characters, without NUL"):
        await app.runs.cancel(run.id, note=note)
    assert await app.runs.cancel(run.id, note="ü" * 1_000) == "cancelled"


async def test_to_wait_for_a_time_and_for_a_while_is_one_too_many(app: Rota, add: Task[[int, int], int]) -> None:
    with pytest.raises(Invalid, match="delay: '5m' does not go with at=; use delay= or at=, not both"):
        await app.enqueue(add.call(1, 2), delay="5m", at=FAR)
    assert (await app.enqueue(add.call(1, 2), delay=0, at=FAR)).due == FAR


async def test_a_failed_run_has_its_attempts_and_can_be_tried_again(app: Rota) -> None:
    broken = True

    @app.task(retry=Retry(attempts=2, first=0))
    async def flaky() -> str:
        if broken:
            raise LookupError("no")
        return "fine"

    run = await app.enqueue(flaky.call())
    async with working(app):
        failed = await app.runs.wait(run.id, timeout=LONG)
        assert (failed.state, failed.attempt) == ("failed", 2)
        assert [(each.number, each.outcome) for each in await app.runs.attempts(run.id)] == [
            (1, "retry"),
            (2, "failed"),
        ]
        broken = False
        await app.runs.retry(run.id)
        ended = await app.runs.wait(run.id, timeout=LONG)
    assert (ended.state, ended.attempt, ended.error) == ("succeeded", 3, None)
    assert [each.outcome for each in await app.runs.attempts(run.id)] == ["retry", "failed", "succeeded"]


# Inside a task


def test_outside_of_a_run_there_is_no_current_run() -> None:
    with pytest.raises(NoCurrentRun):
        current_run()


async def test_a_task_knows_what_came_before(app: Rota) -> None:
    seen: list[tuple[int, str, Any, str | None]] = []

    @app.task(retry=Retry(attempts=3, first=0))
    async def learn() -> list[int]:
        me = current_run()
        seen.append((me.attempt, me.key, me.previous_result, me.previous_error and me.previous_error.message))
        if me.attempt == 1:
            raise LookupError("no")
        if me.attempt == 2:
            raise RetryLater(0, "not yet")
        if me.attempt == 3:
            raise Snooze(0)
        return [me.attempt]

    run = await app.enqueue(learn.call())
    async with working(app):
        await app.runs.wait(run.id, timeout=LONG)
        await app.runs.retry(run.id)
        await app.runs.wait(run.id, timeout=LONG)
    key = f"rota-run-{run.id}"
    assert seen == [
        (1, key, None, None),
        (2, key, None, "no"),
        (3, key, None, "not yet"),
        (4, key, None, None),
        (5, key, [4], None),
    ]


async def test_a_previous_result_that_cannot_be_read_any_more_is_none(app: Rota) -> None:
    @app.task
    async def change() -> int:
        assert current_run().previous_result is None
        return 1

    run = await app.enqueue(change.call())
    await ask(app._db, "UPDATE rota_runs SET result = '\"once it was text\"'")
    async with working(app):
        assert (await app.runs.wait(run.id, timeout=LONG)).result == "1"


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_progress_is_seen_while_the_run_goes_on(app: Rota, kind: str) -> None:
    go_on = asyncio.Event()
    loop = asyncio.get_running_loop()

    @app.task(name="async")
    async def one() -> None:
        current_run().progress(0.4, "nearly half")
        await go_on.wait()

    @app.task(name="plain")
    def two() -> None:
        current_run().progress(0.4, "nearly half")
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()

    run = await app.enqueue({"async": one, "plain": two}[kind].call())
    async with working(app):
        while (await app.runs.get(run.id)).progress is None:
            pass
        assert (await app.runs.get(run.id)).progress == (0.4, "nearly half")
        go_on.set()
        await app.runs.wait(run.id, timeout=LONG)


# Completed in the task's own transaction


@pytest.fixture
async def effects(app: Rota) -> AsyncIterator[Any]:
    """A table of the application's own, and what is in it."""
    await ask(app._db, "DROP TABLE IF EXISTS effects")
    await ask(app._db, "CREATE TABLE effects (id INTEGER)")

    async def found() -> int:
        return int((await ask(app._db, "SELECT count(*) FROM effects"))[0][0])

    yield found
    await ask(app._db, "DROP TABLE effects")


async def test_an_effect_and_its_completion_happen_together(app: Rota, store: str, effects: Any) -> None:
    @app.task
    async def pay() -> int:
        async with transaction(store) as connection:
            await said(connection, "INSERT INTO effects VALUES (1)")
            await current_run().complete(42, connection=connection)
        return 7

    run = await app.enqueue(pay.call())
    async with working(app) as worker:
        ended = await app.runs.wait(run.id, timeout=LONG)
    assert (ended.state, ended.result, ended.attempt) == ("succeeded", "42", 1)
    assert await effects() == 1
    assert worker.fenced == 0


async def test_an_error_after_the_completion_undoes_both_and_the_run_is_tried_again(
    app: Rota, store: str, effects: Any
) -> None:
    @app.task(retry=Retry(attempts=2, first=0))
    async def pay() -> str:
        async with transaction(store) as connection:
            await said(connection, "INSERT INTO effects VALUES (1)")
            await current_run().complete("paid", connection=connection)
            if current_run().attempt == 1:
                raise LookupError("at the last moment")
        return "paid"

    run = await app.enqueue(pay.call())
    async with working(app):
        ended = await app.runs.wait(run.id, timeout=LONG)
    assert (ended.state, ended.attempt) == ("succeeded", 2)
    assert await effects() == 1


async def test_a_completion_that_was_rolled_back_in_silence_is_no_success(app: Rota, store: str, effects: Any) -> None:
    @app.task
    async def pay() -> None:
        try:
            async with transaction(store) as connection:
                await said(connection, "INSERT INTO effects VALUES (1)")
                await current_run().complete(connection=connection)
                raise LookupError
        except LookupError:
            pass

    run = await app.enqueue(pay.call())
    async with working(app):
        ended = await app.runs.wait(run.id, timeout=LONG)
    assert (ended.state, await effects()) == ("failed", 0)
    assert ended.error is not None
    assert ended.error.kind == "RolledBack"


async def test_an_error_after_the_commit_does_not_undo_the_completion(app: Rota, store: str, effects: Any) -> None:
    @app.task(retry=Retry(attempts=5, first=0))
    async def pay() -> str:
        async with transaction(store) as connection:
            await said(connection, "INSERT INTO effects VALUES (1)")
            await current_run().complete("paid", connection=connection)
        raise LookupError("too late to matter")

    run = await app.enqueue(pay.call())
    async with working(app):
        ended = await app.runs.wait(run.id, timeout=LONG)
    assert (ended.state, ended.attempt, ended.error) == ("succeeded", 1, None)
    assert await effects() == 1


async def test_who_lost_the_run_cannot_complete_it_and_his_effect_is_undone(
    app: Rota, store: str, effects: Any
) -> None:
    begun, go_on, refused = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @app.task
    async def pay() -> str:
        me = current_run()
        if me.attempt == 1:
            begun.set()
            await go_on.wait()
        try:
            async with transaction(store) as connection:
                await said(connection, "INSERT INTO effects VALUES (1)")
                await me.complete(f"by attempt {me.attempt}", connection=connection)
        except LeaseLost:
            refused.set()
            raise
        return "paid"

    run = await app.enqueue(pay.call())
    async with working(app) as worker:
        await begun.wait()
        await ask(app._db, "UPDATE rota_workers SET lease = 0")
        await app.worker().sweeper.run_once()
        ended = await app.runs.wait(run.id, timeout=LONG)
        go_on.set()
        await refused.wait()
        await until(lambda: worker.fenced)
    assert ended.result == '"by attempt 2"'
    assert await effects() == 1
    assert (await app.runs.get(run.id)).attempt == 2


async def test_a_completion_twice_undoes_itself_and_the_run_does_not_hang(app: Rota, store: str) -> None:
    @app.task
    async def twice() -> None:
        async with transaction(store) as connection:
            for _ in range(2):
                await current_run().complete(connection=connection)

    run = await app.enqueue(twice.call())
    async with working(app):
        assert (await app.runs.wait(run.id, timeout=LONG)).state == "failed"


# Open and close


async def test_a_store_that_is_not_open_says_so(store: str) -> None:
    app = Rota(store)

    @app.task
    async def nothing() -> None: ...

    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="the store is not open"):
            await app.enqueue(nothing.call())
        async with app:
            await app.enqueue(nothing.call())


async def test_running_opens_the_store_works_the_queues_and_ends(store: str) -> None:
    app = Rota(store)

    @app.task
    async def add(left: int, right: int) -> int:
        return left + right

    async with app.running(slots=2) as worker:
        run = await app.enqueue(add.call(1, 2))
        assert (await app.runs.wait(run.id, timeout=LONG)).worker == worker.id
    with pytest.raises(StoreUnavailable):
        await app.runs.get(run.id)


def test_an_app_can_be_used_from_one_event_loop_after_another(store: str) -> None:
    app = Rota(store)

    @app.task
    async def add(left: int, right: int) -> int:
        return left + right

    async def once() -> str | None:
        async with app.running():
            run = await app.enqueue(add.call(1, 2))
            ended = await app.runs.wait(run.id, timeout=LONG)
            await app.runs.cancel(run.id)
            return ended.result

    assert [asyncio.run(once()) for _ in range(2)] == ["3", "3"]


async def test_another_process_is_heard_soon(app: Rota, store: str, add: Task[[int, int], int]) -> None:
    other = Rota(store)
    other.tasks.add(Task(add.function, name="add", options=add.options))
    began = clock.monotonic()
    async with working(app, "sums"), other:
        run = await other.enqueue(other.tasks.get("add").call(1, 2))
        await app.runs.wait(run.id, timeout=LONG)
    assert clock.monotonic() - began < LONG


# History


def kept(app: Rota) -> timedelta:
    """How long the workers of an app keep ended runs."""
    return timedelta(microseconds=app.worker()._settings.keep)


def test_ended_runs_are_kept_for_as_long_as_the_app_or_else_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ROTA_KEEP", raising=False)
    assert kept(Rota("sqlite://")) == timedelta(days=14)
    monkeypatch.setenv("ROTA_KEEP", "3d")
    assert kept(Rota("sqlite://")) == timedelta(days=3)
    assert kept(Rota("sqlite://", keep="1m")) == timedelta(minutes=1)
    assert kept(Rota("sqlite://", keep=timedelta(days=3653))) == timedelta(days=3653)


@pytest.mark.parametrize("keep", [0, "59s", "3654d", "for ever", -1])
def test_a_time_to_keep_that_cannot_be_is_refused(keep: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidDuration, match=r"^keep: "):
        Rota("sqlite://", keep=keep)
    monkeypatch.setenv("ROTA_KEEP", str(keep))
    with pytest.raises(InvalidDuration, match=r"^ROTA_KEEP: "):
        Rota("sqlite://")


async def test_a_worker_removes_what_ended_long_ago(
    app: Rota, add: Task[[int, int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "_HISTORY_FIRST_SECONDS", 0)
    old, young = await add.enqueue(1, 2), await add.enqueue(3, 4)
    for run in (old, young):
        await app.runs.cancel(run.id)
    await ask(app._db, "UPDATE rota_runs SET finished_at = 1 WHERE id = :id", id=old.id)
    async with working(app):
        while len(await app.runs.list()) > 1:
            pass
    with pytest.raises(UnknownRun, match="kept for a while only"):
        await app.runs.get(old.id)
    assert (await app.runs.get(young.id)).state == "cancelled"


async def test_runs_are_found_by_what_people_look_for(app: Rota, add: Task[[int, int], int]) -> None:
    @app.task(name="Divide")
    async def divide() -> None:
        raise ZeroDivisionError("100% wrong_here")

    await app.enqueue(divide.call(), unique="one")
    await app.enqueue(add.call(1, 2))
    await app.schedules.put(Schedule("daily", add.call(1, 2), Every("1d")))
    await app.schedules.trigger("daily")
    async with working(app) as worker:
        await app.runs.wait(1)
    made = (await app.runs.get(2)).created_at

    async def found(**wanted: Any) -> list[int]:
        return [each.id for each in await app.runs.list(**wanted)]

    assert await found(task="Divide") == await found(queue="default") == await found(state="failed") == [1]
    assert await found(schedule="daily") == [3]
    assert await found(schedule="daily", state="failed") == []
    assert await found(worker=worker.id) == [1]
    assert await found(since=made) == [3, 2]
    assert await found(until=made) == [1]
    assert await found(text="divide") == await found(text="WRONG_H") == await found(text="100%") == [1]
    assert await found(text="ONE") == [1]
    assert await found(text="DAIL") == [3]
    assert await found(text="wrongXhere") == []
    assert await found(limit=2) == [3, 2]
    assert await found(limit=2, before=2) == [1]
    with pytest.raises(Invalid):
        await app.runs.list(text="x" * 1_001)
