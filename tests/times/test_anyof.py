"""Several rules as one."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rota

TICK = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


MARCH = moment("2027-03-27T00:00Z")  # the day before Berlin's clocks go forward
HOURLY = rota.Every("1h")
MORNING = rota.Cron("30 2 * * *", tz="Europe/Berlin")
EVENING = rota.Cron("0 21 * * *", tz="Europe/Berlin")


def test_the_instants_of_all_rules_come_in_order() -> None:
    rule = rota.AnyOf(EVENING, MORNING)
    found = [each.isoformat() for each in rule.upcoming(MARCH, 4)]
    assert found == [
        "2027-03-27T02:30:00+01:00",
        "2027-03-27T21:00:00+01:00",
        "2027-03-28T03:00:00+02:00",  # 02:30 does not exist
        "2027-03-28T21:00:00+02:00",
    ]


def test_an_instant_that_several_rules_name_comes_once() -> None:
    rule = rota.AnyOf(HOURLY, rota.Every("30m"), rota.Cron("0 * * * *"), rota.At("2027-03-27T01:00Z"))
    assert rule.upcoming(MARCH, 4) == [MARCH + n * timedelta(minutes=30) for n in (1, 2, 3, 4)]
    assert rule.count(MARCH, MARCH + timedelta(hours=24)) == 48


def test_the_same_rule_twice_is_no_more_than_once() -> None:
    rule = rota.AnyOf(MORNING, MORNING)
    assert rule.upcoming(MARCH, 20) == MORNING.upcoming(MARCH, 20)
    assert rule.count(MARCH, MARCH + timedelta(days=30)) == 30


def test_one_rule_alone_is_that_rule() -> None:
    assert rota.AnyOf(MORNING).upcoming(MARCH, 20) == MORNING.upcoming(MARCH, 20)


def test_rules_of_rules_are_rules() -> None:
    nested = rota.AnyOf(rota.AnyOf(MORNING, HOURLY), rota.AnyOf(EVENING))
    assert nested.upcoming(MARCH, 50) == rota.AnyOf(MORNING, HOURLY, EVENING).upcoming(MARCH, 50)


def test_the_bounds_of_the_whole_and_of_the_parts_all_hold() -> None:
    part = rota.Every("1h", end=MARCH + timedelta(hours=3))
    rule = rota.AnyOf(part, rota.At(MARCH + timedelta(hours=9)), start=MARCH + timedelta(hours=2))
    assert rule.upcoming(EPOCH, 9) == [MARCH + timedelta(hours=n) for n in (2, 3, 9)]
    assert rule.previous(MARCH + timedelta(hours=3)) == MARCH + timedelta(hours=2)
    assert rule.previous(MARCH + timedelta(hours=2)) is None
    assert rota.AnyOf(part, start=MARCH + timedelta(hours=4)).next(EPOCH) is None


def test_the_answers_are_in_the_zone_that_the_rules_share() -> None:
    assert rota.AnyOf(MORNING, EVENING).tzinfo == ZoneInfo("Europe/Berlin")
    assert rota.AnyOf(MORNING, HOURLY).tzinfo == UTC
    assert rota.AnyOf(MORNING, rota.Cron("0 9 * * *", tz="Asia/Tokyo")).tzinfo == UTC


def test_a_moment_between_two_seconds_joins_the_others() -> None:
    rule = rota.AnyOf(HOURLY, rota.At([MARCH + TICK, MARCH + timedelta(hours=1)]))
    until = MARCH + timedelta(hours=2)
    assert list(rule.instants(MARCH, until)) == [MARCH + TICK, MARCH + timedelta(hours=1), until]
    assert rule.count(MARCH, until) == 3
    assert rule.count(MARCH + TICK, until) == 2
    assert rule.count(MARCH, MARCH + TICK) == 1


def test_a_moment_outside_the_bounds_of_its_own_rule_is_not_counted() -> None:
    moments = [MARCH + timedelta(hours=n, microseconds=1) for n in range(1, 10)]
    rule = rota.AnyOf(rota.At(moments, start=moments[3], end=moments[5]))
    assert rule.upcoming(MARCH, 10) == moments[3:6]
    assert rule.count(MARCH, MARCH + timedelta(days=1)) == 3


@pytest.mark.parametrize("since", ["success", "finish", "start"])
def test_what_counts_from_the_last_run_cannot_be_joined(since: str) -> None:
    anchored = rota.Every("1h", since=since)  # type: ignore[arg-type]
    with pytest.raises(rota.InvalidRule, match=r"^rule: .* counts from the last run; use Every"):
        rota.AnyOf(HOURLY, anchored)


@pytest.mark.parametrize("value", [None, "0 9 * * *", [HOURLY], rota.Every, moment("2027-03-27T00:00Z")])
def test_what_is_no_rule_cannot_be_joined(value: object) -> None:
    with pytest.raises(rota.InvalidRule, match=r"^rule: .* is not a rule; use Cron, Every, At, Calendar or AnyOf$"):
        rota.AnyOf(HOURLY, value)  # type: ignore[arg-type]


def test_a_hundred_rules_are_the_most() -> None:
    rules = [rota.Cron(f"{n % 60} {n // 60} * * *") for n in range(101)]
    assert rota.AnyOf(*rules[:100]).count(MARCH, MARCH + timedelta(days=1)) == 100
    with pytest.raises(rota.InvalidRule, match=r"^rules: '101 values' are too many; use 1 to 100$"):
        rota.AnyOf(*rules)
    with pytest.raises(rota.InvalidRule, match=r"^rules: '0 values' are too few; use 1 to 100$"):
        rota.AnyOf()


PARTS = st.sampled_from(
    [
        MORNING,
        EVENING,
        rota.Cron("*/20 1-3 * * *", tz="Europe/Berlin"),
        rota.Cron("15 */7 * * SUN", tz="Australia/Lord_Howe"),
        rota.Cron("30 0 */2 * * *"),
        rota.Every("50m", origin="2027-03-27T00:10Z"),
        rota.Every("7h", start="2027-03-27T12:00Z", end="2027-03-29T00:00:00.5Z"),
        rota.At([MARCH + TICK, MARCH + timedelta(hours=30), MARCH + timedelta(hours=31, microseconds=7)]),
        rota.At([MARCH + timedelta(hours=n, seconds=n) for n in range(40)], start=MARCH + timedelta(hours=20)),
        rota.At([MARCH + n * timedelta(hours=9, microseconds=1) for n in range(9)], end=MARCH + timedelta(hours=40)),
        rota.Calendar("week", on=["SUN", "MON"], at=["02:30", "12:00"], tz="Europe/Berlin"),
        rota.AnyOf(MORNING, rota.At(MARCH + timedelta(hours=33, microseconds=9)), end=MARCH + timedelta(days=2)),
    ]
)
MOMENTS = st.timedeltas(timedelta(0), timedelta(days=3)).map(MARCH.__add__)


@st.composite
def rules(draw: st.DrawFn) -> rota.AnyOf:
    start, end = sorted((draw(MOMENTS), draw(MOMENTS)))
    parts = draw(st.lists(PARTS, min_size=1, max_size=5))
    return rota.AnyOf(*parts, start=draw(st.sampled_from([None, start])), end=draw(st.sampled_from([None, end])))


def in_utc(found: datetime) -> datetime:
    return found.astimezone(UTC)


@settings(deadline=None)
@given(rules(), MOMENTS, MOMENTS)
def test_it_names_what_any_of_its_rules_names_inside_the_bounds(
    rule: rota.AnyOf, after: datetime, until: datetime
) -> None:
    wanted = {in_utc(each) for part in rule.rules for each in part.instants(after, until)}
    inside = [
        each for each in sorted(wanted) if (rule.start or EPOCH) <= each and (rule.end is None or each <= rule.end)
    ]
    assert list(map(in_utc, rule.instants(after, until))) == inside
    assert rule.count(after, until) == len(inside)


@settings(deadline=None)
@given(rules(), MOMENTS, MOMENTS)
def test_the_way_back_is_the_way_there(rule: rota.AnyOf, after: datetime, until: datetime) -> None:
    point = until + TICK
    for each in reversed(list(map(in_utc, rule.instants(after, until)))):
        found = rule.previous(point)
        assert found is not None
        assert in_utc(found) == each
        point = each
    beyond = rule.previous(point)
    assert beyond is None or in_utc(beyond) <= after
