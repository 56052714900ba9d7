"""Rules as JSON: one shape a kind; also a rule's text, or a cron expression alone."""

from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from rota.errors import InvalidRule
from rota.server.routers.parts import Given, Length, Moment
from rota.times import AnyOf, At, Calendar, Cron, Every, Rule
from rota.times.calendardays import Unit
from rota.times.calendars import MOST_DAYS, MOST_EVERY, MOST_TIMES
from rota.times.cron import LONGEST as LONGEST_CRON
from rota.times.intervals import Since
from rota.times.listed import MOST_MOMENTS, MOST_RULES
from rota.times.moments import EPOCH
from rota.times.text import LONGEST
from rota.times.wall import Gap, Repeat

Zone = Annotated[str, Field(max_length=100, description="An IANA time zone.", examples=["Europe/Berlin"])]
_GAP = "What becomes of a time that a clock change swallows: the first moment after the gap, or nothing."
_REPEAT = "Which one counts of a time that a clock change repeats."


class _Bounded(Given):
    start: Moment | None = Field(default=None, description="The rule names nothing before.")
    end: Moment | None = Field(default=None, description="The rule names nothing after.")


class CronRule(_Bounded):
    """A cron expression in a time zone."""

    kind: Literal["cron"] = "cron"
    cron: str = Field(
        max_length=LONGEST_CRON,
        description="Five fields, six with seconds in front, or @hourly to @yearly.",
        examples=["*/15 * * * *", "0 9 * * MON", "@daily"],
    )
    tz: Zone = "UTC"
    gap: Gap = Field(default="after", description=_GAP)
    repeat: Repeat = Field(default="first", description=_REPEAT)

    def rule(self) -> Rule:
        """Return the rule."""
        return Cron(self.cron, tz=self.tz, gap=self.gap, repeat=self.repeat, start=self.start, end=self.end)


class EveryRule(_Bounded):
    """Every so often: counted from an origin, or from what the last run did."""

    kind: Literal["every"] = "every"
    every: Length
    since: Since = Field(
        default="due", description="`due` is a fixed series; the others count from the last run, as it went."
    )
    origin: Moment | None = Field(default=None, description="What a fixed series counts from; the epoch if left out.")

    def rule(self) -> Rule:
        """Return the rule."""
        return Every(self.every, since=self.since, origin=self.origin or EPOCH, start=self.start, end=self.end)


class AtRule(_Bounded):
    """One moment, or several."""

    kind: Literal["at"] = "at"
    at: Moment | Annotated[list[Moment], Field(min_length=1, max_length=MOST_MOMENTS)]
    tz: Zone = "UTC"

    def rule(self) -> Rule:
        """Return the rule."""
        return At(self.at, tz=self.tz, start=self.start, end=self.end)


class CalendarRule(_Bounded):
    """Times of day on chosen days of every n-th day, week, month or year: what cron cannot say."""

    kind: Literal["calendar"] = "calendar"
    unit: Unit
    every: int = Field(default=1, ge=1, le=MOST_EVERY, description="Every n-th of the unit.")
    on: list[Annotated[str, Field(max_length=50)] | Annotated[int, Field(ge=1, le=31)]] = Field(
        default=[],
        max_length=MOST_DAYS,
        description="Which days of it.",
        examples=[["last weekday"], ["2nd TUE"]],
    )
    at: list[Annotated[str, Field(max_length=8)]] = Field(
        default=["00:00"], min_length=1, max_length=MOST_TIMES, description="Times of day.", examples=[["10:00"]]
    )
    tz: Zone = "UTC"
    origin: date | None = Field(default=None, description="Any day of a period that counts.")
    gap: Gap = Field(default="after", description=_GAP)
    repeat: Repeat = Field(default="first", description=_REPEAT)

    def rule(self) -> Rule:
        """Return the rule."""
        more = {"origin": self.origin} if self.origin is not None else {}
        bounds = {"start": self.start, "end": self.end}
        how: dict[str, Any] = {"tz": self.tz, "gap": self.gap, "repeat": self.repeat, **more, **bounds}
        return Calendar(self.unit, every=self.every, on=self.on, at=self.at, **how)


