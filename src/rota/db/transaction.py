"""A transaction on the store's own connection, step by step: for an application's own tables, beside Rota's."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from rota.db.database import Ask, Database, Rows
from rota.errors import Invalid


class Transaction:
    """A transaction on the store's database. What Rota's calls do with it as `connection=` commits with the rest."""

    def __init__(self, database: Database, run: Callable[[Ask], Awaitable[Rows]]) -> None:
        self.database = database
        self._run = run
        self._open = True

    async def execute(self, name: str, /, **values: Any) -> Rows:
        """Run a named statement, and return its rows."""
        return await self.run(self.database.query(name, **values))

    async def execute_many(
        self, name: str, columns: tuple[str, ...], rows: Sequence[Sequence[Any]], /, **shared: Any
    ) -> Rows:
        """Run a named statement for many rows of values at once: arrays on PostgreSQL, each row on SQLite."""
        return await self.run(self.database.many(name, columns, rows, **shared))

    async def run(self, step: Ask) -> Rows:
        """Run a step of an operation."""
        if not self._open:
            raise Invalid("transaction", self, "begin another: async with database.transaction()", "has ended")
        return await self._run(step)

    def end(self) -> None:
        """Take nothing more."""
        self._open = False
