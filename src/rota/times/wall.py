"""Wall-clock series: days × times of day in a time zone. The law of clock changes is written here, once.

Inside a stretch of constant offset, wall time and UTC differ by a constant. At the seams:

- A *gap* (the offset grows): the wall times between do not exist. A fixed series fires once at the first instant after
  the gap if any of its times lie inside; with `gap="skip"`, and for wildcards, they are lost.
- A *repeat* (the offset shrinks): the wall times between come twice. A fixed series fires in the first copy, or as
  `repeat` says; a wildcard fires in both.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple, Protocol

from rota.times.moments import LATEST, SECOND, Instant
from rota.times.series import Series, within_range
from rota.times.zones import Stretch, Zone

Gap = Literal["after", "skip"]
Repeat = Literal["first", "second", "both"]

_DAY = 86_400
_LAST_SECOND = LATEST // SECOND
_CLEAR = 3 * _DAY
"""Further than any two offsets differ, so that what is that far from a wall time is certainly on its side of it."""


class Days(Protocol):
    """A set of calendar days, counted from 1970-01-01."""

    def next(self, day: int) -> int | None:
        """Return the first day of the set that is not before this one."""

    def previous(self, day: int) -> int | None:
        """Return the last day of the set that is not after this one."""

    def count(self, first: int, end: int) -> int:
        """Count the days of the set in `[first, end)`."""


class Times(Protocol):
    """A set of times of day, in seconds since midnight; never empty."""

    first: int
    last: int

    def below(self, time: int) -> int:
        """Count the times of the set before this one."""

    def next(self, time: int) -> int | None:
        """Return the first time of the set that is not before this one."""

    def previous(self, time: int) -> int | None:
        """Return the last time of the set that is not after this one."""

    def bits(self) -> int:
        """Return the set as a bitmap of a day's seconds."""


class Seam(NamedTuple):
    """A clock change that touches a series: the wall times in `[low, high)` do not exist, or come twice."""

    start: int
    kind: Literal["gap", "repeat"]
    low: int
    high: int
    walls: list[int]
    """The first few of those wall times that the series names."""


