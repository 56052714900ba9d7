"""Cron expressions: cronsim reads them, Rota evaluates them."""

from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from cronsim.cronsim import RANGES, CronSimError, Field, SpecItem

from rota.errors import InvalidRule
from rota.times.choices import one_of
from rota.times.clockface import Clockface, mask_of
from rota.times.moments import SECOND
from rota.times.monthdays import MonthDays, Special, Values
from rota.times.rule import Rule, bounded
from rota.times.wall import Gap, Repeat, Wall
from rota.times.words import cron_words
from rota.times.zones import zone

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
"""The names that stand for an expression."""

LONGEST = 1_000
_SPACE = " \t\r\n"
"""What may stand around an expression; other white space only looks like it."""
_MOST_KNOWN = 4_096

NAMES = {
    Field.SECOND: "second",
    Field.MINUTE: "minute",
    Field.HOUR: "hour",
    Field.DAY: "day of month",
    Field.MONTH: "month",
    Field.DOW: "day of week",
}
_NO_STEP = ("L", "LW")
_ALLOWED = {
    Field.SECOND: "use 0 to 59, *, lists (0,30), ranges (0-9) or steps (*/10)",
    Field.MINUTE: "use 0 to 59, *, lists (0,30), ranges (0-29) or steps (*/15)",
    Field.HOUR: "use 0 to 23, *, lists (9,17), ranges (9-17) or steps (*/6)",
    Field.DAY: "use 1 to 31 as the month has them, L (last day), LW (last weekday), *, lists, ranges or steps",
    Field.MONTH: "use 1 to 12 or JAN to DEC, *, lists, ranges (MAR-MAY) or steps (*/3)",
    Field.DOW: "use 0 to 7 (0 and 7 are Sunday), SUN to SAT, MON#2 (second), 5L (last), *, lists, ranges or steps",
}
_SHAPE = "use minute, hour, day of month, month and day of week, with a sixth field for seconds in front if wanted"


class Fields(NamedTuple):
    """An expression, read."""

    text: str
    parts: tuple[str, ...]
    days: MonthDays
    times: Clockface
    fixed: bool
    """Neither the minute nor the hour starts with `*`: the times are fixed, not wildcards."""


@dataclass(frozen=True, init=False, repr=False)
class Cron(Rule):
    """A cron expression in a time zone, read as Debian's cron reads it."""

    expr: str
    tz: str = "UTC"
    gap: Gap = "after"
    repeat: Repeat = "first"
    start: datetime | None = None
    end: datetime | None = None

    fields: Fields = field(init=False, compare=False, repr=False)

    def __init__(
        self,
        expr: str,
        tz: str | ZoneInfo = "UTC",
        *,
        gap: Gap = "after",
        repeat: Repeat = "first",
        start: datetime | str | None = None,
        end: datetime | str | None = None,
    ) -> None:
        if not isinstance(expr, str):
            raise InvalidRule("expression", expr, _SHAPE, "is not text")
        fields = parsed(expr)
        where = zone(tz)
        if gap != "after":
            one_of("gap", gap, ("after", "skip"))
        if repeat != "first":
            one_of("repeat", repeat, ("first", "second", "both"))
        wall = Wall(where, fields.days, fields.times, fixed=fields.fixed, gap=gap, repeat=repeat)
        series, first, last = bounded(wall, start, end)
        self._become(
            series, expr=fields.text, tz=where.key, gap=gap, repeat=repeat, start=first, end=last, fields=fields
        )

    @property
    def tzinfo(self) -> tzinfo:
        """The zone whose wall clock the expression speaks of."""
        return zone(self.tz).tzinfo

    def notes(self) -> list[str]:
        """Say what people often take for something else."""
        days = (self.fields.parts[-3], self.fields.parts[-1])
        if "*" in days:
            return []
        if any(part.startswith("*") for part in days):
            return ["day of month and day of week are both set, and one starts with *: it fires when both match"]
        return ["day of month and day of week are both set: it fires when either matches"]

    @property
    def grain(self) -> int:
        """A minute, unless the expression has a field for seconds."""
        return 60 * SECOND if len(self.fields.parts) == 5 else SECOND

    def words(self) -> str:
        """Say in English when the rule fires."""
        return cron_words(self.fields.parts, self.tz)


