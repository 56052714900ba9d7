"""The connections that a caller may bring, and how each runs a step of an operation inside the caller's transaction.

A driver is known by the module of its class: none of them has to be installed, and only the one at hand is imported.
"""

import asyncio
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rota.db import sqlite
from rota.db.database import Ask, Query, Row, Rows, array_values
from rota.db.statements import Dialect, written
from rota.errors import Invalid

Now = Callable[[], int] | None

_NUMBERED = re.compile(r"\$(\d+)")
_BEGUN = written("borrowed.begin", "BEGIN IMMEDIATE", "sqlite", None)


class Driver(ABC):
    """A connection with an open transaction, as its driver speaks."""

    dialect: Dialect
    waits: bool
    """Whether its calls are awaited; else they block the thread that makes them."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    @abstractmethod
    async def begin(self) -> None:
        """Make sure that there is a transaction, which the caller ends; refuse a connection that commits by itself."""

    @abstractmethod
    async def rows(self, step: Ask, now: Now) -> Rows:
        """Run a step."""

    def _refuse(self, how: str) -> Invalid:
        return Invalid("connection", self.connection, f"{how}: Rota never commits", "has no transaction open")


class Sqlite3(Driver):
    """A connection of the standard library."""

    dialect: Dialect = "sqlite"
    waits = False

    async def begin(self) -> None:
        """Begin one as the driver would at the first change, unless the caller does that himself."""
        if not self.connection.in_transaction:
            # Before Python 3.12 there is no `autocommit`; since then it may say that `isolation_level` does not count.
            if self.connection.isolation_level is None or getattr(self.connection, "autocommit", -1) is True:
                raise self._refuse('begin one, with connection.execute("BEGIN")')
            await self.rows(Query(_BEGUN, {}), None)

    async def rows(self, step: Ask, now: Now) -> Rows:
        """Run a step in this thread."""
        return sqlite.rows(self.connection, step, now)


class Aiosqlite(Sqlite3):
    """A connection of aiosqlite, which is one of the standard library in a thread of its own."""

    waits = True

    async def rows(self, step: Ask, now: Now) -> Rows:
        """Run a step in the connection's own thread."""
        cursor = await self.connection.cursor()
        cursor.row_factory = sqlite3.Row
        text, values = step.statement.text, sqlite.values(step, now)
        found: list[Row] = []
        if not sqlite.returns(step):
            await cursor.executemany(text, values)
        else:
            for each in values:
                await cursor.execute(text, each)
                found += await cursor.fetchall()
        await cursor.close()
        return found


class Asyncpg(Driver):
    """A connection of asyncpg, from a pool or not."""

    dialect: Dialect = "postgres"
    waits = True

    async def begin(self) -> None:
        """asyncpg leaves it to the caller."""
        if not self.connection.is_in_transaction():
            raise self._refuse("begin one, with async with connection.transaction()")

    async def rows(self, step: Ask, now: Now) -> Rows:
        """Run a step; asyncpg is what the statements are written for."""
        found: Rows = await self.connection.fetch(step.statement.text, *array_values(step, now))
        return found


class Psycopg(Driver):
    """A connection of psycopg 3."""

    dialect: Dialect = "postgres"
    waits = False
    begun_by = "with connection.transaction(), or connect without autocommit"

    async def begin(self) -> None:
        """psycopg begins with the first statement, unless it commits each."""
        idle = int(self.connection.info.transaction_status) == 0
        if idle and self.connection.autocommit:
            raise self._refuse(f"begin one, {self.begun_by}")

    async def rows(self, step: Ask, now: Now) -> Rows:
        """Run a step in this thread, or beside the event loop that runs in it: what it waits for may be held there."""
        if not _in_event_loop():
            return self._rows(step, now)
        try:
            return await asyncio.to_thread(self._rows, step, now)
        except asyncio.CancelledError:
            self.connection.cancel()  # the caller will want to roll back
            raise

    def _rows(self, step: Ask, now: Now) -> Rows:
        """Run a step, as it is written: a raw cursor takes numbered parameters."""
        from psycopg import RawCursor  # noqa: PLC0415 (the caller's driver)

        with RawCursor(self.connection, row_factory=_as_they_are) as cursor:
            cursor.execute(step.statement.text, _texts(array_values(step, now)))
            return _named(cursor.description, cursor.fetchall()) if cursor.description else ()


class Psycopg2(Psycopg):
    """A connection of psycopg2, which writes the values into the text itself."""

    begun_by = "with connection.autocommit = False"

    def _rows(self, step: Ask, now: Now) -> Rows:
        from psycopg2.extensions import cursor as plain  # noqa: PLC0415 (the caller's driver)

        text = _NUMBERED.sub(r"%(\1)s", step.statement.text.replace("%", "%%"))
        values = {str(place): each for place, each in enumerate(_texts(array_values(step, now)), 1)}
        with self.connection.cursor(cursor_factory=plain) as cursor:  # whatever rows the caller likes
            cursor.execute(text, values)
            return _named(cursor.description, cursor.fetchall()) if cursor.description else ()


