"""`rota next` and `rota explain`: what a rule means."""

from datetime import datetime, timedelta
from typing import Annotated

import typer

from rota import clock
from rota.cli.loading import AsJson
from rota.cli.moments import relative, zone_name
from rota.cli.output import as_json, lines
from rota.errors import InvalidRule
from rota.times.changes import ClockChange, clock_changes
from rota.times.cron import Cron
from rota.times.moments import DAY, LATEST, instant, moment
from rota.times.rule import Rule
from rota.times.words import day_words

_SECOND = timedelta(seconds=1)
_YEAR = 365 * DAY

Expression = Annotated[
    str,
    typer.Argument(metavar="EXPR", help="A cron expression, or a rule such as \"Every('15m')\".", show_default=False),
]
Zone = Annotated[str | None, typer.Option("--tz", metavar="ZONE", help="The IANA time zone; UTC if left out.")]
After = Annotated[
    str | None,
    typer.Option("--after", metavar="T", help="Start after this moment (ISO 8601 with an offset); now if left out."),
]


def next_instants(
    expr: Expression,
    tz: Zone = None,
    count: Annotated[int, typer.Option("--count", "-n", help="How many instants to show.", min=1, max=1000)] = 5,
    after: After = None,
    json: AsJson = False,
) -> None:
    """Show when a rule fires next."""
    rule, start = read_rule(expr, tz), _after(after)
    found = rule.upcoming(start, count)
    changes = clock_changes(rule, start, found[-1]) if found else []
    if json:
        as_json(_record(rule, found, changes))
        return
    lines(rule.words(), *_timetable(found, changes))
    if not found:
        lines(f"Nothing after {start.isoformat()}.")


def explain(expr: Expression, tz: Zone = None, after: After = None, json: AsJson = False) -> None:
    """Say in words what a rule means, and which clock changes of the next year touch it."""
    rule, start = read_rule(expr, tz), _after(after)
    changes = clock_changes(rule, start, moment(min(instant(start) + _YEAR, LATEST)))
    found = rule.upcoming(start, 3)
    if json:
        as_json(_record(rule, found, changes) | {"notes": _notes(rule)})
        return
    lines(rule.words(), f"as a rule: {rule}", *(f"note: {each}" for each in _notes(rule)), *_timetable(found, []))
    lines(*(f"clock change: {each.note}" for each in changes))
    if not changes:
        lines("No clock change of the next year touches it.")


def _timetable(found: list[datetime], changes: list[ClockChange]) -> list[str]:
    """Return a line for each instant, with what a clock change means between them, in order of time."""
    now = clock.now()
    columns = [(f"{day_words(at)} {at:%H:%M:%S}", zone_name(at), relative(at - now)) for at in found]
    widths = [max(map(len, column)) for column in zip(*columns, strict=True)]
    rows = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in columns]
    timed = [(instant(at), 0, row) for at, row in zip(found, rows, strict=True)]
    timed += [(instant(change.at), 1, f"    {change.note}") for change in changes]
    return [row for _, _, row in sorted(timed)]


def _record(rule: Rule, found: list[datetime], changes: list[ClockChange]) -> dict[str, object]:
    now = clock.now()
    return {
        "rule": str(rule),
        "words": rule.words(),
        "instants": [
            {"at": at.isoformat(), "zone": zone_name(at), "in_seconds": (at - now) // _SECOND} for at in found
        ],
        "clock_changes": [{"at": each.at.isoformat(), "kind": each.kind, "note": each.note} for each in changes],
    }


def read_rule(expr: str, tz: str | None) -> Rule:
    """Read a cron expression in a zone, or a whole rule."""
    if "(" not in expr:
        return Cron(expr, tz="UTC" if tz is None else tz)
    if tz is not None:
        raise InvalidRule("--tz", tz, "write tz=… inside the rule", "does not go with a whole rule")
    return Rule.parse(expr)


def _after(given: str | None) -> datetime:
    return clock.now() if given is None else moment(instant(given, "--after"))


def _notes(rule: Rule) -> list[str]:
    """Return what people often take for something else."""
    return rule.notes() if isinstance(rule, Cron) else []
