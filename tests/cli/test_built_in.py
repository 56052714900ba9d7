"""Rota's own tasks from the command line: no module, no code."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCHEDULED = """
import rota

app = rota.Rota("sqlite:///rota.db")

@app.schedule("nightly", rota.Cron("0 3 * * *"))
@app.task(name="nightly")
def nightly() -> None: ...
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_ALLOW_COMMANDS", "echo")
    assert rota("migrate")[0] == 0


def rota(*words: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-m", "rota", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_program_runs_on_a_schedule_without_a_line_of_code() -> None:
    args = json.dumps({"program": "echo", "args": ["hello"]})
    assert rota("schedules", "add", "greet", "rota.command", "@daily", "--args", args)[0] == 0
    assert rota("schedules", "trigger", "greet")[1] == "run 1\n"
    assert rota("tick") == (0, "0 fired; 1 succeeded\n", "")
    (run,) = json.loads(rota("runs", "list", "--json")[1])
    assert (run["task"], run["state"]) == ("rota.command", "succeeded")


@pytest.mark.parametrize(
    ("task", "args", "said"),
    [
        ("rota.command", "{}", "'program' is missing"),
        ("rota.http", '{"url": "http://example.org", "verb": "GET"}', "'verb' is not expected"),
        ("rota.http", '{"url": 7}', "rota.http"),
        ("rota.htp", "{}", "is it rota.http?"),
    ],
)
def test_the_arguments_are_checked_when_the_schedule_is_made(task: str, args: str, said: str) -> None:
    code, _, error = rota("schedules", "add", "x", task, "@daily", "--args", args)
    assert code == 1
    assert said in error


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("worker", "working default with 10 slots; 2 tasks known\n"),
        ("scheduler", "firing; 0 schedules declared by built-in\n"),
    ],
)
def test_without_a_module_there_are_rotas_own_tasks(command: str, line: str) -> None:
    words = [sys.executable, "-m", "rota", command]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as going:
        assert going.stdout is not None
        assert going.stdout.readline() == line
        os.kill(going.pid, signal.SIGTERM)
        assert going.wait() == 0


def test_whoever_has_no_module_retires_nothing_that_others_declare(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(SCHEDULED)
    assert rota("tick", "jobs:app")[0] == 0
    assert rota("tick")[0] == 0
    (found,) = json.loads(rota("schedules", "list", "--json")[1])
    assert (found["key"], found["state"]) == ("nightly", "active")
