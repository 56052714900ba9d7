"""Operations on a connection that the caller brings: they happen if and only if the caller commits."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from tests.stores import DSN, ask, get, new, opened, sql

from rota.db.borrowed import run_on
from rota.db.database import Database
from rota.store.runs import RunStore

Borrow = Callable[[], Awaitable[Any]]


@pytest.fixture
async def db(store: str) -> AsyncIterator[Database]:
    found = await opened(store)
    yield found
    await found.close()


@asynccontextmanager
async def borrowed(store: str) -> AsyncIterator[Any]:
    """A connection of the caller's own, with a transaction that is open."""
    if store.startswith(DSN):
        connection = await asyncpg.connect(store)
        await connection.execute("BEGIN")
        yield connection
        await connection.close()
    else:
        file = sqlite3.connect(store.removeprefix("sqlite:///"))
        file.row_factory = lambda _cursor, row: {"only": row[0]}  # whatever the caller likes
        file.execute("BEGIN")
        yield file
        file.close()


async def end(connection: Any, word: str) -> None:
    done = connection.execute(word)
    if not isinstance(connection, sqlite3.Connection):
        await done


async def count(db: Database) -> int:
    return int((await db.read(lambda: sql("SELECT count(*) FROM rota_runs", db.dialect)))[0][0])


@pytest.mark.parametrize(("word", "runs"), [("COMMIT", 1), ("ROLLBACK", 0)])
async def test_a_run_exists_if_and_only_if_the_caller_commits(db: Database, store: str, word: str, runs: int) -> None:
    async with borrowed(store) as connection:
        made = await run_on(connection, db, lambda: RunStore(db).insert_one(new()))
        assert await count(db) == 0
        await end(connection, word)
    assert await count(db) == runs
    if runs:
        assert (await get(db, made.id)).state == "ready"


@pytest.mark.parametrize(("word", "runs"), [("COMMIT", 100), ("ROLLBACK", 0)])
async def test_many_runs_exist_together_or_not_at_all(db: Database, store: str, word: str, runs: int) -> None:
    async with borrowed(store) as connection:
        ids = await run_on(connection, db, lambda: RunStore(db).insert([new()] * 100))
        await end(connection, word)
    assert len(set(ids)) == 100
    assert await count(db) == runs


async def test_a_key_is_taken_only_if_the_caller_commits(db: Database, store: str) -> None:
    work = lambda: RunStore(db).insert_unique(new(unique="feed-42"))  # noqa: E731
    async with borrowed(store) as connection:
        first = await run_on(connection, db, work)
        again = await run_on(connection, db, work)
        assert (first.created, again.created, again.id) == (True, False, first.id)
        await end(connection, "ROLLBACK")
    assert (await db.write(work)).created


async def test_the_callers_rows_stay_as_he_likes_them(db: Database, store: str) -> None:
    async with borrowed(store) as connection:
        await run_on(connection, db, lambda: RunStore(db).insert_one(new()))
        if isinstance(connection, sqlite3.Connection):
            assert connection.execute("SELECT count(*) FROM rota_runs").fetchone() == {"only": 1}
        await end(connection, "ROLLBACK")


async def test_what_the_caller_did_before_commits_with_it(db: Database, store: str) -> None:
    await ask(db, "DROP TABLE IF EXISTS orders")
    await ask(db, "CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    for word, expected in (("ROLLBACK", 0), ("COMMIT", 1)):
        async with borrowed(store) as connection:
            await end(connection, "INSERT INTO orders VALUES (1)")
            await run_on(connection, db, lambda: RunStore(db).insert_one(new()))
            await end(connection, word)
        assert (await ask(db, "SELECT count(*) FROM orders"))[0][0] == expected
        assert await count(db) == expected
    await ask(db, "DROP TABLE orders")
