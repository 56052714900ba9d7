"""`rota import`: what other schedulers have, as schedules of Rota's."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rota.app import Rota
from rota.cli.crontab import MOST_BYTES, Crontab, Entry, read_crontab
from rota.cli.loading import AsJson, Store, existing, on_app
from rota.cli.output import as_json, lines, table
from rota.cli.schedule_orders import login
from rota.cli.streams import complain
from rota.errors import Invalid, InvalidZone
from rota.schedule import Schedule, schedule_key
from rota.schedules import PutCounts
from rota.times.cron import Cron

TAG = "crontab"
_NOTES = (
    "while a run goes on the next does not start, where cron would start another: --overlap allow",
    "after downtime one run makes up for what was missed, where cron forgets it: --missed none",
)

imports = typer.Typer(no_args_is_help=True, help="Take over what other schedulers have.")


@imports.callback()
def _imports() -> None:
    """Keep `crontab` a command of its own, though it is the only one."""


@imports.command("crontab")
def crontab(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The crontab; - is standard input.", show_default=False)],
    store: Store = None,
    system: Annotated[bool, typer.Option("--system", help="Its lines name a user, as in /etc/crontab.")] = False,
    tz: Annotated[
        str | None, typer.Option("--tz", metavar="ZONE", help="The zone cron goes by; the machine's if left out.")
    ] = None,
    prefix: Annotated[str, typer.Option("--prefix", help="How the keys begin.")] = TAG,
    apply: Annotated[bool, typer.Option("--apply", help="Make the schedules; else they are only shown.")] = False,
    skip_refused: Annotated[
        bool, typer.Option("--skip-refused", help="Leave out what cannot be a schedule; else nothing is made.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show what the lines of a crontab would be as schedules; with --apply make them, all or none.

    A second time changes only what is different. Exit code 1 where a line is refused.
    """
    schedule_key(prefix)
    zone = machine_zone() if tz is None else tz
    found = read_crontab(_text(file), zone, prefix, system=system)
    counts: PutCounts | None = None
    if apply and (skip_refused or not found.refused):
        counts = on_app(existing(store), None, lambda app: _put(app, found.entries))
    if json:
        as_json(_record(found, zone, counts))
    else:
        _show(found, zone, counts, apply=apply)
    if found.refused and not (skip_refused and apply):
        raise typer.Exit(1)


def machine_zone() -> str:
    """Return the zone that cron on this machine goes by: TZ, or where /etc/localtime leads, or UTC."""
    file = str(Path("/etc/localtime").resolve())
    for name in (os.environ.get("TZ", "").removeprefix(":"), file.partition("zoneinfo/")[2]):
        try:
            found = Cron("@daily", tz=name).tz
        except InvalidZone:
            continue
        return "UTC" if found in ("Etc/UTC", "Etc/UCT", "Universal", "Zulu") else found
    return "UTC"


async def _put(app: Rota, entries: list[Entry]) -> PutCounts:
    task = app.tasks.get("rota.command")
    made = [
        Schedule(each.key, task.call(**each.call()), each.rule, tags=[TAG], description=each.command[:1_000])
        for each in entries
    ]
    return await app.schedules.put_many(made, note="from a crontab", by=login())


def _text(file: str) -> str:
    try:
        if file == "-":
            return sys.stdin.buffer.read(MOST_BYTES + 1).decode()
        with Path(file).open("rb") as source:
            return source.read(MOST_BYTES + 1).decode()
    except OSError as error:
        raise Invalid("file", file, f"name a crontab, or - ({error.strerror})", "cannot be read") from None
    except UnicodeDecodeError:
        raise Invalid("file", file, "use a crontab in UTF-8", "is not text") from None


def _show(found: Crontab, zone: str, counts: PutCounts | None, *, apply: bool) -> None:
    rows = [[each.key, str(each.rule), each.rule.words(), _shown(each)] for each in found.entries]
    if rows:
        table(["key", "rule", "words", "command"], rows)
    for each in found.entries:
        lines(*(f"line {each.line}: {note}" for note in each.notes))
    for refused in found.refused:
        complain(f"line {refused.line} is refused: {refused.text}: {refused.reason}")
    if found.entries:
        lines(f"note: times are by {zone}, unless CRON_TZ says otherwise", *(f"note: {each}" for each in _NOTES))
        lines(f"workers need ROTA_ALLOW_COMMANDS={shlex.quote(','.join(found.programs))}")
    if counts is not None:
        lines(f"{counts.made} made, {counts.changed} changed, {counts.same} as they were")
    elif apply:
        complain("nothing was made; take the refused lines out, or use --skip-refused")
    else:
        lines(f"{len(found.entries)} would be schedules; nothing was made yet: --apply")


def _shown(entry: Entry) -> str:
    return shlex.join([entry.program, *entry.args])


def _record(found: Crontab, zone: str, counts: PutCounts | None) -> dict[str, Any]:
    return {
        "zone": zone,
        "schedules": [
            {
                "line": each.line,
                "key": each.key,
                "rule": str(each.rule),
                "words": each.rule.words(),
                "task": "rota.command",
                "args": each.call(),
                "notes": each.notes,
            }
            for each in found.entries
        ],
        "refused": [{"line": each.line, "text": each.text, "reason": each.reason} for each in found.refused],
        "notes": list(_NOTES),
        "allow": found.programs,
        "applied": None if counts is None else {"made": counts.made, "changed": counts.changed, "same": counts.same},
    }
