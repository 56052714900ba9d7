"""An app's calls for code without an event loop."""

import asyncio
import inspect
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import aiosqlite
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session
from tests.lenders import alchemy_url
from tests.servers import ROOT
from tests.stores import ask

import rota
from rota import clock


@pytest.fixture
def app(store: str) -> rota.Rota:
    """An application on a store that nobody has opened."""
    app = rota.Rota(store)
    app.task(name="note")(note)
    return app


@pytest.fixture
def calls(app: rota.Rota) -> Iterator[rota.Blocking]:
    with rota.Blocking(app) as calls:
        yield calls


def note(text: str = "") -> str:
    return text


def call(app: rota.Rota, text: str = "") -> rota.Call[str]:
    return app.tasks.get("note").call(text)


def schedule(app: rota.Rota, key: str = "s") -> rota.Schedule:
    return rota.Schedule(key, call(app), rota.Every("1h"))


def loops() -> int:
    """How many event loops of `Blocking` there are in this process."""
    return [each.name for each in threading.enumerate()].count("rota-blocking")


@contextmanager
def worker(store: str) -> Iterator[None]:
    """Work the queue, as another process would."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    leave = asyncio.Event()

    async def work() -> None:
        app = rota.Rota(store)
        app.task(name="note")(note)
        async with app.running(scheduler=False):
            ready.set()
            await leave.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=[work()])
    thread.start()
    assert ready.wait(60)
    yield
    loop.call_soon_threadsafe(leave.set)
    thread.join()
    loop.close()


# What the calls do


def test_a_run_is_stored_and_waited_for(calls: rota.Blocking, app: rota.Rota, store: str) -> None:
    run = calls.enqueue(call(app, "done"))
    assert run.created
    assert calls.runs.get(run.id).state == "ready"
    with worker(store):
        assert calls.runs.wait(run.id, timeout="1m").state == "succeeded"
    assert calls.runs.result(run.id) == "done"


def test_runs_are_stored_together_cancelled_and_tried_again(calls: rota.Blocking, app: rota.Rota) -> None:
    first, second = calls.enqueue_many([call(app, "1"), call(app, "2")])
    assert calls.runs.cancel(first, note="not needed") == "cancelled"
    assert [each.id for each in calls.runs.list(state="ready")] == [second]
    assert calls.runs.retry(first).state == "ready"
    assert calls.runs.attempts(first) == []


def test_schedules_are_put_changed_held_and_removed(calls: rota.Blocking, app: rota.Rota) -> None:
    assert calls.schedules.put(schedule(app)).state == "active"
    assert calls.schedules.put_many([schedule(app, "s"), schedule(app, "t")]) == rota.PutCounts(made=1, same=1)
    assert calls.schedules.change("s", rule=rota.Every("2h")) == 1
    assert calls.schedules.pause(prefix="s") == 1
    assert calls.schedules.get("s").state == "paused"
    assert calls.schedules.resume("s") == 1
    assert calls.schedules.trigger("s").count == 1
    assert "2h" in str(calls.schedules.get("s").rule)
    assert len(calls.schedules.upcoming("s", limit=3)) == 3
    assert [each.state for each in calls.schedules.firings("s")] == ["ready"]
    assert calls.schedules.why("s").key == "s"
    assert calls.schedules.remove("s") == 1
    assert [each.key for each in calls.schedules.list()] == ["t"]
    calls.pause(note="holidays")
    assert calls.schedules.status().paused is not None
    calls.resume()
    assert calls.schedules.status().paused is None


def test_schedules_tell_what_became_of_them(calls: rota.Blocking, app: rota.Rota) -> None:
    calls.schedules.put_many([rota.Schedule(f"s{n}", call(app), rota.Every("1h", since="success")) for n in range(3)])
    assert calls.schedules.spread(prefix="s", window="1h") == 3
    assert calls.schedules.revisions("s0")[-1].version == 1
    assert calls.schedules.status().counts == {"active": 3}
    assert calls.schedules.failing() == []
    calls.schedules.put(schedule(app, "hourly"))
    now = clock.now()
    assert calls.schedules.backfill("hourly", now - timedelta(hours=3), now).count == 3


def test_runs_are_counted_by_the_hour_and_workers_and_queues_are_named(
    calls: rota.Blocking, app: rota.Rota, store: str
) -> None:
    first, second = calls.enqueue_many([call(app), call(app)])
    calls.runs.cancel(first)
    assert [(each.queue, each.state, each.number) for each in calls.queues()] == [("default", "ready", 1)]
    assert calls.workers() == []
    with worker(store):
        calls.runs.wait(second, timeout="1m")
        assert len(calls.workers()) == 1
    assert [(each.state, each.runs) for each in calls.runs.hours(task="note")] == [("cancelled", 1), ("succeeded", 1)]


def test_limits_are_put_listed_held_and_removed(calls: rota.Blocking, app: rota.Rota) -> None:
    calls.limits.put("host:*", rota.Limit(at_once=1))
    with calls.limits.hold("host:one"):
        assert [(each.key, each.busy) for each in calls.limits.list()] == [("host:*", 1)]
        with pytest.raises(rota.TimedOut), calls.limits.hold("host:one", wait="10ms"):
            raise AssertionError
        with calls.limits.hold("host:two"):
            assert calls.limits.list()[0].busy == 2
    with pytest.raises(ZeroDivisionError), calls.limits.hold("host:one"):
        raise ZeroDivisionError
    assert calls.limits.list()[0].busy == 0
    run = calls.enqueue(call(app), limits=["host:one"])
    assert calls.limits.waits_for(run.id) is None
    calls.limits.remove("host:*")
    with pytest.raises(rota.UnknownLimit):
        calls.limits.remove("host:*")


async def test_a_hold_in_a_plain_task_uses_the_room_of_its_run(app: rota.Rota) -> None:
    calls = rota.Blocking(app)

    @app.task(name="polite", limits=["host:one"])
    def polite() -> int:
        with calls.limits.hold("host:one", wait="1m"):  # it would wait for itself, if it were not known as the run
            return calls.limits.list()[0].busy

    await app.__aenter__()
    await app.limits.put("host:*", rota.Limit(at_once=1))
    async with app.running(scheduler=False):
        run = await polite.enqueue()
        assert (await app.runs.wait(run.id, timeout="1m")).state == "succeeded"
    await app.__aexit__()


def test_a_lock_has_one_holder_at_a_time(calls: rota.Blocking) -> None:
    with calls.lock("invoices", ttl="60s") as lock:
        assert (lock.name, lock.fence, lock.held) == ("invoices", 1, True)
        lock.extend("5m")
        with pytest.raises(rota.LockHeld), calls.lock("invoices"):
            raise AssertionError
        assert not calls.lock("invoices", wait="1ms").acquire()
    assert not lock.held
    other = calls.lock("invoices")
    assert other.acquire()
    assert (other.fence, other.release(), other.release()) == (2, True, False)
    with pytest.raises(ZeroDivisionError), calls.lock("invoices"):
        raise ZeroDivisionError
    assert calls.lock("invoices").acquire()


def test_a_lock_that_another_has_taken_is_told_at_the_end(calls: rota.Blocking, app: rota.Rota) -> None:
    with pytest.raises(rota.LockLost), calls.lock("invoices") as lock:
        take_away(app, lock.name)


def take_away(app: rota.Rota, name: str) -> None:
    """Let another take a lock, as if its time had been over."""
    loop = app.loop
    assert loop is not None
    text = "UPDATE rota_locks SET token = 'another', fence = fence + 1 WHERE name = :name"
    asyncio.run_coroutine_threadsafe(ask(app.database, text, name=name), loop).result()


def test_errors_are_those_of_the_async_calls(calls: rota.Blocking, app: rota.Rota) -> None:
    with pytest.raises(rota.UnknownRun):
        calls.runs.get(2**40)
    with pytest.raises(rota.UnknownSchedule):
        calls.schedules.get("nobody")
    calls.schedules.put(schedule(app))
    with pytest.raises(rota.ScheduleExists):
        calls.schedules.put(schedule(app), create=True)
    with pytest.raises(rota.TimedOut):
        calls.runs.wait(calls.enqueue(call(app)).id, timeout="1ms")


OTHERWISE = {
    "Rota": {"open", "close", "connect", "migrate", "told", "put_declared", "tick"},
    "Schedules": {"put_declared", "pause_all"},
}
"""What is awaited, and is not for code without an event loop, or is there in other words."""


@pytest.mark.parametrize("part", ["", "runs", "schedules", "limits", "lock"])
def test_every_call_is_there_with_the_signature_and_the_words_of_the_async_one(part: str) -> None:
    app = rota.Rota("sqlite://")
    calls = rota.Blocking(app)
    if part == "lock":
        its, mine = type(app.lock("one")), type(calls.lock("one"))
    else:
        its, mine = type(getattr(app, part, app)), type(getattr(calls, part, calls))
    awaited = {
        name: each
        for name, each in vars(its).items()
        if inspect.iscoroutinefunction(each)
        and not name.startswith("_")
        and name not in OTHERWISE.get(its.__name__, ())
    }
    assert awaited
    for name, each in awaited.items():
        assert inspect.signature(getattr(mine, name)) == inspect.signature(each)
        assert getattr(mine, name).__doc__ == each.__doc__


def test_workers_have_been_told_when_a_call_returns(calls: rota.Blocking, app: rota.Rota) -> None:
    told: list[str] = []
    database = app.database
    notify = database.notify

    async def listened(topic: str) -> None:
        await notify(topic)
        told.append(topic)

    database.notify = listened  # type: ignore[method-assign]
    calls.enqueue(call(app))
    assert told == ["ready"]


# Where they happen


def test_the_first_call_opens_the_store_and_close_closes_it(app: rota.Rota) -> None:
    calls = rota.Blocking(app)
    assert loops() == 0
    calls.enqueue(call(app))
    assert (app.entered, loops()) == (True, 1)
    calls.close()
    assert (app.entered, loops()) == (False, 0)
    calls.close()
    assert len(calls.runs.list()) == 1
    calls.close()


def test_threads_share_one_event_loop(app: rota.Rota) -> None:
    calls = rota.Blocking(app)
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda number: calls.enqueue(call(app, str(number))).id, range(80)))
        assert loops() == 1
    assert len(set(made)) == 80
    assert len(calls.runs.list(limit=200)) == 80
    calls.close()


def test_two_of_one_app_share_one_event_loop(app: rota.Rota) -> None:
    with rota.Blocking(app) as first, rota.Blocking(app) as second:
        assert first.enqueue(call(app)).id != second.enqueue(call(app)).id
        assert loops() == 1


def test_what_nobody_keeps_is_closed_at_the_end_all_the_same(store: str) -> None:
    assert program("call_and_forget", store) == "1 "
    if store.startswith("sqlite"):
        assert not Path(f"{store.removeprefix('sqlite:///')}-wal").exists()
    assert asyncio.run(texts(store)) == ["forgotten", "forgotten"]


async def test_where_an_event_loop_runs_a_call_is_refused(app: rota.Rota) -> None:
    calls = rota.Blocking(app)
    refused: dict[str, Callable[[], Any]] = {
        "await app.enqueue(…)": lambda: calls.enqueue(call(app)),
        "await app.runs.get(…)": lambda: calls.runs.get(1),
        "await app.schedules.put(…)": lambda: calls.schedules.put(schedule(app), connection=object()),
        "await app.lock(…).acquire(…)": lambda: calls.lock("one").acquire(),
        "async with app.lock(…)": lambda: calls.lock("one").__enter__(),
        "async with app.limits.hold(…)": lambda: calls.limits.hold("one").__enter__(),
        "async with app": calls.open,
    }
    for words, wrong in refused.items():
        with pytest.raises(rota.WouldBlock, match=rf"an event loop runs in this thread.*: use {re.escape(words)}$"):
            wrong()
    assert loops() == 0


async def test_a_task_in_a_thread_uses_the_event_loop_of_its_worker(app: rota.Rota) -> None:
    calls = rota.Blocking(app)

    @app.task(name="parent")
    def parent() -> list[int]:
        return [calls.enqueue(call(app, "child")).id, loops()]

    async with app.running(scheduler=False):
        run = await parent.enqueue()
        await app.runs.wait(run.id, timeout="1m")
        child, others = await app.runs.result(run.id)
        assert (await app.runs.wait(child, timeout="1m")).state == "succeeded"
        assert others == 0


async def test_an_app_is_open_in_one_event_loop(app: rota.Rota) -> None:
    calls = rota.Blocking(app)
    await asyncio.to_thread(calls.open)
    with pytest.raises(rota.Invalid, match="is open in another event loop; close it there first"):
        await app.__aenter__()
    await asyncio.to_thread(calls.close)
    async with app:
        pass


def test_a_store_that_cannot_be_opened_is_tried_again_by_the_next_call(tmp_path: Path) -> None:
    app = rota.Rota(f"sqlite:///{tmp_path}/later/rota.db")
    calls = rota.Blocking(app)
    with pytest.raises(rota.StoreUnavailable):
        calls.runs.list()
    assert loops() == 0
    (tmp_path / "later").mkdir()
    assert calls.runs.list() == []
    calls.close()


def test_a_call_under_way_when_the_app_is_closed_is_told_so(app: rota.Rota) -> None:
    opened, asked = threading.Event(), threading.Event()
    loop, leave = asyncio.new_event_loop(), asyncio.Event()

    async def main() -> None:
        async with app:
            opened.set()
            await leave.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=[main()])
    thread.start()
    assert opened.wait(60)
    get = app.runs.get

    async def watched(run: int) -> rota.Run[Any]:
        asked.set()
        return await get(run)

    app.runs.get = watched  # type: ignore[method-assign]
    calls = rota.Blocking(app)
    run = calls.enqueue(call(app))
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(calls.runs.wait, run.id)
        assert asked.wait(60)
        loop.call_soon_threadsafe(leave.set)
        thread.join()
        loop.close()
        with pytest.raises(rota.StoreUnavailable):
            waiting.result()


# Other processes


def program(what: str, store: str) -> str:
    forks = "ignore:This process:DeprecationWarning"  # newer Pythons warn of every fork beside threads
    command = [sys.executable, "-W", "error", "-W", forks, "-m", "tests.blocking_process", what, store]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


async def texts(store: str) -> list[str]:
    async with rota.Rota(store) as app:
        app.task(name="note")(note)
        return sorted(app.tasks.get("note").load(each.args)[1]["text"] for each in await app.runs.list(limit=200))


def test_a_program_that_just_ends_has_stored_its_runs_and_closes_in_order(store: str) -> None:
    assert program("enqueue_and_end", store) == ""
    if store.startswith("sqlite"):  # whoever closes a file last leaves no log beside it
        assert not Path(f"{store.removeprefix('sqlite:///')}-wal").exists()
    assert asyncio.run(texts(store)) == ["parent"]


@pytest.mark.parametrize(
    ("what", "forks", "runs"),
    [
        ("fork_before_the_first_call", 1, ["child", "parent"]),
        ("fork_after_the_first_call", 1, ["child", "parent", "parent"]),
        ("fork_while_another_thread_calls", 8, ["child"] * 8),
        ("fork_with_a_lock", 1, ["child", "parent"]),
    ],
)
def test_a_forked_process_begins_anew_and_leaves_its_parent_alone(
    store: str, what: str, forks: int, runs: list[str]
) -> None:
    assert program(what, store).split() == ["1"] * forks
    assert asyncio.run(texts(store)) == runs


def test_a_file_that_is_open_in_an_event_loop_is_not_used_by_a_forked_process(store: str) -> None:
    said = program("fork_in_an_event_loop", store)
    if store.startswith("postgres"):
        assert (said, asyncio.run(texts(store))) == ("stored", ["child", "parent"])
    else:
        assert "was open in the process that this one was forked from" in said
        assert asyncio.run(texts(store)) == ["parent"]


def asked(port: int, path: str) -> Any:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path)
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    assert answer.status == 200
    return found


def test_every_worker_of_a_server_that_loads_the_app_before_it_forks_enqueues(store: str) -> None:
    options = ["--preload", "--workers", "2", "--bind", "127.0.0.1:0", "tests.gunicorn_app:web"]
    server = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", *options],
        cwd=ROOT,
        env=os.environ | {"ROTA_STORE": store},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    try:
        port = next(int(found[1]) for line in server.stderr if (found := re.search(r"Listening at: .*:(\d+) ", line)))
        with ThreadPoolExecutor(2) as threads:  # each is answered when both are there, so by different workers
            answers = list(threads.map(lambda _: asked(port, "/meet"), range(2)))
        workers = {each["worker"] for each in answers}
        assert len(workers) == 2
        assert server.pid not in workers
        assert {each["loops"] for each in answers} == {1}
        runs = [run for each in answers for run in each["runs"]]
        assert sorted(asked(port, "/runs")) == sorted(runs)
        assert len(set(runs)) == 4
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert server.returncode == 0
    assert asyncio.run(texts(store)) == ["after", "after", "before", "before", "loaded"]


# On the caller's own connection


class Watched(psycopg.Connection[Any]):
    """Remembers in which threads it was used."""

    threads: set[int]

    def wait(self, *args: Any, **kwargs: Any) -> Any:
        self.__dict__.setdefault("threads", set()).add(threading.get_ident())
        return super().wait(*args, **kwargs)


@contextmanager
def own(store: str, kind: str) -> Iterator[Any]:
    """A connection that is not awaited."""
    if kind == "driver":
        connection: Any = (
            Watched.connect(store)
            if store.startswith("postgres")
            else sqlite3.connect(store.removeprefix("sqlite:///"))
        )
        yield connection
        connection.close()
        return
    engine = sqlalchemy.create_engine(alchemy_url(store, "psycopg" if store.startswith("postgres") else "pysqlite"))
    with engine.connect() if kind == "core" else Session(engine) as connection:
        yield connection
    engine.dispose()


@pytest.mark.parametrize("kind", ["driver", "core", "session"])
def test_on_the_callers_connection_all_happens_if_and_only_if_he_commits(
    calls: rota.Blocking, app: rota.Rota, store: str, kind: str
) -> None:
    for end, expected in (("rollback", 0), ("commit", 3)):
        with own(store, kind) as connection:
            calls.enqueue(call(app), unique="one", connection=connection)
            calls.enqueue_many([call(app), call(app)], connection=connection)
            calls.schedules.put(schedule(app), connection=connection)
            calls.schedules.pause(prefix="s", connection=connection)
            assert (calls.runs.list(), calls.schedules.list()) == ([], [])
            getattr(connection, end)()
        assert (len(calls.runs.list()), len(calls.schedules.list())) == (expected, expected // 3)


def test_statements_run_in_the_callers_thread(calls: rota.Blocking, app: rota.Rota, store: str) -> None:
    with own(store, "driver") as connection:
        calls.enqueue(call(app), connection=connection)  # sqlite3 itself refuses any other thread
        calls.schedules.put(schedule(app), connection=connection)
        connection.commit()
        assert getattr(connection, "threads", {threading.get_ident()}) == {threading.get_ident()}


def test_a_call_on_the_callers_connection_does_not_wait_for_his_transaction(app: rota.Rota, store: str) -> None:
    with rota.Blocking(app):
        pass  # the tables are there
    calls = rota.Blocking(app)
    with own(store, "driver") as connection:
        connection.execute("DELETE FROM rota_runs")  # on SQLite nobody else can write now
        calls.enqueue(call(app), connection=connection)
        connection.commit()
    assert loops() == 0
    assert len(calls.runs.list()) == 1
    calls.close()


def test_a_connection_that_must_be_awaited_is_refused(calls: rota.Blocking, app: rota.Rota) -> None:
    async def connected() -> list[Any]:
        return [aiosqlite.connect(":memory:"), create_async_engine("sqlite+aiosqlite://").connect()]

    for wrong in asyncio.run(connected()):
        with pytest.raises(rota.Invalid, match=r"would have to be awaited; use a connection of sqlite3, psycopg2,"):
            calls.enqueue(call(app), connection=wrong)
    with pytest.raises(rota.Invalid, match=r"does not go with the store"):
        calls.enqueue(call(app), connection="a string")


@pytest.mark.parametrize("end", ["commit", "rollback"])
async def test_a_plain_task_completes_its_run_in_its_own_transaction(app: rota.Rota, store: str, end: str) -> None:
    calls = rota.Blocking(app)

    @app.task(name="effect", retry=rota.Retry(attempts=2, first="1ms"))
    def effect() -> str:
        if rota.current_run().attempt == 2:
            return "again"
        with own(store, "driver") as connection:
            calls.complete("once", connection=connection)
            getattr(connection, end)()
        if end == "rollback":
            raise RuntimeError
        return "ignored"

    async with app.running(scheduler=False):
        run = await effect.enqueue()
        await app.runs.wait(run.id, timeout="1m")
        assert await app.runs.result(run.id) == ("once" if end == "commit" else "again")


def test_outside_a_run_there_is_nothing_to_complete(calls: rota.Blocking) -> None:
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(rota.NoCurrentRun):
        calls.complete(connection=connection)