class AsyncPsycopg(Psycopg):
    """An async connection of psycopg 3."""

    waits = True

    async def rows(self, step: Ask, now: Now) -> Rows:
        """Run a step, as it is written."""
        from psycopg import AsyncRawCursor  # noqa: PLC0415 (the caller's driver)

        async with AsyncRawCursor(self.connection, row_factory=_as_they_are) as cursor:
            await cursor.execute(step.statement.text, _texts(array_values(step, now)))
            return _named(cursor.description, await cursor.fetchall()) if cursor.description else ()


class Own(Driver):
    """A transaction on the store's own connection."""

    waits = True

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self.dialect = connection.database.dialect

    async def begin(self) -> None:
        """It has begun."""

    async def rows(self, step: Ask, now: Now) -> Rows:  # noqa: ARG002 (it knows the time itself)
        """Run a step."""
        found: Rows = await self.connection.run(step)
        return found


_KNOWN: dict[tuple[str, str], type[Driver]] = {
    ("rota", "Transaction"): Own,
    ("sqlite3", "Connection"): Sqlite3,
    ("aiosqlite", "Connection"): Aiosqlite,
    ("asyncpg", "Connection"): Asyncpg,
    ("asyncpg", "PoolConnectionProxy"): Asyncpg,
    ("psycopg", "Connection"): Psycopg,
    ("psycopg", "AsyncConnection"): AsyncPsycopg,
    ("psycopg2", "connection"): Psycopg2,
}


def driver(connection: Any) -> Driver | None:
    """Return how to speak to a connection; None for what is none, such as a pool."""
    return next((_KNOWN[kind](connection) for kind in _kinds(connection) if kind in _KNOWN), None)


async def beneath(connection: Any) -> Any:
    """Return the driver's connection beneath one of SQLAlchemy's, or beneath its session; any other is its own.

    SQLAlchemy and some of its drivers begin a transaction with the first statement, so there has to be one.
    """
    match _alchemy(connection):
        case "Session" | "scoped_session":
            return await beneath(connection.connection())
        case "AsyncSession" | "async_scoped_session":
            return await beneath(await connection.connection())
        case "Connection":
            connection.exec_driver_sql("SELECT 1").close()
            return connection.connection.driver_connection
        case "AsyncConnection":
            await connection.exec_driver_sql("SELECT 1")
            return (await connection.get_raw_connection()).driver_connection
        case _:
            return connection


def must_be_awaited(connection: Any) -> bool:
    """Tell a connection whose calls are awaited."""
    known = driver(connection)
    return known.waits if known else _alchemy(connection) in ("AsyncSession", "async_scoped_session", "AsyncConnection")


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _alchemy(connection: Any) -> str | None:
    known = ("Connection", "AsyncConnection", "Session", "AsyncSession", "scoped_session", "async_scoped_session")
    return next((name for module, name in _kinds(connection) if module == "sqlalchemy" and name in known), None)


def _kinds(connection: Any) -> Iterable[tuple[str, str]]:
    """Yield package and name of a class and of those that it inherits from."""
    return ((each.__module__.partition(".")[0], each.__name__) for each in type(connection).__mro__)


class _Named:
    """A row, by position or by name."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: dict[str, int], values: Sequence[Any]) -> None:
        self._places = places
        self._values = values

    def __getitem__(self, key: int | str) -> Any:
        return self._values[self._places[key] if isinstance(key, str) else key]

    def keys(self) -> Iterable[str]:
        return self._places.keys()


def _named(description: Sequence[Any], rows: Iterable[Sequence[Any]]) -> Rows:
    places = {column.name: place for place, column in enumerate(description)}
    return [_Named(places, each) for each in rows]


def _as_they_are(_cursor: object) -> Callable[[Sequence[Any]], Sequence[Any]]:
    return tuple


def _texts(values: Iterable[Any]) -> list[str | None]:
    """Write values as PostgreSQL reads them, so that it infers their types from the statement.

    psycopg would guess them from the values: a small int is a smallint to it, and a list has to be of one type.
    """
    return [_array(each) if isinstance(each, list | tuple) else _text(each) for each in values]


def _text(value: Any) -> str | None:
    return None if value is None else str(int(value)) if isinstance(value, bool) else str(value)


def _array(values: Iterable[Any]) -> str:
    return "{" + ",".join("NULL" if each is None else _quoted(str(_text(each))) for each in values) + "}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