@lru_cache(maxsize=8192)
def parsed(expr: str) -> Fields:
    """Read an expression, or say which field is wrong, its value, and what is allowed."""
    if len(expr) > LONGEST:
        raise InvalidRule("expression", expr, f"use at most {LONGEST:,} characters", "is too long")
    parts = [part for part in expr.strip(_SPACE).replace("\t", " ").split(" ") if part]
    if parts and parts[0].startswith("@"):
        name = " ".join(parts).lower()
        if name not in MACROS:
            raise InvalidRule("expression", expr, f"use {', '.join(sorted(MACROS))}", "is not a known name")
        return _fields(MACROS[name].split())._replace(text=name)
    return _fields(parts)


def _fields(given: list[str]) -> Fields:
    text = " ".join(given)
    if len(given) not in (5, 6):
        raise InvalidRule("expression", text, _SHAPE, f"has {len(given)} {'field' if len(given) == 1 else 'fields'}")
    if not (text.isascii() and text.isprintable()):  # other scripts' digits, which Python takes for ours
        places = zip(list(NAMES)[-len(given) :], given, strict=True)
        raise next(_refusal(place, part) for place, part in places if not (part.isascii() and part.isprintable()))
    text = text.upper()
    parts = tuple(text.split(" "))
    second, minute, hour, day, month, weekday = parts if len(parts) == 6 else ("0", *parts)
    times = Clockface(_read(Field.HOUR, hour).mask, _read(Field.MINUTE, minute).mask, _read(Field.SECOND, second).mask)
    return Fields(text, parts, _days(day, month, weekday), times, fixed=minute[0] != "*" and hour[0] != "*")


@lru_cache(maxsize=4096)
def _days(day: str, month: str, weekday: str) -> MonthDays:
    both = day[0] == "*" or weekday[0] == "*"
    days = MonthDays(_read(Field.MONTH, month).mask, _read(Field.DAY, day), _read(Field.DOW, weekday), both=both)
    if not days.ever():
        raise InvalidRule("day of month", f"{day} {month} {weekday}", _ALLOWED[Field.DAY], "is a day that never comes")
    return days


_READ: dict[Field, dict[str, Values]] = {field: {} for field in NAMES}
"""What was read before: most expressions are made of the same few parts."""


def _read(field: Field, part: str) -> Values:
    """Read one field of an expression."""
    known = _READ[field]
    found = known.get(part)
    if found is None:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        found = known[part] = _values(field, part)
    return found


_STAR = {field: Values(mask_of(RANGES[field])) for field in NAMES}


def _values(field: Field, part: str) -> Values:
    if part == "*":
        return _STAR[field]
    mask, special = 0, list[Special]()
    for item in part.split(","):
        if item.isdigit() and len(item) <= 2 and int(item) in RANGES[field]:  # nearly all
            mask |= 1 << int(item)
            continue
        for value in _items(field, item, part):
            if isinstance(value, int) and value >= 0:
                mask |= 1 << value
            else:
                special.append(value)
    return Values(mask, tuple(special))


def _items(field: Field, item: str, part: str) -> set[SpecItem]:
    """Let cronsim read one item of a list."""
    if not item:
        raise _refusal(field, part)
    base, _, step = item.partition("/")
    if step and base in _NO_STEP:
        raise _refusal(field, item)
    try:
        if step and "-" in base and len(start := field.parse(base)) == 1 and field.parse(item):
            return start  # cronsim takes 5-5/2 for 5/2, which goes on to the end
        return field.parse(item)
    except CronSimError:
        raise _refusal(field, item) from None


def _refusal(field: Field, item: str) -> InvalidRule:
    return InvalidRule(NAMES[field], item, _ALLOWED[field])
