"""Moments given one by one."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota

TICK = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FAR = datetime(2199, 12, 31, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


NOON = moment("2027-05-04T12:00Z")


@pytest.mark.parametrize(
    "given_moment",
    [NOON, "2027-05-04T12:00Z", "2027-05-04T14:00+02:00", [NOON], (NOON, NOON), iter(["2027-05-04T12:00Z"])],
)
def test_one_moment_comes_once(given_moment: datetime | str | list[datetime]) -> None:
    rule = rota.At(given_moment)
    assert rule.moments == (NOON,)
    assert rule.next(NOON - TICK) == NOON
    assert rule.next(NOON) is None
    assert rule.previous(NOON + TICK) == NOON
    assert rule.previous(NOON) is None


def test_several_moments_come_in_order_and_once_each() -> None:
    rule = rota.At(["2027-05-04T12:00Z", "2027-05-04T14:00+02:00", "2026-01-01T00:00Z", "2027-05-04T12:00:00.000001Z"])
    assert rule.upcoming(EPOCH, 10) == [moment("2026-01-01T00:00Z"), NOON, NOON + TICK]
    assert rule.count(EPOCH, FAR) == 3


def test_the_order_in_which_moments_are_given_does_not_matter() -> None:
    assert rota.At(["2027-05-04T12:00Z", "2026-01-01T00:00Z"]) == rota.At(["2026-01-01T00:00Z", "2027-05-04T12:00Z"])


def test_both_copies_of_a_repeated_hour_are_moments_of_their_own() -> None:
    first = datetime(2027, 10, 31, 2, 30, tzinfo=BERLIN)
    rule = rota.At([first, first.replace(fold=1)])
    found = rule.upcoming(EPOCH, 5)
    assert [each.isoformat() for each in found] == ["2027-10-31T02:30:00+02:00", "2027-10-31T02:30:00+01:00"]


def test_moments_are_shown_in_the_zone_that_is_asked_for() -> None:
    found = rota.At(NOON, tz="Asia/Kolkata").next(EPOCH)
    assert found is not None
    assert found.isoformat() == "2027-05-04T17:30:00+05:30"


def test_without_a_zone_they_are_shown_in_that_of_the_first_one() -> None:
    assert rota.At(NOON.astimezone(BERLIN)).tz == "Europe/Berlin"
    assert rota.At([NOON.astimezone(BERLIN), NOON]).tz == "Europe/Berlin"
    assert rota.At([NOON, NOON.astimezone(BERLIN)]).tz == "UTC"
    assert rota.At(NOON.astimezone(BERLIN), tz="UTC").tz == "UTC"
    assert rota.At("2027-05-04T14:00+02:00").tz == "UTC"


def test_the_zone_does_not_change_when_it_fires() -> None:
    for tz in ("UTC", "Asia/Kolkata", ZoneInfo("Pacific/Apia")):
        assert rota.At(NOON, tz=tz).count(NOON - TICK, NOON) == 1


def test_the_bounds_are_part_of_the_series() -> None:
    moments = [NOON + timedelta(days=n) for n in range(5)]
    rule = rota.At(moments, start=moments[1], end=moments[3])
    assert rule.upcoming(EPOCH, 10) == moments[1:4]
    assert rule.previous(FAR) == moments[3]
    assert rule.previous(moments[2]) == moments[1]
    assert rule.previous(moments[1]) is None
    assert rule.count(EPOCH, FAR) == 3
    assert rota.At(moments, start=moments[1] + TICK, end=moments[3] - TICK).upcoming(EPOCH, 10) == [moments[2]]


def test_a_thousand_moments_are_the_most() -> None:
    moments = [NOON + timedelta(minutes=n) for n in range(1_001)]
    assert rota.At(moments[:1_000]).count(EPOCH, FAR) == 1_000
    with pytest.raises(rota.InvalidRule, match=r"^moments: '1,001 values' are too many; use 1 to 1,000$"):
        rota.At(moments)
    with pytest.raises(rota.InvalidRule, match=r"^moments: '0 values' are too few; use 1 to 1,000$"):
        rota.At([])


@pytest.mark.parametrize("value", [None, 0, 1.5, len, object()])
def test_what_is_no_list_is_refused(value: object) -> None:
    with pytest.raises(rota.InvalidRule, match=r"^moments: .* use one value or a list of them$"):
        rota.At(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    [
        *("2027-05-04T12:00", "2027-05-04", "12:00Z", "noon", "", "2027-02-29T12:00Z", "2027-05-04T24:01Z"),
        *("1969-12-31T23:59:59.999999Z", "2200-01-01T00:00Z", "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00"),
        *(0, None, True, date(2027, 5, 4), NOON.replace(tzinfo=None), b"2027-05-04T12:00Z"),
    ],
)
def test_a_moment_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(rota.InvalidMoment, match=r"^moment: "):
        rota.At([value])  # type: ignore[list-item]


def test_the_first_and_the_last_moment_that_rota_knows_are_moments() -> None:
    ends = [EPOCH, moment("2199-12-31T23:59:59.999999Z")]
    assert rota.At(ends).moments == tuple(ends)
    assert rota.At(ends).next(EPOCH) == ends[1]
    assert rota.At(ends).previous(ends[1]) == EPOCH


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(rota.InvalidZone, match=r"did you mean Europe/Berlin\?$"):
        rota.At(NOON, tz="Europe/Berln")


MOMENTS = st.timedeltas(timedelta(0), timedelta(days=3)).map(NOON.__add__)


@st.composite
def rules(draw: st.DrawFn) -> rota.At:
    start, end = sorted((draw(MOMENTS), draw(MOMENTS)))
    return rota.At(
        draw(st.lists(MOMENTS | MOMENTS.map(lambda each: each.replace(microsecond=0)), min_size=1, max_size=30)),
        tz=draw(st.sampled_from(["UTC", "Europe/Berlin"])),
        start=draw(st.sampled_from([None, start])),
        end=draw(st.sampled_from([None, end])),
    )


@given(rules(), MOMENTS, MOMENTS)
def test_listing_gives_the_moments_between_the_bounds(rule: rota.At, after: datetime, until: datetime) -> None:
    wanted = [
        each
        for each in rule.moments
        if after < each <= until and (rule.start or EPOCH) <= each and (rule.end is None or each <= rule.end)
    ]
    assert list(rule.instants(after, until)) == wanted
    assert rule.count(after, until) == len(wanted)


@given(rules(), MOMENTS)
def test_the_way_back_is_the_way_there(rule: rota.At, after: datetime) -> None:
    point = FAR
    for each in reversed(list(rule.instants(after))):
        assert rule.previous(point) == each
        point = each
    beyond = rule.previous(point)
    assert beyond is None or beyond <= after
