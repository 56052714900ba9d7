"""The days that cron's day of month, month and day of week name together."""

from datetime import date
from typing import NamedTuple, cast

from cronsim import CronSim

from rota.times.clockface import lowest, mask_of

EPOCH_DAY = date(1970, 1, 1).toordinal()
_FIRST_YEAR, _LAST_YEAR = 1969, 2200
_EVERY_MONTH = mask_of(range(1, 13))
_EVERY_WEEKDAY = mask_of(range(8))  # Sunday is both 0 and 7
_EVERY_DAY = mask_of(range(31))
_EVERY_WEEK = mask_of(range(0, 35, 7))

Special = int | tuple[int, int]
"""A day that depends on its month: cronsim's mark for the last day or last weekday, or (weekday, n-th or last)."""


class Values(NamedTuple):
    """What a field of a cron expression names: numbers as a mask, and special days."""

    mask: int
    special: tuple[Special, ...] = ()


def month_length(year: int, month: int) -> int:
    """Return the number of days of a month."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28
    return 30 + (month + month // 8) % 2


def first_of(year: int, month: int) -> int:
    """Return the first day of a month, counted from 1970-01-01."""
    return date(year, month, 1).toordinal() - EPOCH_DAY


class MonthDays:
    """The days in these months that are one of the days of the month and (`both`) or (otherwise) one of the weekdays.

    A month's days depend only on the weekday of its first and on its length: 28 masks at most, made when needed.
    """

    __slots__ = ("_any_weekday", "_both", "_days", "_every", "_last", "_last_weekday", "_masks", "_months", "_weekdays")

    def __init__(self, months: int, days: Values, weekdays: Values, *, both: bool) -> None:
        self._months = months
        self._days = days.mask >> 1
        self._last = CronSim.LAST in days.special
        self._last_weekday = CronSim.LAST_WEEKDAY in days.special
        self._weekdays = weekdays
        self._any_weekday = weekdays.mask == _EVERY_WEEKDAY
        self._both = both
        self._masks: dict[int, int] = {}
        self._every = self._any_weekday and months == _EVERY_MONTH and self._days == _EVERY_DAY

    def next(self, day: int) -> int | None:
        """Return the first day that is not before this one."""
        if self._every:
            return day
        civil = date.fromordinal(day + EPOCH_DAY)
        year, month = civil.year, civil.month
        first = day - civil.day + 1
        while True:
            if self._months >> month & 1:
                later = self.mask((first + 3) % 7, month_length(year, month)) >> day - first
                if later:
                    return day + lowest(later)
            if later := self._months >> month + 1:
                month += 1 + lowest(later)
            elif year < _LAST_YEAR:
                year, month = year + 1, lowest(self._months)
            else:
                return None
            day = first = first_of(year, month)

    def previous(self, day: int) -> int | None:
        """Return the last day that is not after this one."""
        if self._every:
            return day
        civil = date.fromordinal(day + EPOCH_DAY)
        year, month = civil.year, civil.month
        first = day - civil.day + 1
        while True:
            if self._months >> month & 1:
                earlier = self.mask((first + 3) % 7, month_length(year, month)) & (2 << day - first) - 1
                if earlier:
                    return first + earlier.bit_length() - 1
            if earlier := self._months & (1 << month) - 1:
                month = earlier.bit_length() - 1
            elif year > _FIRST_YEAR:
                year, month = year - 1, self._months.bit_length() - 1
            else:
                return None
            first = first_of(year, month)
            day = first + month_length(year, month) - 1

    def count(self, first: int, end: int) -> int:
        """Count the days in `[first, end)`."""
        if self._every:
            return max(0, end - first)
        found = 0
        while first < end:
            civil = date.fromordinal(first + EPOCH_DAY)
            start, length = first - civil.day + 1, month_length(civil.year, civil.month)
            if self._months >> civil.month & 1:
                days = self.mask((start + 3) % 7, length) >> civil.day - 1
                found += (days & (1 << min(end, start + length) - first) - 1).bit_count()
            first = start + length
        return found

    def ever(self) -> bool:
        """Tell whether any month of any year has such a day."""
        if self._every or (self._days & 1 and (self._any_weekday or not self._both)):  # every month has a first
            return True
        lengths = (length for month, held in _LENGTHS.items() if self._months >> month & 1 for length in held)
        return any(self.mask(weekday, length) for length in lengths for weekday in range(7))

    def mask(self, weekday: int, length: int) -> int:
        """Return the days, bit 0 for the first, of a month that begins on this weekday (0 is Monday)."""
        key = weekday << 5 | length
        found = self._masks.get(key)
        if found is None:
            days, weekdays = self._day_mask(weekday, length), self._weekday_mask(weekday, length)
            found = self._masks[key] = (days & weekdays if self._both else days | weekdays) & (1 << length) - 1
        return found

    def _day_mask(self, weekday: int, length: int) -> int:
        found = self._days
        if self._last:
            found |= 1 << length - 1
        if self._last_weekday:
            found |= 1 << length - 1 - max(0, (weekday + length - 1) % 7 - 4)
        return found

    def _weekday_mask(self, weekday: int, length: int) -> int:
        if self._any_weekday:
            return _EVERY_DAY
        found, named = 0, self._weekdays.mask
        while named:
            found |= _EVERY_WEEK << (lowest(named) - 1 - weekday) % 7
            named &= named - 1
        for item in self._weekdays.special:
            name, which = cast("tuple[int, int]", item)
            first = (name - 1 - weekday) % 7
            last = first + (length - 1 - first) // 7 * 7
            found |= 1 << (last if which == CronSim.LAST else first + (which - 1) * 7)
        return found


_LENGTHS = {month: tuple({month_length(year, month): 0 for year in (2000, 2001)}) for month in range(1, 13)}
