"""`rota schedules`, `rota upcoming`, `rota why`: look at schedules; changing them is in the two files beside this."""

from datetime import datetime, timedelta
from typing import Annotated, Any

import typer

from rota import clock
from rota.app import Rota
from rota.cli import schedule_changes, schedule_orders
from rota.cli.loading import AsJson, Where, on_store
from rota.cli.moments import given_moment, iso, relative
from rota.cli.output import as_json, lines, table
from rota.masking import masked_json
from rota.schedules import Upcoming
from rota.store.schedule_reads import FiringState, HeldState, Revision, ScheduleState
from rota.times.durations import duration_text
from rota.times.moments import micros
from rota.times.policies import Policies

schedules = typer.Typer(help="Look at schedules, make them, change them, pause them, run them.", no_args_is_help=True)
schedules.command("add")(schedule_changes.add)
schedules.command("change")(schedule_changes.change)
schedules.command("pause")(schedule_orders.pause)
schedules.command("resume")(schedule_orders.resume)
schedules.command("trigger")(schedule_orders.trigger)
schedules.command("backfill")(schedule_orders.backfill)
schedules.command("spread")(schedule_orders.spread)
schedules.command("remove")(schedule_orders.remove)

Key = Annotated[str, typer.Argument(metavar="KEY", help="The schedule's key.", show_default=False)]
Most = Annotated[int, typer.Option("--limit", help="How many.", min=1, max=1000)]


@schedules.command("list")
def list_schedules(
    *,
    where: Where = None,
    state: Annotated[str | None, typer.Option("--state", help="Only schedules in this state.")] = None,
    task: Annotated[str | None, typer.Option("--task", help="Only schedules of this task.")] = None,
    queue: Annotated[str | None, typer.Option("--queue", help="Only schedules whose runs are of this queue.")] = None,
    owner: Annotated[str | None, typer.Option("--app", help="Only schedules of the app of this name.")] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Only schedules with this tag.")] = None,
    prefix: Annotated[str | None, typer.Option("--prefix", help="Only keys that begin so.")] = None,
    text: Annotated[str | None, typer.Option("--text", help="Text in key, task or description.")] = None,
    after: Annotated[str, typer.Option("--after", metavar="KEY", help="Only keys behind this: the next page.")] = "",
    limit: Most = 50,
    json: AsJson = False,
) -> None:
    """Show schedules by key."""

    async def look(app: Rota) -> tuple[list[ScheduleState], HeldState | None]:
        named = {"state": state, "task": task, "queue": queue, "app": owner, "tag": tag, "prefix": prefix, "text": text}
        found = await app.schedules.list(**named, after=after, limit=limit)
        return found, (await app.schedules.status()).paused

    found, paused = on_store(where, look)
    if json:
        as_json([_record(each) for each in found])
        return
    if paused is not None:
        lines(f"Everything is paused{_held(paused)}.")
    table(["key", "state", "next", "last", "task", "rule"], [_cells(each) for each in found])
    if len(found) == limit:
        lines(f"More: --after {found[-1].key}")


@schedules.command("show")
def show_schedule(key: Key, where: Where = None, json: AsJson = False) -> None:
    """Show one schedule: what it does, how it went, what is next."""

    async def look(app: Rota) -> tuple[ScheduleState, list[Upcoming]]:
        return await app.schedules.get(key), await app.schedules.upcoming(key, limit=3)

    found, ahead = on_store(where, look)
    if json:
        as_json(_record(found) | {"upcoming": [each.due.isoformat() for each in ahead]})
        return
    for name, value in _record(found).items():
        if isinstance(value, dict):
            lines(*(f"{each}: {_shown(inner)}" for each, inner in value.items() if inner is not None))
        elif value is not None and value != []:
            lines(f"{name}: {_shown(value)}")
    lines(*(f"upcoming: {each.due.isoformat()} ({relative(each.due - clock.now())})" for each in ahead))


@schedules.command("revisions")
def show_revisions(
    key: Key,
    where: Where = None,
    before: Annotated[int | None, typer.Option("--before", help="Only lower versions: the next page.")] = None,
    limit: Most = 20,
    json: AsJson = False,
) -> None:
    """Show who changed a schedule, when, what and why, newest first; also of one that was removed."""
    found = on_store(where, lambda app: app.schedules.revisions(key, before=before, limit=limit))
    if json:
        as_json([_revision_record(each) for each in found])
        return
    rows = [
        [str(each.version), _second(each.at), each.by or "", _change_words(each), each.note or ""] for each in found
    ]
    table(["version", "when", "by", "what", "note"], rows)
    if len(found) == limit:
        lines(f"More: --before {found[-1].version}")


@schedules.command("firings")
def show_firings(
    key: Key,
    where: Where = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="T", help="Only earlier ones: the next page.")
    ] = None,
    limit: Most = 20,
    json: AsJson = False,
) -> None:
    """Show the due instants of a schedule and what came of them, newest first; also of one that was removed."""
    start = given_moment(before, "--before")
    found = on_store(where, lambda app: app.schedules.firings(key, before=start, limit=limit))
    if json:
        as_json([_firing_record(each) for each in found])
        return
    table(["due", "run", "came of it", "by", "took", "error"], [_firing_cells(each) for each in found])
    if len(found) == limit:
        lines(f"More: --before {found[-1].due.isoformat()}")


def upcoming(
    key: Annotated[
        str | None, typer.Argument(metavar="KEY", help="A schedule's key; all if left out.", show_default=False)
    ] = None,
    where: Where = None,
    limit: Most = 10,
    json: AsJson = False,
) -> None:
    """Show the next due instants, of one schedule or of all, as far as they are known now."""
    found = on_store(where, lambda app: app.schedules.upcoming(key, limit=limit))
    if json:
        as_json([{"key": each.key, "due": each.due.isoformat()} for each in found])
        return
    table(["due", "", "key"], [[_second(each.due), relative(each.due - clock.now()), each.key] for each in found])


