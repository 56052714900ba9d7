"""What every rule is: an immutable value that answers "what is next after t?"."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import ClassVar

from rota.errors import InvalidMoment, InvalidRule
from rota.times.durations import duration_text
from rota.times.moments import EARLIEST, LATEST, SECOND, Instant, instant, iso, micros, moment, optional_instant
from rota.times.series import Bounded, Series
from rota.times.text import read

MOST_UPCOMING = 100_000


@dataclass(frozen=True, init=False, repr=False)
class Rule(ABC):
    """A pure value that names instants; `str(rule)` reads back through `Rule.parse`."""

    kinds: ClassVar[dict[str, type["Rule"]]] = {}
    """The rules that text may name."""

    series: Series = field(init=False, compare=False, repr=False)
    """The instants themselves."""

    def __init_subclass__(cls) -> None:
        if cls.__module__.startswith("rota.times."):  # what text may name is Rota's own
            Rule.kinds[cls.__name__] = cls

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Read a rule from its text form, such as `Cron('0 9 * * MON', tz='Europe/Berlin')`."""
        found = read(text, Rule.kinds)
        if not isinstance(found, cls):
            raise InvalidRule("rule", text, f"use the text of {cls.__name__}", "is another kind of rule")
        return found

    @abstractmethod
    def words(self) -> str:
        """Say in English when the rule fires."""

    def next(self, after: datetime) -> datetime | None:
        """Return the first instant strictly after this moment, in the rule's zone; None when there is none."""
        found = self.series.next(instant(after, "after"))
        return None if found is None else moment(found, self.tzinfo)

    def previous(self, before: datetime) -> datetime | None:
        """Return the last instant strictly before this moment, in the rule's zone; None when there is none."""
        found = self.series.previous(instant(before, "before"))
        return None if found is None else moment(found, self.tzinfo)

    def upcoming(self, after: datetime, count: int) -> list[datetime]:
        """Return the next `count` instants strictly after this moment; fewer where the rule ends."""
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST_UPCOMING:
            raise InvalidRule("count", count, f"use a whole number from 0 to {MOST_UPCOMING:,}")
        return [found for found, _ in zip(self.instants(after), range(count), strict=False)]

    def instants(self, after: datetime, until: datetime | None = None) -> Iterator[datetime]:
        """Return the instants strictly after this moment, one at a time, up to and including `until`."""
        start, end = instant(after, "after"), optional_instant(until, "until")
        return self._iterate(start, end)

    def count(self, after: datetime, until: datetime) -> int:
        """Count the instants in `(after, until]` without stepping through them."""
        return self.series.count(instant(after, "after"), instant(until, "until"))

    def _iterate(self, after: Instant, until: Instant | None) -> Iterator[datetime]:
        series, zone = self.series, self.tzinfo
        found = series.next(after)
        while found is not None and (until is None or found <= until):
            yield moment(found, zone)
            found = series.next(found)

    @property
    def tzinfo(self) -> tzinfo:
        """The zone that the rule's instants are shown in."""
        return UTC

    @property
    def bounds(self) -> tuple[Instant, Instant]:
        """The first and the last instant that the rule may name."""
        return (self.series.start, self.series.end) if isinstance(self.series, Bounded) else (EARLIEST, LATEST)

    @property
    def grain(self) -> int:
        """For how long each instant stands when the rule excludes others: a whole minute where it names minutes."""
        return SECOND

    def covers(self) -> tuple[tuple[Series, int], ...]:
        """Return the series that exclude for this rule, each with its grain."""
        return ((self.series, self.grain),)

    def __str__(self) -> str:
        """Write the text form, once: many schedules may share a rule."""
        known = vars(self)
        if "_text" not in known:
            known["_text"] = repr(self)
        text: str = known["_text"]
        return text

    def __repr__(self) -> str:
        """Write the rule as Python; what has its usual value is left out."""
        parts = []
        for part in fields(self):
            value = getattr(self, part.name)
            if part.repr and part.default is MISSING:
                parts.append(_written(value))
            elif part.repr and value != part.default:
                parts.append(f"{part.name}={_written(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        """Copy and carry the rule as its text, without what it worked out."""
        return Rule.parse, (str(self),)

    def _become(self, series: Series, **values: object) -> None:
        """Take the values of a new rule; only constructors call this."""
        vars(self).update(values, series=series)


def bounded(
    series: Series, start: datetime | str | None, end: datetime | str | None
) -> tuple[Series, datetime | None, datetime | None]:
    """Return the series between its bounds, and the bounds in UTC."""
    if start is None and end is None:
        return series, None, None
    first, last = optional_instant(start, "start"), optional_instant(end, "end")
    if first is not None and last is not None and last < first:
        raise InvalidMoment(
            "end", iso(last), f"use a moment that is not before the start, {iso(first)}", "is before the start"
        )
    shown = [None if found is None else moment(found) for found in (first, last)]
    return Bounded(series, first, last), shown[0], shown[1]


def _written(value: object) -> str:
    if isinstance(value, datetime):
        return repr(iso(instant(value)))
    if isinstance(value, date):
        return repr(value.isoformat())
    if isinstance(value, timedelta):
        return repr(duration_text(micros(value)))
    if isinstance(value, tuple):
        written = ", ".join(map(_written, value))
        return written if len(value) == 1 or (value and isinstance(value[0], Rule)) else f"[{written}]"
    return repr(value)