class AnyRule(_Bounded):
    """Whenever any of several rules names an instant."""

    kind: Literal["any"] = "any"
    any: list["RuleIn"] = Field(min_length=1, max_length=MOST_RULES)

    def rule(self) -> Rule:
        """Return the rule."""
        return AnyOf(*map(rule_of, self.any), start=self.start, end=self.end)


_KINDS = {"unit": "calendar", "cron": "cron", "every": "every", "at": "at", "any": "any"}
"""By which name a rule is known that does not say its kind, in this order."""


def _kind(given: Any) -> str | None:
    if isinstance(given, str):
        return "text"
    if not isinstance(given, dict):
        return getattr(given, "kind", None)
    return given.get("kind") or next((kind for name, kind in _KINDS.items() if name in given), None)


RuleOut = Annotated[CronRule | EveryRule | AtRule | CalendarRule | AnyRule, Field(discriminator="kind")]
"""A rule as it is told."""
RuleIn = Annotated[
    Annotated[CronRule, Tag("cron")]
    | Annotated[EveryRule, Tag("every")]
    | Annotated[AtRule, Tag("at")]
    | Annotated[CalendarRule, Tag("calendar")]
    | Annotated[AnyRule, Tag("any")]
    | Annotated[
        str,
        Tag("text"),
        Field(
            max_length=LONGEST,
            description="A cron expression (UTC), or a rule as Rota writes it.",
            examples=["0 9 * * MON", "Cron('0 9 * * MON', tz='Europe/Berlin')"],
        ),
    ],
    Discriminator(
        _kind,
        custom_error_type="rule",
        custom_error_message="a rule is text, or an object with one of: cron, every, at, unit (a calendar), any",
    ),
    Field(
        description="When it is due. `kind` may be left out where the other names tell it.",
        examples=[
            {"cron": "0 9 * * MON", "tz": "Europe/Berlin"},
            {"every": "15m", "since": "success"},
            {"kind": "calendar", "unit": "month", "on": ["last weekday"], "at": ["10:00"], "tz": "Europe/Berlin"},
        ],
    ),
]
"""A rule as people send it."""

AnyRule.model_rebuild()


def rule_of(given: Any) -> Rule:
    """Return the rule that somebody sent."""
    if not isinstance(given, str):
        found: Rule = given.rule()
        return found
    return Rule.parse(given) if "(" in given else Cron(given)


def rule_out(rule: Rule) -> Any:
    """Return a rule as it is told."""
    bounds = {name: getattr(rule, name) for name in ("start", "end")}
    for kind, tell in _TELL.items():
        if isinstance(rule, kind):
            return tell(rule, bounds)
    raise InvalidRule("rule", rule, "use a rule of Rota's own", "cannot be told as JSON")


def _cron(rule: Cron, bounds: Any) -> CronRule:
    return CronRule(cron=rule.expr, tz=rule.tz, gap=rule.gap, repeat=rule.repeat, **bounds)


def _every(rule: Every, bounds: Any) -> EveryRule:
    origin = None if rule.origin == EPOCH else rule.origin
    return EveryRule(every=rule.interval.total_seconds(), since=rule.since, origin=origin, **bounds)


def _at(rule: At, bounds: Any) -> AtRule:
    return AtRule(at=[each.astimezone(rule.tzinfo) for each in rule.moments], tz=rule.tz, **bounds)


def _calendar(rule: Calendar, bounds: Any) -> CalendarRule:
    how: dict[str, Any] = {"tz": rule.tz, "origin": rule.origin, "gap": rule.gap, "repeat": rule.repeat}
    return CalendarRule(unit=rule.unit, every=rule.every, on=list(rule.on), at=list(rule.at), **how, **bounds)


def _any(rule: AnyOf, bounds: Any) -> AnyRule:
    return AnyRule(any=[rule_out(each) for each in rule.rules], **bounds)


_TELL: dict[type[Rule], Callable[[Any, Any], Any]] = {
    Cron: _cron,
    Every: _every,
    At: _at,
    Calendar: _calendar,
    AnyOf: _any,
}
