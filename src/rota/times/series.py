"""Series of instants without state: what every rule is made of inside.

A series answers from any point, in both directions. Long ranges are counted, never stepped through: a day is a bitmap
of its 86,400 seconds, so union, exclusion and counting are a few operations on integers, exact for any mix of rules.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from rota.times.moments import EARLIEST, LATEST, SECOND, Instant

_DAY = 86_400
WHOLE_DAY = (1 << _DAY) - 1
"""The bitmap of a day in which every second holds an instant."""


class Series(ABC):
    """A set of instants."""

    __slots__ = ()

    fractions: tuple[Instant, ...] = ()
    """The instants that are no whole second, sorted; only a list of moments has any."""

    @abstractmethod
    def next(self, after: Instant) -> Instant | None:
        """Return the first instant strictly after."""

    @abstractmethod
    def previous(self, before: Instant) -> Instant | None:
        """Return the last instant strictly before."""

    @abstractmethod
    def bits(self, day: int) -> int:
        """Return the seconds of that day (UTC, days since the epoch) that hold an instant, as a bitmap."""

    def count(self, after: Instant, until: Instant) -> int:
        """Count the instants in `(after, until]`."""
        whole = sum(bits.bit_count() for _, bits in days_of_bits(self, after, until))
        return whole + len(between(self.fractions, after, until))


def days_of_bits(
    series: Series, after: Instant, until: Instant, *, backwards: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield (day, bitmap) for the whole seconds of the series in `(after, until]`."""
    first, last = after // SECOND + 1, until // SECOND
    days = range(first // _DAY, last // _DAY + 1)
    for day in reversed(days) if backwards else days:
        midnight = day * _DAY
        bits = series.bits(day)
        if midnight < first:
            bits = bits >> (first - midnight) << (first - midnight)
        if last < midnight + _DAY - 1:
            bits &= (1 << (last - midnight + 1)) - 1
        yield day, bits


def between(instants: tuple[Instant, ...], after: Instant, until: Instant) -> tuple[Instant, ...]:
    """Return those of the sorted instants that lie in `(after, until]`."""
    return instants[bisect_right(instants, after) : bisect_right(instants, until)]


def within_range(found: Instant) -> Instant | None:
    """Return the instant, or None where it lies outside the years that Rota answers about."""
    return found if EARLIEST <= found <= LATEST else None


class Periodic(Series):
    """The instants `origin + k × interval`, for every whole k."""

    __slots__ = ("interval", "origin")

    def __init__(self, interval: int, origin: Instant) -> None:
        self.interval = interval
        self.origin = origin

    def next(self, after: Instant) -> Instant | None:
        """Return the first instant strictly after."""
        return within_range(after + self.interval - (after - self.origin) % self.interval)

    def previous(self, before: Instant) -> Instant | None:
        """Return the last instant strictly before."""
        return within_range(before - 1 - (before - 1 - self.origin) % self.interval)

    def count(self, after: Instant, until: Instant) -> int:
        """Count the instants in `(after, until]`."""
        return max(0, (until - self.origin) // self.interval - (after - self.origin) // self.interval)

    def bits(self, day: int) -> int:
        """Return the day's bitmap; the interval and the origin are whole seconds."""
        step = self.interval // SECOND
        first = (self.origin // SECOND - day * _DAY) % step
        found, width = 1, step
        while width < _DAY:  # by doubling: a day of seconds takes 17 steps
            found |= found << width
            width *= 2
        return (found << first) & WHOLE_DAY if first < _DAY else 0


class Anchored(Series):
    """An interval that counts from wherever one asks. It has no instants of its own."""

    __slots__ = ("interval",)

    def __init__(self, interval: int) -> None:
        self.interval = interval

    def next(self, after: Instant) -> Instant | None:
        """Return the instant one interval later."""
        return within_range(after + self.interval)

    def previous(self, before: Instant) -> Instant | None:
        """Return the instant one interval earlier."""
        return within_range(before - self.interval)

    def count(self, after: Instant, until: Instant) -> int:
        """Count the intervals that end in `(after, until]`, from `after` on."""
        return max(0, (until - after) // self.interval)

    def bits(self, day: int) -> int:  # noqa: ARG002 (no day holds any)
        """Return an empty day."""
        return 0


class Listed(Series):
    """A handful of instants, given one by one."""

    __slots__ = ("fractions", "instants")

    def __init__(self, instants: Iterable[Instant]) -> None:
        self.instants = tuple(sorted(set(instants)))
        self.fractions = tuple(i for i in self.instants if i % SECOND)

    def next(self, after: Instant) -> Instant | None:
        """Return the first instant strictly after."""
        at = bisect_right(self.instants, after)
        return self.instants[at] if at < len(self.instants) else None

    def previous(self, before: Instant) -> Instant | None:
        """Return the last instant strictly before."""
        at = bisect_left(self.instants, before)
        return self.instants[at - 1] if at else None

    def count(self, after: Instant, until: Instant) -> int:
        """Count the instants in `(after, until]`."""
        return len(between(self.instants, after, until))

    def bits(self, day: int) -> int:
        """Return the day's bitmap."""
        midnight = day * _DAY * SECOND
        held = between(self.instants, midnight - 1, midnight + _DAY * SECOND - 1)
        return sum(1 << (i - midnight) // SECOND for i in held if not i % SECOND)


class Union(Series):
    """Every instant of any of its parts, once."""

    __slots__ = ("fractions", "parts")

    def __init__(self, parts: Iterable[Series]) -> None:
        self.parts = tuple(parts)
        self.fractions = tuple(sorted({i for part in self.parts for i in part.fractions}))

    def next(self, after: Instant) -> Instant | None:
        """Return the first instant strictly after."""
        return min((i for part in self.parts if (i := part.next(after)) is not None), default=None)

    def previous(self, before: Instant) -> Instant | None:
        """Return the last instant strictly before."""
        return max((i for part in self.parts if (i := part.previous(before)) is not None), default=None)

    def bits(self, day: int) -> int:
        """Return the day's bitmap."""
        found = 0
        for part in self.parts:
            found |= part.bits(day)
        return found


class Bounded(Series):
    """The part of a series that lies in `[start, end]`."""

    __slots__ = ("end", "fractions", "series", "start")

    def __init__(self, series: Series, start: Instant | None, end: Instant | None) -> None:
        self.series = series
        self.start = EARLIEST if start is None else start
        self.end = LATEST if end is None else end
        self.fractions = between(series.fractions, self.start - 1, self.end)

    def next(self, after: Instant) -> Instant | None:
        """Return the first instant strictly after. An anchored interval that would end before the start ends there."""
        if isinstance(self.series, Anchored):
            found = max(after + self.series.interval, self.start)
            return found if found <= self.end else None
        found_or_none = self.series.next(max(after, self.start - 1))
        return None if found_or_none is None or found_or_none > self.end else found_or_none

    def previous(self, before: Instant) -> Instant | None:
        """Return the last instant strictly before."""
        found = self.series.previous(min(before, self.end + 1))
        return None if found is None or found < self.start else found

    def count(self, after: Instant, until: Instant) -> int:
        """Count the instants in `(after, until]`."""
        if isinstance(self.series, Anchored):
            first, last = self.next(after), min(until, self.end)
            return 0 if first is None or first > last else 1 + (last - first) // self.series.interval
        return self.series.count(max(after, self.start - 1), min(until, self.end))

    def bits(self, day: int) -> int:
        """Return the day's bitmap."""
        midnight = day * _DAY * SECOND
        last = midnight + _DAY * SECOND - 1
        if self.start <= midnight and last <= self.end:
            return self.series.bits(day)
        after, until = max(midnight, self.start) - 1, min(last, self.end)
        return sum(bits for _, bits in days_of_bits(self.series, after, until)) if after < until else 0
