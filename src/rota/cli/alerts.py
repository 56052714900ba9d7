"""`rota alerts`: the troubles that somebody is told of."""

from typing import Annotated, Any

import typer

from rota.cli.loading import AsJson, Where, on_store
from rota.cli.moments import iso
from rota.cli.output import as_json, lines, table
from rota.store.troubles import Trouble


def alerts(
    where: Where = None,
    over: Annotated[bool, typer.Option("--over", help="Also those that are over.")] = False,
    limit: Annotated[int, typer.Option("--limit", help="How many.", min=1, max=1000)] = 100,
    json: AsJson = False,
) -> None:
    """Show the troubles that somebody is told of, the newest first."""
    found = on_store(where, lambda app: app.alerts.list(over=over, limit=limit))
    if json:
        as_json([_record(each) for each in found])
    elif found:
        table(["since", "over", "kind", "told", "what"], [_cells(each) for each in found])
    else:
        lines("no trouble is known")


def _cells(trouble: Trouble) -> list[str]:
    told = "yes" if trouble.told else "not yet"
    over = "" if trouble.over is None else f"{trouble.over:%Y-%m-%d %H:%M}"
    return [f"{trouble.began:%Y-%m-%d %H:%M}", over, trouble.kind, told, trouble.said]


def _record(trouble: Trouble) -> dict[str, Any]:
    named = {"subject": trouble.subject, "kind": trouble.kind, "said": trouble.said}
    return named | {"began": iso(trouble.began), "over": iso(trouble.over), "told": trouble.told}
