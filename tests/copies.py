"""Two stores for tests of copying, and all that is in them, asked behind Rota's back."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import asyncpg

from rota.app import store_database
from rota.store.copy import ROTA, Copied, Owner, StoreCopy

Rows = list[tuple[Any, ...]]

TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rota\\_%' ESCAPE '\\'",
    "postgres": "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE 'rota\\_%'",
}
NUMBERS = {
    "sqlite": "SELECT name, seq FROM sqlite_sequence WHERE seq > 0 ORDER BY name",
    "postgres": "SELECT replace(sequencename, '_id_seq', ''), last_value FROM pg_sequences"
    " WHERE last_value IS NOT NULL ORDER BY 1",
}


def dialect(url: str) -> str:
    return "sqlite" if url.startswith("sqlite") else "postgres"


async def rows(url: str, text: str) -> Rows:
    """Return what a statement finds, or do what it says."""
    if dialect(url) == "sqlite":
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=30, isolation_level=None)
        try:
            return connection.execute(text).fetchall()
        finally:
            connection.close()
    link = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await link.fetch(text)]
    finally:
        await link.close()


async def tables(url: str) -> set[str]:
    return {name for (name,) in await rows(url, TABLES[dialect(url)])}


async def dump(url: str) -> dict[str, Any]:
    """Return every row of every table, but for the workers and for when the tables were made; and the last numbers."""
    found: dict[str, Any] = {}
    for table in sorted(await tables(url) - {"rota_workers", "rota_migrations"}):
        columns = sorted(name for (name,) in await rows(url, _columns(url, table)))
        names = ", ".join(f'"{name}"' for name in columns)
        found[table] = sorted(await rows(url, f"SELECT {names} FROM {table}"), key=repr)
    return found | {"numbers": dict(await rows(url, NUMBERS[dialect(url)]))}


def _columns(url: str, table: str) -> str:
    if dialect(url) == "sqlite":
        return f"SELECT name FROM pragma_table_info('{table}')"
    return f"SELECT column_name::text FROM information_schema.columns WHERE table_name = '{table}'"


class BrokenOff(Exception):
    """What a test ends a copy with."""


async def copied(
    source: str,
    target: str,
    *,
    owners: Sequence[Owner] = (ROTA,),
    most: int | None = None,
    meanwhile: Callable[[], object] = int,
    **options: Any,
) -> Copied:
    """Copy a store; after so many steps the copy is broken off. What happens meanwhile happens after the first."""
    steps = 0

    def progress(what: str, done: int, total: int) -> None:
        nonlocal steps
        steps += 1
        if steps == 1:
            meanwhile()
        if most is not None and steps >= most:
            raise BrokenOff(what, done, total)

    ends = store_database(source), store_database(target)
    for each in ends:
        await each.open()
    try:
        return await StoreCopy(*ends, owners).run(progress, **options)
    finally:
        for each in ends:
            await each.close()
