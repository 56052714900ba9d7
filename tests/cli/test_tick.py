"""`rota tick` as system cron starts it: what it says, how it exits, and what a signal does."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

import rota

JOBS = """
import asyncio, os, threading, rota

app = rota.Rota(os.environ.get("STORE", "sqlite:///rota.db"))

def tell(name: str) -> None:
    with open(name, "w") as line:
        line.write("begun")

def hear(name: str) -> None:
    with open(name) as line:
        line.read()

@app.task(name="quick")
def quick() -> None: ...

@app.task(name="broken")
def broken() -> None:
    raise ValueError("no")

@app.task(name="again", retry=rota.Retry(attempts=2, first="1h"))
def again() -> None:
    raise ValueError("not yet")

@app.task(name="told")
async def told() -> None:
    tell("begun")
    await asyncio.to_thread(hear, "go")

@app.task(name="deaf")
async def deaf() -> None:
    tell("begun")
    await asyncio.Event().wait()

@app.task(name="endless")
async def endless() -> None:
    await asyncio.Event().wait()

@app.task(name="stuck")
def stuck() -> None:
    tell("begun")
    threading.Event().wait()
"""

STOPPED = b"rota: stopped before all was done; what was not ended goes on later\n"

Start = Callable[..., Awaitable[Process]]


def elsewhere() -> None:
    """Stand for a task that only the tick knows."""


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Start a tick in a folder where these tasks wait."""
    (tmp_path / "jobs.py").write_text(JOBS)
    for name in ("begun", "go"):
        os.mkfifo(tmp_path / name)
    started: list[Process] = []

    async def run(*tasks: str, words: tuple[str, ...] = (), **more: str) -> Process:
        async with opened(tmp_path) as app:
            for name in tasks:
                await app.enqueue(app.task(name=name)(elsewhere).call())
        command = (sys.executable, "-m", "rota", "tick", "jobs:app", *words)
        environment = os.environ | more
        made = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stdout=PIPE, stderr=PIPE, env=environment)
        started.append(made)
        return made

    yield run
    for each in started:
        if each.returncode is None:
            each.kill()
        await each.communicate()


def opened(folder: Path) -> rota.Rota:
    return rota.Rota(f"sqlite:///{folder}/rota.db")


async def ended(tick: Process) -> tuple[int | None, str, str]:
    out, err = await tick.communicate()
    return tick.returncode, out.decode(), err.decode()


async def begun(folder: Path) -> None:
    assert await asyncio.to_thread((folder / "begun").read_text) == "begun"


async def test_nothing_to_do_is_well(start: Start) -> None:
    assert await ended(await start()) == (0, "0 fired; nothing to do\n", "")


async def test_what_is_done_is_said_and_standard_error_is_empty(start: Start) -> None:
    assert await ended(await start("quick")) == (0, "0 fired; 1 succeeded\n", "")


async def test_a_run_that_failed_for_good_is_exit_code_1_and_said_on_standard_error(start: Start) -> None:
    code, out, err = await ended(await start("quick", "broken"))
    assert (code, out) == (1, "0 fired; 1 failed, 1 succeeded\n")
    assert "run 2 of broken: attempt 1: failed: ValueError: no" in err


async def test_a_retry_that_waits_is_exit_code_0_and_is_not_waited_for(start: Start) -> None:
    code, out, err = await ended(await start("again"))
    assert (code, out) == (0, "0 fired; 1 retry\n")
    assert "attempt 1: retry: ValueError: not yet" in err


async def test_what_does_not_end_in_time_is_left_and_exit_code_1(start: Start) -> None:
    # Whether it has begun by then or not: it is left.
    code, out, err = await ended(await start("endless", words=("--timeout", "100ms", "--grace", "0")))
    assert (code, out.splitlines()) == (
        1,
        ["0 fired; nothing ended", "queue default: 1 due left for others, or for the next tick"],
    )
    assert err == "rota: the time was over before all was done; what was not ended goes on later\n"


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
async def test_a_first_signal_waits_for_what_runs(start: Start, tmp_path: Path, told: signal.Signals) -> None:
    tick = await start("told", "deaf", words=("--slots", "1"))
    await begun(tmp_path)
    tick.send_signal(told)
    await asyncio.to_thread((tmp_path / "go").write_text, "go")
    assert await ended(tick) == (1, "", STOPPED.decode())
    async with opened(tmp_path) as app:
        assert [(await app.runs.get(number)).state for number in (1, 2)] == ["succeeded", "ready"]
        assert await app.workers() == []


# Two of a kind may become one on the way.
@pytest.mark.parametrize("told", [(signal.SIGTERM, signal.SIGINT), (signal.SIGINT, signal.SIGTERM)])
async def test_a_second_signal_gives_back_what_runs_at_once(
    start: Start, tmp_path: Path, told: tuple[signal.Signals, signal.Signals]
) -> None:
    tick = await start("deaf", words=("--grace", "1h"))
    await begun(tmp_path)
    for each in told:
        tick.send_signal(each)
    assert await ended(tick) == (1, "", STOPPED.decode())
    async with opened(tmp_path) as app:
        assert (await app.runs.get(1)).state == "ready"
        assert await app.workers() == []


async def test_a_thread_that_never_ends_does_not_keep_the_tick(start: Start, tmp_path: Path) -> None:
    tick = await start("stuck", words=("--grace", "0"))
    await begun(tmp_path)
    tick.terminate()
    assert await ended(tick) == (1, "", STOPPED.decode())
    async with opened(tmp_path) as app:
        assert (await app.runs.get(1)).state == "ready"


@pytest.mark.parametrize(
    ("store", "problem"),
    [
        ("sqlite:////no/such/folder/rota.db", "rota: the SQLite file /no/such/folder/rota.db cannot be opened"),
        ("postgresql://nobody@127.0.0.1:1/none", "rota: PostgreSQL does not answer"),
    ],
)
async def test_a_store_that_is_away_is_one_line_and_exit_code_1(start: Start, store: str, problem: str) -> None:
    code, out, err = await ended(await start(STORE=store))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(problem)


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("--timeout", "soon"), 1, "rota: timeout: 'soon' is not a duration"),
        (("--timeout", "0"), 1, "rota: timeout: '0'"),
        (("--queue", "no queue"), 1, "rota: queue: 'no queue'"),
        (("--slots", "0"), 2, "--slots"),
    ],
)
async def test_what_makes_no_sense_is_refused(start: Start, words: tuple[str, ...], code: int, problem: str) -> None:
    found, out, err = await ended(await start(words=words))
    assert (found, out) == (code, "")
    assert problem in err
