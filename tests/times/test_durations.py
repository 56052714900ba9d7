"""Lengths of time: what is read, what is refused, and how they are written for machines and for people."""

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rota
from rota.times import duration, duration_text, duration_words

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY
LONGEST = 36_525 * DAY

LENGTHS = st.integers(0, LONGEST)

READ: dict[str | float | timedelta, int] = {
    # one unit
    "45s": 45 * SECOND,
    "90m": 90 * MINUTE,
    "2h": 2 * HOUR,
    "2d": 2 * DAY,
    "1w": WEEK,
    "250ms": 250_000,
    "7us": 7,
    "7µs": 7,
    # several, from the largest to the smallest
    "1h30m": 90 * MINUTE,
    "1h 30m": 90 * MINUTE,
    "1 h 30 min": 90 * MINUTE,
    "1w2d3h4m5s6ms7us": WEEK + 2 * DAY + 3 * HOUR + 4 * MINUTE + 5 * SECOND + 6_007,
    "1d1s": DAY + SECOND,
    # longer names
    "1 week": WEEK,
    "2 weeks": 2 * WEEK,
    "1 day": DAY,
    "2 days": 2 * DAY,
    "1hr": HOUR,
    "2 hrs": 2 * HOUR,
    "1 hour": HOUR,
    "2 hours 5 mins": 2 * HOUR + 5 * MINUTE,
    "1 minute": MINUTE,
    "90 minutes": 90 * MINUTE,
    "1sec": SECOND,
    "2 secs": 2 * SECOND,
    "1 second": SECOND,
    "2 seconds": 2 * SECOND,
    "1 millisecond": 1_000,
    "2 milliseconds": 2_000,
    "1 microsecond": 1,
    "2 microseconds": 2,
    # fractions
    "1.5h": 90 * MINUTE,
    "0.25d": 6 * HOUR,
    "0.1s": 100_000,
    "1.000001s": SECOND + 1,
    "0.1us": 0,
    # bare seconds
    "90": 90 * SECOND,
    "0.5": 500_000,
    "0": 0,
    90: 90 * SECOND,
    1.5: 1_500_000,
    0.1: 100_000,
    1e-6: 1,
    # ISO 8601
    "PT1H30M": 90 * MINUTE,
    "pt1h30m": 90 * MINUTE,
    "P1D": DAY,
    "P2W": 2 * WEEK,
    "P1DT2H": DAY + 2 * HOUR,
    "PT0.5S": 500_000,
    "PT36H": 36 * HOUR,
    "P0D": 0,
    "PT0S": 0,
    # timedeltas
    timedelta(0): 0,
    timedelta(days=1, seconds=2, microseconds=3): DAY + 2 * SECOND + 3,
    timedelta.resolution: 1,
    # the longest
    "36525d": LONGEST,
    36_525 * 86_400: LONGEST,
    # blanks around
    " 5m\n": 5 * MINUTE,
}


@pytest.mark.parametrize(("given_length", "microseconds"), READ.items(), ids=map(repr, READ))
def test_lengths_are_read(given_length: str | float | timedelta, microseconds: int) -> None:
    assert duration(given_length) == microseconds


UNREADABLE = (
    *("", " ", "\n", "m", "h1", "five minutes", "1x", "1h30", "30 1h", "1 h 30", "1hm", "1h and 30m"),
    *("1M", "1H", "1D", "1MIN", "1mo", "1month", "1y", "1 year"),
    *("1h1h", "30m1h", "1s1m", "1h 1m 1h", "1m1min", "1d1w", "1us1ms"),
    *("1  h", "1h  30m", "1h,30m", "1h-30m", "1:30", "01:30:00", "1h;", "1.h", ".5h", "1,5h", "1_000s", "1e3", "1e3s"),
    *("-5m", "+5m", "--5m", "-5", "+5", "- 5m", "1h-30m", "−5m"),
    *("٣m", "３m", "³m", "½h", "1ｍ", "1м", "1\u00a0h", "1\u200bh", "1h\u0000", "1\0h"),
    *("nan", "inf", "-inf", "NaN", "Infinity", "1/2h", "0x10", "0b1"),
    *(
        "P",
        "PT",
        "P1",
        "PT1",
        "P1M",
        "P1Y",
        "P1Y2M",
        "PT1D",
        "P1H",
        "P1DT",
        "P1DT1",
        "PT30M1H",
        "P1D1W",
        "-P1D",
        "P-1D",
    ),
    *("P1D T1H", "P1D1D", "PP1D", "T1H", "PT1H30", "P1W1M", "PT1,5H", "P٣D", "P0001-01-01T00:00:00"),
    "9" * 16 + "s",
    "0." + "1" * 10,
    "1s" * 10_000,
    "9" * 100_000,
)


@pytest.mark.parametrize("text", UNREADABLE, ids=lambda text: repr(text[:20]))
def test_text_that_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(rota.InvalidDuration) as caught:
        duration(text, "interval")
    error = caught.value
    assert (error.field, error.value, error.problem) == ("interval", text, "is not a duration")
    assert "such as" in error.allowed


