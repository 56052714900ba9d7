"""`rota worker` as a process: how it begins and how it ends."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from rota.app import Rota

JOBS = """
import asyncio, os, threading, rota

app = rota.Rota("sqlite:///rota.db")

def begin() -> None:
    with open("fifo", "w") as line:
        line.write("begun")

def never_ends() -> None:
    begin()
    while True:
        threading.Event().wait(0.001)

@app.task(name="stuck")
def stuck() -> None:
    never_ends()

@app.task(name="stuck_elsewhere")
async def stuck_elsewhere() -> None:
    await asyncio.to_thread(never_ends)

@app.task(name="deaf", timeout="1ms")
def deaf() -> None:
    threading.Event().wait()

@app.task(name="quick")
def quick() -> None:
    rota.current_run().log.info("I was here")
    begin()
"""

Start = Callable[..., Awaitable[Process]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Start a worker in a folder where these tasks wait."""
    (tmp_path / "jobs.py").write_text(JOBS)
    os.mkfifo(tmp_path / "fifo")
    started: list[Process] = []

    async def run(*tasks: str, output: Any = PIPE) -> Process:
        async with Rota(f"sqlite:///{tmp_path}/rota.db") as app:
            for name in tasks:
                task = app.task(name=name)(begins) if name not in app.tasks else app.tasks.get(name)
                await app.enqueue(task.call())
        command = (sys.executable, "-m", "rota", "worker", "jobs:app", "--grace", "0")
        started.append(await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stdout=output, stderr=PIPE))
        return started[-1]

    yield run
    for each in started:
        if each.returncode is None:
            each.kill()
        await each.communicate()


@pytest.fixture
def full() -> Iterator[IO[str]]:
    with Path("/dev/full").open("w") as file:
        yield file


def begins() -> None:
    """Stand for a task that only the worker knows."""


async def begun(folder: Path) -> None:
    assert await asyncio.to_thread((folder / "fifo").read_text) == "begun"


async def test_a_worker_that_is_told_to_stop_ends_with_exit_code_0(start: Start, tmp_path: Path) -> None:
    worker = await start("quick")
    await begun(tmp_path)
    worker.terminate()
    out, err = await worker.communicate()
    assert (worker.returncode, out) == (0, b"working default with 10 slots; 6 tasks known\n")
    said = {each["msg"]: each for each in map(json.loads, err.splitlines())}
    named = {"job_id": 1, "job_name": "quick", "attempt": 1, "queue": "default"}
    assert said["I was here"].items() >= (named | {"level": "info", "component": "worker.run"}).items()
    assert said["run started"].items() >= (named | {"verb": "started", "priority": 50}).items()
    assert said["run ended"].items() >= (named | {"verb": "ended", "outcome": "succeeded"}).items()


async def test_a_worker_works_also_where_its_output_is_full(start: Start, tmp_path: Path, full: IO[str]) -> None:
    worker = await start("quick", output=full)
    await begun(tmp_path)
    worker.terminate()
    await worker.communicate()
    assert worker.returncode == 0


@pytest.mark.parametrize("task", ["stuck", "stuck_elsewhere"])
async def test_a_thread_that_never_ends_does_not_keep_the_worker(start: Start, tmp_path: Path, task: str) -> None:
    worker = await start(task)
    await begun(tmp_path)
    worker.send_signal(signal.SIGTERM)
    out, err = await worker.communicate()
    assert worker.returncode == 0
    assert out.startswith(b"working")
    assert b"Traceback" not in err
    async with Rota(f"sqlite:///{tmp_path}/rota.db") as app:
        assert (await app.runs.get(1)).state == "ready"
        assert await app.workers() == []


async def test_a_worker_with_too_many_stuck_tasks_ends_with_exit_code_1(start: Start) -> None:
    worker = await start(*["deaf"] * 10)
    _, err = await worker.communicate()
    assert worker.returncode == 1
    assert b"too many tasks do not stop when told to" in err
