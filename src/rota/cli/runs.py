"""`rota runs`: look at runs, cancel them, try them again."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from rota import clock
from rota.app import Rota
from rota.cli.loading import AsJson, Where, on_store
from rota.cli.moments import given_moment, iso, relative
from rota.cli.output import as_json, lines, table
from rota.kept import LogLine
from rota.masking import masked_json
from rota.model import Attempt, Run
from rota.store.hours import Hour

runs = typer.Typer(help="Look at runs, cancel them, try them again.", no_args_is_help=True)

Number = Annotated[int, typer.Argument(metavar="RUN", help="The run's number.", show_default=False)]


@runs.command("list")
def list_runs(
    *,
    where: Where = None,
    state: Annotated[str | None, typer.Option("--state", help="Only runs in this state.")] = None,
    task: Annotated[str | None, typer.Option("--task", help="Only runs of this task.")] = None,
    queue: Annotated[str | None, typer.Option("--queue", help="Only runs of this queue.")] = None,
    schedule: Annotated[str | None, typer.Option("--schedule", help="Only runs of this schedule.")] = None,
    worker: Annotated[str | None, typer.Option("--worker", help="Only runs that this worker took last.")] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="T", help="Made at this moment or later.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="T", help="Made before this moment.")] = None,
    text: Annotated[str | None, typer.Option("--text", help="Text in task, schedule, unique key or error.")] = None,
    before: Annotated[int | None, typer.Option("--before", help="Only lower numbers: the next page.")] = None,
    limit: Annotated[int, typer.Option("--limit", help="How many.", min=1, max=200)] = 20,
    json: AsJson = False,
) -> None:
    """Show the newest runs."""
    first, last = given_moment(since, "--since"), given_moment(until, "--until")
    named = {"state": state, "task": task, "queue": queue, "schedule": schedule, "worker": worker, "text": text}
    found = on_store(where, lambda app: app.runs.list(**named, since=first, until=last, before=before, limit=limit))
    if json:
        as_json([_record(run) for run in found])
        return
    table(["run", "state", "task", "queue", "due", "attempt", "error"], [_cells(run) for run in found])
    if len(found) == limit:
        lines(f"More: --before {found[-1].id}")


@runs.command("show")
def show_run(run: Number, where: Where = None, json: AsJson = False) -> None:
    """Show one run with its attempts, and what it logged where that is kept."""

    async def look(app: Rota) -> tuple[Run[Any], list[Attempt], list[LogLine], str | None]:
        said = await app.runs.log(run)
        return await app.runs.get(run), await app.runs.attempts(run), said, await app.limits.waits_for(run)

    found, attempts, said, gate = on_store(where, look)
    shown = _record(found) | {"waits_for": gate}
    if json:
        parts = {"attempts": [_attempt_record(each) for each in attempts], "log": [_log_record(each) for each in said]}
        as_json(shown | parts)
        return
    lines(*(f"{name}: {value}" for name, value in shown.items() if value is not None))
    for each in attempts:
        why = f" {each.error.kind}: {each.error.message}" if each.error else ""
        lines(f"attempt {each.number}: {each.outcome} after {(each.finished_at - each.started_at)}{why}")
    if said:
        lines("log:")
    for line in said:
        lines(*(f"  {each}" for each in _log_line(line)))


@runs.command("hours")
def show_hours(
    where: Where = None,
    start: Annotated[str | None, typer.Option("--start", metavar="MOMENT", help="From when on: the last day.")] = None,
    end: Annotated[str | None, typer.Option("--end", metavar="MOMENT", help="Before when.", show_default=False)] = None,
    task: Annotated[str | None, typer.Option("--task", help="Only runs of this task.")] = None,
    queue: Annotated[str | None, typer.Option("--queue", help="Only runs of this queue.")] = None,
    json: AsJson = False,
) -> None:
    """Show how many runs ended in each hour, and how; it reaches further back than single runs are kept."""
    first, last = given_moment(start, "start"), given_moment(end, "end")
    found = on_store(where, lambda app: app.runs.hours(first, last, task=task, queue=queue))
    if json:
        as_json([_hour_record(each) for each in found])
        return
    cells = [
        [f"{each.hour:%Y-%m-%d %H:%M} UTC", each.task, each.queue, each.state, str(each.runs), *_lengths(each)]
        for each in found
    ]
    table(["hour", "task", "queue", "ended", "runs", "busy", "longest", "waited"], cells)


@runs.command("statistics")
def show_statistics(
    where: Where = None,
    window: Annotated[str, typer.Option("--window", metavar="T", help="Of the last so long.")] = "1h",
    task: Annotated[str | None, typer.Option("--task", help="Only runs of this task.")] = None,
    schedule: Annotated[str | None, typer.Option("--schedule", metavar="KEY", help="Only runs of this one.")] = None,
    queue: Annotated[str | None, typer.Option("--queue", help="Only runs of this queue.")] = None,
    json: AsJson = False,
) -> None:
    """Show how the runs went that ended lately."""
    found = on_store(where, lambda app: app.runs.statistics(window, task=task, schedule=schedule, queue=queue))
    if json:
        as_json(asdict(found))
        return
    lines(
        f"{found.total} ended in the last {window}: {found.successful} succeeded, {found.failed} failed",
        f"success rate {found.success_rate:.1f} %, {found.average_duration_ms:.1f} ms on average, "
        f"{found.checks_per_minute:.1f} a minute",
    )


@runs.command("cancel")
def cancel_run(
    run: Number, where: Where = None, note: Annotated[str, typer.Option("--note", help="Why.")] = "cancelled"
) -> None:
    """Cancel a run that is under way."""
    state = on_store(where, lambda app: app.runs.cancel(run, note=note))
    lines("its worker is told to stop it" if state == "running" else f"run {run} is {state}")


@runs.command("retry")
def retry_run(run: Number, where: Where = None) -> None:
    """Make an ended run ready again, with its history."""
    found = on_store(where, lambda app: app.runs.retry(run))
    lines(f"run {run} is {found.state}")


def _cells(run: Run[Any]) -> list[str]:
    error = "" if run.error is None else f"{run.error.kind}: {run.error.message}".splitlines()[0]
    due = relative(run.due - clock.now())
    return [str(run.id), run.state, run.task, run.queue, due, str(run.attempt), error]


def _record(run: Run[Any]) -> dict[str, Any]:
    return {
        "id": run.id,
        "state": run.state,
        "task": run.task,
        "queue": run.queue,
        "priority": run.priority,
        "due": run.due.isoformat(),
        "attempt": run.attempt,
        "lost": run.lost,
        "worker": run.worker,
        "arguments": masked_json(run.args),
        "schedule": run.schedule,
        "trigger": run.trigger,
        "scheduled_at": iso(run.scheduled_at),
        "unique": run.unique,
        "limits": ", ".join(run.limits) or None,
        "cancelled": run.cancel,
        "result": None if run.result is None else masked_json(run.result),
        "error": None if run.error is None else f"{run.error.kind}: {run.error.message}",
        "created_at": run.created_at.isoformat(),
        "started_at": iso(run.started_at),
        "finished_at": iso(run.finished_at),
    }


def _log_line(line: LogLine) -> list[str]:
    """Say a line of a log; a traceback in it has lines of its own."""
    if line.at is None:
        return [line.message]
    first, *rest = line.message.splitlines() or [""]
    return [f"{line.attempt} {line.at:%H:%M:%S.%f} {line.level} {line.logger} {first}", *rest]


def _log_record(line: LogLine) -> dict[str, Any]:
    named = {"attempt": line.attempt, "at": iso(line.at), "level": line.level, "logger": line.logger}
    return named | {"message": line.message, "left_out": line.left_out}


def _hour_record(hour: Hour) -> dict[str, Any]:
    seconds = {name: getattr(hour, name).total_seconds() for name in ("busy", "longest", "waited")}
    named = {"hour": hour.hour.isoformat(), "task": hour.task, "queue": hour.queue, "state": hour.state}
    return named | {"runs": hour.runs} | seconds


def _lengths(hour: Hour) -> list[str]:
    return [f"{each.total_seconds():.1f} s" for each in (hour.busy, hour.longest, hour.waited)]


def _attempt_record(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "outcome": attempt.outcome,
        "worker": attempt.worker,
        "started_at": attempt.started_at.isoformat(),
        "finished_at": attempt.finished_at.isoformat(),
        "error": None if attempt.error is None else f"{attempt.error.kind}: {attempt.error.message}",
    }
