"""A series less what other rules exclude, over any range, counted by bitmaps and never stepped through."""

from dataclasses import dataclass

from rota.times.clockface import lowest
from rota.times.moments import SECOND, Instant
from rota.times.rule import Rule
from rota.times.series import WHOLE_DAY, Series, between, days_of_bits

_DAY = 86_400
_MOST_STEPS = 1_000
_MOST_DAYS = 3_660


@dataclass(frozen=True, slots=True)
class Span:
    """Some instants of a range: the first, the last, and how many."""

    first: Instant
    last: Instant
    count: int


def excluded(exclude: tuple[Rule, ...], due: Instant) -> bool:
    """Tell whether an instant lies in the minute, the second or on the point that one of these rules names."""
    for rule in exclude:
        for series, grain in rule.covers():
            named = series.previous(due + 1)
            if named is not None and due - named < grain:
                return True
    return False


def first_free(exclude: tuple[Rule, ...], due: Instant) -> Instant | None:
    """Return the first instant from this one on that is not excluded; None where ten years are excluded whole."""
    if not excluded(exclude, due):
        return due
    second = due // SECOND + 1
    for day in range(second // _DAY, second // _DAY + _MOST_DAYS):
        free = WHOLE_DAY & ~_excluded_bits(exclude, day)
        free = free >> max(0, second - day * _DAY) << max(0, second - day * _DAY)
        if free:
            return (day * _DAY + lowest(free)) * SECOND
    return None


def next_included(series: Series, exclude: tuple[Rule, ...], after: Instant) -> Instant | None:
    """Return the next instant that is not excluded.

    Where a thousand in a row are, the next excluded one is returned: whoever waits for it asks again then.
    """
    found = series.next(after)
    for _ in range(_MOST_STEPS if exclude else 0):
        if found is None or not excluded(exclude, found):
            break
        found = series.next(found)
    return found


def spans(series: Series, exclude: tuple[Rule, ...], after: Instant, until: Instant) -> tuple[Span | None, Span | None]:
    """Return the instants in `(after, until]` that fire, and those that are excluded."""
    first = series.next(after)
    if first is None or first > until:
        return None, None
    last = series.previous(until + 1)
    if last is None or last <= first:  # nearly always: one instant has come
        one = Span(first, first, 1)
        return (None, one) if excluded(exclude, first) else (one, None)
    if not exclude:
        return Span(first, last, series.count(after, until)), None
    return _span(series, exclude, after, until, inside=False), _span(series, exclude, after, until, inside=True)


def newest(series: Series, exclude: tuple[Rule, ...], after: Instant, until: Instant, most: int) -> list[Instant]:
    """Return the newest instants in `(after, until]` that fire, at most so many, in order."""
    found = [i for i in between(series.fractions, after, until) if not excluded(exclude, i)]
    left = most
    for day, bits in days_of_bits(series, after, until, backwards=True):
        cut = bits & ~_excluded_bits(exclude, day) if exclude else bits
        while cut and left:
            last = cut.bit_length() - 1
            found.append((day * _DAY + last) * SECOND)
            cut ^= 1 << last
            left -= 1
        if not left:
            break
    return sorted(found)[-most:]


def _span(series: Series, exclude: tuple[Rule, ...], after: Instant, until: Instant, *, inside: bool) -> Span | None:
    fractions = [i for i in between(series.fractions, after, until) if excluded(exclude, i) == inside]
    first, last, count = (fractions[0], fractions[-1], len(fractions)) if fractions else (until + 1, -1, 0)
    for day, bits in days_of_bits(series, after, until):
        cut = bits & _excluded_bits(exclude, day) if inside else bits & ~_excluded_bits(exclude, day)
        if cut:
            midnight = day * _DAY
            first = min(first, (midnight + lowest(cut)) * SECOND)
            last = max(last, (midnight + cut.bit_length() - 1) * SECOND)
            count += cut.bit_count()
    return Span(first, last, count) if count else None


def _excluded_bits(exclude: tuple[Rule, ...], day: int) -> int:
    found = 0
    for rule in exclude:
        for series, grain in rule.covers():
            # what the day before names in its last minute may reach into this day
            found |= _widened(series, grain, day) | _widened(series, grain, day - 1) >> _DAY
    return found & WHOLE_DAY


def _widened(series: Series, grain: int, day: int) -> int:
    bits, width = series.bits(day), 1
    while width < grain // SECOND:
        step = min(width, grain // SECOND - width)
        bits |= bits << step
        width += step
    return bits
