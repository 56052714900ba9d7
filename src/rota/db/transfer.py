"""Moving the rows of tables from one database to another; knows no table.

The source is read in one snapshot, each table in the order of its key. With each batch the target notes, in the same
transaction, how many rows of the table have arrived, and a digest of them. A transfer that was broken off reads the
source from the start again, and goes on behind what has arrived where the digest is the same: nothing is doubled, and a
source that was changed in between is noticed. At the end the target is read back and compared.
"""

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rota.db.catalog import Table, go_on_after, last_number, table_of
from rota.db.database import Database, Fetch, Load, Operation, Query, Snapshot
from rota.db.migrate import COPY, table_exists
from rota.errors import CopyRefused

_FETCH_ROWS = 50
"""How many rows are read at once: of the largest that there may be, not too many for the memory."""
_MOST_ROWS = 5_000
_MOST_BYTES = 8_000_000
"""How much is gathered until it is written, so that memory does not grow with the number of rows."""
_ANEW = "start anew with --replace"

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many rows are, and of how many: a row counts when it arrives and when it is compared."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """What is in the target of a table's rows."""

    rows: int = 0
    digest: str = ""


class Transfer:
    """The way of some tables from a snapshot into a database that has the same tables, empty."""

    def __init__(self, source: Snapshot, target: Database, tables: Sequence[str], origin: str) -> None:
        self._source = source
        self._target = target
        self._names = tables
        self._origin = origin
        """What tells the source from others, also after a restart of its server."""
        self._said = 0
        self._total = 0

    def begin(self, *, anew: bool, all_tables: Sequence[str]) -> Operation[dict[str, Arrived]]:
        """Return what has arrived before; where that is nothing, the target must be empty, or is emptied if `anew`."""
        if self._target.dialect == "postgres":
            yield self._query("SELECT pg_advisory_xact_lock(7301, 1)")
        if anew:
            yield self._query(f"DROP TABLE IF EXISTS {COPY}")
            yield from self._empty(all_tables)
        if (yield table_exists(self._target, COPY)):
            rows = yield self._query(f"SELECT name, origin, arrived, digest FROM {COPY}")  # noqa: S608
            if {row["origin"] for row in rows} != {self._origin} or {row["name"] for row in rows} != set(self._names):
                raise CopyRefused(f"TO has an unfinished copy of another store: {_ANEW}")
            return {row["name"]: Arrived(row["arrived"], row["digest"]) for row in rows}
        found = yield from contents(self._target, all_tables)
        if found:
            raise not_empty(found)
        yield self._query(
            f"CREATE TABLE {COPY}"
            " (name TEXT PRIMARY KEY, origin TEXT NOT NULL, arrived BIGINT NOT NULL, digest TEXT NOT NULL)"
        )
        columns = ("name", "origin", "arrived", "digest")
        yield Load(COPY, columns, [(name, self._origin, 0, "") for name in self._names])
        return {name: Arrived() for name in self._names}

    async def run(self, arrived: dict[str, Arrived], progress: Progress) -> dict[str, int]:
        """Bring all rows that have not arrived, compare, and return how many there are of each table."""
        tables = [await table_of(self._source, name) for name in self._names]
        counted = [await self._source.rows(f'SELECT count(*) FROM "{table.name}"') for table in tables]  # noqa: S608
        self._said, self._total = 0, 2 * sum(rows[0][0] for rows in counted)
        sent = {table.name: await self._bring(table, arrived[table.name], progress) for table in tables}
        async with self._target.snapshot() as there:
            for name, expected in sent.items():
                found = await self._check(there, name, progress)
                if found != expected:
                    raise CopyRefused(
                        f"{name} is not the same in the target, {found.rows:,} rows for {expected.rows:,}:"
                        f" does somebody work on it? {_ANEW}"
                    )
        numbers = [(table, await last_number(self._source, table)) for table in tables]
        await self._target.write(lambda: self._finish([(table, last) for table, last in numbers if last is not None]))
        return {name: each.rows for name, each in sent.items()}

    async def _bring(self, table: Table, before: Arrived, progress: Progress) -> Arrived:
        """Bring the rows of a table that have not arrived; returns what has then."""
        digest, seen = hashlib.blake2b(digest_size=16), 0
        last = before
        async for rows, marks in _batches(await self._source.stream(table.select)):
            there = min(max(before.rows - seen, 0), len(rows))
            digest.update(b"".join(marks[:there]))
            seen += there
            if there and seen == before.rows and digest.hexdigest() != before.digest:
                raise CopyRefused(f"{table.name} of the source has changed since this copy was begun: {_ANEW}")
            if there < len(rows):
                digest.update(b"".join(marks[there:]))
                seen += len(rows) - there
                now = Arrived(seen, digest.hexdigest())
                await self._put(table, rows[there:], last, now)
                last = now
            self._tell(progress, f"copying {table.name}", len(rows))
        if seen < before.rows:
            raise CopyRefused(f"{table.name} of the source has changed since this copy was begun: {_ANEW}")
        return last

    async def _put(self, table: Table, rows: Sequence[Sequence[Any]], last: Arrived, now: Arrived) -> None:
        def work() -> Operation[None]:
            moved = yield self._query(
                f"UPDATE {COPY} SET arrived = :to, digest = :digest WHERE name = :name AND arrived = :since"  # noqa: S608
                " RETURNING name",
                to=now.rows,
                digest=now.digest,
                name=table.name,
                since=last.rows,
            )
            if not moved:
                raise CopyRefused("another copy into the same target is under way")
            yield Load(table.name, table.columns, rows)

        await self._target.write(work)

    async def _check(self, there: Snapshot, name: str, progress: Progress) -> Arrived:
        """Read a table back, in the order of the columns of the source."""
        wanted = await table_of(self._source, name)
        own = await table_of(there, name)
        table = Table(name, wanted.columns, own.order, own.counter)
        digest, seen = hashlib.blake2b(digest_size=16), 0
        async for rows, marks in _batches(await there.stream(table.select)):
            digest.update(b"".join(marks))
            seen += len(rows)
            self._tell(progress, f"comparing {name}", len(rows))
        return Arrived(seen, digest.hexdigest()) if seen else Arrived()

    def _finish(self, numbers: Sequence[tuple[Table, int]]) -> Operation[None]:
        """Go on numbering where the source did; then the target is like any other."""
        for table, last in numbers:
            yield from go_on_after(self._target, table, last)
        if self._target.dialect == "postgres":  # it plans by what it knows of the tables, and knows nothing yet
            yield self._query(f"ANALYZE {', '.join(self._names)}")
        yield self._query(f"DROP TABLE IF EXISTS {COPY}")

    def _empty(self, tables: Sequence[str]) -> Operation[None]:
        if self._target.dialect == "postgres":
            yield self._query(f"TRUNCATE {', '.join(tables)}")
            return
        for table in reversed(tables):  # what refers to others goes first
            yield self._query(f"DELETE FROM {table}")  # noqa: S608

    def _tell(self, progress: Progress, what: str, rows: int) -> None:
        self._said += rows
        progress(what, self._said, self._total)

    def _query(self, text: str, **values: object) -> Query:
        return Query(self._target.statements.write("transfer", text), values)


