"""Calendar rules: days that cron cannot say, held against a walk through every day of a real calendar."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.times.oracle import Gap, Repeat

import rota
from rota.times.calendardays import Unit

TICK = timedelta(microseconds=1)
ONE_DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def days(rule: rota.Calendar, after: str, count: int) -> list[str]:
    return [f"{found:%Y-%m-%d}" for found in rule.upcoming(moment(f"{after}T00:00Z") - TICK, count)]


EXAMPLES: dict[str, tuple[rota.Calendar, str, list[str]]] = {
    "every day": (rota.Calendar("day"), "2027-02-27", ["2027-02-27", "2027-02-28", "2027-03-01"]),
    "every third day": (rota.Calendar("day", every=3), "1970-01-02", ["1970-01-04", "1970-01-07", "1970-01-10"]),
    "every third day, from a day on": (
        rota.Calendar("day", every=3, origin="2027-03-01"),
        "2027-02-25",
        ["2027-02-26", "2027-03-01", "2027-03-04"],
    ),
    "Mondays and Thursdays": (
        rota.Calendar("week", on=["THU", "MON"]),
        "2027-05-04",
        ["2027-05-06", "2027-05-10", "2027-05-13"],
    ),
    "Monday to Friday": (
        rota.Calendar("week", on="weekday"),
        "2027-05-06",
        ["2027-05-06", "2027-05-07", "2027-05-10"],
    ),
    "every second Tuesday": (
        rota.Calendar("week", every=2, on="TUE", origin="2027-05-04"),
        "2027-05-01",
        ["2027-05-04", "2027-05-18", "2027-06-01"],
    ),
    "every second Tuesday, of the other weeks": (
        rota.Calendar("week", every=2, on="TUE", origin="2027-05-11"),
        "2027-05-01",
        ["2027-05-11", "2027-05-25", "2027-06-08"],
    ),
    # a week begins on Monday: Sunday 9 May is the last day of the week of the origin
    "every second week, named by its Sunday": (
        rota.Calendar("week", every=2, on=["MON", "SUN"], origin="2027-05-09"),
        "2027-05-01",
        ["2027-05-03", "2027-05-09", "2027-05-17", "2027-05-23"],
    ),
    # 1970-01-01 was a Thursday; its week began on 29 December 1969
    "every fourth week without an origin": (
        rota.Calendar("week", every=4, on="MON"),
        "1970-01-02",
        ["1970-01-26", "1970-02-23"],
    ),
    "the 15th": (rota.Calendar("month", on="15"), "2027-05-16", ["2027-06-15", "2027-07-15"]),
    "the 31st, which short months do not have": (
        rota.Calendar("month", on="31"),
        "2027-01-01",
        ["2027-01-31", "2027-03-31", "2027-05-31", "2027-07-31", "2027-08-31"],
    ),
    "the last day": (
        rota.Calendar("month", on="last"),
        "2028-01-01",
        ["2028-01-31", "2028-02-29", "2028-03-31", "2028-04-30"],
    ),
    "the last day and the 30th": (
        rota.Calendar("month", on=["last", "30"]),
        "2027-02-01",
        ["2027-02-28", "2027-03-30", "2027-03-31", "2027-04-30", "2027-05-30"],
    ),
    "every 2 months on the last weekday": (
        rota.Calendar("month", every=2, on="last weekday"),
        "2027-01-01",
        ["2027-01-29", "2027-03-31", "2027-05-31", "2027-07-30"],
    ),
    "every 2 months, of the other months": (
        rota.Calendar("month", every=2, on="last weekday", origin="2026-02-14"),
        "2027-01-01",
        ["2027-02-26", "2027-04-30", "2027-06-30"],
    ),
    "the first weekday": (
        rota.Calendar("month", on="first weekday"),
        "2027-05-01",
        ["2027-05-03", "2027-06-01", "2027-07-01", "2027-08-02"],
    ),
    "the third weekday": (rota.Calendar("month", on="3rd weekday"), "2027-05-01", ["2027-05-05", "2027-06-03"]),
    "the second Tuesday": (
        rota.Calendar("month", on="2nd TUE"),
        "2027-05-01",
        ["2027-05-11", "2027-06-08", "2027-07-13"],
    ),
    "the fifth Monday, which most months do not have": (
        rota.Calendar("month", on="5th MON"),
        "2027-01-01",
        ["2027-03-29", "2027-05-31", "2027-08-30", "2027-11-29"],
    ),
    "the last Friday": (rota.Calendar("month", on="last FRI"), "2027-01-01", ["2027-01-29", "2027-02-26"]),
    "once a quarter": (
        rota.Calendar("month", every=3, on="1", origin="2027-02-01"),
        "2027-01-01",
        ["2027-02-01", "2027-05-01", "2027-08-01", "2027-11-01"],
    ),
    "25 December": (rota.Calendar("year", on="DEC 25"), "2027-12-26", ["2028-12-25", "2029-12-25"]),
    "the leap day": (
        rota.Calendar("year", on="FEB 29"),
        "2092-03-01",
        ["2096-02-29", "2104-02-29", "2108-02-29"],
    ),
    "the last day of February": (
        rota.Calendar("year", on="FEB last"),
        "2027-01-01",
        ["2027-02-28", "2028-02-29", "2029-02-28"],
    ),
    "Thanksgiving": (rota.Calendar("year", on="NOV 4th THU"), "2027-01-01", ["2027-11-25", "2028-11-23"]),
    "every other year, from 2027": (
        rota.Calendar("year", every=2, on=["JUL 4", "JAN 1"], origin="2027-06-30"),
        "2026-01-01",
        ["2027-01-01", "2027-07-04", "2029-01-01"],
    ),
    "every fourth year on the leap day": (
        rota.Calendar("year", every=4, on="FEB 29", origin="2028-01-01"),
        "2092-01-01",
        ["2092-02-29", "2096-02-29", "2104-02-29"],
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_days_of_a_rule(name: str) -> None:
    rule, after, firings = EXAMPLES[name]
    assert days(rule, after, len(firings)) == firings


class Change(NamedTuple):
    """A rule around a change of the clocks, and all that it fires from one moment to another."""

    at: str | list[str]
    tz: str
    after: str
    until: str
    firings: list[str]
    unit: Unit = "day"
    on: str | tuple[str, ...] = ()
    gap: Gap = "after"
    repeat: Repeat = "first"


MARCH, OCTOBER = ("2027-03-27T12:00Z", "2027-03-29T12:00Z"), ("2027-10-30T12:00Z", "2027-11-01T12:00Z")
CHANGES = {
    "a time that does not exist comes after the gap": Change(
        "02:30", "Europe/Berlin", *MARCH, ["2027-03-28T03:00+02:00", "2027-03-29T02:30+02:00"]
    ),
    "or not at all": Change("02:30", "Europe/Berlin", *MARCH, ["2027-03-29T02:30+02:00"], gap="skip"),
    "several such times come as one": Change(
        ["02:00", "02:30", "02:59"], "Europe/Berlin", *MARCH[:1], "2027-03-28T12:00Z", ["2027-03-28T03:00+02:00"]
    ),
    "and as one with the time that stands there": Change(
        ["02:30", "03:00"], "Europe/Berlin", *MARCH[:1], "2027-03-28T12:00Z", ["2027-03-28T03:00+02:00"]
    ),
    "a time that comes twice fires the first time": Change(
        "02:30", "Europe/Berlin", *OCTOBER, ["2027-10-31T02:30+02:00", "2027-11-01T02:30+01:00"]
    ),
    "or the second time": Change(
        "02:30", "Europe/Berlin", *OCTOBER, ["2027-10-31T02:30+01:00", "2027-11-01T02:30+01:00"], repeat="second"
    ),
    "or both times": Change(
        "02:30",
        "Europe/Berlin",
        *OCTOBER,
        ["2027-10-31T02:30+02:00", "2027-10-31T02:30+01:00", "2027-11-01T02:30+01:00"],
        repeat="both",
    ),
    "a shift of half an hour": Change(
        "02:15",
        "Australia/Lord_Howe",
        "2027-10-02T00:00Z",
        "2027-10-04T00:00Z",
        ["2027-10-03T02:30+11:00", "2027-10-04T02:15+11:00"],
    ),
    "a midnight that does not exist": Change(
        "00:00",
        "America/Sao_Paulo",
        "2018-11-03T12:00Z",
        "2018-11-05T12:00Z",
        ["2018-11-04T01:00-02:00", "2018-11-05T00:00-02:00"],
    ),
    "a day that does not exist": Change(
        "10:00",
        "Pacific/Apia",
        "2011-12-29T00:00Z",
        "2012-01-01T00:00Z",
        ["2011-12-29T10:00-10:00", "2011-12-31T00:00+14:00", "2011-12-31T10:00+14:00", "2012-01-01T10:00+14:00"],
    ),
    "a Friday that does not exist": Change(
        "10:00",
        "Pacific/Apia",
        "2011-12-24T12:00Z",
        "2012-01-07T00:00Z",
        ["2011-12-31T00:00+14:00", "2012-01-06T10:00+14:00"],
        unit="week",
        on="FRI",
    ),
    "or is left out": Change(
        "10:00",
        "Pacific/Apia",
        "2011-12-24T12:00Z",
        "2012-01-07T00:00Z",
        ["2012-01-06T10:00+14:00"],
        unit="week",
        on="FRI",
        gap="skip",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_times_at_a_change_of_the_clocks(name: str) -> None:
    change = CHANGES[name]
    rule = rota.Calendar(change.unit, on=change.on, at=change.at, tz=change.tz, gap=change.gap, repeat=change.repeat)
    found = [each.isoformat(timespec="minutes") for each in rule.instants(moment(change.after), moment(change.until))]
    assert found == change.firings
    assert rule.count(moment(change.after), moment(change.until)) == len(change.firings)


def test_every_2_months_on_the_last_weekday_at_10() -> None:
    rule = rota.Calendar("month", every=2, on="last weekday", at="10:00", tz="Europe/Berlin")
    found = [each.isoformat() for each in rule.upcoming(moment("2027-01-01T00:00Z"), 3)]
    assert found == ["2027-01-29T10:00:00+01:00", "2027-03-31T10:00:00+02:00", "2027-05-31T10:00:00+02:00"]


def test_several_times_come_in_order_and_once_each() -> None:
    rule = rota.Calendar("day", at=["18:00", "9:00", "09:00", "09:00:30", "18:00:00"])
    assert rule.at == ("09:00", "09:00:30", "18:00")
    found = rule.upcoming(moment("2027-05-04T09:00:15Z"), 3)
    assert [f"{each:%d %H:%M:%S}" for each in found] == ["04 09:00:30", "04 18:00:00", "05 09:00:00"]


def test_without_a_time_it_is_midnight_in_the_zone() -> None:
    found = rota.Calendar("day", tz="Asia/Kolkata").next(moment("2027-05-04T12:00Z"))
    assert found is not None
    assert found.isoformat() == "2027-05-05T00:00:00+05:30"


def test_the_bounds_are_part_of_the_series() -> None:
    rule = rota.Calendar("day", at="10:00", start="2027-05-04T10:00Z", end="2027-05-06T10:00Z")
    assert rule.upcoming(EPOCH, 9) == [moment(f"2027-05-0{day}T10:00Z") for day in (4, 5, 6)]
    assert rule.previous(moment("2027-05-05T10:00Z")) == moment("2027-05-04T10:00Z")
    assert rule.previous(moment("2027-05-04T10:00Z")) is None
    assert rule.count(EPOCH, moment("2099-01-01T00:00Z")) == 3


def test_the_years_that_rota_answers_about_bound_it_too() -> None:
    rule = rota.Calendar("year", on=["JAN 1", "DEC 31"], at=["00:00", "23:59:59"])
    assert rule.next(EPOCH) == moment("1970-01-01T23:59:59Z")
    assert rule.previous(EPOCH) is None
    assert rule.next(moment("2199-12-31T23:59:58Z")) == moment("2199-12-31T23:59:59Z")
    assert rule.next(moment("2199-12-31T23:59:59Z")) is None


ALIKE: list[tuple[Unit, str, str | int]] = [
    ("week", "TUE", "tue"),
    ("week", "TUE", "Tuesday"),
    ("week", "TUE", "tues"),
    ("week", "weekday", "WEEKDAY"),
    ("month", "last", "last day"),
    ("month", "last", "LAST"),
    ("month", "5", "05"),
    ("month", "15", 15),
    ("month", "2", "2nd day"),
    ("month", "2nd TUE", "second tuesday"),
    ("month", "1st weekday", "first weekday"),
    ("month", "last FRI", "Last  Friday"),
    ("year", "DEC 25", "december 25"),
    ("year", "NOV 4th THU", "Nov fourth Thursday"),
    ("year", "FEB last", "feb last day"),
]


@pytest.mark.parametrize(("unit", "one", "other"), ALIKE)
def test_a_day_may_be_written_in_several_ways(unit: Unit, one: str, other: str | int) -> None:
    assert rota.Calendar(unit, on=one) == rota.Calendar(unit, on=other)
    assert rota.Calendar(unit, on=[one, other]) == rota.Calendar(unit, on=one)


REFUSED: list[tuple[str, dict[str, Any]]] = [
    *(("unit", {"unit": unit}) for unit in ("", "days", "Week", "fortnight", None, 1)),
    *(("every", {"unit": "day", "every": every}) for every in (0, -1, 1_001, 1.0, "2", True, None)),
    *(("on", {"unit": "day", "on": on}) for on in ("MON", ["1"])),
    *(("on", {"unit": "week", "on": on}) for on in ((), "", "1", "MO", "MONDAYS", "1st MON", "day", "last", "MON TUE")),
    *(
        ("on", {"unit": "week", "on": on})
        for on in ("mön", "ＭＯＮ", None, 1.5, 5, [5], [None], [["MON"]], ["MON", ""])
    ),
    *(("on", {"unit": "month", "on": on}) for on in ((), "0", "32", "-1", "MON", "weekday", "6th MON", "0th MON")),
    *(
        ("on", {"unit": "month", "on": on})
        for on in ("first", "2nd", "last JAN", "JAN 1", "٣", "1.5", "2nd 2nd TUE", "1th MON", "2st MON", True, -1, 32)
    ),
    *(("on", {"unit": "year", "on": on}) for on in ((), "25", "DEC", "DEC 32", "25 DEC", "DE 25", "MON 1", "last")),
    *(("on", {"unit": "year", "on": on}) for on in ("FEB 30", "APR 31", ["FEB 30", "FEB 31"], "DECEMBERS 1", 25)),
    *(
        ("at", {"unit": "day", "at": at})
        for at in ("", "24:00", "9", "9:0", "09:60", "-1:00", "9:00:60", "9am", " 9:00")
    ),
    *(("at", {"unit": "day", "at": at}) for at in ("٩:00", "09:00Z", "09:00:00.5", (), None, 9, [time(9)], [None])),
    *(("origin", {"unit": "day", "origin": day}) for day in ("", "May", "2027-02-29", "1969-12-31", "2200-01-01")),
    *(("origin", {"unit": "day", "origin": day}) for day in (None, 1, EPOCH, date(1969, 12, 31), date(2200, 1, 1))),
    *(("gap", {"unit": "day", "gap": gap}) for gap in ("", "before", "After", None)),
    *(("repeat", {"unit": "day", "repeat": repeat}) for repeat in ("", "none", "First", None)),
]


@pytest.mark.parametrize(("field", "values"), REFUSED)
def test_what_is_wrong_is_refused_by_its_name(field: str, values: dict[str, Any]) -> None:
    error = rota.InvalidMoment if field == "origin" else rota.InvalidRule
    with pytest.raises(error, match=rf"^{field}: .*; (use|leave it out)"):
        rota.Calendar(**values)


def test_a_day_that_never_comes_is_refused() -> None:
    with pytest.raises(rota.InvalidRule, match="is a day that never comes"):
        rota.Calendar("year", every=4, on="FEB 29", origin="2027-01-01")
    with pytest.raises(rota.InvalidRule, match="is a day that never comes"):
        rota.Calendar("month", every=12, on="31", origin="2027-04-01")


def test_a_hundred_days_and_times_are_the_most() -> None:
    many = [f"{n // 60:02}:{n % 60:02}" for n in range(101)]
    assert len(rota.Calendar("day", at=many[:100]).at) == 100
    with pytest.raises(rota.InvalidRule, match=r"^at: '101 values' are too many"):
        rota.Calendar("day", at=many)
    with pytest.raises(rota.InvalidRule, match=r"^on: '101 values' are too many"):
        rota.Calendar("month", on=["1"] * 101)


# The model: a day counts when its period does and one of the picks says yes.

Says = Callable[[date], bool]
NAMES = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
ORDINALS = {"1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "5th": 5, "last": -1}


class Picked(NamedTuple):
    text: str
    says: Says


def period(unit: Unit, day: date) -> int:
    """Number the periods of a calendar; the first day of the year 1 was a Monday."""
    return {
        "day": day.toordinal(),
        "week": (day.toordinal() - 1) // 7,
        "month": day.year * 12 + day.month,
        "year": day.year,
    }[unit]


def month_days(day: date) -> list[date]:
    return [each for n in range(31) if (each := day.replace(day=1) + n * ONE_DAY).month == day.month]


def nth(number: int, kind: Says) -> Says:
    """Say yes to the number-th day of its month, or to the last, of those that the kind says yes to."""

    def says(day: date) -> bool:
        held = [each for each in month_days(day) if kind(each)]
        return day in (held[-1:] if number < 0 else held[number - 1 : number])

    return says


def named(name: str) -> Says:
    return lambda day: day.weekday() == NAMES.index(name)


def is_weekday(day: date) -> bool:
    return day.weekday() < 5


def is_a_day(day: date) -> bool:
    return True


WEEK_PICKS = st.sampled_from([*(Picked(name, named(name)) for name in NAMES), Picked("weekday", is_weekday)])
MONTH_PICKS = st.sampled_from(
    [
        Picked("last", nth(-1, is_a_day)),
        *(Picked(str(number), nth(number, is_a_day)) for number in range(1, 32)),
        *(Picked(f"{text} weekday", nth(number, is_weekday)) for text, number in ORDINALS.items()),
        *(Picked(f"{text} {name}", nth(number, named(name))) for text, number in ORDINALS.items() for name in NAMES),
    ]
)


def in_month(month: int, picked: Picked) -> Picked:
    return Picked(f"{MONTHS[month - 1]} {picked.text}", lambda day: day.month == month and picked.says(day))


YEAR_PICKS = st.builds(in_month, st.integers(1, 12), MONTH_PICKS)
PICKS: dict[Unit, st.SearchStrategy[list[Picked]]] = {
    "day": st.just([]),
    "week": st.lists(WEEK_PICKS, min_size=1, max_size=3),
    "month": st.lists(MONTH_PICKS, min_size=1, max_size=3),
    "year": st.lists(YEAR_PICKS, min_size=1, max_size=3),
}
TIMES = st.lists(
    st.builds(time, st.integers(0, 23), st.integers(0, 59), st.sampled_from([0, 0, 59])), min_size=1, max_size=3
)
DATES = st.dates(date(1970, 1, 1), date(2199, 12, 31))


class Model(NamedTuple):
    unit: Unit
    every: int
    picks: list[Picked]
    times: list[time]
    origin: date

    def counts(self, day: date) -> bool:
        distance = period(self.unit, day) - period(self.unit, self.origin)
        return distance % self.every == 0 and (not self.picks or any(pick.says(day) for pick in self.picks))

    def instants(self, first: date, last: date) -> list[datetime]:
        walked = [first + n * ONE_DAY for n in range((last - first).days + 1)]
        held = {datetime.combine(day, at, UTC) for day in walked if self.counts(day) for at in self.times}
        return sorted(held)

    def rule(self) -> rota.Calendar:
        on, at = [pick.text for pick in self.picks], [f"{each:%H:%M:%S}" for each in self.times]
        return rota.Calendar(self.unit, every=self.every, on=on, at=at, origin=self.origin)


@st.composite
def models(draw: st.DrawFn) -> Model:
    unit: Unit = draw(st.sampled_from(["day", "week", "month", "year"]))
    return Model(unit, draw(st.integers(1, 9)), draw(PICKS[unit]), draw(TIMES), draw(DATES))


def rule_or_none(model: Model) -> rota.Calendar | None:
    """The rule; a refusal is right where no day of all the years counts."""
    try:
        return model.rule()
    except rota.InvalidRule:
        none_counts = not any(map(model.counts, (date(1970, 1, 1) + n * ONE_DAY for n in range(84_005))))
        assert none_counts, model
        return None


@settings(deadline=None, max_examples=200)
@given(models(), DATES, st.integers(0, 900))
@example(
    Model("year", 1, [in_month(2, Picked("29", nth(29, is_a_day)))], [time(0)], date(1970, 1, 1)),
    date(2095, 1, 1),
    5_000,
)
@example(Model("week", 1, [Picked("SUN", named("SUN"))], [time(23, 59, 59)], date(2199, 12, 31)), date(1970, 1, 1), 30)
def test_it_fires_on_the_days_that_a_walk_through_the_calendar_finds(model: Model, first: date, length: int) -> None:
    rule = rule_or_none(model)
    if rule is None:
        return
    last = min(first + length * ONE_DAY, date(2199, 12, 31))
    wanted = model.instants(first, last)
    begin = datetime.combine(first, time(0), UTC)
    after, until = max(begin - TICK, EPOCH), datetime.combine(last, time.max, UTC)
    wanted = [each for each in wanted if each > after]
    assert list(rule.instants(after, until)) == wanted
    assert rule.count(after, until) == len(wanted)
    point = until
    for each in reversed(wanted):
        assert rule.previous(point) == each
        point = each
    beyond = rule.previous(point)
    assert beyond is None or beyond <= after


# What both a calendar rule and cron can say, they say alike, at every change of the clocks.

BOTH_SAY: list[tuple[Unit, str, str]] = [
    ("week", "SUN", "* * SUN"),
    ("week", "FRI", "* * 5"),
    ("week", "weekday", "* * 1-5"),
    ("month", "1", "1 * *"),
    ("month", "31", "31 * *"),
    ("month", "last", "L * *"),
    ("month", "last weekday", "LW * *"),
    ("month", "1st SUN", "* * SUN#1"),
    ("month", "2nd SUN", "* * 7#2"),
    ("month", "5th SUN", "* * SUN#5"),
    ("month", "last SUN", "* * 0L"),
    ("year", "DEC 30", "30 DEC *"),
    ("year", "MAR last SUN", "* MAR 0L"),
    ("year", "FEB 29", "29 2 *"),
]
ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia"),
    *("Pacific/Chatham", "Africa/Casablanca", "Asia/Gaza"),
)


@settings(deadline=None)
@given(
    st.sampled_from(BOTH_SAY),
    st.sampled_from(["00:00", "00:30", "01:00", "01:59", "02:00", "02:30", "03:00", "10:00", "23:59"]),
    st.sampled_from(ZONES),
    st.sampled_from(["after", "skip"]),
    st.sampled_from(["first", "second", "both"]),
    st.integers(1970, 2090),
)
@example(("year", "DEC 30", "30 DEC *"), "10:00", "Pacific/Apia", "after", "first", 2011)
@example(("month", "last SUN", "* * 0L"), "02:30", "Europe/Berlin", "after", "both", 2027)
def test_it_agrees_with_cron(
    both: tuple[Unit, str, str], at: str, tz: str, gap: Gap, repeat: Repeat, year: int
) -> None:
    unit, on, fields = both
    calendar = rota.Calendar(unit, on=on, at=at, tz=tz, gap=gap, repeat=repeat)
    cron = rota.Cron(f"{int(at[3:])} {int(at[:2])} {fields}", tz=tz, gap=gap, repeat=repeat)
    after, until = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 2, 1, 1, tzinfo=UTC)
    assert list(calendar.instants(after, until)) == list(cron.instants(after, until))
    assert calendar.count(after, until) == cron.count(after, until)
    assert calendar.previous(until) == cron.previous(until)
