"""Stores for tests: opened, emptied, and with a clock that the test turns."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import asyncpg

from rota.app import Rota
from rota.db.connect import database
from rota.db.database import Database, Operation, Query
from rota.db.migrate import Migrations
from rota.db.postgres import PostgresDatabase
from rota.db.sqlite import SqliteDatabase
from rota.db.statements import Dialect, Statements, written
from rota.model import Outcome, Run
from rota.store.runs import Claimed, NewRun, RunStore, Settled
from rota.store.workers import NewWorker

SQL = ["rota.store.sql"]
SECOND = 1_000_000
START = 1_800_000_000 * SECOND
DSN = ("postgres", "postgresql")


async def until(holds: Callable[[], object]) -> None:
    """Wait for something that says nothing when it comes; the test's own time limit is the bound."""
    while not holds():  # noqa: ASYNC110 (there is no event to wait for)
        await asyncio.sleep(0)


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)


async def migrated(url: str) -> None:
    async with Rota(url):
        pass


async def emptied(url: str) -> None:
    """Take every row out of a PostgreSQL store, whoever may still be connected to it."""
    connection = await asyncpg.connect(url)
    await connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    tables = await connection.fetchval(
        "SELECT string_agg(tablename, ', ') FROM pg_tables"
        " WHERE tablename LIKE 'rota\\_%' AND tablename <> 'rota_migrations'"
    )
    await connection.execute(f"TRUNCATE {tables} RESTART IDENTITY")
    await connection.close()


async def on_clock(url: str, clock: Clock) -> Database:
    """Open a store that lives by this clock."""
    found: Database
    if url.startswith(DSN):
        found = PostgresDatabase(url, Statements(SQL, "postgres", None), clock)
    else:
        found = SqliteDatabase(url.removeprefix("sqlite:///"), Statements(SQL, "sqlite", None), clock)
    await found.open()
    await Migrations("rota", "rota.store.migrations", found).apply()
    return found


async def opened(url: str) -> Database:
    """Open a store that lives by its own clock."""
    found = database(url, SQL)
    await found.open()
    await Migrations("rota", "rota.store.migrations", found).apply()
    return found


def sql(text: str, dialect: Dialect, /, **values: object) -> Operation[list[Any]]:
    """An operation of one statement that a test writes itself."""
    rows = yield Query(written("test", text, dialect, None), values)
    return list(rows)


async def ask(db: Database, text: str, /, **values: object) -> list[Any]:
    """Write a statement that a test makes itself, and return its rows."""
    return await db.write(lambda: sql(text, db.dialect, **values))


def new(task: str = "some.task", *, queue: str = "default", priority: int = 50, **more: Any) -> NewRun:
    return NewRun(task, more.pop("args", "{}"), queue, priority, **more)


def worker(name: str) -> NewWorker:
    return NewWorker(name, "host", 1, ("default",), 10)


async def put(db: Database, run: NewRun | None = None, **more: Any) -> Run[Any]:
    """Store a run."""
    return await db.write(lambda: RunStore(db).insert_one(run or new(**more)))


async def get(db: Database, run: int) -> Run[Any]:
    """Return a run that must be there."""
    found = await db.read(lambda: RunStore(db).get(run))
    assert found is not None
    return found


async def claim(
    db: Database, name: str = "w", most: int = 100, *, queue: str = "default", lost: tuple[int, int] = (0, 1_000)
) -> list[Claimed]:
    """Claim ready runs for a worker, also those that were lost."""
    store = RunStore(db)
    return await db.write(lambda: store.claim(name, queue, most, lost_least=lost[0], lost_most=lost[1]))


async def claim_one(db: Database, name: str = "w") -> Claimed:
    (found,) = await claim(db, name, 1)
    return found


async def settle(db: Database, name: str, ended: Sequence[Settled]) -> set[int]:
    return await db.write(lambda: RunStore(db).settle(name, ended))


def ended(run: Claimed, outcome: Outcome, **more: Any) -> Settled:
    """Say how an attempt ended."""
    return Settled(run.id, run.attempt, outcome, **more)