def contents(database: Database, tables: Sequence[str]) -> Operation[dict[str, int]]:
    """Return how many rows there are, of tables that have any."""
    found = {}
    for table in tables:
        if (yield table_exists(database, table)):
            text = f"SELECT count(*) FROM {table}"  # noqa: S608
            ((rows,),) = yield Query(database.statements.write("contents", text), {})
            found[table] = rows
    return {table: rows for table, rows in found.items() if rows}


def not_empty(found: dict[str, int]) -> CopyRefused:
    """Say what is in a target that should be empty."""
    shown = ", ".join(f"{table} {rows:,}" for table, rows in found.items())
    return CopyRefused(f"TO is not empty ({shown}): choose another, or empty it with --replace")


async def _batches(fetch: Fetch) -> AsyncIterator[tuple[list[tuple[Any, ...]], list[bytes]]]:
    """Yield rows, and of each what a digest is made of: the same for a row in either database."""
    rows: list[tuple[Any, ...]] = []
    marks: list[bytes] = []
    size = 0
    while more := await fetch(_FETCH_ROWS):
        rows += more
        marks += [repr(row).encode() for row in more]
        size += sum(map(len, marks[-len(more) :]))
        if len(rows) >= _MOST_ROWS or size >= _MOST_BYTES:
            yield rows, marks
            rows, marks, size = [], [], 0
    if rows:
        yield rows, marks
