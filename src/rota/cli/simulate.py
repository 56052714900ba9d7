"""`rota simulate`: what a schedule would do, or all that an app declares."""

from datetime import datetime, tzinfo
from typing import Annotated, Any

import typer

from rota import clock
from rota.cli.loading import AsJson, load_app
from rota.cli.moments import zone_name
from rota.cli.output import as_json, lines, table
from rota.cli.rules import Zone, read_rule
from rota.errors import InvalidMoment
from rota.simulation import Plan, Planned, Simulated, simulate
from rota.times.durations import duration, duration_words
from rota.times.moments import instant, micros, moment
from rota.times.policies import Policies
from rota.times.words import day_words

_KEY = "simulated"


def simulate_rule(
    expr: Annotated[
        str | None,
        typer.Argument(metavar="EXPR", help="A cron expression, or a rule; or else --app.", show_default=False),
    ] = None,
    *,
    app: Annotated[
        str | None, typer.Option("--app", metavar="MODULE:APP", help="All schedules that this app declares.")
    ] = None,
    tz: Zone = None,
    start: Annotated[str | None, typer.Option("--from", metavar="T", help="Made at this moment; else now.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="T", help="Until this moment.")] = None,
    length: Annotated[str, typer.Option("--for", metavar="LENGTH", help="For so long, without --until.")] = "7d",
    overlap: Annotated[
        str | None, typer.Option("--overlap", help="skip, queue_one, queue_all, cancel_running, allow.")
    ] = None,
    max_running: Annotated[int | None, typer.Option("--max-running", help="How many at once, with allow.")] = None,
    missed: Annotated[str | None, typer.Option("--missed", help="latest, all or none.")] = None,
    max_missed: Annotated[int | None, typer.Option("--max-missed", help="How many at most, with all.")] = None,
    grace: Annotated[str | None, typer.Option("--grace", metavar="LENGTH", help="How late it may start.")] = None,
    spread: Annotated[str | None, typer.Option("--spread", metavar="LENGTH", help="The window of its place.")] = None,
    jitter: Annotated[str | None, typer.Option("--jitter", metavar="LENGTH", help="Up to how much later.")] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", metavar="RULE", help="What it leaves out; may be given again.")
    ] = None,
    max_runs: Annotated[int | None, typer.Option("--max-runs", help="After how many it is finished.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="Its key, which decides its place in a spread.")] = None,
    takes: Annotated[str, typer.Option("--takes", metavar="LENGTH", help="How long a run takes.")] = "0s",
    down: Annotated[
        list[str] | None, typer.Option("--down", metavar="T/T", help="An outage; more than one may be.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Show what a schedule would do: each due instant, what comes of it, and why. Touches no store."""
    policies: dict[str, Any] = {
        "overlap": overlap,
        "max_running": max_running,
        "missed": missed,
        "max_missed": max_missed,
        "grace": grace,
        "spread": spread,
        "jitter": jitter,
        "max_runs": max_runs,
    }
    policies = {name: value for name, value in policies.items() if value is not None}
    if exclude:
        policies["exclude"] = [read_rule(each, None if "(" in each else tz) for each in exclude]
    if (expr is None) == (app is None):
        raise typer.BadParameter("say what: a rule, or --app; one of them", param_hint="EXPR")
    if app is not None and (policies or tz or key):
        raise typer.BadParameter("takes the schedules as they are: no policies, no --tz, no --key", param_hint="--app")
    first, end = _range(start, until, length)
    outages = [_outage(each) for each in down or []]
    duration(takes, "--takes")
    plans: list[Planned] = []
    if app is not None:
        plans += load_app(app).declared
    elif expr is not None:
        plans.append(Plan(key or _KEY, read_rule(expr, tz), Policies(**policies)))
    found = simulate(plans, first, end, outages=outages, durations={each.key: takes for each in plans})
    if json:
        as_json([_record(each) for each in found])
    elif found:
        zones = {each.key: each.rule.tzinfo for each in plans}
        _show(found, zones, keys=app is not None)
    else:
        lines(f"Nothing from {first.isoformat()} to {end.isoformat()}.")


def _range(start: str | None, until: str | None, length: str) -> tuple[datetime, datetime]:
    first = instant(clock.now() if start is None else start, "--from")
    if until is None:
        return moment(first), moment(first + duration(length, "--for"))
    end = instant(until, "--until")
    if end < first:
        raise InvalidMoment("--until", until, "use a moment that is not before --from", "is too early")
    return moment(first), moment(end)


def _outage(text: str) -> tuple[datetime, datetime]:
    begin, slash, end = text.partition("/")
    if not slash:
        raise InvalidMoment("--down", text, "use two moments: 2027-01-01T00:00Z/2027-01-01T02:00Z", "is no outage")
    first, last = instant(begin, "--down"), instant(end, "--down")
    if last < first:
        raise InvalidMoment("--down", text, "use an end that is not before its beginning", "is too early")
    return moment(first), moment(last)


def _show(found: list[Simulated], zones: dict[str, tzinfo], *, keys: bool) -> None:
    rows = []
    for each in found:
        due = each.due.astimezone(zones[each.key])
        row = [f"{day_words(due)} {due:%H:%M:%S}", zone_name(due), _what(each)]
        rows.append([*row[:2], each.key, row[2]] if keys else row)
    table(["due", "zone", *(["schedule"] if keys else []), "what comes of it"], rows)


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
    more = {"reason": one.reason, "count": one.count, "late": one.late, "cancelled": one.cancelled}
    return {"key": one.key} | shown | more
