"""Running an operation on a connection that the caller brings, inside the caller's own transaction."""

import sqlite3
from typing import Any, TypeVar, cast

from rota.db.database import Ask, Database, Query, Rows, Step, Work, drive
from rota.db.drivers import beneath, driver
from rota.errors import Invalid, NotMigrated

T = TypeVar("T")

_ALLOWED = {
    "sqlite": "use a connection of sqlite3, aiosqlite or SQLAlchemy to the store's file",
    "postgres": "use a connection of asyncpg, psycopg or SQLAlchemy to the store's database",
}


async def run_on(connection: Any, database: Database, work: Work[T], *topics: str) -> T:
    """Run an operation on the caller's connection. It happens if and only if the caller commits.

    All processes are told of these topics then: by PostgreSQL with the commit; a SQLite file tells by itself. On a
    connection whose calls are not awaited this never suspends where no event loop runs in the caller's thread.
    """
    known = driver(await beneath(connection))
    if known is None or known.dialect != database.dialect:
        raise Invalid("connection", connection, _ALLOWED[database.dialect], "does not go with the store")
    place = database.place
    if place is not None and not database.is_here(await known.rows(Query(place, {}), None)):
        raise Invalid("connection", connection, _ALLOWED[database.dialect], "is not to the store's database")
    await known.begin()

    async def rows(step: Step) -> Rows:
        try:
            return await known.rows(cast("Ask", step), database.now)
        except Exception as error:
            if not _lacks_a_name(error):
                raise
            raise NotMigrated from error

    found = await drive(work(), rows)
    if topics and database.tell is not None:
        await known.rows(Query(database.tell, {"topics": topics}), None)
    return found


def _lacks_a_name(error: Exception) -> bool:
    """Tell whether a statement names a table or a column that is not there, by the words of whichever driver."""
    if isinstance(error, sqlite3.OperationalError):
        return "no such table" in str(error) or "no such column" in str(error) or "no column named" in str(error)
    code = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    return code in ("42P01", "42703")  # undefined_table, undefined_column
