"""Whatever rows a store's tables hold, they survive the way there and back again unchanged."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.copies import copied, dump
from tests.stores import emptied, migrated

WHOLE = {"smallint": 2**15, "integer": 2**31, "bigint": 2**63}
WORDS = {
    "state": [
        "waiting",
        "ready",
        "running",
        "succeeded",
        "failed",
        "cancelled",
        "active",
        "paused",
        "parked",
        "retired",
    ],
    "outcome": ["succeeded", "failed", "retry", "snoozed", "cancelled", "lost"],
    "role": ["read", "operate", "admin"],
    "kind": ["cron", "interval", "once", "manual", "backfill"],
}
ONE_ROW = {"rota_pause", "rota_summed"}
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
COLUMNS = """
SELECT table_name::text, column_name::text, data_type::text, is_nullable = 'YES'
FROM information_schema.columns WHERE table_name LIKE 'rota\\_%' ORDER BY table_name, ordinal_position
"""


def values(table: str, name: str, kind: str, *, optional: bool) -> st.SearchStrategy[Any]:
    """What a column may hold, by what PostgreSQL says of it; a row that the schema does not allow is not put in."""
    if table in ONE_ROW and name == "id":
        return st.just(1)
    if (table, name) in {("rota_attempts", "run"), ("rota_logs", "run"), ("rota_traces", "run"), ("rota_runs", "id")}:
        return st.integers(1, 5)
    if (table, name) in {("rota_tags", "schedule"), ("rota_schedules", "key")}:
        return st.sampled_from(["a", "B", "ä"])
    found: st.SearchStrategy[Any] = TEXT
    if name in WORDS:
        found = st.sampled_from(WORDS[name])
    elif kind in WHOLE:
        found = st.integers(-WHOLE[kind], WHOLE[kind] - 1)
    elif kind == "double precision":
        found = st.floats(allow_nan=False)
    if table in {"rota_holds", "rota_skips"} and name == "id":
        found = st.integers(1, 2**62)  # a number that is given, and not the last one
    return st.none() | found if optional else found


@pytest.fixture(scope="module")
def columns(postgres_store: str) -> dict[str, list[tuple[str, str, bool]]]:
    async def look() -> list[Any]:
        connection = await asyncpg.connect(postgres_store)
        try:
            return list(await connection.fetch(COLUMNS))
        finally:
            await connection.close()

    found: dict[str, list[tuple[str, str, bool]]] = {}
    for table, name, kind, optional in asyncio.run(look()):
        found.setdefault(table, []).append((name, kind, optional))
    return {table: each for table, each in found.items() if table not in {"rota_migrations", "rota_workers"}}


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_any_rows_survive_there_and_back_again(
    data: st.DataObject,
    columns: dict[str, list[tuple[str, str, bool]]],
    postgres_store: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("copies")
    source, back = f"sqlite:///{folder}/source.db", f"sqlite:///{folder}/back.db"
    asyncio.run(migrated(source))
    fill(folder / "source.db", columns, data)

    async def there_and_back() -> None:
        await emptied(postgres_store)
        first = await dump(source)
        await copied(source, postgres_store)
        assert await dump(postgres_store) == first
        await copied(postgres_store, back)
        assert await dump(back) == first

    asyncio.run(there_and_back())


def fill(path: Path, columns: dict[str, list[tuple[str, str, bool]]], data: st.DataObject) -> None:
    """Put random rows into every table; those that the schema does not allow together are left out."""
    connection = sqlite3.connect(path)
    first = sorted(columns, key=lambda table: table in {"rota_attempts", "rota_logs", "rota_tags", "rota_traces"})
    for table in first:
        kinds = [values(table, name, kind, optional=optional) for name, kind, optional in columns[table]]
        rows = data.draw(st.lists(st.tuples(*kinds), min_size=1, max_size=4), label=table)
        names = ", ".join(f'"{name}"' for name, _, _ in columns[table])
        marks = ", ".join("?" * len(kinds))
        connection.executemany(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", rows)
    connection.execute("DELETE FROM rota_attempts WHERE run NOT IN (SELECT id FROM rota_runs)")
    connection.execute("DELETE FROM rota_logs WHERE run NOT IN (SELECT id FROM rota_runs)")
    connection.execute("DELETE FROM rota_traces WHERE run NOT IN (SELECT id FROM rota_runs)")
    connection.execute("DELETE FROM rota_tags WHERE schedule NOT IN (SELECT key FROM rota_schedules)")
    connection.commit()
    connection.close()
