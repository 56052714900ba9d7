"""Intervals: counted from an origin, or from wherever the last run stood."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rota
from rota.times.intervals import Since

TICK = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ANCHORS: tuple[Since, ...] = ("success", "finish", "start")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


PHASES = [
    # an interval alone is counted from the epoch: hourly means on the hour, daily means midnight UTC
    ("1h", None, "2027-05-04T10:20Z", ["2027-05-04T11:00Z", "2027-05-04T12:00Z"]),
    ("15m", None, "2027-05-04T10:20Z", ["2027-05-04T10:30Z", "2027-05-04T10:45Z", "2027-05-04T11:00Z"]),
    ("1d", None, "2027-05-04T10:20Z", ["2027-05-05T00:00Z", "2027-05-06T00:00Z"]),
    ("6h", None, "2027-05-04T10:20Z", ["2027-05-04T12:00Z", "2027-05-04T18:00Z"]),
    ("1s", None, "2027-05-04T10:20:30.5Z", ["2027-05-04T10:20:31Z", "2027-05-04T10:20:32Z"]),
    # 1970 began on a Thursday
    ("1w", None, "2027-05-04T10:20Z", ["2027-05-06T00:00Z", "2027-05-13T00:00Z"]),
    # 7 minutes do not divide an hour: they go on counting over it
    ("7m", None, "2027-05-04T00:00Z", ["2027-05-04T00:03Z", "2027-05-04T00:10Z"]),
    # strictly after
    ("1h", None, "2027-05-04T10:00Z", ["2027-05-04T11:00Z"]),
    ("1h", None, "2027-05-04T09:59:59.999999Z", ["2027-05-04T10:00Z", "2027-05-04T11:00Z"]),
    # an origin shifts the phase, in both directions of time
    ("1h", "2027-05-04T10:17Z", "2027-05-04T10:20Z", ["2027-05-04T11:17Z", "2027-05-04T12:17Z"]),
    ("1h", "2030-01-01T00:17Z", "2027-05-04T10:20Z", ["2027-05-04T11:17Z"]),
    ("2d", "2027-05-03T09:00Z", "2027-05-04T10:20Z", ["2027-05-05T09:00Z", "2027-05-07T09:00Z"]),
    ("1w", "2027-05-03T09:00+02:00", "2027-05-04T10:20Z", ["2027-05-10T07:00Z", "2027-05-17T07:00Z"]),
    ("90s", "2027-05-04T10:00:15Z", "2027-05-04T10:00:15.5Z", ["2027-05-04T10:01:45Z", "2027-05-04T10:03:15Z"]),
]


@pytest.mark.parametrize(("interval", "origin", "after", "firings"), PHASES)
def test_the_series_is_counted_from_its_origin(
    interval: str, origin: str | None, after: str, firings: list[str]
) -> None:
    rule = rota.Every(interval) if origin is None else rota.Every(interval, origin=origin)
    assert rule.upcoming(moment(after), len(firings)) == list(map(moment, firings))


@pytest.mark.parametrize("interval", ["90m", "1h30m", "PT1H30M", 5400, 5400.0, timedelta(minutes=90)])
def test_the_same_interval_is_the_same_rule_however_it_is_given(interval: str | float | timedelta) -> None:
    assert rota.Every(interval) == rota.Every("90m")
    assert rota.Every(interval).interval == timedelta(minutes=90)


def test_the_answers_are_in_utc() -> None:
    found = rota.Every("1h").next(moment("2027-05-04T10:20+05:30"))
    assert (found, found and found.tzinfo) == (moment("2027-05-04T05:00Z"), UTC)


@pytest.mark.parametrize("since", ANCHORS)
def test_an_anchored_interval_ends_one_interval_after_where_one_asks(since: Since) -> None:
    rule = rota.Every("90m", since=since)
    asked = moment("2027-05-04T10:20:30.123456Z")
    assert rule.anchored
    assert rule.next(asked) == asked + timedelta(minutes=90)
    assert rule.previous(asked) == asked - timedelta(minutes=90)
    assert rule.upcoming(asked, 3) == [asked + n * timedelta(minutes=90) for n in (1, 2, 3)]
    assert not rota.Every("90m").anchored


@pytest.mark.parametrize("since", ANCHORS)
def test_an_anchored_interval_has_no_origin(since: Since) -> None:
    with pytest.raises(rota.InvalidMoment, match=r"^origin: .* leave it out"):
        rota.Every("90m", since=since, origin="2027-05-04T10:20Z")


def test_the_bounds_are_part_of_the_series() -> None:
    rule = rota.Every("1h", start="2027-05-04T10:00Z", end="2027-05-04T12:00Z")
    firings = [moment(f"2027-05-04T{hour}:00Z") for hour in (10, 11, 12)]
    assert rule.upcoming(EPOCH, 10) == firings
    assert rule.previous(moment("2027-06-01T00:00Z")) == firings[-1]
    assert rule.previous(firings[1]) == firings[0]
    assert rule.previous(firings[0]) is None
    assert rule.next(firings[-1]) is None
    assert rule.count(EPOCH, moment("2099-01-01T00:00Z")) == 3


def test_one_microsecond_inside_the_bounds_leaves_both_ends_out() -> None:
    rule = rota.Every("1h", start=moment("2027-05-04T10:00Z") + TICK, end=moment("2027-05-04T12:00Z") - TICK)
    assert rule.upcoming(EPOCH, 10) == [moment("2027-05-04T11:00Z")]


def test_the_start_does_not_shift_the_phase() -> None:
    rule = rota.Every("1h", start="2027-05-04T10:17Z")
    assert rule.next(EPOCH) == moment("2027-05-04T11:00Z")


def test_an_anchored_interval_waits_for_the_start_and_stops_at_the_end() -> None:
    rule = rota.Every("1h", since="success", start="2027-05-04T10:00Z", end="2027-05-04T12:00Z")
    assert rule.next(moment("2027-05-04T08:00Z")) == moment("2027-05-04T10:00Z")
    assert rule.next(moment("2027-05-04T09:30Z")) == moment("2027-05-04T10:30Z")
    assert rule.next(moment("2027-05-04T11:00Z")) == moment("2027-05-04T12:00Z")
    assert rule.next(moment("2027-05-04T11:00:00.000001Z")) is None


@pytest.mark.parametrize("interval", ["999ms", "0s", 0, 0.999999, timedelta(microseconds=999_999)])
def test_less_than_a_second_is_too_short(interval: str | float | timedelta) -> None:
    with pytest.raises(rota.InvalidDuration, match=r"^interval: .* is too short; use at least 1s$"):
        rota.Every(interval)


def test_a_series_falls_on_whole_seconds() -> None:
    with pytest.raises(rota.InvalidDuration, match=r"^interval: '1s500ms' .* use whole seconds, or since='start'"):
        rota.Every("1s500ms")
    with pytest.raises(rota.InvalidMoment, match=r"^origin: '2027-05-04T10:00:00.5\d*Z' .* use a whole second$"):
        rota.Every("1h", origin="2027-05-04T10:00:00.5Z")
    asked = moment("2027-05-04T10:20:30.25Z")
    assert rota.Every("1s500ms", since="start").next(asked) == moment("2027-05-04T10:20:31.75Z")


def test_a_second_and_a_hundred_years_are_the_bounds_of_an_interval() -> None:
    assert rota.Every(1).next(EPOCH) == EPOCH + timedelta(seconds=1)
    assert rota.Every("36525d").next(EPOCH) == EPOCH + timedelta(days=36_525)
    with pytest.raises(rota.InvalidDuration, match=r"^interval: .* is too long"):
        rota.Every("36525d1s")


def test_the_series_ends_with_the_years_that_rota_answers_about() -> None:
    late = moment("2199-12-31T23:30Z")
    assert rota.Every("1h").next(late) is None
    assert rota.Every("1h", since="finish").next(late) is None
    assert rota.Every("1h").previous(EPOCH) is None
    assert rota.Every("1h").previous(EPOCH + TICK) == EPOCH
    assert rota.Every("1h", since="finish").previous(EPOCH + TICK) is None
    assert rota.Every("1h").upcoming(late - timedelta(hours=2), 10) == [
        moment("2199-12-31T22:00Z"),
        moment("2199-12-31T23:00Z"),
    ]


NAIVE = datetime(2027, 5, 4)  # noqa: DTZ001 (that it has no zone is the point)


@pytest.mark.parametrize("field", ["origin", "start", "end"])
@pytest.mark.parametrize(
    "value", [NAIVE, "2027-05-04T10:00", "2027-05-04", "tomorrow", "", 0, "1969-12-31T23:59:59Z", "2200-01-01T00:00Z"]
)
def test_a_moment_that_is_none_is_refused(field: str, value: object) -> None:
    with pytest.raises(rota.InvalidMoment, match=rf"^{field}: "):
        rota.Every("1h", **{field: value})  # type: ignore[arg-type]


def test_an_end_before_the_start_is_refused() -> None:
    with pytest.raises(rota.InvalidMoment, match=r"^end: .* is before the start"):
        rota.Every("1h", start="2027-05-04T10:00Z", end="2027-05-04T09:59Z")
    only = rota.Every("1h", start="2027-05-04T10:00Z", end="2027-05-04T10:00Z")
    assert only.upcoming(EPOCH, 5) == [moment("2027-05-04T10:00Z")]


@pytest.mark.parametrize("since", ["", "last", "Due", None, 1])
def test_an_unknown_anchor_is_refused(since: object) -> None:
    with pytest.raises(rota.InvalidRule, match=r"^since: .* use due, success, finish or start$"):
        rota.Every("1h", since=since)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [-1, 100_001, 1.5, True, None, "3"])
def test_a_list_has_none_to_a_hundred_thousand_instants(count: object) -> None:
    with pytest.raises(rota.InvalidRule, match=r"^count: .* from 0 to 100,000$"):
        rota.Every("1h").upcoming(EPOCH, count)  # type: ignore[arg-type]
    assert rota.Every("1h").upcoming(EPOCH, 0) == []
    assert len(rota.Every("1h").upcoming(EPOCH, 100_000)) == 100_000


@pytest.mark.parametrize("ask", ["next", "previous"])
def test_one_asks_with_an_aware_datetime_only(ask: str) -> None:
    with pytest.raises(rota.InvalidMoment, match=r"has no time zone; use a datetime with a time zone"):
        getattr(rota.Every("1h"), ask)(NAIVE)


def test_a_bad_question_is_refused_when_it_is_asked_and_not_when_the_answer_is_read() -> None:
    with pytest.raises(rota.InvalidMoment):
        rota.Every("1h").instants(NAIVE)
    with pytest.raises(rota.InvalidMoment):
        rota.Every("1h").instants(EPOCH, NAIVE)


MOMENTS = st.timedeltas(timedelta(0), timedelta(days=84_000)).map(EPOCH.__add__)
SECONDS = st.integers(1, 40 * 86_400).map(lambda length: timedelta(seconds=length))
INTERVALS = SECONDS | st.timedeltas(timedelta(seconds=1), timedelta(days=40))
ORIGINS = MOMENTS.map(lambda each: each.replace(microsecond=0))
BOUNDS = st.none() | MOMENTS


@st.composite
def rules(draw: st.DrawFn) -> rota.Every:
    start, end = draw(BOUNDS), draw(BOUNDS)
    if start is not None and end is not None and end < start:
        start, end = end, start
    since: Since = draw(st.sampled_from(["due", *ANCHORS]))
    interval, origin = (draw(SECONDS), draw(ORIGINS)) if since == "due" else (draw(INTERVALS), EPOCH)
    return rota.Every(interval, since=since, origin=origin, start=start, end=end)


@given(SECONDS, ORIGINS, MOMENTS)
def test_the_next_instant_is_the_first_whole_number_of_intervals_from_the_origin(
    interval: timedelta, origin: datetime, after: datetime
) -> None:
    rule = rota.Every(interval, origin=origin)
    found = rule.next(after)
    if found is None:
        assert moment("2200-01-01T00:00Z") - after <= interval
    else:
        assert timedelta(0) < found - after <= interval
        assert (found - origin) % interval == timedelta(0)


@given(rules(), MOMENTS, st.integers(0, 30))
@example(rota.Every("1h", since="success", start="2027-05-04T10:00Z"), moment("2027-05-04T09:30Z"), 1)
@example(rota.Every("1h", since="success", start="2027-05-04T10:00Z"), moment("2027-05-04T03:00Z"), 8)
def test_counting_gives_as_many_as_listing(rule: rota.Every, after: datetime, steps: int) -> None:
    until = min(after + steps * rule.interval, moment("2199-12-31T00:00Z"))
    assert rule.count(after, until) == len(list(rule.instants(after, until)))


@given(rules().filter(lambda rule: not rule.anchored), MOMENTS, st.integers(0, 30))
def test_the_way_back_is_the_way_there(rule: rota.Every, after: datetime, steps: int) -> None:
    until = min(after + steps * rule.interval, moment("2199-12-31T00:00Z"))
    point = until + TICK
    for each in reversed(list(rule.instants(after, until))):
        assert rule.previous(point) == each
        point = each
    beyond = rule.previous(point)
    assert beyond is None or beyond <= after


@given(INTERVALS, st.sampled_from(ANCHORS), MOMENTS)
def test_for_an_anchored_interval_previous_undoes_next(interval: timedelta, since: Since, after: datetime) -> None:
    rule = rota.Every(interval, since=since)
    found = rule.next(after)
    assert found is None or rule.previous(found) == after


@given(MOMENTS, MOMENTS)
def test_nothing_is_counted_backwards(one: datetime, other: datetime) -> None:
    early, late = sorted((one, other))
    for rule in (rota.Every("1h"), rota.Every("1h", since="start"), rota.Every("1h", start=early)):
        assert rule.count(late, early) == 0
