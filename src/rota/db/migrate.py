"""Migrations: forward only, numbered, one at a time under a lock."""

import re
from collections.abc import Iterator

from rota.db.database import Database, Operation, Query
from rota.db.statements import Statement, Statements
from rota.errors import CopyRefused, SchemaTooNew

_TABLE = """
CREATE TABLE IF NOT EXISTS rota_migrations (
  owner TEXT NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, applied_at BIGINT NOT NULL,
  PRIMARY KEY (owner, number)
)
"""

COPY = "rota_copy"
"""The table that is in a store while another is copied into it."""
_MADE = re.compile(r"^(CREATE|DROP|ALTER) TABLE (?:IF (?:NOT )?EXISTS )?(\w+)(?: RENAME TO (\w+))?", re.MULTILINE)


class Migrations:
    """What one owner's tables went through: Rota's own, or an application's."""

    def __init__(self, owner: str, package: str, database: Database) -> None:
        self._owner = owner
        self._database = database
        self._blocks = Statements([package], database.dialect, None)

    @property
    def newest(self) -> int:
        """The number of the newest migration that this code knows."""
        return max((_number(name) for name in self._blocks.names()), default=0)

    @property
    def numbers(self) -> set[int]:
        """The numbers of all migrations that this code knows."""
        return {_number(name) for name in self._blocks.names()}

    @property
    def tables(self) -> list[str]:
        """The tables that these migrations leave behind, each after those that it refers to."""
        found: list[str] = []
        for name in self._blocks.names():
            for verb, table, renamed in _MADE.findall(self._blocks[name].text):
                if verb == "CREATE":
                    found.append(table)
                elif verb == "DROP":
                    found.remove(table)
                elif renamed:
                    found[found.index(table)] = renamed
        return found

    async def apply(self, *, copying: bool = False) -> list[str]:
        """Bring the store up to date, and return what was applied. Whoever comes second has nothing to do.

        A store that another was copied into only in part is refused to all but who copies.
        """
        return await self._database.write(lambda: self._apply(copying=copying))

    async def check(self) -> list[str]:
        """Return what is not applied yet; refuse a store that a newer Rota has changed."""
        return await self._database.write(self._check)

    def missing(self) -> Operation[list[str]]:
        """Look, without changing anything, what is not applied yet."""
        if not (yield table_exists(self._database, "rota_migrations")):
            return list(self._blocks.names())
        return (yield from self._unapplied())

    def _apply(self, *, copying: bool) -> Operation[list[str]]:
        missing = yield from self._check()
        if not copying and (yield table_exists(self._database, COPY)):
            raise CopyRefused("a copy into this store is not finished: run rota copy again, or wait for its end")
        for name in missing:
            for text in _statements(self._blocks[name].text):
                yield Query(Statement(name, text, ()), {})
            yield self._own(
                "INSERT INTO rota_migrations (owner, number, name, applied_at) VALUES (:owner, :number, :name, :now)",
                owner=self._owner,
                number=_number(name),
                name=name,
            )
        return missing

    def _check(self) -> Operation[list[str]]:
        if self._database.dialect == "postgres":
            yield self._own("SELECT pg_advisory_xact_lock(7301, 1)")
        yield self._own(_TABLE)
        return (yield from self._unapplied())

    def _unapplied(self) -> Operation[list[str]]:
        rows = yield self._own("SELECT number FROM rota_migrations WHERE owner = :owner", owner=self._owner)
        applied = {row[0] for row in rows}
        if applied and max(applied) > self.newest:
            raise SchemaTooNew(self._owner, max(applied), self.newest)
        return [name for name in self._blocks.names() if _number(name) not in applied]

    def _own(self, text: str, **values: object) -> Query:
        return Query(self._database.statements.write("migrations", text), values)


def table_exists(database: Database, table: str) -> Query:
    """Ask for a table; no row means that there is none."""
    text = {
        "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name",
        "postgres": "SELECT 1 WHERE to_regclass(:name) IS NOT NULL",
    }
    return Query(database.statements.write("table_exists", text[database.dialect]), {"name": table})


def _number(name: str) -> int:
    return int(name.partition("_")[0])


def _statements(text: str) -> Iterator[str]:
    """Yield the statements of a block; each ends with a semicolon at the end of a line."""
    yield from (part.strip() for part in text.split(";\n") if part.strip(" ;\n"))
