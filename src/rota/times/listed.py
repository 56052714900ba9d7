"""Moments given one by one, and several rules as one."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from rota.errors import InvalidRule
from rota.times.choices import some
from rota.times.intervals import Every
from rota.times.moments import instant, moment
from rota.times.rule import Rule, bounded
from rota.times.series import Listed, Series, Union
from rota.times.text import DEEPEST, LONGEST
from rota.times.words import and_list, moment_words
from rota.times.zones import zone

MOST_MOMENTS = 1_000
MOST_RULES = 100


@dataclass(frozen=True, init=False, repr=False)
class At(Rule):
    """One moment, or a list of them."""

    moments: tuple[datetime, ...]
    tz: str = "UTC"
    start: datetime | None = None
    end: datetime | None = None

    def __init__(
        self,
        moments: datetime | str | Iterable[datetime | str],
        *,
        tz: str | ZoneInfo | None = None,
        start: datetime | str | None = None,
        end: datetime | str | None = None,
    ) -> None:
        given = [moments] if isinstance(moments, (datetime, str)) else some("moments", moments, MOST_MOMENTS)
        series = Listed(instant(each, "moment") for each in given)
        where = zone(tz if tz is not None else _zone_of(given[0]))
        chosen, first, last = bounded(series, start, end)
        self._become(
            chosen,
            moments=tuple(moment(each) for each in series.instants),
            tz=where.key,
            start=first,
            end=last,
        )

    @property
    def tzinfo(self) -> tzinfo:
        """The zone that the moments are shown in."""
        return zone(self.tz).tzinfo

    @property
    def grain(self) -> int:
        """The point itself."""
        return 1

    def words(self) -> str:
        """Say in English when the rule fires."""
        shown = [moment_words(each.astimezone(self.tzinfo)) for each in self.moments[:3]]
        more = len(self.moments) - len(shown)
        return f"At {and_list([*shown, *([f'{more} more'] if more else [])])}"


@dataclass(frozen=True, init=False, repr=False)
class AnyOf(Rule):
    """Whenever any of several rules fires; an instant that two of them name counts once."""

    rules: tuple[Rule, ...]
    start: datetime | None = None
    end: datetime | None = None

    def __init__(self, *rules: Rule, start: datetime | str | None = None, end: datetime | str | None = None) -> None:
        for rule in some("rules", rules, MOST_RULES):
            combinable(rule, "rule")
        chosen, first, last = bounded(Union(rule.series for rule in rules), start, end)
        self._become(chosen, rules=rules, start=first, end=last)
        if _depth(self) > DEEPEST:
            raise InvalidRule("rules", f"{_depth(self)} levels", f"use at most {DEEPEST}", "are too many")
        if len(text := str(self)) > LONGEST:
            raise InvalidRule("rules", text, f"use at most {LONGEST:,} characters of text", f"has {len(text):,}")

    @property
    def tzinfo(self) -> tzinfo:
        """The zone of the rules where they share one, else UTC."""
        zones = {rule.tzinfo for rule in self.rules}
        return zones.pop() if len(zones) == 1 else UTC

    def covers(self) -> tuple[tuple[Series, int], ...]:
        """Return the series of all the rules, each with its own grain."""
        parts = [part for rule in self.rules for part in rule.covers()]
        return tuple((bounded(series, self.start, self.end)[0], grain) for series, grain in parts)

    def words(self) -> str:
        """Say in English when the rule fires."""
        first, *others = (rule.words() for rule in self.rules)
        return "; or ".join([first, *(each[0].lower() + each[1:] for each in others)])


def _depth(rule: Rule) -> int:
    return 1 + max(map(_depth, rule.rules)) if isinstance(rule, AnyOf) else 1


def combinable(rule: object, field: str) -> None:
    """Refuse what cannot be joined with, or taken out of, another rule's instants."""
    if not isinstance(rule, Rule):
        raise InvalidRule(field, rule, "use Cron, Every, At, Calendar or AnyOf", "is not a rule")
    if isinstance(rule, Every) and rule.anchored:
        raise InvalidRule(
            field, rule, "use Every(…, since='due'), which has instants of its own", "counts from the last run"
        )


def _zone_of(given: datetime | str) -> str | ZoneInfo:
    known = given.tzinfo if isinstance(given, datetime) else None
    return known if isinstance(known, ZoneInfo) else "UTC"
