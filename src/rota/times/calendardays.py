"""The days of a calendar rule: picks inside every n-th day, week, month or year."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import date
from typing import Literal, NamedTuple

from rota.errors import InvalidRule
from rota.times.monthdays import EPOCH_DAY, first_of, month_length
from rota.times.words import MONTHS, WEEKDAYS

Unit = Literal["day", "week", "month", "year"]

_LAST_DAY = date(2200, 1, 2).toordinal() - EPOCH_DAY
_FIRST_DAY = -2
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": -1}
_SUFFIXES = {1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 5: "5th", -1: "last"}
_ORDINALS |= {written: number for number, written in _SUFFIXES.items()}
_DAYS = {name.upper()[:3]: number for number, name in enumerate(WEEKDAYS[1:])}
_ALLOWED = {
    "week": "use days such as MON, or weekday for Monday to Friday",
    "month": "use days such as 15, last, 2nd TUE, last FRI, first weekday or last weekday",
    "year": "use a month and a day, such as DEC 25, FEB last or NOV 4th THU",
}


class Pick(NamedTuple):
    """One day of a period: the n-th (or last, -1) day, weekday or named day of it, or of one month of it."""

    nth: int
    kind: str
    month: int | None = None

    def text(self) -> str:
        """Write the pick so that it reads back."""
        if self.nth == 0:
            return self.kind
        if self.kind == "day":
            written = "last" if self.nth < 0 else str(self.nth)
        else:
            written = f"{_SUFFIXES[self.nth]} {self.kind}"
        return f"{MONTHS[self.month - 1][:3].upper()} {written}" if self.month else written

    def words(self) -> str:
        """Say the pick: `the last weekday`, `day 15`, `25 December`, `the 4th Thursday of November`."""
        kind = WEEKDAYS[_DAYS[self.kind] + 1] if self.kind in _DAYS else self.kind
        if self.nth == 0:
            return "Monday to Friday" if kind == "weekday" else kind
        if self.kind == "day" and self.nth > 0:
            return f"{self.nth} {MONTHS[self.month - 1]}" if self.month else f"day {self.nth}"
        return f"the {_SUFFIXES[self.nth]} {kind}" + (f" of {MONTHS[self.month - 1]}" if self.month else "")

    def days(self, weekday: int, length: int) -> list[int]:
        """Return the day that this picks in a month that begins on this weekday (0 is Monday), if it has one."""
        if self.kind == "day":
            held: Sequence[int] = range(1, length + 1)
        elif self.kind == "weekday":
            held = [day for day in range(1, length + 1) if (weekday + day - 1) % 7 < 5]
        else:
            held = range(1 + (_DAYS[self.kind] - weekday) % 7, length + 1, 7)
        return list(held[-1:]) if self.nth < 0 else list(held[self.nth - 1 : self.nth])


def pick(unit: Unit, text: object) -> Pick:
    """Read one value of `on`."""
    words = str(text).upper().split() if isinstance(text, (str, int)) and str(text).isascii() else []
    found = _week_pick(words) if unit == "week" else _month_pick(words) if unit == "month" else _year_pick(words)
    if found is None:
        raise InvalidRule("on", text, _ALLOWED[unit], f"is no day of a {unit}")
    return found


def _week_pick(words: list[str]) -> Pick | None:
    kind = _kind(words[0]) if len(words) == 1 else None
    return None if kind in (None, "day") else Pick(0, str(kind))


def _month_pick(words: list[str]) -> Pick | None:
    if len(words) == 1 and words[0] == "LAST":
        return Pick(-1, "day")
    if len(words) == 1 and re.fullmatch("[0-9]{1,2}", words[0]) and 1 <= int(words[0]) <= 31:
        return Pick(int(words[0]), "day")
    if len(words) == 2:
        nth = _ORDINALS.get(words[0].lower())
        kind = _kind(words[1])
        if nth and kind:
            return Pick(nth, kind)
    return None


def _year_pick(words: list[str]) -> Pick | None:
    month = next((n for n, name in enumerate(MONTHS, 1) if words and _names(words[0], name)), None)
    found = _month_pick(words[1:])
    return found._replace(month=month) if month and found else None


def _kind(word: str) -> str | None:
    if word in ("DAY", "WEEKDAY"):
        return word.lower()
    return word[:3] if any(_names(word, name) for name in WEEKDAYS) else None


def _names(word: str, name: str) -> bool:
    """Tell whether a word is a name or at least its first three letters."""
    return len(word) >= 3 and name.upper().startswith(word)


class CalendarDays:
    """The picks inside every n-th period, counted from the one that holds the origin."""

    __slots__ = ("_every", "_origin", "_picks", "_unit")

    def __init__(self, unit: Unit, every: int, origin: int, picks: Sequence[Pick]) -> None:
        self._unit = unit
        self._every = every
        self._origin = self._period(origin)
        self._picks = picks

    def next(self, day: int) -> int | None:
        """Return the first day that is not before this one."""
        period = self._period(day)
        period += (self._origin - period) % self._every
        while self._first(period) <= _LAST_DAY:
            days = self._days(period)
            at = bisect_left(days, day)
            if at < len(days):
                return days[at]
            period += self._every
        return None

    def previous(self, day: int) -> int | None:
        """Return the last day that is not after this one."""
        period = self._period(day)
        period -= (period - self._origin) % self._every
        while self._first(period + 1) > _FIRST_DAY:
            days = self._days(period)
            at = bisect_right(days, day)
            if at:
                return days[at - 1]
            period -= self._every
        return None

    def count(self, first: int, end: int) -> int:
        """Count the days in `[first, end)`."""
        if self._unit == "day":
            return max(0, (end - 1 - self._origin) // self._every - (first - 1 - self._origin) // self._every)
        found, day = 0, self.next(first)
        while day is not None and day < end:
            found += 1
            day = self.next(day + 1)
        return found

    def _period(self, day: int) -> int:
        if self._unit == "day":
            return day
        if self._unit == "week":
            return (day + 3) // 7  # 1970-01-01 was a Thursday; weeks begin on Monday
        civil = date.fromordinal(day + EPOCH_DAY)
        return civil.year if self._unit == "year" else civil.year * 12 + civil.month - 1

    def _first(self, period: int) -> int:
        if self._unit == "day":
            return period
        if self._unit == "week":
            return period * 7 - 3
        return first_of(period, 1) if self._unit == "year" else first_of(period // 12, period % 12 + 1)

    def _days(self, period: int) -> list[int]:
        first = self._first(period)
        if self._unit == "day":
            return [first]
        if self._unit == "week":
            kinds = {pick.kind for pick in self._picks}
            return [
                first + number for name, number in _DAYS.items() if name in kinds or (number < 5 and "weekday" in kinds)
            ]
        found: set[int] = set()
        for each in self._picks:
            year, month = (period, each.month or 1) if self._unit == "year" else (period // 12, period % 12 + 1)
            start = first_of(year, month)
            found.update(start + day - 1 for day in each.days((start + 3) % 7, month_length(year, month)))
        return sorted(found)
