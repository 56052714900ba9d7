"""Running an operation on a connection that the caller brings, inside the caller's own transaction."""

from typing import Any, TypeVar

from rota.db import sqlite
from rota.db.database import Database, Work
from rota.errors import Invalid

T = TypeVar("T")


async def run_on(connection: Any, database: Database, work: Work[T], *topics: str) -> T:
    """Run an operation on the caller's connection. It happens if and only if the caller commits.

    All processes are told of these topics then: by PostgreSQL with the commit; a SQLite file tells by itself.
    """
    if isinstance(database, sqlite.SqliteDatabase) and database.has(connection):
        return sqlite.run(connection, work(), database.now)
    if database.dialect == "postgres" and _is_asyncpg(connection):
        from rota.db import postgres  # noqa: PLC0415 (asyncpg is an extra)

        found = await postgres.run(connection, work(), database.now)
        for topic in topics:
            await postgres.tell(connection, topic)
        return found
    allowed = {"sqlite": "use a sqlite3.Connection to the store's file", "postgres": "use an asyncpg connection"}
    raise Invalid("connection", connection, allowed[database.dialect], "does not go with the store")


def _is_asyncpg(connection: Any) -> bool:
    """Tell a connection from all else, also from a pool, which would run each statement somewhere else."""
    return type(connection).__module__.startswith("asyncpg") and hasattr(connection, "is_in_transaction")
