"""Tasks in processes of their own: they know and say what others do, and they can be ended."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine import isolated_tasks
from tests.engine.test_execute import claimed, context_of
from tests.habits.source import ROOT
from tests.stores import ask, until

from rota.app import Rota
from rota.engine import execute
from rota.engine.complete import Holder
from rota.engine.execute import Executor
from rota.engine.worker import Worker
from rota.tasks import Task

LONG = 60


@pytest.fixture
async def executor(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Executor]:
    monkeypatch.setattr(execute, "_PATIENCE", 5)
    found = Executor(isolated_tasks.app.tasks, context_of, 2, lambda: Holder("w", "sqlite://"))
    yield found
    await found.close()


@pytest.fixture
async def working(app: Rota) -> AsyncIterator[Worker]:
    """A worker that knows the isolated tasks."""
    for task in isolated_tasks.app.tasks:
        app.tasks.add(Task(task.function, name=task.name, options=task.options))
    worker = app.worker(grace=0)
    work = asyncio.ensure_future(worker.run())
    yield worker
    worker.stop()
    await work


@pytest.fixture
async def effects(app: Rota) -> AsyncIterator[Any]:
    """A table of the application's own, and how much is in it."""
    await ask(app._db, "DROP TABLE IF EXISTS effects")
    await ask(app._db, "CREATE TABLE effects (id INTEGER)")

    async def found() -> int:
        return int((await ask(app._db, "SELECT count(*) FROM effects"))[0][0])

    yield found
    await ask(app._db, "DROP TABLE effects")


@pytest.fixture
def fifo(tmp_path: Path) -> str:
    path = str(tmp_path / "fifo")
    os.mkfifo(path)
    return path


@contextlib.contextmanager
def opened(fifo: str, flags: int) -> Iterator[int]:
    """Open a fifo without waiting for the other side: a test that fails must not hang."""
    number = os.open(fifo, flags | os.O_NONBLOCK)
    try:
        yield number
    finally:
        os.close(number)


@contextlib.contextmanager
def gate_at(fifo: str) -> Iterator[Callable[[], object]]:
    """A gate that opens when what this yields is called."""
    with opened(fifo, os.O_RDWR) as number:
        yield lambda: os.write(number, b"go on\n")


