"""A second opinion on cron schedules: slow, plain, and sharing no line of code with Rota.

The oracle looks at a clock on the wall. It walks every minute of UTC through a window, asks `zoneinfo` what the clock
shows, and keeps the minutes whose face matches the expression. A face seen twice is a repeated time; faces jumped over
are a gap. (Where an offset is not a whole number of minutes it walks every second.)
"""

import calendar
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Literal
from zoneinfo import ZoneInfo

Gap = Literal["after", "skip"]
Repeat = Literal["first", "second", "both"]
Face = tuple[int, datetime]  # an instant in seconds of UTC since 1970, and the naive time that the clock shows then

MONTHS = {name.upper(): number for number, name in enumerate(calendar.month_abbr) if name}
WEEKDAYS = {name: number for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))}
NICKNAMES = {
    "@HOURLY": "0 * * * *",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@WEEKLY": "0 0 * * 0",
    "@MONTHLY": "0 0 1 * *",
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
}
LAST = -1
LAST_WEEKDAY = -2
MARGIN = {60: timedelta(hours=26), 1: timedelta(hours=2)}  # for each tick, wider than any gap or repeat


@dataclass(frozen=True)
class Pattern:
    """What an expression asks for, as plain sets."""

    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]  # with LAST and LAST_WEEKDAY
    months: frozenset[int]
    weekdays: frozenset[int]  # Sunday is 0
    numbered: frozenset[tuple[int, int]]  # (weekday, which one in the month or LAST)
    both_days: bool  # the day of month AND the day of week, not OR
    fixed: bool  # neither minute nor hour starts with a star


@dataclass(frozen=True)
class Change:
    """The instant at which a zone's offset changes."""

    at: datetime
    before: timedelta
    after: timedelta

    @property
    def shift(self) -> timedelta:
        """How far the clock jumps: forward is positive and leaves a gap."""
        return self.after - self.before


def numbers(item: str, low: int, high: int, names: dict[str, int]) -> set[int]:
    """The values of one list item: `*`, `5`, `2-7`, each with an optional step."""
    body, slash, step = item.partition("/")
    if body == "*":
        first, last = low, high
    elif "-" in body:
        first, last = (names[end] if end in names else int(end) for end in body.split("-"))
    else:
        first = names[body] if body in names else int(body)
        last = high if slash else first
    return set(range(first, last + 1, int(step or 1)))


def field(text: str, low: int, high: int, names: dict[str, int] | None = None) -> frozenset[int]:
    """The values of a field without special days."""
    return frozenset().union(*(numbers(item, low, high, names or {}) for item in text.split(",")))


def weekday_item(item: str) -> set[int] | tuple[int, int]:
    """A day-of-week item: plain weekdays, or one numbered weekday."""
    name, hash_sign, number = item.partition("#")
    if hash_sign or item.endswith("L"):
        (weekday,) = numbers(name.removesuffix("L"), 0, 7, WEEKDAYS)
        return weekday % 7, int(number) if hash_sign else LAST
    return {value % 7 for value in numbers(item, 0, 7, WEEKDAYS)}


@lru_cache(maxsize=256)
def parse(expr: str) -> Pattern:
    """Read an expression that is known to be good."""
    text = expr.strip().upper()
    parts = NICKNAMES.get(text, text).split()
    if len(parts) == 5:
        parts.insert(0, "0")
    second, minute, hour, day, month, weekday = parts
    special = {"L": LAST, "LW": LAST_WEEKDAY}
    day_items = day.split(",")
    weekday_items = [weekday_item(item) for item in weekday.split(",")]
    return Pattern(
        seconds=field(second, 0, 59),
        minutes=field(minute, 0, 59),
        hours=field(hour, 0, 23),
        days=frozenset().union(*({special[d]} if d in special else numbers(d, 1, 31, {}) for d in day_items)),
        months=field(month, 1, 12, MONTHS),
        weekdays=frozenset().union(*(item for item in weekday_items if isinstance(item, set))),
        numbered=frozenset(item for item in weekday_items if isinstance(item, tuple)),
        both_days=day.startswith("*") or weekday.startswith("*"),
        fixed=not minute.startswith("*") and not hour.startswith("*"),
    )


def last_weekday(day: date) -> int:
    """The last Monday-to-Friday day of a date's month."""
    length = calendar.monthrange(day.year, day.month)[1]
    return max(n for n in range(length - 6, length + 1) if day.replace(day=n).weekday() < 5)