def why(
    key: Key,
    at: Annotated[
        str | None, typer.Option("--at", metavar="T", help="A due instant, ISO 8601 with an offset; now if left out.")
    ] = None,
    where: Where = None,
    json: AsJson = False,
) -> None:
    """Say what came of a due instant of a schedule, and why; or what it does now, and why."""
    when = given_moment(at, "--at")
    found = on_store(where, lambda app: app.schedules.why(key, at=when))
    if json:
        firing = None if found.firing is None else _firing_record(found.firing)
        as_json({"key": found.key, "at": found.at.isoformat(), "text": found.text, "firing": firing})
        return
    lines(found.text)


# Cells and records


def _cells(found: ScheduleState) -> list[str]:
    now = clock.now()
    ahead = "" if found.next_due is None else relative(found.next_due - now)
    last = found.last_outcome or ""
    if found.last_finish is not None:
        last += f" {relative(found.last_finish - now)}"
    if found.failures > 1:
        last += f", {found.failures} in a row"
    return [found.key, found.state, ahead, last, found.task, str(found.rule)]


def _record(found: ScheduleState) -> dict[str, Any]:
    return {
        "key": found.key,
        "state": found.state,
        "held": None if found.held is None else _held_record(found.held),
        "description": found.description or None,
        "task": found.task,
        "arguments": masked_json(found.args),
        "rule": str(found.rule),
        "words": found.rule.words(),
        "policies": _policies(found.policies),
        "queue": found.queue,
        "priority": found.priority,
        "limits": list(found.limits),
        "call_limits": list(found.call_limits),
        "timeout": None if found.timeout is None else found.timeout.total_seconds(),
        "retry": _parts(found.retry, "attempts", "first", "factor", "cap", "jitter"),
        "tags": list(found.tags),
        "app": found.app,
        "declared": found.declared,
        "version": found.version,
        "created_at": found.created_at.isoformat(),
        "changed_at": found.changed_at.isoformat(),
        "next_due": iso(found.next_due),
        "last_due": iso(found.last_due),
        "last_run": iso(found.last_run),
        "last_finish": iso(found.last_finish),
        "last_success": iso(found.last_success),
        "last_outcome": found.last_outcome,
        "last_error": None if found.last_error is None else f"{found.last_error.kind}: {found.last_error.message}",
        "failures": found.failures,
        "run_count": found.run_count,
    }


def _policies(found: Policies) -> dict[str, Any]:
    """Return the policies as the options of `rota schedules add` name them; lengths in their short form."""
    return {
        "overlap": found.overlap,
        "max_running": found.max_running,
        "missed": found.missed,
        "max_missed": found.max_missed,
        "grace": _length(found.grace),
        "spread": _length(found.spread),
        "jitter": _length(found.jitter),
        "exclude": [str(each) for each in found.exclude] or None,
        "max_runs": found.max_runs,
        "on_failure": _parts(found.on_failure, "double_from", "pause_after", "alert_after", "cap"),
        "adaptive": _parts(found.adaptive, "busy", "quiet", "floor", "ceiling"),
    }


def _parts(found: object, *names: str) -> str | None:
    """Name the parts of a value, lengths in their short form."""
    if found is None:
        return None
    values = {name: getattr(found, name) for name in names}
    return ", ".join(f"{k} {_length(v) if isinstance(v, timedelta) else _plain(v)}" for k, v in values.items())


def _plain(found: float | None) -> str:
    return "none" if found is None else f"{found:g}"


def _held_record(held: HeldState) -> dict[str, Any]:
    return {
        "held_by": held.by,
        "held_note": held.note,
        "held_since": iso(held.since),
        "held_until": iso(held.until),
    }


def _held(held: HeldState) -> str:
    who = "" if held.by is None else f" by {held.by}"
    since = "" if held.since is None else f" since {_second(held.since)}"
    return f"{who}{since}" + ("" if held.note is None else f": {held.note}")


def _revision_record(found: Revision) -> dict[str, Any]:
    return {
        "version": found.version,
        "at": found.at.isoformat(),
        "by": found.by,
        "what": found.what,
        "note": found.note,
        "changes": found.changes,
    }


def _change_words(found: Revision) -> str:
    named = ", ".join(sorted(found.changes)) if found.what == "changed" else ""
    return f"{found.what}: {named}" if named else found.what


def _firing_cells(found: FiringState) -> list[str]:
    if found.reason is not None:
        several = "" if found.count == 1 else f"{found.count} from {_second(found.first or found.due)}"
        return [_second(found.due), "", f"skipped: {found.reason}", "", several, ""]
    took = ""
    if found.started_at is not None and found.finished_at is not None:
        took = f"{(found.finished_at - found.started_at).total_seconds():.3f} s"
    error = "" if found.error is None else f"{found.error.kind}: {found.error.message}".partition("\n")[0]
    return [_second(found.due), str(found.run), str(found.state), str(found.trigger), took, error]


def _firing_record(found: FiringState) -> dict[str, Any]:
    return {
        "due": found.due.isoformat(),
        "run": found.run,
        "state": found.state,
        "trigger": found.trigger,
        "started_at": iso(found.started_at),
        "finished_at": iso(found.finished_at),
        "error": None if found.error is None else f"{found.error.kind}: {found.error.message}",
        "reason": found.reason,
        "first": iso(found.first),
        "count": found.count,
    }


def _second(when: datetime) -> str:
    return when.isoformat(sep=" ", timespec="seconds")


def _length(found: timedelta | None) -> str | None:
    return None if found is None else duration_text(micros(found))


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
