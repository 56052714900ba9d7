"""What a rule says about itself in English: right, whole, and the same under every locale."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rota
from rota.times import duration
from rota.times.words import MONTHS, and_list, day_words, moment_words, zone_words

NOON = datetime(2027, 5, 4, 12, tzinfo=UTC)
BERLIN = "Europe/Berlin"

CRON = {
    "0 9 * * MON": "At 09:00, every Monday",
    "30 2 * * 1-5": "At 02:30, Monday to Friday",
    "0 9 * * *": "At 09:00, every day",
    "@daily": "At 00:00, every day",
    "@midnight": "At 00:00, every day",
    "@weekly": "At 00:00, every Sunday",
    "@hourly": "Every hour",
    "0 * * * *": "Every hour",
    "* * * * *": "Every minute",
    "*/15 * * * *": "Every 15 minutes",
    "*/5 * * * MON": "Every 5 minutes, every Monday",
    "0 * * * SAT,SUN": "Every hour, every Saturday and Sunday",
    "0 9,17 * * *": "At 09:00 and 17:00, every day",
    "0,30 9,17 * * *": "At 09:00, 09:30, 17:00 and 17:30, every day",
    "30 9,8 * * *": "At 08:30 and 09:30, every day",
    "0 9 * * 1,3,5": "At 09:00, every Monday, Wednesday and Friday",
    "0 9 * * sun,mon": "At 09:00, every Monday and Sunday",
    "0 9 * * 0": "At 09:00, every Sunday",
    "0 9 * * 7": "At 09:00, every Sunday",
    "0 9 * * 0,7": "At 09:00, every Sunday",
    "0 9 * * 6-7": "At 09:00, every Saturday and Sunday",
    "0 9 * * FRI-SAT": "At 09:00, every Friday and Saturday",
    "0 9 * * TUE-TUE": "At 09:00, every Tuesday",
    "0 9 * * 0-2": "At 09:00, Sunday to Tuesday",
    "0 30 9 * * MON": "At 09:30, every Monday",
    # where Rota has no words of its own, those of its parser
    "0 9 1 1 *": "At 09:00 on January 1",
    "0 9 L * *": "At 09:00 on the last day of every month",
    "0 9 LW * *": "At 09:00 on the last weekday of every month",
    "0 9 15 * *": "At 09:00 on the 15th day of every month",
    "0 9 * * MON#2": "At 09:00 on the second Monday of the month",
    "0 9 * * 5L": "At 09:00 on the last Friday of the month",
    "0 9 1 * 1": "At 09:00 on the first day of month or on Monday",
    "0 0 */2 * MON": "At 00:00 on every second day of month if it's on Monday",
    "* * * * * *": "Every second",
    "5 30 9 * * *": "At 09:30:05 every day",
}


@pytest.mark.parametrize(("expr", "words"), CRON.items())
def test_the_words_of_a_cron_expression(expr: str, words: str) -> None:
    assert rota.Cron(expr).words() == f"{words}, UTC"
    assert rota.Cron(expr, tz=BERLIN).words() == f"{words}, Berlin time"


ZONES = {
    "UTC": "UTC",
    "Europe/Berlin": "Berlin time",
    "America/New_York": "New York time",
    "America/Argentina/Buenos_Aires": "Buenos Aires time",
    "Etc/GMT+5": "Etc/GMT+5",
    "EST5EDT": "EST5EDT",
}


@pytest.mark.parametrize(("key", "words"), ZONES.items())
def test_the_words_of_a_zone(key: str, words: str) -> None:
    assert zone_words(key) == words
    assert rota.Cron("0 9 * * *", tz=key).words() == f"At 09:00, every day, {words}"


OTHERS: dict[str, rota.Rule] = {
    "Every 1 h": rota.Every("1h"),
    "Every 1 h 30 min": rota.Every("90m"),
    "Every 2 d 12 h": rota.Every("60h"),
    "Every 45 s": rota.Every(45),
    "Every 7 d, counted from Tue 4 May 2027 12:00 UTC": rota.Every("1w", origin=NOON),
    "1 h after the last success": rota.Every("1h", since="success"),
    "1 h after the last run ended": rota.Every("1h", since="finish"),
    "1 h after the last run started": rota.Every("1h", since="start"),
    "At Tue 4 May 2027 12:00 UTC": rota.At(NOON),
    "At Tue 4 May 2027 14:00 CEST": rota.At(NOON, tz=BERLIN),
    "At Sun 28 Mar 2027 03:00:05 CEST": rota.At("2027-03-28T01:00:05Z", tz=BERLIN),
    "At Mon 3 May 2027 12:00 UTC and Tue 4 May 2027 12:00 UTC": rota.At([NOON, NOON - timedelta(days=1)]),
    "At Tue 4 May 2027 12:00 UTC, Wed 5 May 2027 12:00 UTC, Thu 6 May 2027 12:00 UTC and 7 more": rota.At(
        [NOON + timedelta(days=n) for n in range(10)]
    ),
    "At 00:00, every day, UTC": rota.Calendar("day"),
    "At 09:00 and 18:30:15, every 3 days, UTC": rota.Calendar("day", every=3, at=["18:30:15", "9:00"]),
    "At 10:00, every week on Tuesday, Berlin time": rota.Calendar("week", on="TUE", at="10:00", tz=BERLIN),
    "At 10:00, every 2 weeks on Tuesday and Sunday, Berlin time": rota.Calendar(
        "week", every=2, on=["TUE", "SUN"], at="10:00", tz=BERLIN
    ),
    "At 00:00, every week on Monday to Friday, UTC": rota.Calendar("week", on="weekday"),
    "At 10:00, every 2 months on the last weekday, Berlin time": rota.Calendar(
        "month", every=2, on="last weekday", at="10:00", tz=BERLIN
    ),
    "At 00:00, every month on day 15, the last day and the 2nd Tuesday, UTC": rota.Calendar(
        "month", on=["15", "last", "2nd TUE"]
    ),
    "At 00:00, every year on 25 December and the last day of February, UTC": rota.Calendar(
        "year", on=["DEC 25", "FEB last"]
    ),
    "At 00:00, every year on the 4th Thursday of November, UTC": rota.Calendar("year", on="NOV 4th THU"),
    "Every 1 h; or at 09:00, every day, Berlin time": rota.AnyOf(rota.Every("1h"), rota.Cron("0 9 * * *", tz=BERLIN)),
}


@pytest.mark.parametrize("words", OTHERS)
def test_the_words_of_other_rules(words: str) -> None:
    assert OTHERS[words].words() == words


def test_words_are_joined_as_people_do() -> None:
    assert and_list(["a"]) == "a"
    assert and_list(["a", "b"]) == "a and b"
    assert and_list(["a", "b", "c"]) == "a, b and c"


# No words that are wrong.

SHAPE = re.compile(
    r"(?:(?P<minute>Every minute)|(?P<hour>Every hour)|Every (?P<step>\d+) minutes|At (?P<clock>[\d:, and]+))"
    r"(?:, every day|, every (?P<days>[A-Z][\w, ]*)|, (?P<first>[A-Z]\w+) to (?P<last>[A-Z]\w+))?, UTC"
)
NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def promised(said: re.Match[str], moment: datetime) -> bool:
    """Whether the words say that the rule fires at this minute."""
    if said["first"]:
        first, last = NAMES.index(said["first"]), NAMES.index(said["last"])
        days = {(first + n) % 7 for n in range((last - first) % 7 + 1)}
    else:
        days = {n for n, name in enumerate(NAMES) if not said["days"] or name in said["days"]}
    if moment.weekday() not in days:
        return False
    if said["clock"]:
        return f"{moment:%H:%M}" in said["clock"]
    step = 1 if said["minute"] else 60 if said["hour"] else int(said["step"])
    return moment.timestamp() // 60 % step == 0  # every 7 minutes would go on counting over the hour


def items(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    """The text of one field."""
    number = st.integers(low, high).map(str) | st.sampled_from([*names, str(low), str(high)])
    span = st.tuples(st.integers(low, high), st.integers(low, high)).map(lambda ends: f"{min(ends)}-{max(ends)}")
    step = st.sampled_from(["1", "2", "5", "7", "15", "30", "60"])
    one = st.just("*") | number | span | st.builds("{}/{}".format, st.just("*") | span | number, step)
    return one | st.just("*") | st.lists(one, min_size=2, max_size=3).map(",".join)


WEEKDAYS = items(0, 7, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")) | st.sampled_from(["MON#2", "5L", "1#5,SUN"])
FIELDS = (
    items(0, 59),
    items(0, 23),
    items(1, 31) | st.sampled_from(["L", "LW", "L,15"]),
    items(1, 12, ("JAN", "DEC")),
    WEEKDAYS,
)
EXPRESSIONS = st.tuples(*FIELDS).map(" ".join) | st.tuples(items(0, 59), *FIELDS).map(" ".join)


@given(EXPRESSIONS, st.sampled_from(["UTC", BERLIN]))
@example("*/15,7 * * * *", "UTC")
@example("*/15,*/20 * * * *", "UTC")
def test_every_expression_has_words(expr: str, tz: str) -> None:
    with suppress(rota.InvalidRule):  # a date that never comes
        rule = rota.Cron(expr, tz=tz)
        words = rule.words()
        assert words.endswith(", UTC" if tz == "UTC" else ", Berlin time")
        assert words[0].isupper()
        assert words.isprintable()


PLAIN = st.tuples(items(0, 59), items(0, 23), st.just("*"), st.just("*"), WEEKDAYS).map(" ".join)


@settings(deadline=None, max_examples=50)
@given(PLAIN)
@example("0 9 * * 0-7")
@example("0 9 * * 0-6")
@example("*/20 * * * 5-7")
@example("*/7 * * * *")
@example("*/59 * * * *")
@example("0,30 9,17 * * 1,3")
def test_times_and_weekdays_are_said_as_they_fire(expr: str) -> None:
    rule = rota.Cron(expr)
    said = SHAPE.fullmatch(rule.words())
    if said:
        begin = datetime(2027, 2, 26, 23, 59, tzinfo=UTC)  # ten days of two months
        minutes = [begin + timedelta(minutes=n) for n in range(1, 10 * 1440)]
        assert list(rule.instants(begin, minutes[-1])) == [each for each in minutes if promised(said, each)]


# Where neither day field starts with a star, either of them is enough: each of these fires every day.
EVERY_DAY = ("0 0 1-31 * MON", "0 0 1/1 * MON", "0 0 1 * 0-7", "0 0 1 * 0/1", "0 0 1-31 * 1-5", "0 0 L * 0-7")


@pytest.mark.parametrize("expr", EVERY_DAY)
def test_days_are_not_said_to_be_fewer_than_they_are(expr: str) -> None:
    rule = rota.Cron(expr)
    assert rule.count(NOON, NOON + timedelta(days=365)) == 365
    assert "Monday" not in rule.words()
    assert not re.search(r"\b(first|last) day", rule.words())


@pytest.mark.parametrize("day", range(1, 32))
def test_days_of_the_month_are_numbered_in_english(day: int) -> None:
    words = rota.Cron(f"0 9 {day} * *").words()
    suffix = "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    assert re.findall(r"\d+(?:st|nd|rd|th)\b", words) in ([], [f"{day}{suffix}"])


@given(st.integers(1, 40 * 86_400))
@example(86_400 + 300)
@example(5_420)
def test_an_interval_is_said_whole(seconds: int) -> None:
    said = rota.Every(seconds).words().removeprefix("Every ")
    assert duration(said) == seconds * 1_000_000


def test_the_seconds_of_an_origin_are_said() -> None:
    on_the_minute, later = (rota.Every("1h", origin=NOON + timedelta(seconds=n)).words() for n in (0, 30))
    assert on_the_minute != later


def test_the_fraction_of_a_moment_is_said() -> None:
    assert rota.At(NOON).words() != rota.At(NOON + timedelta(milliseconds=500)).words()


# The same under every locale.


class Picky(datetime):
    """A moment that refuses to be written in the words of the machine's locale."""

    def strftime(self, form: str) -> str:
        assert not set(re.findall("%(.)", form)) & set("aAbBcpxXZ"), form
        return super().strftime(form)


@pytest.mark.parametrize("month", range(1, 13))
def test_days_and_months_are_english_whatever_the_locale(month: int) -> None:
    moment = Picky(2027, month, 9, 8, 5, tzinfo=UTC)
    assert day_words(moment) == f"{NAMES[moment.weekday()][:3]} 9 {MONTHS[month - 1][:3]} 2027"
    assert moment_words(moment) == f"{day_words(moment)} 08:05 UTC"


def test_no_format_of_the_source_depends_on_the_locale() -> None:
    sources = sorted(Path(str(rota.times.__file__)).parent.glob("*.py"))
    assert len(sources) > 20
    found = {path.name: re.findall(r"%-?[aAbBcpxX]\b", path.read_text()) for path in sources}
    assert {name: forms for name, forms in found.items() if forms} == {}
