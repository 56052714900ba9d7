"""`rota simulate` as a person types it: a table, JSON, or one line about what is wrong; and no store."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rota import cli

Run = Callable[..., tuple[int, str, str]]

JOBS = """
import rota

app = rota.Rota("sqlite:///rota.db")

@app.schedule("nightly", rota.Cron("0 3 * * *", tz="Europe/Berlin"), overlap="queue_one")
@app.task
def nightly() -> None: ...

@app.schedule("feed", rota.Every("6h"))
@app.task
def feed() -> None: ...
"""
FROM = ("--from", "2027-01-01T00:00Z")


@pytest.fixture
def rota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run the command in a folder with an app and without a store; returns (exit code, output, errors)."""
    (tmp_path / "simulated_jobs.py").write_text(JOBS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ROTA_STORE", "postgresql://nobody@127.0.0.1:1/none")

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rota", "simulate", *words])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert [each.name for each in tmp_path.iterdir() if each.suffix == ".db"] == []
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    yield run
    sys.modules.pop("simulated_jobs", None)


def test_a_table_says_what_comes_of_each_due_instant(rota: Run) -> None:
    outage = "2027-01-01T02:30Z/2027-01-01T05:30Z"
    code, out, _ = rota("0 * * * *", *FROM, "--for", "6h", "--takes", "90m", "--down", outage)
    assert (code, out.splitlines()) == (
        0,
        [
            "due                      zone        what comes of it",
            "Fri 1 Jan 2027 01:00:00  UTC +00:00  runs",
            "Fri 1 Jan 2027 02:00:00  UTC +00:00  skipped: overlap",
            "Fri 1 Jan 2027 04:00:00  UTC +00:00  skipped: merged, with 1 before it",
            "Fri 1 Jan 2027 05:00:00  UTC +00:00  runs, 30 min late",
            "Fri 1 Jan 2027 06:00:00  UTC +00:00  skipped: overlap",
        ],
    )


def test_times_are_shown_in_the_zone_of_the_rule(rota: Run) -> None:
    _, out, _ = rota("30 2 * * *", "--tz", "Europe/Berlin", "--from", "2027-03-27T12:00Z", "--for", "1d")
    assert out.splitlines()[1:] == ["Sun 28 Mar 2027 03:00:00  CEST +02:00  runs"]


def test_a_run_that_a_newer_one_ends_and_one_that_waits_are_said(rota: Run) -> None:
    words = (*FROM, "--until", "2027-01-01T02:00Z", "--takes", "2h")
    _, out, _ = rota("0 * * * *", *words, "--overlap", "cancel_running")
    assert [line.rsplit("  ")[-1] for line in out.splitlines()[1:]] == ["runs, then cancelled", "runs"]
    _, out, _ = rota("0 * * * *", *words, "--overlap", "queue_all")
    assert [line.rsplit("  ")[-1] for line in out.splitlines()[1:]] == ["runs", "waits"]


def test_json_has_every_member_of_a_simulated(rota: Run) -> None:
    code, out, _ = rota("0 * * * *", *FROM, "--for", "1h", "--takes", "5m", "--json")
    assert (code, json.loads(out)) == (
        0,
        [
            {
                "key": "simulated",
                "due": "2027-01-01T01:00:00+00:00",
                "first": None,
                "at": "2027-01-01T01:00:00+00:00",
                "started": "2027-01-01T01:00:00+00:00",
                "ended": None,
                "reason": None,
                "count": 1,
                "late": False,
                "cancelled": False,
            }
        ],
    )


def test_policies_are_those_of_a_schedule(rota: Run) -> None:
    out = rota("0 * * * *", *FROM, "--for", "9h", "--max-runs", "2", "--exclude", "0 1 * * *")[1]
    assert [line.rsplit("  ")[-1] for line in out.splitlines()[1:]] == ["skipped: excluded", "runs", "runs"]
    down = ("--down", "2027-01-01T00:30Z/2027-01-01T05:30Z")
    out = rota("0 * * * *", *FROM, "--for", "5h40m", "--missed", "all", "--max-missed", "2", *down)[1]
    assert [line.rsplit("  ")[-1] for line in out.splitlines()[1:]] == [
        *["skipped: missed, with 2 before it", "runs, 1 h 30 min late", "runs, 30 min late"]
    ]
    one = rota("0 * * * *", *FROM, "--for", "2h", "--spread", "30m", "--key", "a")[1]
    assert one != rota("0 * * * *", *FROM, "--for", "2h", "--spread", "30m", "--key", "b")[1]
    assert one == rota("0 * * * *", *FROM, "--for", "2h", "--spread", "30m", "--key", "a")[1]


def test_all_that_an_app_declares_is_shown_with_its_keys(rota: Run) -> None:
    code, out, _ = rota("--app", "simulated_jobs:app", *FROM, "--for", "6h")
    assert (code, out.splitlines()) == (
        0,
        [
            "due                      zone        schedule  what comes of it",
            "Fri 1 Jan 2027 03:00:00  CET +01:00  nightly   runs",
            "Fri 1 Jan 2027 06:00:00  UTC +00:00  feed      runs",
        ],
    )
    found = json.loads(rota("--app", "simulated_jobs:app", *FROM, "--for", "6h", "--json")[1])
    assert [one["key"] for one in found] == ["nightly", "feed"]


def test_where_nothing_is_due_that_is_said(rota: Run) -> None:
    assert rota("At('2026-01-01T00:00Z')", *FROM, "--for", "1d")[:2] == (
        0,
        "Nothing from 2027-01-01T00:00:00+00:00 to 2027-01-02T00:00:00+00:00.\n",
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("61 * * * *",), "minute: '61' is not allowed"),
        (("@daily", "--from", "2027-01-01"), "--from: '2027-01-01T00:00:00' has no time zone"),
        (("@daily", *FROM, "--until", "2026-01-01T00:00Z"), "--until: '2026-01-01T00:00Z' is too early"),
        (("@daily", "--for", "long"), "--for: 'long' is not a duration"),
        (("@daily", "--takes", "long"), "--takes: 'long' is not a duration"),
        (("@daily", "--down", "2027-01-01T00:00Z"), "--down: '2027-01-01T00:00Z' is no outage"),
        (("@daily", "--down", "then/now"), "--down: 'then' is not a moment"),
        (("@daily", "--down", "2027-01-02T00:00Z/2027-01-01T00:00Z"), "is too early"),
        (("@daily", "--overlap", "never"), "overlap: 'never' is not allowed"),
        (("@daily", "--max-running", "2"), "max_running: 2 does not fit overlap='skip'"),
        (("@daily", "--missed", "some"), "missed: 'some' is not allowed"),
        (("Every('1h')", "--tz", "Europe/Berlin"), "--tz: 'Europe/Berlin' does not go with a whole rule"),
        (("--app", "nowhere:app"), "app: 'nowhere:app' cannot be found"),
        (("* * * * * *", *FROM, "--for", "36525d"), "brings more than"),
    ],
)
def test_what_is_refused_is_one_line_and_exit_code_1(
    rota: Run, words: tuple[str, ...], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.simulation.MOST", 100)
    code, out, err = rota(*words)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("rota: ")
    assert problem in err


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("@daily", "--app", "simulated_jobs:app"),
        ("--app", "simulated_jobs:app", "--overlap", "allow"),
        ("--app", "simulated_jobs:app", "--tz", "Europe/Berlin"),
        ("@daily", "--max-running", "many"),
        ("@daily", "--colour", "red"),
    ],
)
def test_wrong_usage_is_exit_code_2(rota: Run, words: tuple[str, ...]) -> None:
    code, out, _ = rota(*words)
    assert (code, out) == (2, "")