class Lives:
    """Hears when the task has begun, and when the last who holds the fifo is dead."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._heard = b""
        self._changed = asyncio.Event()
        self._ended = False

    def hear(self) -> None:
        data = os.read(self._number, 100)
        self._heard += data
        self._ended = not data
        if self._ended:
            asyncio.get_running_loop().remove_reader(self._number)
        self._changed.set()

    async def have_begun(self) -> None:
        await self._changed.wait()
        assert self._heard == b"begun\n"

    async def have_ended(self) -> None:
        while not self._ended:
            self._changed.clear()
            await self._changed.wait()


@pytest.fixture
async def lives(fifo: str) -> AsyncIterator[Lives]:
    with opened(fifo, os.O_RDONLY) as number:
        found = Lives(number)
        asyncio.get_running_loop().add_reader(number, found.hear)
        yield found
        asyncio.get_running_loop().remove_reader(number)


# What it knows


async def test_an_isolated_task_knows_its_run(app: Rota, working: Worker) -> None:
    run = await app.enqueue(isolated_tasks.about_itself.call(), queue="default")
    ended = await app.runs.wait(run.id, timeout=LONG)
    assert await app.runs.result(run.id) == [
        run.id,
        isolated_tasks.about_itself.name,
        "default",
        1,
        f"rota-run-{run.id}",
        run.due.isoformat(),
    ]
    assert ended.state == "succeeded"


async def test_an_isolated_task_knows_what_came_before(app: Rota, working: Worker) -> None:
    run = await app.enqueue(isolated_tasks.learn.call())
    assert (await app.runs.wait(run.id, timeout=LONG)).result == '[2,null,"no"]'
    await app.runs.retry(run.id)
    assert (await app.runs.wait(run.id, timeout=LONG)).result == '[3,[2,null,"no"],null]'


async def test_what_an_isolated_task_logs_is_in_the_log_of_its_worker(
    app: Rota, working: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rota")
    run = await app.enqueue(isolated_tasks.speak.call())
    await app.runs.wait(run.id, timeout=LONG)
    lines = [each for each in caplog.records if each.name == "rota.worker.run"]
    assert [(each.levelname, each.getMessage()) for each in lines] == [
        ("INFO", f"I am rota-run-{run.id}"),
        ("ERROR", "and yet"),
    ]
    assert {(vars(each)["job_id"], each.funcName) for each in lines} == {(run.id, "speak")}
    assert "LookupError: no such feed" in caplog.text


async def test_the_progress_of_an_isolated_task_is_seen_while_it_goes_on(app: Rota, working: Worker, fifo: str) -> None:
    with gate_at(fifo) as go_on:
        run = await app.enqueue(isolated_tasks.progress.call(fifo))
        while (await app.runs.get(run.id)).progress is None:
            pass
        assert (await app.runs.get(run.id)).progress == (0.4, "nearly half")
        go_on()
        assert (await app.runs.wait(run.id, timeout=LONG)).state == "succeeded"


# Completed in its own transaction


async def test_an_isolated_task_completes_its_run_together_with_its_effect(
    app: Rota, store: str, working: Worker, effects: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run = await app.enqueue(isolated_tasks.pay.call(store, "", ""))
    ended = await app.runs.wait(run.id, timeout=LONG)
    assert (ended.state, ended.result, await effects()) == ("succeeded", '"by attempt 1"', 1)
    await working._settler.settled()
    assert working.fenced == 0
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


async def test_a_completion_that_an_isolated_task_rolled_back_is_no_success(
    app: Rota, store: str, working: Worker, effects: Any
) -> None:
    run = await app.enqueue(isolated_tasks.pay.call(store, "", "rolled back"))
    ended = await app.runs.wait(run.id, timeout=LONG)
    assert (ended.result, await effects()) == ('"by attempt 2"', 1)
    first = (await app.runs.attempts(run.id))[0]
    assert first.error is not None
    assert (first.outcome, first.error.kind) == ("retry", "RolledBack")


async def test_a_process_that_dies_after_its_commit_has_completed_its_run(
    app: Rota, store: str, working: Worker, effects: Any
) -> None:
    run = await app.enqueue(isolated_tasks.pay.call(store, "", "died"))
    ended = await app.runs.wait(run.id, timeout=LONG)
    await until(lambda: not working._running)
    await working._settler.settled()
    assert ((await app.runs.get(run.id)).state, ended.attempt, await effects()) == ("succeeded", 1, 1)
    assert working.fenced == 0


async def test_an_isolated_task_that_lost_its_run_cannot_complete_it(
    app: Rota, store: str, working: Worker, effects: Any, fifo: str, caplog: pytest.LogCaptureFixture
) -> None:
    with gate_at(fifo) as go_on:
        run = await app.enqueue(isolated_tasks.pay.call(store, fifo, "late"))
        while (await app.runs.get(run.id)).progress is None:
            pass
        await ask(app._db, "UPDATE rota_runs SET worker = 'another'")
        go_on()
        await until(lambda: working.fenced)
    assert f"attempt 1: retry: LeaseLost: run {run.id} is not this worker's any more: roll back" in caplog.text
    ended = await app.runs.wait(run.id, timeout=LONG)  # when somebody has noticed that there is no such worker
    assert (ended.result, await effects()) == ('"by attempt 2"', 1)


# What cannot be written, or is large


@pytest.mark.parametrize("name", ["no_json", "not_as_annotated", "too_large"])
async def test_a_result_of_an_isolated_task_that_cannot_be_written_fails_at_once(executor: Executor, name: str) -> None:
    ended = await executor.execute(claimed(getattr(isolated_tasks, name).call()))
    assert ended.error is not None
    assert (ended.outcome, ended.error.kind) == ("failed", "InvalidData")


async def test_large_arguments_and_results_come_through(executor: Executor) -> None:
    text = "ü" * 450_000
    ended = await executor.execute(claimed(isolated_tasks.echo.call(text)))
    assert ended.result == f'"{text}"'


async def test_a_process_that_does_not_read_holds_up_nobody_else(executor: Executor) -> None:
    stopped = int(str((await executor.execute(claimed(isolated_tasks.which.call()))).result))
    os.kill(stopped, signal.SIGSTOP)
    stuck = asyncio.ensure_future(executor.execute(claimed(isolated_tasks.echo.call("x" * 900_000))))
    await until(lambda: not executor.isolated._warm)
    other = await executor.execute(claimed(isolated_tasks.which.call(), id=8))
    assert other.result != str(stopped)
    assert not stuck.done()
    executor.stop(7, "not needed")
    assert (await stuck).outcome == "cancelled"
    assert executor.stuck == 0


# How it ends


async def test_a_cancelled_isolated_task_ends_with_all_that_it_started(
    executor: Executor, fifo: str, lives: Lives
) -> None:
    running = asyncio.ensure_future(executor.execute(claimed(isolated_tasks.breed.call(fifo))))
    await lives.have_begun()
    executor.stop(7, "not needed")
    assert (await running).outcome == "cancelled"
    await lives.have_ended()


async def test_an_isolated_task_that_takes_too_long_ends_with_all_that_it_started(
    executor: Executor, fifo: str, lives: Lives
) -> None:
    running = asyncio.ensure_future(executor.execute(claimed(isolated_tasks.breed_in_vain.call(fifo))))
    await lives.have_begun()
    ended = await running
    assert ended.error is not None
    assert ended.error.kind == "TimedOut"
    await lives.have_ended()


async def test_a_process_that_died_is_noticed_whoever_has_inherited_its_files(
    executor: Executor, fifo: str, lives: Lives
) -> None:
    running = asyncio.ensure_future(executor.execute(claimed(isolated_tasks.orphan.call(fifo))))
    await lives.have_begun()
    ended = await running
    assert ended.error is not None
    assert ended.error.message == "its process ended with exit code 7"
    await lives.have_ended()


WORKER = """
import asyncio, sys
from tests.engine import isolated_tasks
from rota.app import Rota
from rota.tasks import Task

