"""Orders to schedules, one or many: `rota schedules pause`, `resume`, `trigger`, `backfill`, `spread`, `remove`."""

import contextlib
import getpass
from typing import Annotated

import typer

from rota.cli.loading import Where, on_store
from rota.cli.moments import given_moment
from rota.cli.output import lines, safe
from rota.times.moments import instant, moment

Which = Annotated[
    str | None, typer.Argument(metavar="KEY", help="The schedule's key; or --tag or --prefix.", show_default=False)
]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The schedule's key.", show_default=False)]
Tag = Annotated[str | None, typer.Option("--tag", help="All schedules with this tag.")]
Prefix = Annotated[str | None, typer.Option("--prefix", help="All schedules whose key begins so.")]
Everything = Annotated[bool, typer.Option("--all", help="Every schedule of the store, also those made later.")]
Note = Annotated[str | None, typer.Option("--note", help="Why; it is kept with the change.")]
By = Annotated[str | None, typer.Option("--by", help="Who; your login name if left out.")]


def login() -> str | None:
    """Return who is at the terminal, if the system knows."""
    with contextlib.suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return None


def check_which(key: str | None, tag: str | None, prefix: str | None, *, everything: bool = False) -> None:
    """Refuse what names no schedules, or names them twice."""
    if [key is not None, tag is not None, prefix is not None, everything].count(True) != 1:
        raise typer.BadParameter("say which: a KEY, or --tag, or --prefix; one of them", param_hint="KEY")


def pause(
    key: Which = None,
    where: Where = None,
    tag: Tag = None,
    prefix: Prefix = None,
    everything: Everything = False,
    until: Annotated[
        str | None, typer.Option("--until", metavar="T", help="Until this moment, ISO 8601 with an offset.")
    ] = None,
    note: Note = None,
    by: By = None,
) -> None:
    """Keep schedules from firing, until they are resumed; --all outlives restarts too."""
    check_which(key, tag, prefix, everything=everything)
    end, who = given_moment(until, "--until"), by or login()
    if everything:
        if end is not None:
            raise typer.BadParameter("does not go with --all", param_hint="--until")
        on_store(where, lambda app: app.pause(note=note, by=who))
        lines("everything is paused")
        return
    count = on_store(where, lambda app: app.schedules.pause(key, tag=tag, prefix=prefix, note=note, by=who, until=end))
    _say(key, count, "is paused", "were paused", "was paused already, or is retired; a pause is as you say now")


def resume(
    key: Which = None,
    where: Where = None,
    tag: Tag = None,
    prefix: Prefix = None,
    everything: Everything = False,
    note: Note = None,
    by: By = None,
) -> None:
    """Let schedules go on with the future; what passed is recorded as skipped.

    With --all, whoever was paused alone stays so.
    """
    check_which(key, tag, prefix, everything=everything)
    who = by or login()
    if everything:
        on_store(where, lambda app: app.resume(note=note, by=who))
        lines("everything goes on, but for what was paused alone")
        return
    count = on_store(where, lambda app: app.schedules.resume(key, tag=tag, prefix=prefix, note=note, by=who))
    _say(key, count, "goes on", "go on", "was not held")


def trigger(key: Key, where: Where = None, note: Note = None, by: By = None) -> None:
    """Run a schedule now, beside its rule, as its overlap policy lets it; exit code 1 where that lets none in."""
    found = on_store(where, lambda app: app.schedules.trigger(key, note=note, by=by or login()))
    if found.run is None:
        lines(f"no run: its overlap policy lets none in while run {found.blocker} is under way")
        raise typer.Exit(1)
    behind = "" if found.blocker is None else f"; run {found.blocker} was under way"
    lines(f"run {found.run}{behind}")


def backfill(
    key: Key,
    start: Annotated[str, typer.Option("--start", metavar="T", help="From this moment on, ISO 8601 with an offset.")],
    end: Annotated[str, typer.Option("--end", metavar="T", help="Before this moment.")],
    where: Where = None,
    note: Note = None,
    by: By = None,
) -> None:
    """Run the due instants of a past range once more, in order, as the overlap policy lets them."""
    first, last = moment(instant(start, "--start")), moment(instant(end, "--end"))

    found = on_store(where, lambda app: app.schedules.backfill(key, first, last, note=note, by=by or login()))
    if found.run is None:
        lines(f"no run: its overlap policy lets none in while run {found.blocker} is under way")
        raise typer.Exit(1)
    lines(f"{found.count} runs, from run {found.run} on")


def spread(
    where: Where = None,
    tag: Tag = None,
    prefix: Prefix = None,
    window: Annotated[str, typer.Option("--window", metavar="T", help="Over how long.")] = "1h",
    note: Note = None,
    by: By = None,
) -> None:
    """Spread what runs next evenly over a window from now on: of intervals that count from the last run."""
    if (tag is None) == (prefix is None):
        raise typer.BadParameter("say which: --tag or --prefix", param_hint="--tag")
    count = on_store(
        where, lambda app: app.schedules.spread(tag=tag, prefix=prefix, window=window, note=note, by=by or login())
    )
    lines(f"{count} schedules are spread over {window}")


def remove(
    key: Which = None,
    where: Where = None,
    tag: Tag = None,
    prefix: Prefix = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before removing many.")] = False,
    note: Note = None,
    by: By = None,
) -> None:
    """Remove schedules: what waits is cancelled, what runs ends, the history stays. Asks before it removes many."""
    check_which(key, tag, prefix)
    if key is None and not yes:
        named = f"with tag {tag}" if tag is not None else f"whose key begins with {prefix}"
        typer.confirm(safe(f"Remove all schedules {named}?"), abort=True, err=True)
    count = on_store(where, lambda app: app.schedules.remove(key, tag=tag, prefix=prefix, note=note, by=by or login()))
    _say(key, count, "is removed", "were removed", "was removed already")


def _say(key: str | None, count: int, one: str, many: str, none: str) -> None:
    if key is None:
        lines(f"{count} schedules {many}")
    else:
        lines(f"{key} {one}" if count else f"{key} {none}")
