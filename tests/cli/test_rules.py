import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from rota import cli, clock

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def rota(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process at a fixed time; returns (exit code, output, errors)."""
    monkeypatch.setattr(clock, "now", lambda: datetime(2027, 3, 26, 12, tzinfo=UTC))

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rota", *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    return run


def test_next_shows_words_instants_offsets_and_distance(rota: Run) -> None:
    code, out, _ = rota("next", "0 9 * * MON", "--tz", "America/New_York", "--count", "2")
    assert code == 0
    assert out.splitlines() == [
        "At 09:00, every Monday, New York time",
        "Mon 29 Mar 2027 09:00:00  EDT -04:00  in 3 d 1 h",
        "Mon 5 Apr 2027 09:00:00   EDT -04:00  in 10 d 1 h",
    ]


def test_next_notes_the_instant_that_a_gap_moved(rota: Run) -> None:
    _, out, _ = rota("next", "30 2 * * *", "--tz", "Europe/Berlin", "-n", "2")
    assert out.splitlines()[2:] == [
        "Sun 28 Mar 2027 03:00:00  CEST +02:00  in 1 d 13 h",
        "    02:30 does not exist on Sun 28 Mar 2027; fires at 03:00",
    ]


def test_next_lists_a_repeated_hour_in_the_order_of_time(rota: Run) -> None:
    _, out, _ = rota(
        "next", "*/30 2 * * *", "--tz", "Europe/Berlin", "--after", "2027-10-30T12:00Z", "--count", "4", "--json"
    )
    found = json.loads(out)
    assert [each["at"][11:] for each in found["instants"]] == [
        "02:00:00+02:00",
        "02:30:00+02:00",
        "02:00:00+01:00",
        "02:30:00+01:00",
    ]
    assert [each["note"] for each in found["clock_changes"]] == [
        "02:00 to 03:00 happens twice on Sun 31 Oct 2027; fires in both"
    ]


def test_next_reads_any_rule_in_its_text_form(rota: Run) -> None:
    code, out, _ = rota("next", "Every('90m', origin='2027-01-01T00:00:00Z')", "--json", "-n", "1")
    assert code == 0
    assert json.loads(out)["instants"][0]["at"] == "2027-03-26T13:30:00+00:00"


def test_next_says_when_nothing_comes_any_more(rota: Run) -> None:
    code, out, _ = rota("next", "At('2020-01-01T00:00:00Z')")
    assert code == 0
    assert out.splitlines()[-1] == "Nothing after 2027-03-26T12:00:00+00:00."


def test_explain_names_the_clock_changes_of_the_next_year(rota: Run) -> None:
    _, out, _ = rota("explain", "30 2 * * *", "--tz", "Europe/Berlin")
    assert out.splitlines()[0] == "At 02:30, every day, Berlin time"
    assert [line for line in out.splitlines() if line.startswith("clock change")] == [
        "clock change: 02:30 does not exist on Sun 28 Mar 2027; fires at 03:00",
        "clock change: 02:30 happens twice on Sun 31 Oct 2027; fires at the first",
    ]


def test_explain_says_that_two_day_fields_mean_either(rota: Run) -> None:
    _, out, _ = rota("explain", "0 9 1 * MON")
    assert "note: day of month and day of week are both set: it fires when either matches" in out.splitlines()


def test_explain_says_that_a_star_in_front_means_both(rota: Run) -> None:
    _, out, _ = rota("explain", "0 9 */2 * MON")
    assert "note: day of month and day of week are both set, and one starts with *: it fires when both match" in out


def test_explain_says_that_no_change_touches_a_rule(rota: Run) -> None:
    _, out, _ = rota("explain", "0 9 * * *", "--tz", "Europe/Berlin")
    assert out.splitlines()[-1] == "No clock change of the next year touches it."


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["next", "61 * * * *"], "rota: minute: '61' is not allowed; use 0 to 59"),
        (["next", "0 9 * * *", "--tz", "europe/berlin"], "rota: tz: 'europe/berlin' is not a time zone; did you mean"),
        (["next", "0 9 * * *", "--after", "2027-01-01"], "rota: --after: '2027-01-01T00:00:00' has no time zone; use"),
        (["explain", "Every('1s')", "--tz", "UTC"], "rota: --tz: 'UTC' does not go with a whole rule; write"),
        (["explain", "__import__('os')"], "rota: rule:"),
        (["next", "\x1b[2J * * * *"], "rota: minute: '\\x1b[2J' is not allowed; use 0 to 59"),
    ],
)
def test_what_is_refused_is_one_line_and_exit_code_1(rota: Run, arguments: list[str], line: str) -> None:
    code, out, err = rota(*arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(line)


@pytest.mark.parametrize("arguments", [["bogus"], ["next"], ["next", "* * * * *", "--count", "0"], ["next", "--what"]])
def test_wrong_usage_is_exit_code_2(rota: Run, arguments: list[str]) -> None:
    code, out, err = rota(*arguments)
    assert code == 2
    assert not out
    assert err


def test_the_version_is_shown(rota: Run) -> None:
    code, out, _ = rota("--version")
    assert code == 0
    assert out.startswith("rota 0.")