@pytest.mark.parametrize("value", [True, False, None, b"1m", [], ("1m",), {"minutes": 1}, 1j, object])
def test_what_is_neither_number_nor_text_nor_timedelta_is_refused(value: object) -> None:
    with pytest.raises(rota.InvalidDuration) as caught:
        duration(value)  # type: ignore[arg-type]
    assert caught.value.problem == "is not a duration"


@pytest.mark.parametrize(
    "value",
    [-1, -0.5, -1e-5, timedelta(microseconds=-1), timedelta.min, -1e30, -(10**400), -float("inf")],
    ids=lambda value: repr(value)[:20],
)
def test_a_negative_length_is_called_negative(value: float | timedelta) -> None:
    with pytest.raises(rota.InvalidDuration) as caught:
        duration(value)
    assert caught.value.problem == "is negative"


@pytest.mark.parametrize(
    "value",
    [LONGEST // SECOND + 1, 1e30, 10**400, float("inf"), "36526d", "999999999999999w", "P36525DT1S", timedelta.max],
    ids=lambda value: repr(value)[:20],
)
def test_more_than_a_hundred_years_are_too_long(value: str | float | timedelta) -> None:
    with pytest.raises(rota.InvalidDuration) as caught:
        duration(value)
    assert (caught.value.problem, caught.value.allowed) == ("is too long", "use at most 36525d")


def test_not_a_number_is_no_duration() -> None:
    with pytest.raises(rota.InvalidDuration) as caught:
        duration(float("nan"))
    assert caught.value.problem == "is not a duration"


def test_the_bounds_of_the_caller_hold_and_are_named() -> None:
    assert duration("1s", least=SECOND, most=HOUR) == SECOND
    assert duration("1h", least=SECOND, most=HOUR) == HOUR
    with pytest.raises(rota.InvalidDuration, match=r"^grace: '999ms' is too short; use at least 1s$"):
        duration("999ms", "grace", least=SECOND, most=HOUR)
    with pytest.raises(rota.InvalidDuration, match=r"^grace: '61m' is too long; use at most 1h$"):
        duration("61m", "grace", least=SECOND, most=HOUR)


@given(LENGTHS)
@example(LONGEST)
@example(LONGEST - 1)
def test_seconds_as_a_float_are_exact_to_the_microsecond(microseconds: int) -> None:
    assert duration(microseconds / SECOND) == microseconds


@given(LENGTHS)
def test_a_timedelta_is_exact(microseconds: int) -> None:
    assert duration(timedelta(microseconds=microseconds)) == microseconds


@given(st.text(max_size=12) | st.from_regex(r"[PpTt0-9.]{0,9}[wdhms]?[0-9]{0,3}[a-z]{0,3}", fullmatch=True))
def test_no_text_breaks_the_reader(text: str) -> None:
    with suppress(rota.InvalidDuration):
        assert 0 <= duration(text) <= LONGEST


WRITTEN = {
    0: "0s",
    1: "1us",
    1_000: "1ms",
    SECOND: "1s",
    90 * MINUTE: "1h30m",
    DAY + SECOND: "1d1s",
    WEEK: "7d",
    DAY + HOUR + MINUTE + SECOND + 1_001: "1d1h1m1s1ms1us",
    LONGEST: "36525d",
}


@pytest.mark.parametrize(("microseconds", "text"), WRITTEN.items())
def test_lengths_are_written_short(microseconds: int, text: str) -> None:
    assert duration_text(microseconds) == text


@given(LENGTHS)
def test_what_is_written_reads_back(microseconds: int) -> None:
    assert duration(duration_text(microseconds)) == microseconds


SPOKEN = {
    0: "0 s",
    1: "1 µs",
    1_500: "1 ms 500 µs",
    250_000: "250 ms",
    SECOND: "1 s",
    SECOND + 1: "1 s",
    59 * SECOND: "59 s",
    13 * MINUTE + 4 * SECOND: "13 min 4 s",
    90 * MINUTE: "1 h 30 min",
    90 * MINUTE + 59 * SECOND: "1 h 30 min",
    3 * DAY + 4 * HOUR: "3 d 4 h",
    3 * DAY + 59 * MINUTE: "3 d",
    WEEK: "7 d",
    LONGEST: "36525 d",
}


@pytest.mark.parametrize(("microseconds", "words"), SPOKEN.items())
def test_lengths_are_spoken_in_two_units_at_most(microseconds: int, words: str) -> None:
    assert duration_words(microseconds) == words


@given(LENGTHS)
def test_words_fall_short_by_less_than_one_of_the_second_unit(microseconds: int) -> None:
    said = duration(duration_words(microseconds))
    smaller = {DAY: HOUR, HOUR: MINUTE, MINUTE: SECOND, SECOND: 1_000, 1_000: 1, 1: 1}
    largest = next((unit for unit in smaller if microseconds >= unit), 1)
    assert 0 <= microseconds - said < smaller[largest]
