"""Cost follows what is due, not what there is: no statement of the engine goes through a whole table."""

import json
import sqlite3
from typing import Any

import asyncpg
import pytest
from tests.scheduling import Bench, made
from tests.stores import DSN, Clock, ask, new

from rota.db.database import Database
from rota.db.postgres import SETTINGS
from rota.db.statements import Statement
from rota.store.runs import RunStore
from rota.times import Every

LARGE = (
    "rota_runs",
    "rota_schedules",
    "rota_skips",
    "rota_revisions",
    "rota_attempts",
    "rota_hours",
    "rota_logs",
    "rota_traces",
)
FOR_PEOPLE = {
    "schedules.counts": "counts them all",
    "schedules.status": "counts those that fail",
    "schedules.failing": "looks for those that fail",
    "reads.runs": "filters as people ask",
    "schedules.list": "filters as people ask",
}
"""What people ask now and then, and nobody waits for."""


@pytest.fixture
async def full(db: Database, clock: Clock) -> Database:
    """A store with much in it, and little to do."""
    bench = Bench(db, clock)
    await bench.facade.put_many(made(f"s{number}", Every("1h")) for number in range(4_000))
    await db.write(lambda: RunStore(db).insert([new()] * 4_000))
    await ask(
        db, "UPDATE rota_runs SET state = 'succeeded', finished_at = id * 60000000, kind = 'interval', nominal = id"
    )
    await ask(db, "UPDATE rota_runs SET schedule = 's' || id, worker = 'w' || (id % 50)")
    await ask(db, "UPDATE rota_runs SET state = 'running', finished_at = NULL WHERE id <= 20")
    await ask(
        db,
        "INSERT INTO rota_skips (schedule, reason, first, last, count, at)"
        " SELECT key, 'missed', 1, 1, 1, 1000000 + length(key) FROM rota_schedules",
    )
    await ask(
        db,
        "INSERT INTO rota_attempts (run, number, worker, started_at, finished_at, outcome)"
        " SELECT id, 1, 'w', 1, 2, 'succeeded' FROM rota_runs",
    )
    await ask(
        db,
        "INSERT INTO rota_hours (hour, task, queue, state, runs, busy, longest, waited)"
        " SELECT id, 't', 'q', 'succeeded', 1, 1, 1, 1 FROM rota_runs",
    )
    await ask(db, "ANALYZE")
    return db


def sqlite_plan(connection: sqlite3.Connection, statement: Statement) -> list[str]:
    rows = connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", [None] * len(statement.parameters))
    return [row[-1] for row in rows if "USING" not in row[-1]]


def example(kind: asyncpg.Type) -> Any:
    """Return a value of a type: what it is does not matter."""
    name = kind.name.removesuffix("[]")
    value: Any = "s1" if name in ("text", "varchar") else 1.0 if name.startswith("float") else 1
    return [value] if kind.kind == "array" else value


async def postgres_plan(connection: asyncpg.Connection, statement: Statement) -> list[str]:
    prepared = await connection.prepare(statement.text)
    (plan,) = await prepared.explain(*(example(each) for each in prepared.get_parameters()))
    found: list[str] = []

    def walk(node: dict[str, Any]) -> None:
        if node["Node Type"] == "Seq Scan":
            found.append(f"SCAN {node['Relation Name']}")
        for each in node.get("Plans", ()):
            walk(each)

    walk(plan["Plan"])
    return found


async def test_no_statement_goes_through_a_whole_table(full: Database, store: str) -> None:
    scans: dict[str, list[str]] = {}
    postgres = await asyncpg.connect(store, server_settings=SETTINGS) if store.startswith(DSN) else None
    sqlite = sqlite3.connect(":memory:" if postgres else store.removeprefix("sqlite:///"))
    for name in full.statements.names():
        statement = full.statements[name]
        steps = await postgres_plan(postgres, statement) if postgres else sqlite_plan(sqlite, statement)
        found = [each for each in steps if each.startswith("SCAN ") and each.split()[1] in LARGE]
        if found and name not in FOR_PEOPLE:
            scans[name] = found
    sqlite.close()
    if postgres:
        await postgres.close()
    assert scans == {}, json.dumps(scans, indent=1)
