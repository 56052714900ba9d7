"""`rota simulate`: what a schedule would do."""

from typing import Annotated, Any

import typer

from rota import clock
from rota.cli.loading import AsJson
from rota.cli.moments import zone_name
from rota.cli.output import as_json, lines, table
from rota.cli.rules import Expression, Zone, read_rule
from rota.errors import InvalidMoment
from rota.simulation import Plan, Simulated, simulate
from rota.times.durations import duration, duration_words
from rota.times.moments import instant, micros, moment
from rota.times.policies import Policies
from rota.times.words import day_words


def simulate_rule(  # noqa: PLR0917 (each is an option)
    expr: Expression,
    tz: Zone = None,
    start: Annotated[str | None, typer.Option("--from", metavar="T", help="Made at this moment; else now.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="T", help="Until this moment.")] = None,
    length: Annotated[str, typer.Option("--for", metavar="LENGTH", help="For so long, without --until.")] = "7d",
    overlap: Annotated[
        str, typer.Option("--overlap", help="skip, queue_one, queue_all, cancel_running, allow.")
    ] = "skip",
    max_running: Annotated[int, typer.Option("--max-running", help="How many at once, with allow.")] = 1,
    missed: Annotated[str, typer.Option("--missed", help="latest, all or none.")] = "latest",
    grace: Annotated[str | None, typer.Option("--grace", metavar="LENGTH", help="How late it may start.")] = None,
    takes: Annotated[str, typer.Option("--takes", metavar="LENGTH", help="How long a run takes.")] = "0s",
    down: Annotated[
        list[str] | None, typer.Option("--down", metavar="T/T", help="An outage; more than one may be.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Show what a schedule would do: each due instant, what comes of it, and why."""
    rule = read_rule(expr, tz)
    policies: Any = {"overlap": overlap, "max_running": max_running, "missed": missed, "grace": grace}
    first = moment(instant(clock.now() if start is None else start, "--from"))
    end = moment(instant(until, "--until") if until else instant(first) + duration(length, "--for"))
    plan = Plan("simulated", rule, Policies(**policies))
    outages = [_outage(each) for each in down or []]
    found = simulate(plan, first, end, outages=outages, durations={plan.key: takes})
    if json:
        as_json([_record(each) for each in found])
        return
    zone = rule.tzinfo
    rows = []
    for each in found:
        due = each.due.astimezone(zone)
        rows.append([f"{day_words(due)} {due:%H:%M:%S}", zone_name(due), _what(each)])
    if rows:
        table(["due", "zone", "what comes of it"], rows)
    else:
        lines(f"Nothing from {first.isoformat()} to {end.isoformat()}.")


def _outage(text: str) -> tuple[str, str]:
    begin, slash, end = text.partition("/")
    if not slash:
        raise InvalidMoment("--down", text, "use two moments: 2027-01-01T00:00Z/2027-01-01T02:00Z", "is no outage")
    return begin, end


def _what(one: Simulated) -> str:
    if one.reason is not None:
        return f"skipped: {one.reason}" + ("" if one.count == 1 else f", with {one.count - 1} before it")
    if one.started is None:
        return "cancelled before it starts" if one.cancelled else "waits"
    wait = micros(one.started - one.due)
    return "runs" + (f", {duration_words(wait)} late" if wait else "") + (", then cancelled" if one.cancelled else "")


def _record(one: Simulated) -> dict[str, Any]:
    times = {name: getattr(one, name) for name in ("due", "first", "at", "started", "ended")}
    shown = {name: None if at is None else at.isoformat() for name, at in times.items()}
    return shown | {"reason": one.reason, "count": one.count, "late": one.late, "cancelled": one.cancelled}