class Wall(Series):
    """Days × times of day, in a zone."""

    __slots__ = ("_days", "_first_copy_only", "_second_copy_only", "_times", "fixed", "makes_up", "repeat", "zone")

    def __init__(self, zone: Zone, days: Days, times: Times, *, fixed: bool, gap: Gap, repeat: Repeat) -> None:
        self.zone = zone
        self.fixed = fixed
        self.repeat = repeat
        self.makes_up = fixed and gap == "after"
        self._days = days
        self._times = times
        self._first_copy_only = fixed and repeat == "first"
        self._second_copy_only = fixed and repeat == "second"

    def next(self, after: Instant) -> Instant | None:
        """Return the first instant strictly after."""
        second = after // SECOND + 1
        while second <= _LAST_SECOND:
            stretch = self.zone.stretch(second)
            offset = stretch.offset
            if second == stretch.start and self._made_up(stretch):
                return second * SECOND
            low = self._low(stretch, second + offset)
            found = self._next_wall(low)
            if found is not None and found < self._high(stretch, stretch.end + offset):
                return within_range((found - offset) * SECOND)
            second = stretch.end
            # No wall time in [low, found) matches. Where the next stretch does not go back before `low`, jump.
            if stretch.after >= offset or low <= stretch.end + stretch.after:
                if found is None:
                    return None
                second = max(second, found - offset - _CLEAR)
        return None

    def previous(self, before: Instant) -> Instant | None:
        """Return the last instant strictly before."""
        second = -(-before // SECOND) - 1
        while second >= 0:
            stretch = self.zone.stretch(second)
            offset = stretch.offset
            high = self._high(stretch, second + offset + 1)
            found = self._previous_wall(high - 1)
            if found is not None and found >= self._low(stretch, stretch.start + offset):
                return within_range((found - offset) * SECOND)
            if self._made_up(stretch):
                return within_range(stretch.start * SECOND)
            second = stretch.start - 1
            # No wall time in (found, high) matches. Where the stretch before does not reach past `high`, jump.
            if stretch.before <= offset or high >= stretch.start + stretch.before:
                if found is None:
                    return None
                second = min(second, found - offset + _CLEAR)
        return None

    def count(self, after: Instant, until: Instant) -> int:
        """Count the instants in `(after, until]`, stretch by stretch."""
        found, second, last = 0, after // SECOND + 1, until // SECOND
        while second <= last:
            stretch = self.zone.stretch(second)
            end = min(stretch.end, last + 1)
            low = self._low(stretch, second + stretch.offset)
            high = self._high(stretch, end + stretch.offset)
            if second == stretch.start and self._made_up(stretch) and not self._count_walls(low, low + 1):
                found += 1  # unless the instant is named anyway
            if low < high:
                found += self._count_walls(low, high)
            second = end
        return found

    def bits(self, day: int) -> int:
        """Return the day's bitmap."""
        midnight = second = day * _DAY
        found = 0
        while second < midnight + _DAY:
            stretch = self.zone.stretch(second)
            end = min(stretch.end, midnight + _DAY)
            if second == stretch.start and self._made_up(stretch):
                found |= 1 << (second - midnight)
            low = self._low(stretch, second + stretch.offset)
            high = self._high(stretch, end + stretch.offset)
            if low < high:
                found |= self._wall_bits(low, high) << (low - stretch.offset - midnight)
            second = end
        return found

    def seams(self, after: Instant, until: Instant) -> Iterator[Seam]:
        """Yield the clock changes in `(after, until]` that touch the series."""
        second = after // SECOND + 1
        while second <= until // SECOND:
            stretch = self.zone.stretch(second)
            if second == stretch.start and stretch.before != stretch.offset:
                low, high = sorted((second + stretch.before, second + stretch.offset))
                walls = self._walls(low, high)
                if walls:
                    yield Seam(second, "gap" if stretch.before < stretch.offset else "repeat", low, high, walls)
            second = stretch.end

    def _walls(self, low: int, high: int, most: int = 4) -> list[int]:
        found: list[int] = []
        wall = self._next_wall(low)
        while wall is not None and wall < high and len(found) < most:
            found.append(wall)
            wall = self._next_wall(wall + 1)
        return found

    def _made_up(self, stretch: Stretch) -> bool:
        """Tell whether the stretch begins with a firing for times that a gap before it swallowed."""
        if not (self.makes_up and stretch.before < stretch.offset):
            return False
        swallowed = self._next_wall(stretch.start + stretch.before)
        return swallowed is not None and swallowed < stretch.start + stretch.offset

    def _low(self, stretch: Stretch, wall: int) -> int:
        """Return the first wall time of the stretch, from this one on, that may fire."""
        return max(wall, stretch.start + stretch.before) if self._first_copy_only else wall

    def _high(self, stretch: Stretch, wall: int) -> int:
        """Return the end of the wall times of the stretch, up to this one, that may fire."""
        return min(wall, stretch.end + stretch.after) if self._second_copy_only else wall

    def _next_wall(self, wall: int) -> int | None:
        day, time = divmod(wall, _DAY)
        matching = self._days.next(day)
        if matching == day:
            found = self._times.next(time)
            if found is not None:
                return day * _DAY + found
            matching = self._days.next(day + 1)
        return None if matching is None else matching * _DAY + self._times.first

    def _previous_wall(self, wall: int) -> int | None:
        day, time = divmod(wall, _DAY)
        matching = self._days.previous(day)
        if matching == day:
            found = self._times.previous(time)
            if found is not None:
                return day * _DAY + found
            matching = self._days.previous(day - 1)
        return None if matching is None else matching * _DAY + self._times.last

    def _count_walls(self, low: int, high: int) -> int:
        """Count the matching wall times in `[low, high)`."""
        first, start = divmod(low, _DAY)
        last, end = divmod(high, _DAY)
        found = self._days.count(first, last) * self._times.below(_DAY)
        if start and self._days.count(first, first + 1):
            found -= self._times.below(start)
        if end and self._days.count(last, last + 1):
            found += self._times.below(end)
        return found

    def _wall_bits(self, low: int, high: int) -> int:
        """Return the matching wall times in `[low, high)` as a bitmap that starts at `low`."""
        found = 0
        day = self._days.next(low // _DAY)
        while day is not None and day * _DAY < high:
            shift = day * _DAY - low
            found |= self._times.bits() << shift if shift >= 0 else self._times.bits() >> -shift
            day = self._days.next(day + 1)
        return found & ((1 << (high - low)) - 1)
