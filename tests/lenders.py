"""Connections of the caller's own, of every kind that Rota takes, each with a transaction that the test ends."""

import inspect
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import psycopg2
import psycopg2.extras
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker


@dataclass(frozen=True)
class Lent:
    """A connection, and what its owner does with it."""

    connection: Any
    execute: Callable[[str], Any]
    end: Callable[[str], Any]

    async def do(self, text: str) -> Any:
        return await awaited(self.execute(text))

    async def commit(self) -> None:
        await awaited(self.end("commit"))

    async def rollback(self) -> None:
        await awaited(self.end("rollback"))


Lender = Callable[[str], AbstractAsyncContextManager[Lent]]


async def awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def plain(connection: Any) -> Lent:
    return Lent(connection, connection.execute, lambda word: getattr(connection, word)())


def of_alchemy(connection: Any) -> Lent:
    return Lent(
        connection,
        lambda text: connection.execute(sqlalchemy.text(text)),
        lambda word: getattr(connection, word)(),
    )


def alchemy_url(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://").replace("sqlite://", f"sqlite+{driver}://")


@asynccontextmanager
async def lend_sqlite3(url: str) -> AsyncIterator[Lent]:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    connection.row_factory = lambda _cursor, row: {"only": row[0]}  # whatever the caller likes
    yield plain(connection)
    connection.close()


@asynccontextmanager
async def lend_sqlite3_begun(url: str) -> AsyncIterator[Lent]:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("BEGIN")
    yield plain(connection)
    connection.close()


@asynccontextmanager
async def lend_aiosqlite(url: str) -> AsyncIterator[Lent]:
    async with aiosqlite.connect(url.removeprefix("sqlite:///")) as connection:
        connection.row_factory = lambda _cursor, row: {"only": row[0]}
        yield plain(connection)


@asynccontextmanager
async def lend_asyncpg(url: str) -> AsyncIterator[Lent]:
    connection = await asyncpg.connect(url)
    await connection.execute("BEGIN")
    yield Lent(connection, connection.execute, connection.execute)
    await connection.close()


@asynccontextmanager
async def lend_psycopg(url: str) -> AsyncIterator[Lent]:
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        yield plain(connection)
        connection.rollback()  # leaving the connection would commit


@asynccontextmanager
async def lend_psycopg2(url: str) -> AsyncIterator[Lent]:
    connection = psycopg2.connect(url, cursor_factory=psycopg2.extras.RealDictCursor)

    def execute(text: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(text)

    yield Lent(connection, execute, lambda word: getattr(connection, word)())
    connection.close()


@asynccontextmanager
async def lend_async_psycopg(url: str) -> AsyncIterator[Lent]:
    connection = await psycopg.AsyncConnection.connect(url, cursor_factory=psycopg.AsyncClientCursor)
    yield plain(connection)
    await connection.close()


def lend_core(driver: str) -> Lender:
    @asynccontextmanager
    async def lend(url: str) -> AsyncIterator[Lent]:
        engine = sqlalchemy.create_engine(alchemy_url(url, driver))
        with engine.connect() as connection:
            yield of_alchemy(connection)
        engine.dispose()

    return lend


def lend_session(driver: str, *, scoped: bool = False) -> Lender:
    @asynccontextmanager
    async def lend(url: str) -> AsyncIterator[Lent]:
        engine = sqlalchemy.create_engine(alchemy_url(url, driver))
        session: Any = scoped_session(sessionmaker(engine)) if scoped else Session(engine)
        yield of_alchemy(session)
        session.close()
        engine.dispose()

    return lend


def lend_async_core(driver: str) -> Lender:
    @asynccontextmanager
    async def lend(url: str) -> AsyncIterator[Lent]:
        engine = create_async_engine(alchemy_url(url, driver))
        async with engine.connect() as connection:
            yield of_alchemy(connection)
        await engine.dispose()

    return lend


def lend_async_session(driver: str, *, scoped: bool = False) -> Lender:
    @asynccontextmanager
    async def lend(url: str) -> AsyncIterator[Lent]:
        engine = create_async_engine(alchemy_url(url, driver))
        here = async_scoped_session(async_sessionmaker(engine), lambda: 0)
        session: Any = here if scoped else AsyncSession(engine)
        yield of_alchemy(session)
        await session.close()
        await engine.dispose()

    return lend


SQLITE: dict[str, Lender] = {
    "sqlite3": lend_sqlite3,
    "sqlite3, begun": lend_sqlite3_begun,
    "aiosqlite": lend_aiosqlite,
    "sqlalchemy, pysqlite": lend_core("pysqlite"),
    "sqlalchemy, pysqlite, session": lend_session("pysqlite"),
    "sqlalchemy, aiosqlite": lend_async_core("aiosqlite"),
    "sqlalchemy, aiosqlite, session": lend_async_session("aiosqlite"),
}
if sys.version_info >= (3, 12):

    @asynccontextmanager
    async def lend_sqlite3_of_python_3_12(url: str) -> AsyncIterator[Lent]:
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), autocommit=False)
        yield plain(connection)
        connection.close()

    SQLITE["sqlite3, no autocommit"] = lend_sqlite3_of_python_3_12
POSTGRES: dict[str, Lender] = {
    "asyncpg": lend_asyncpg,
    "psycopg": lend_psycopg,
    "psycopg, async": lend_async_psycopg,
    "psycopg2": lend_psycopg2,
    "sqlalchemy, psycopg2": lend_core("psycopg2"),
    "sqlalchemy, psycopg2, session": lend_session("psycopg2"),
    "sqlalchemy, psycopg": lend_core("psycopg"),
    "sqlalchemy, psycopg, session": lend_session("psycopg"),
    "sqlalchemy, psycopg, scoped session": lend_session("psycopg", scoped=True),
    "sqlalchemy, async psycopg": lend_async_core("psycopg"),
    "sqlalchemy, async psycopg, session": lend_async_session("psycopg"),
    "sqlalchemy, asyncpg": lend_async_core("asyncpg"),
    "sqlalchemy, asyncpg, session": lend_async_session("asyncpg"),
    "sqlalchemy, asyncpg, scoped session": lend_async_session("asyncpg", scoped=True),
}
LENDERS = SQLITE | POSTGRES
