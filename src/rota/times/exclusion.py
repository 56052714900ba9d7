"""A series less what other rules exclude, over any range, counted by bitmaps and never stepped through."""

from dataclasses import dataclass

from rota.times.clockface import lowest
from rota.times.moments import SECOND, Instant
from rota.times.rule import Rule
from rota.times.series import WHOLE_DAY, Series, between, days_of_bits

_DAY = 86_400
_MOST_STEPS = 50
_MOST_EXCLUSIONS = 100
_MOST_DAYS = 366


@dataclass(frozen=True, slots=True)
class Span:
    """Some instants of a range: the first, the last, and how many."""

    first: Instant
    last: Instant
    count: int


def excluded(exclude: tuple[Rule, ...], due: Instant) -> bool:
    """Tell whether an instant lies in the minute, the second or on the point that one of these rules names."""
    return _excluded_until(exclude, due) is not None


def _excluded_until(exclude: tuple[Rule, ...], due: Instant) -> Instant | None:
    """Return the end of what excludes this instant; None where nothing does."""
    found = None
    for rule in exclude:
        for series, grain in rule.covers():
            named = series.previous(due + 1)
            if named is not None and due - named < grain:
                found = named + grain if found is None else max(found, named + grain)
    return found


def first_free(exclude: tuple[Rule, ...], due: Instant) -> Instant:
    """Return an instant, from this one on, before which all is excluded: the first free one, if it is within a year."""
    for _ in range(_MOST_STEPS):
        end = _excluded_until(exclude, due)
        if end is None:
            return due
        due = end
    second = -(-due // SECOND)  # what is excluded for so long is excluded by whole seconds
    for day in range(second // _DAY, second // _DAY + _MOST_DAYS):
        past = max(0, second - day * _DAY)
        free = (WHOLE_DAY & ~_excluded_bits(exclude, day)) >> past << past
        if free:
            return (day * _DAY + lowest(free)) * SECOND
    return (second // _DAY + _MOST_DAYS) * _DAY * SECOND


def next_included(series: Series, exclude: tuple[Rule, ...], after: Instant) -> Instant | None:
    """Return the next instant that is not excluded.

    Where all of a year, or many in a row, are excluded, one behind them is returned: whoever waits for it asks again.
    """
    found = series.next(after)
    for _ in range(_MOST_EXCLUSIONS if exclude else 0):
        if found is None:
            break
        free = first_free(exclude, found)
        if free == found:
            break
        far = free - found >= (_MOST_DAYS - 1) * _DAY * SECOND
        found = series.next(free - 1)
        if far:
            break
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
            found |= _widened(series, grain, day)
            if grain > SECOND:  # what the day before names in its last minute may reach into this day
                found |= _widened(series, grain, day - 1) >> _DAY
    return found & WHOLE_DAY


def _widened(series: Series, grain: int, day: int) -> int:
    bits, width = series.bits(day), 1
    while width < grain // SECOND:
        step = min(width, grain // SECOND - width)
        bits |= bits << step
        width += step
    return bits