async def work() -> None:
    app = Rota("sqlite://")
    breed = isolated_tasks.breed
    app.tasks.add(Task(breed.function, name=breed.name, options=breed.options))
    async with app.running():
        await app.enqueue(breed.call(sys.argv[1]))
        await asyncio.Event().wait()

asyncio.run(work())
"""


async def test_isolated_tasks_end_with_a_worker_that_is_killed(fifo: str, lives: Lives) -> None:
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", WORKER, fifo, cwd=ROOT)
    try:
        await lives.have_begun()
    finally:
        worker.kill()
        await worker.wait()
    await lives.have_ended()


async def test_only_the_worker_ends_an_isolated_task_not_a_word_to_all_processes_of_a_service(
    executor: Executor,
) -> None:
    assert (await executor.execute(claimed(isolated_tasks.is_told_to_end.call()))).result == '"goes on"'


async def test_no_process_is_left_when_the_worker_has_ended(app: Rota, fifo: str, lives: Lives) -> None:
    app.tasks.add(Task(isolated_tasks.breed.function, name="breed", options=isolated_tasks.breed.options))
    worker = app.worker(grace=0)
    work = asyncio.ensure_future(worker.run())
    await app.enqueue(app.tasks.get("breed").call(fifo))
    await lives.have_begun()
    worker.stop()
    await work
    await lives.have_ended()
    assert worker._executor.isolated._children == set()
