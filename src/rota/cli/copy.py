"""`rota copy`: everything of one store into another."""

import asyncio
from typing import Annotated

import typer

from rota.app import store_database
from rota.application import installed
from rota.cli.loading import AsJson, existing
from rota.cli.output import as_json, bar, lines, table
from rota.db.connect import is_memory, masked
from rota.db.database import Database
from rota.errors import Invalid
from rota.store.copy import ROTA, Copied, Owner, StoreCopy

From = Annotated[str, typer.Argument(metavar="FROM", help="The store that is copied.", show_default=False)]
To = Annotated[str, typer.Argument(metavar="TO", help="The store that it is copied into.", show_default=False)]


def copy(
    source: From,
    target: To,
    replace: Annotated[bool, typer.Option("--replace", help="Empty TO first.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before TO is emptied.")] = False,
    live: Annotated[bool, typer.Option("--live", help="Also where workers are at work in FROM.")] = False,
    json: AsJson = False,
) -> None:
    """Copy everything of a store into an empty one; run again after a break, it goes on where it was."""
    copied = asyncio.run(_copy(source, target, replace=replace, ask=not yes, live=live))
    if json:
        as_json({"rows": copied.rows, "before": copied.before, "running": copied.running})
        return
    table(["table", "rows"], [[name, f"{rows:,}"] for name, rows in copied.rows.items()])
    if copied.before:
        lines(f"{copied.before:,} of these rows had arrived before.")
    if copied.running:
        lines(f"{copied.running:,} runs were running: workers on TO take them back, as those of a worker that died.")
    lines(f"Done and compared: {sum(copied.rows.values()):,} rows are in {masked(target)}.")


async def _copy(source: str, target: str, *, replace: bool, ask: bool, live: bool) -> Copied:
    for url in (source, target):
        if is_memory(url):
            raise Invalid("store", url, "use a file or PostgreSQL", "is memory, which ends with this command")
    databases = existing(source).database, store_database(target)
    opened: list[Database] = []
    try:
        for each in databases:
            await each.open()
            opened.append(each)
        copying = StoreCopy(*databases, [ROTA, *_owners()])
        if replace and ask and (found := await copying.in_target()):
            shown = ", ".join(f"{name} {rows:,}" for name, rows in found.items())
            typer.confirm(f"{masked(target)} has {shown}. Remove all of it?", abort=True, err=True)
        with bar() as progress:
            going = progress.add_task("", total=None)
            return await copying.run(
                lambda what, done, total: progress.update(going, description=what, completed=done, total=total),
                replace=replace,
                live=live,
            )
    finally:
        for each in opened:
            await each.close()


def _owners() -> list[Owner]:
    """Return whose tables may be there beside Rota's own."""
    found = ((each.name, each.migrations, frozenset(each.not_copied)) for each in installed())
    return [Owner(name, package, left_out) for name, package, left_out in found if package is not None]
