"""The task `rota.command`: a program on a schedule, without code and without a shell."""

import asyncio
import json
import os
import select
import sys
from pathlib import Path
from typing import Any

import pytest

import rota
from rota.app import Rota
from rota.builtin.command import run_command
from rota.model import Run
from rota.tasks import named_call

# Waits for a word in a fifo, so that a test knows it has begun; then for ever, with a child that does the same.
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(sys.argv[1], "w") as line:
    os.fork()
    line.write(f"{os.getpid()} ")
time.sleep(1_000)
"""


@pytest.fixture(autouse=True)
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_ALLOW_COMMANDS", f"sh, {sys.executable},nowhere-to-be-found,/dev/null")


async def ended(app: Rota, **args: Any) -> Run[Any]:
    async with app.running(scheduler=False):
        run = await app.enqueue(named_call("rota.command", json.dumps(args)))
        return await app.runs.wait(run.id, timeout="1m")


async def gone(pid: int) -> bool:
    """Wait until a process has ended; it was killed, and that takes a moment."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with os.fdopen(watch):
        return bool((await asyncio.to_thread(select.select, [watch], [], [], 30))[0])


async def test_a_program_runs_and_what_it_wrote_is_kept(app: Rota) -> None:
    run = await ended(app, program="sh", args=["-c", "echo out; echo err >&2; cat"], input="in")
    assert run.state == "succeeded", run.error
    result = json.loads(run.result or "")
    assert (result["code"], result["output"], result["bytes"]) == (0, "out\nerr\nin", 10)


async def test_there_is_no_shell(app: Rota) -> None:
    run = await ended(app, program=sys.executable, args=["-c", "import sys; print(sys.argv[1])", "$HOME; id | x > y"])
    assert json.loads(run.result or "")["output"] == "$HOME; id | x > y\n"


@pytest.mark.parametrize("program", ["true", "/bin/sh", "./sh", "../sh", "", "sh -c", "SH"])
async def test_a_program_that_the_operator_does_not_name_is_refused(app: Rota, program: str) -> None:
    run = await ended(app, program=program)
    assert run.error is not None
    assert "ROTA_ALLOW_COMMANDS" in run.error.message


async def test_nothing_is_allowed_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROTA_ALLOW_COMMANDS")
    with pytest.raises(rota.Invalid, match="is not allowed here"):
        await run_command("sh")


async def test_the_directory_does_not_choose_the_program(tmp_path: Path) -> None:
    (tmp_path / "sh").write_text("#!/bin/echo wrong")
    (tmp_path / "sh").chmod(0o755)
    found = await run_command("sh", ["-c", "echo right"], cwd=str(tmp_path))
    assert found.output == "right\n"


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"program": "sh", "args": ["-c", "echo one; echo two; exit 3"]}, "'sh': exit code 3: two"),
        ({"program": "sh", "args": ["-c", "kill -9 $$"]}, "'sh': exit code -9"),
        ({"program": "nowhere-to-be-found"}, "is not there"),
        ({"program": "/dev/null"}, "is not there"),
        ({"program": "sh", "cwd": "/nowhere"}, "could not be started"),
        ({"program": "sh", "args": ["\0"]}, "could not be started"),
        ({"program": "sh", "args": ["-c", "exec sleep 1000"], "timeout": "50ms"}, "took longer than 0.05 s"),
    ],
)
async def test_what_does_not_end_well_fails_with_the_reason(app: Rota, args: dict[str, Any], problem: str) -> None:
    run = await ended(app, **args)
    assert run.state == "failed"
    assert run.error is not None
    assert problem in run.error.message


async def test_a_program_does_not_see_the_workers_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_STORE", "postgresql://me:s3cret@db/x")
    monkeypatch.setenv("ROTA_SECRET_SHOP", "t0ken")
    code = "import os; print(sorted(os.environ)); print(os.environ['TOKEN'])"
    found = await run_command(sys.executable, ["-c", code], env={"TOKEN": "{ROTA_SECRET_SHOP}", "LC_ALL": "C"})
    names, shown = found.output.splitlines()
    assert "ROTA_" not in names
    assert "'PATH'" in names
    assert shown == "…"


async def test_the_end_of_much_output_is_kept_and_no_more() -> None:
    found = await run_command(sys.executable, ["-c", "print('x' * 5_000_000, end='y')"])
    assert (found.bytes, len(found.output), found.output[-2:]) == (5_000_001, 10_000, "xy")


async def test_whoever_does_not_listen_to_its_input_ends_all_the_same() -> None:
    assert (await run_command("sh", ["-c", "exit 0"], input="x" * 1_000_000)).code == 0


async def test_what_a_program_leaves_behind_ends_with_it() -> None:
    found = await run_command("sh", ["-c", "sleep 1000 & echo $!"])
    assert await gone(int(found.output))


async def test_all_of_a_program_is_killed_when_it_must_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    running = asyncio.create_task(run_command(sys.executable, ["-c", STUBBORN, str(tmp_path / "fifo")]))
    told = await asyncio.to_thread((tmp_path / "fifo").read_text)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [await gone(int(each)) for each in told.split()] == [True, True]


async def test_a_run_that_is_cancelled_kills_its_program(app: Rota, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    async with app.running(scheduler=False):
        args = {"program": sys.executable, "args": ["-c", STUBBORN, str(tmp_path / "fifo")]}
        run = await app.enqueue(named_call("rota.command", json.dumps(args)))
        told = await asyncio.to_thread((tmp_path / "fifo").read_text)
        await app.runs.cancel(run.id)
        assert (await app.runs.wait(run.id, timeout="1m")).state == "cancelled"
    assert [await gone(int(each)) for each in told.split()] == [True, True]


@pytest.mark.parametrize("name", ["LD_PRELOAD", "BASH_ENV", "PATH", "PYTHONPATH", "bash_func_ls%%", "ENV"])
async def test_no_variable_lets_an_allowed_program_run_another(name: str) -> None:
    with pytest.raises(rota.Invalid, match="would let the program run something else"):
        await run_command("sh", ["-c", "true"], env={name: "x"})
    assert (await run_command("sh", ["-c", "true"], env={"ENVELOPE": "x", "SHOP_PATH": "y"})).code == 0