@lru_cache(maxsize=8192)
def day_matches(pattern: Pattern, day: date) -> bool:
    """Whether a date is one that the pattern asks for."""
    length = calendar.monthrange(day.year, day.month)[1]
    weekday = day.isoweekday() % 7
    by_month = (
        day.day in pattern.days
        or (LAST in pattern.days and day.day == length)
        or (LAST_WEEKDAY in pattern.days and day.day == last_weekday(day))
    )
    by_week = (
        weekday in pattern.weekdays
        or (weekday, (day.day - 1) // 7 + 1) in pattern.numbered
        or ((weekday, LAST) in pattern.numbered and day.day + 7 > length)
    )
    return day.month in pattern.months and (by_month and by_week if pattern.both_days else by_month or by_week)


def comes(expr: str) -> bool:
    """Whether some date matches at all: 28 years hold every mix of date, weekday and leap year."""
    pattern = parse(expr)
    return any(day_matches(pattern, date(1972, 1, 1) + timedelta(days=n)) for n in range(28 * 366))


def face_matches(pattern: Pattern, shown: datetime) -> bool:
    """Whether the clock's hour, minute and date are asked for."""
    return shown.minute in pattern.minutes and shown.hour in pattern.hours and day_matches(pattern, shown.date())


@lru_cache(maxsize=4)
def walk(zone: str, start: datetime, end: datetime, tick: int) -> list[Face]:
    """Every `tick` seconds of UTC from start to end, with what the clock shows."""
    tz = ZoneInfo(zone)
    seconds = range(int(start.timestamp()) // 60 * 60, int(end.timestamp()) + tick, tick)
    return [(second, datetime.fromtimestamp(second, tz).replace(tzinfo=None)) for second in seconds]


def chosen(copies: list[int], fixed: bool, repeat: Repeat) -> list[int]:
    """Of the instants that show one face, those that fire."""
    if not fixed or repeat == "both":
        return copies
    return copies[:1] if repeat == "first" else copies[-1:]


def instants(
    expr: str, zone: str, after: datetime, until: datetime, gap: Gap = "after", repeat: Repeat = "first"
) -> list[datetime]:
    """Every instant t in UTC with after < t <= until."""
    pattern = parse(expr)
    after, until = after.astimezone(UTC), until.astimezone(UTC)
    tick = 60
    faces = walk(zone, after - MARGIN[tick], until + MARGIN[tick], tick)
    if any(shown.second for _, shown in faces):
        tick = 1
        faces = walk(zone, after - MARGIN[tick], until + MARGIN[tick], tick)
    within = sorted(pattern.seconds) if tick == 60 else [0]

    def matches(shown: datetime) -> bool:
        return (tick == 60 or shown.second in pattern.seconds) and face_matches(pattern, shown)

    copies: dict[datetime, list[int]] = {}
    for instant, shown in faces:
        if matches(shown):
            copies.setdefault(shown, []).append(instant)
    found = {
        instant + second
        for same_face in copies.values()
        for instant in chosen(same_face, pattern.fixed, repeat)
        for second in within
    }
    if pattern.fixed and gap == "after":
        step = timedelta(seconds=tick)
        for (_, shown_before), (instant, shown) in pairwise(faces):
            lost = (shown - shown_before) // step - 1
            if any(matches(shown_before + n * step) for n in range(1, lost + 1)):
                found.add(instant)
    in_utc = (datetime.fromtimestamp(second, UTC) for second in sorted(found))
    return [instant for instant in in_utc if after < instant <= until]


@lru_cache(maxsize=4096)
def changes(zone: str, year: int) -> tuple[Change, ...]:
    """Every change of a zone's offset in a year of UTC, found by looking at the clock."""
    tz = ZoneInfo(zone)

    def offset(second: int) -> timedelta:
        return datetime.fromtimestamp(second, tz).utcoffset() or timedelta()

    step = 6 * 3600
    first = int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
    last = int(datetime(year + 1, 1, 1, tzinfo=UTC).timestamp())
    found = []
    for start, end in pairwise(range(first, last + 1, step)):
        before, after = offset(start), offset(end)
        if before == after:
            continue
        low, high = start, end
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(middle) == before else (low, middle)
        found.append(Change(datetime.fromtimestamp(high, UTC), before, after))
    return tuple(found)


def calm(zone: str, start: datetime, end: datetime) -> bool:
    """Whether a zone's offset stays the same for a day before start, a day after end, and between."""
    margin = timedelta(days=1)
    first, last = (start - margin).astimezone(UTC), (end + margin).astimezone(UTC)
    years = range(first.year, last.year + 1)
    return not any(first <= change.at <= last for year in years for change in changes(zone, year))
