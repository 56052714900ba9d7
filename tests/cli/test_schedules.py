"""`rota schedules`, `rota scheduler`, `rota tick`, `rota why`: as a person types them."""

import io
import json
import os
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from rota import cli

JOBS = """
import rota

app = rota.Rota("sqlite:///rota.db", name="news")

@app.task(name="refresh")
def refresh(feed_id: int) -> int:
    return feed_id

@app.task(name="broken")
def broken() -> None:
    raise ValueError("no \\x1b[2J")

@app.schedule("nightly", rota.Cron("0 3 * * *"))
@app.task(name="nightly")
def nightly() -> None: ...
"""
EVERY = "Every('15m', since='success')"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with an app and its empty store."""
    (tmp_path / "jobs.py").write_text(JOBS)
    monkeypatch.chdir(tmp_path)
    assert rota("migrate")[0] == 0


def rota(*words: str) -> tuple[int, str, str]:
    """Run a command: in a process of its own where it imports the app, else in this one, which is quicker."""
    if "jobs:app" not in words:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "argv", ["rota", *words])
            patch.setattr(sys, "stdin", io.StringIO())
            with pytest.raises(SystemExit) as stopped:
                cli.main()
        return int(stopped.value.code or 0), out.getvalue(), err.getvalue()
    command = [sys.executable, "-m", "rota", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def read(*words: str) -> list[dict[str, object]]:
    found = json.loads(rota(*words, "--json")[1])
    return found if isinstance(found, list) else [found]


def add(key: str, *words: str, task: str = "refresh") -> None:
    args = ("--args", '{"feed_id": 1}') if task == "refresh" else ()
    code, _, error = rota("schedules", "add", key, task, EVERY, *args, *words)
    assert (code, error) == (0, "")


def test_a_schedule_is_made_with_its_policies() -> None:
    add("f1", "--overlap", "queue_one", "--tags", "a,b", "--max-runs", "3", "--pause-after", "5", "--priority", "high")
    (found,) = read("schedules", "show", "f1")
    assert (found["rule"], found["words"]) == (EVERY, "15 min after the last success")
    assert (found["tags"], found["priority"], found["arguments"]) == (["a", "b"], 75, '{"feed_id":1}')
    policies = found["policies"]
    assert isinstance(policies, dict)
    assert (policies["overlap"], policies["max_runs"]) == ("queue_one", 3)
    assert "pause_after 5" in policies["on_failure"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "f1", "refresh", "@daily"), "there is a schedule 'f1' already"),
        (("add", "f2", "refresh", "61 * * * *"), "minute: '61' is not allowed"),
        (("add", "f2", "refresh", "@daily", "--args", "[1]"), "is not an object"),
        (("add", "f2", "refresh", "@daily", "--args", '{"feed": 1}', "--app", "jobs:app"), "'feed' is not expected"),
        (("add", "f2", "refrsh", "@daily", "--app", "jobs:app"), "is it refresh?"),
        (("add", "f2", "refresh", "@daily", "--overlap", "never"), "overlap: 'never' is not allowed"),
        (("pause", "nope"), "there is no schedule 'nope'"),
        (("change", "f1", "--queue", "slow", "--version", "7"), "is not the newest"),
    ],
)
def test_what_is_refused_is_one_line(words: tuple[str, ...], said: str) -> None:
    add("f1")
    code, shown, error = rota("schedules", *words)
    assert (code, shown, error.count("\n")) == (1, "", 1)
    assert said in error


@pytest.mark.parametrize(
    "words",
    [
        ("pause",),
        ("pause", "f1", "--all"),
        ("change", "f1"),
        ("change", "f1", "--attempts", "none", "--retry-first", "1s"),
        ("change", "f1", "--not-adaptive", "--busy", "3"),
        ("spread",),
        ("spread", "--tag", "a", "--prefix", "f"),
        ("remove", "f1", "--tag", "a"),
    ],
)
def test_wrong_usage_is_exit_code_2(words: tuple[str, ...]) -> None:
    assert rota("schedules", *words)[0] == 2


def test_what_is_changed_is_changed_and_the_rest_stays() -> None:
    add("f1", "--pause-after", "5", "--grace", "1h", "--tags", "a")
    assert (
        rota("schedules", "change", "f1", "--alert-after", "2", "--grace", "none", "--note", "x", "--by", "me")[0] == 0
    )
    (found,) = read("schedules", "show", "f1")
    policies = found["policies"]
    assert isinstance(policies, dict)
    assert "pause_after 5, alert_after 2" in policies["on_failure"]
    assert (policies["grace"], found["tags"]) == (None, ["a"])
    newest = read("schedules", "revisions", "f1")[0]
    assert (newest["what"], newest["by"], newest["note"]) == ("changed", "me", "x")


def test_many_are_paused_and_removed_by_tag_and_removing_asks() -> None:
    for key in ("f1", "f2"):
        add(key, "--tags", "feeds")
    assert rota("schedules", "pause", "--tag", "feeds")[1] == "2 schedules were paused\n"
    assert {each["state"] for each in read("schedules", "list")} == {"paused"}
    assert rota("schedules", "remove", "--tag", "feeds")[0] == 1
    assert rota("schedules", "remove", "--tag", "feeds", "--yes")[1] == "2 schedules were removed\n"
    assert read("schedules", "list") == []


def test_everything_is_paused_and_why_and_the_doctor_say_so() -> None:
    add("f1")
    rota("schedules", "pause", "--all", "--by", "me", "--note", "moving")
    assert rota("why", "f1")[1].startswith("everything is paused by me: moving")
    code, said, _ = rota("doctor")
    assert (code, "BAD all schedules are paused by me: moving: let them go on" in said) == (1, True)
    assert rota("tick", "jobs:app")[1] == "0 fired; nothing to do\n"
    rota("schedules", "resume", "--all")
    assert rota("doctor")[0] == 0


def test_a_tick_declares_fires_works_and_ends() -> None:
    add("f1")
    assert rota("tick", "jobs:app") == (0, "1 fired; 1 succeeded\n", "")
    assert rota("tick", "jobs:app") == (0, "0 fired; nothing to do\n", "")
    assert [each["key"] for each in read("schedules", "list", "--app", "news")] == ["nightly"]
    (firing,) = read("schedules", "firings", "f1")
    assert (firing["state"], firing["trigger"]) == ("succeeded", "interval")


def test_a_tick_in_which_a_run_fails_is_exit_code_1_and_its_text_drives_no_terminal() -> None:
    add("bad", task="broken")
    code, shown, error = rota("tick", "jobs:app")
    assert (code, shown) == (1, "1 fired; 1 failed\n")
    assert "\x1b" not in error
    assert json.loads(error)["error"] == "ValueError: no \x1b[2J"
    assert "\x1b" not in error


def test_a_tick_says_what_it_leaves() -> None:
    add("f1", "--queue", "slow")
    code, shown, _ = rota("tick", "jobs:app")
    assert (code, shown.splitlines()[1:]) == (0, ["queue slow: 1 due left for others, or for the next tick"])
    assert rota("tick", "jobs:app", "--queue", "slow")[1] == "0 fired; 1 succeeded\n"


def test_two_ticks_at_once_run_each_firing_once() -> None:
    for number in range(3):
        add(f"f{number}")
    command = [sys.executable, "-m", "rota", "tick", "jobs:app"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    shown = [each.communicate()[0] for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert sum(int(each.split()[0]) for each in shown) == 3
    assert len(read("runs", "list")) == 3


def test_what_runs_next_is_spread_evenly() -> None:
    for key in ("f1", "f2"):
        add(key, "--tags", "feeds")
    assert rota("tick", "jobs:app")[0] == 0
    assert rota("schedules", "spread", "--tag", "feeds", "--window", "20m")[1] == "2 schedules are spread over 20m\n"
    assert rota("upcoming", "f1")[1].splitlines()[1].endswith("f1")
    assert read("schedules", "revisions", "f2")[0]["what"] == "spread"


def test_a_trigger_that_waits_for_nothing_is_a_run_and_one_that_may_not_is_exit_code_1() -> None:
    add("f1")
    assert rota("schedules", "trigger", "f1")[:2] == (0, "run 1\n")
    assert rota("schedules", "trigger", "f1")[0] == 1


def test_a_past_range_is_run_in_order() -> None:
    rota("schedules", "add", "d", "refresh", "0 9 * * *", "--args", '{"feed_id": 1}', "--overlap", "queue_all")
    words = ("--start", "2026-01-01T00:00Z", "--end", "2026-01-04T00:00Z")
    assert rota("schedules", "backfill", "d", *words)[:2] == (0, "3 runs, from run 1 on\n")
    assert rota("tick", "jobs:app")[1] == "0 fired; 3 succeeded\n"
    assert rota("why", "d", "--at", "2026-01-02T09:00Z")[1] == "run 2 stands for it: succeeded\n"


def test_a_scheduler_fires_until_it_is_told_to_stop() -> None:
    command = [sys.executable, "-m", "rota", "scheduler", "jobs:app"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as firing:
        assert firing.stdout is not None
        assert firing.stdout.readline() == "firing; 1 schedules declared by news\n"
        add("f1")
        while not read("runs", "list"):
            pass
        os.kill(firing.pid, signal.SIGTERM)
        assert firing.wait() == 0
