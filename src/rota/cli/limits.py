"""`rota limits`: how many runs at once, and at what pace."""

from typing import Annotated, Any

import typer

from rota.cli.loading import AsJson, Where, on_store
from rota.cli.output import as_json, lines, table
from rota.limit import Limit
from rota.store.limits import LimitState
from rota.times.durations import duration_words
from rota.times.moments import micros

limits = typer.Typer(help="Cap how many runs go at once, and at what pace.", no_args_is_help=True)

Key = Annotated[str, typer.Argument(metavar="KEY", help="Such as host:example.org or host:*.", show_default=False)]


@limits.command("list")
def list_limits(where: Where = None, json: AsJson = False) -> None:
    """Show the limits, how much of each is busy, and how many runs wait for it."""
    found = on_store(where, lambda app: app.limits.list())
    if json:
        as_json([_record(each) for each in found])
        return
    table(["key", "at once", "gap", "keys at once", "busy", "waiting"], [_cells(each) for each in found])


@limits.command("put")
def put_limit(
    key: Key,
    where: Where = None,
    at_once: Annotated[int | None, typer.Option("--at-once", help="How many runs of a key at once.")] = None,
    gap: Annotated[str, typer.Option("--gap", help="The pause after one of a key has ended.")] = "0s",
    keys_at_once: Annotated[
        int | None, typer.Option("--keys-at-once", help="How many different keys of a group are busy at once.")
    ] = None,
) -> None:
    """Put a limit in force, or change it. task:NAME and queue:NAME limit a whole task or queue."""
    limit = Limit(at_once, gap=gap, keys_at_once=keys_at_once)
    on_store(where, lambda app: app.limits.put(key, limit))
    lines(f"{key} is limited")


@limits.command("remove")
def remove_limit(key: Key, where: Where = None) -> None:
    """Take a limit out of force."""
    on_store(where, lambda app: app.limits.remove(key))
    lines(f"{key} is not limited any more")


def _cells(state: LimitState) -> list[str]:
    limit = state.limit
    gap = duration_words(micros(limit.gap)) if limit.gap else ""
    caps = ["" if each is None else str(each) for each in (limit.at_once, limit.keys_at_once)]
    return [state.key, caps[0], gap, caps[1], str(state.busy), str(state.waiting)]


def _record(state: LimitState) -> dict[str, Any]:
    return {
        "key": state.key,
        "at_once": state.limit.at_once,
        "gap": state.limit.gap.total_seconds(),
        "keys_at_once": state.limit.keys_at_once,
        "busy": state.busy,
        "waiting": state.waiting,
    }
