"""`rota migrate` and `rota doctor`: the store itself."""

import asyncio

import typer

from rota.app import Rota
from rota.application import installed
from rota.cli.loading import AsJson, Store, Where, on_store
from rota.cli.output import as_json, lines
from rota.doctor import examine
from rota.model import Finding


def migrate(store: Store = None) -> None:
    """Bring the store's tables up to date, and those of the applications that are installed."""

    async def run() -> list[str]:
        app = Rota(store)
        app.include(*installed())
        await app.connect()
        try:
            return await app.migrate()
        finally:
            await app.close()

    applied = asyncio.run(run())
    lines(*(f"applied {name}" for name in applied) if applied else ["up to date"])


def doctor(where: Where = None, json: AsJson = False) -> None:
    """Say what is wrong with the store and what works on it; exit code 1 if anything is."""

    async def look(app: Rota) -> list[Finding]:
        itself = getattr(app, "examine", None)  # a server's own word on it
        return await (examine(app) if itself is None else itself())

    found = on_store(where, look)
    if json:
        as_json([{"ok": each.ok, "what": each.what, "advice": each.advice} for each in found])
    else:
        lines(*(f"{'ok ' if each.ok else 'BAD'} {each.line()}" for each in found))
    if not all(each.ok for each in found):
        raise typer.Exit(1)
