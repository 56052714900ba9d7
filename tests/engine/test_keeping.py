"""What tasks log is kept with attempts that failed or took long, bounded, and goes with the run."""

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from tests.engine import isolated_tasks
from tests.stores import DSN, ask

from rota.app import Rota
from rota.context import current_run
from rota.engine import keeping
from rota.kept import LONGEST_LINE, MOST_LINES, MOST_TEXT, KeptLog, LogLine
from rota.model import Run
from rota.store.history import History
from rota.tasks import Task
from rota.times.backoff import Retry

LONG = 60
log = logging.getLogger("news.feeds")


@contextlib.asynccontextmanager
async def working(app: Rota) -> AsyncIterator[None]:
    async with app.running(scheduler=False, grace=0):
        yield


@contextlib.asynccontextmanager
async def own_transaction(store: str) -> AsyncIterator[Any]:
    if store.startswith(DSN):
        connection = await asyncpg.connect(store)
        async with connection.transaction():
            yield connection
        await connection.close()
    else:
        with contextlib.closing(sqlite3.connect(store.removeprefix("sqlite:///"), isolation_level=None)) as file:
            file.execute("BEGIN IMMEDIATE")
            yield file
            file.execute("COMMIT")


@pytest.fixture(autouse=True)
def all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


async def said(app: Rota, run: Run[object]) -> list[tuple[int, str, str, str]]:
    return [(each.attempt, each.level, each.logger, each.message) for each in await app.runs.log(run.id)]


async def test_a_run_that_failed_keeps_what_it_logged_of_each_attempt(app: Rota) -> None:
    @app.task(retry=Retry(attempts=2, first=0))
    async def fail() -> None:
        log.info("fetching %s", "feed")
        current_run().log.warning("token=canary")
        raise LookupError

    run = await app.enqueue(fail.call())
    async with working(app):
        await app.runs.wait(run.id, timeout=LONG)
    each = [("INFO", "news.feeds", "fetching feed"), ("WARNING", "rota.worker.run", "token=…")]
    assert await said(app, run) == [(number, *line) for number in (1, 2) for line in each]


async def test_a_short_success_keeps_nothing_and_a_long_one_all(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    @app.task
    def work() -> None:
        log.info("here")

    runs = []
    async with working(app):
        for seconds in (2.0, 0.0):
            monkeypatch.setattr(keeping, "SLOW_SECONDS", seconds)
            runs.append(await app.enqueue(work.call()))
            await app.runs.wait(runs[-1].id, timeout=LONG)
    short, long = runs
    assert await said(app, short) == []
    assert await said(app, long) == [(1, "INFO", "news.feeds", "here")]


async def test_a_run_that_completes_itself_keeps_its_log_too(
    app: Rota, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "SLOW_SECONDS", 0.0)

    @app.task
    async def work() -> None:
        log.info("before")
        async with own_transaction(store) as connection:
            await current_run().complete(connection=connection)
        log.info("after")

    async with working(app):
        run = await app.enqueue(work.call())
        await app.runs.wait(run.id, timeout=LONG)
    assert await said(app, run) == [(1, "INFO", "news.feeds", "before")]


async def test_each_run_keeps_its_own_lines_in_threads_and_in_the_loop(app: Rota) -> None:
    @app.task
    async def in_loop(number: int) -> None:
        for _ in range(3):
            log.info("%s", number)
            await asyncio.sleep(0)
        raise LookupError

    @app.task
    def in_thread(number: int) -> None:
        log.info("%s", number)
        raise LookupError

    async with working(app):
        runs = [await app.enqueue(task.call(n)) for n, task in enumerate([in_loop, in_thread] * 3)]
        for run in runs:
            await app.runs.wait(run.id, timeout=LONG)
    for number, run in enumerate(runs):
        assert {message for *_, message in await said(app, run)} == {str(number)}


async def test_an_isolated_task_keeps_what_it_logs_by_whatever_logger(
    app: Rota, caplog: pytest.LogCaptureFixture
) -> None:
    task = isolated_tasks.app.tasks.get("tests.engine.isolated_tasks.complain")
    app.tasks.add(Task(task.function, name=task.name, options=task.options))
    async with working(app):
        run = await app.enqueue(isolated_tasks.complain.call())
        await app.runs.wait(run.id, timeout=LONG)
    assert await said(app, run) == [
        (1, "INFO", "news.isolated", "fetching feed"),
        (1, "INFO", "rota.worker.run", "by its own log"),
        (1, "WARNING", "news.isolated", f"run {run.id}"),
    ]
    shown = [(each.name, each.getMessage(), vars(each).get("items")) for each in caplog.records if each.process != 0]
    assert ("news.isolated", "fetching feed", 3) in shown


async def test_a_kept_log_goes_with_its_run(app: Rota) -> None:
    @app.task
    async def fail() -> None:
        log.info("here")
        raise LookupError

    run = await app.enqueue(fail.call())
    async with working(app):
        await app.runs.wait(run.id, timeout=LONG)
    await ask(app.database, "UPDATE rota_runs SET finished_at = 1")
    await ask(app.database, "DELETE FROM rota_summed")
    await ask(app.database, "INSERT INTO rota_summed (id, through) VALUES (1, 1000)")
    assert await app.database.write(lambda: History(app.database).sweep(0, 10)) == 1
    assert await ask(app.database, "SELECT * FROM rota_logs") == []


def record(text: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord("news", logging.INFO, "", 0, text, args, None)


def kept(log: KeptLog) -> list[LogLine]:
    return KeptLog.read(1, log.text())


def test_of_many_lines_the_first_and_the_newest_are_kept_with_a_mark_between() -> None:
    log = KeptLog()
    for number in range(10_000):
        log.add(record("%s", number))
    found = kept(log)
    mark = found.pop(MOST_LINES)
    first, last = list(range(MOST_LINES)), list(range(10_000 - MOST_LINES, 10_000))
    assert [int(each.message) for each in found] == [*first, *last]
    assert (mark.left_out, mark.message) == (9_800, "… 9,800 lines were left out …")


def test_long_lines_are_cut_and_all_of_them_are_bounded() -> None:
    log = KeptLog()
    for number in range(1_000):
        log.add(record(f"{number} " + "x" * 100_000))
    found = kept(log)
    assert sum(len(each.message) for each in found) < 2 * MOST_TEXT + 100
    assert max(len(each.message) for each in found) == LONGEST_LINE
    assert (found[0].message[:2], found[-1].message[:4]) == ("0 ", "999 ")


def test_a_line_whose_arguments_do_not_fit_is_kept_as_it_is_and_one_after_the_end_is_not() -> None:
    log = KeptLog()
    log.add(record("%d items", "no"))
    log.close()
    log.add(record("too late"))
    assert [each.message for each in kept(log)] == ["%d items"]
