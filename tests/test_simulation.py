"""`rota.simulate` as a caller has it: several schedules, outages and durations in every form, and what is refused."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import rota
from rota.db.sqlite import SqliteDatabase

START, END = "2027-01-01T00:00Z", "2027-01-01T06:00Z"
HOURLY, TWO_HOURLY = rota.Cron("0 * * * *"), rota.Cron("0 */2 * * *")

app = rota.Rota("sqlite:////no/such/folder/rota.db")


@app.schedule("often", HOURLY)
@app.schedule("seldom", TWO_HOURLY)
@app.task(name="work")
def work() -> None: ...


def often(**more: Any) -> rota.Schedule:
    return rota.Schedule("often", work.call(), HOURLY, **more)


def came(found: list[rota.Simulated]) -> list[tuple[str, int, str | None]]:
    return [(one.key, one.due.hour, one.reason) for one in found]


def test_what_an_app_declares_is_simulated_without_its_store(monkeypatch: pytest.MonkeyPatch) -> None:
    def touched(*_: object) -> None:
        raise AssertionError("the store was touched")

    for name in ("open", "write", "read"):
        monkeypatch.setattr(SqliteDatabase, name, touched)
    found = rota.simulate(app.declared, START, "2027-01-01T04:00Z")
    assert came(found) == [
        *[("often", 1, None), ("often", 2, None), ("seldom", 2, None)],
        *[("often", 3, None), ("often", 4, None), ("seldom", 4, None)],
    ]


def test_one_schedule_needs_no_list_and_none_bring_nothing() -> None:
    assert rota.simulate(often(), START, END) == rota.simulate([often()], START, END)
    assert rota.simulate([], START, END) == []


async def test_what_the_store_has_is_simulated_as_if_it_were_made_at_the_start(app: rota.Rota) -> None:
    await app.schedules.put(often())
    known = await app.schedules.list()
    assert rota.simulate(known, START, END) == rota.simulate(often(), START, END)


def test_schedules_do_not_disturb_each_other() -> None:
    both = rota.simulate(app.declared, START, END, durations={"often": "90m"})
    alone = rota.simulate(often(), START, END, durations={"often": "90m"})
    assert [one for one in both if one.key == "often"] == alone


@pytest.mark.parametrize("length", ["90m", 5_400, timedelta(minutes=90), lambda _: "90m"])
def test_a_duration_is_a_length_in_any_form_or_a_function_of_the_due_instant(length: Any) -> None:
    found = rota.simulate(often(), START, "2027-01-01T03:00Z", durations={"often": length})
    assert came(found) == [("often", 1, None), ("often", 2, "overlap"), ("often", 3, None)]
    assert found[0].ended == datetime(2027, 1, 1, 2, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "outage",
    [
        ("2027-01-01T01:30Z", "2027-01-01T04:30Z"),
        ["2027-01-01T02:30+01:00", "2027-01-01T05:30+01:00"],
        (datetime(2027, 1, 1, 1, 30, tzinfo=UTC), datetime(2027, 1, 1, 4, 30, tzinfo=UTC)),
    ],
)
def test_in_an_outage_nothing_fires_and_after_it_what_was_missed_is_one_run(outage: Any) -> None:
    found = rota.simulate(often(), START, "2027-01-01T05:00Z", outages=[outage])
    assert [(one.due.hour, one.reason, one.count) for one in found] == [
        *[(1, None, 1), (3, "merged", 2), (4, None, 1), (5, None, 1)]
    ]
    assert found[2].started == datetime(2027, 1, 1, 4, 30, tzinfo=UTC)
    assert found[2].late


def test_outages_may_follow_each_other_and_overlap() -> None:
    spans = [("2027-01-01T00:30Z", "2027-01-01T02:30Z"), ("2027-01-01T02:15Z", "2027-01-01T03:30Z")]
    found = rota.simulate(often(), START, "2027-01-01T04:00Z", outages=spans)
    assert [(one.due.hour, one.reason) for one in found] == [(2, "merged"), (3, None), (4, None)]


WRONG: list[tuple[dict[str, Any], type[rota.Invalid], str]] = [
    ({"schedules": app}, rota.InvalidSchedule, "is no schedule; use a rota.Schedule"),
    ({"schedules": HOURLY}, rota.InvalidSchedule, "is no schedule"),
    ({"schedules": "often"}, rota.InvalidSchedule, "is no schedule"),
    ({"schedules": [often(), often()]}, rota.InvalidSchedule, "key: 'often' is there twice"),
    ({"start": "now"}, rota.InvalidMoment, "start: 'now' is not a moment"),
    ({"start": datetime(2027, 1, 1)}, rota.InvalidMoment, "start: .* has no time zone"),  # noqa: DTZ001
    ({"end": "2026-01-01T00:00Z"}, rota.InvalidMoment, "end: .* is too early"),
    ({"outages": [("2027-01-01T00:00Z",)]}, rota.InvalidMoment, "outages: .* is no pair"),
    ({"outages": (START, END)}, rota.InvalidMoment, "outages: .* is no pair"),
    ({"outages": [(END, START)]}, rota.InvalidMoment, "outages: .* is too early"),
    ({"outages": [(START, "later")]}, rota.InvalidMoment, "outages: 'later' is not a moment"),
    ({"durations": {"other": "5m"}}, rota.InvalidSchedule, "durations: 'other' is no key of these schedules"),
    ({"durations": {"often": "long"}}, rota.InvalidDuration, "durations: 'long' is not a duration"),
    ({"durations": {"often": -1}}, rota.InvalidDuration, "durations: -1 is negative"),
    ({"durations": {"often": lambda _: None}}, rota.InvalidDuration, "durations: None"),
    ({"durations": "5m"}, rota.InvalidSchedule, "durations: '5m' is no mapping"),
]


@pytest.mark.parametrize(("given", "error", "problem"), WRONG, ids=[f"{next(iter(one[0]))}: {one[2]}" for one in WRONG])
def test_what_makes_no_sense_is_refused(given: dict[str, Any], error: type[rota.Invalid], problem: str) -> None:
    usual: dict[str, Any] = {"schedules": often(), "start": START, "end": END}
    with pytest.raises(error, match=problem):
        rota.simulate(**usual | given)


def test_more_than_anybody_reads_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.simulation.MOST", 10)
    with pytest.raises(rota.InvalidMoment, match="brings more than 10 firings and skips of often; use an earlier one"):
        rota.simulate(often(), START, "2027-01-03T00:00Z")
