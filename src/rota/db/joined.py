"""A database on which a write brings something along: it is part of the same transaction."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from rota.db.database import Database, Work

T = TypeVar("T")


def joined(database: Database, along: Callable[[Work[Any]], Work[Any]]) -> Database:
    """Return the same database, on which every write is what `along` makes of it."""
    return cast("Database", _Joined(database, along))


class _Joined:
    def __init__(self, database: Database, along: Callable[[Work[Any]], Work[Any]]) -> None:
        self._database = database
        self._along = along

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def write(self, work: Work[T], *, first: bool = False, single: bool = False, brief: bool = False) -> T:  # noqa: ARG002 (more than one now)
        found: T = await self._database.write(self._along(work), first=first, brief=brief)
        return found
