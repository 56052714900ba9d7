"""Copying a store into another: everything that Rota and its applications keep.

What is copied follows from the migrations, so that a new table comes along by itself. All of it arrives as it is, also
what is taken of limits and who holds a lock, so that neither is exceeded. Workers alone stay behind: they are connected
to the source. A run that was running there is then nobody's, and the target's sweep takes it back.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rota.db.database import Database, Operation, Query, Snapshot
from rota.db.migrate import COPY, Migrations, table_exists
from rota.db.transfer import Progress, Transfer, contents, not_empty
from rota.errors import CopyRefused, SchemaTooNew
from rota.store.runs import RunStore
from rota.store.workers import WorkerStore


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose tables are copied: Rota's own, or an application's."""

    name: str
    migrations: str
    """The package of the migrations that make them."""
    left_out: frozenset[str] = frozenset()
    """Tables of which nothing is copied, because they speak of living processes."""


ROTA = Owner("rota", "rota.store.migrations", frozenset({"rota_workers"}))


@dataclass(frozen=True, slots=True)
class Copied:
    """What has arrived."""

    rows: dict[str, int]
    """How many rows of each table; the target was read back, and has these and no others."""
    before: int
    """How many of them an earlier try had brought."""
    running: int
    """How many runs were running in the source: the target's workers take them back."""


class StoreCopy:
    """A store's way into another."""

    def __init__(self, source: Database, target: Database, owners: Sequence[Owner] = (ROTA,)) -> None:
        self._source = source
        self._target = target
        self._owners = owners
        self._kept: set[str] = set()
        """Whose tables are in the source: of an application that was never used there, there are none."""

    async def in_target(self) -> dict[str, int]:
        """Return how many rows the target has, of tables that have any."""
        return await self._target.read(lambda: contents(self._target, self._tables(self._target)))

    async def run(self, progress: Progress, *, replace: bool = False, live: bool = False) -> Copied:
        """Copy everything, or the rest of it. `replace` empties the target first.

        Workers that are at work in the source would go on with what the target then does too; `live` copies all the
        same.
        """
        if await self._source.identity() == await self._target.identity():
            raise CopyRefused("FROM and TO are the same database")
        async with self._source.snapshot() as snapshot:
            origin = await self._origin(snapshot)
            if not live:
                await self._refuse_workers(self._source, "source", "or copy all the same with --live")
            was_empty = await self._look_at_target(replace=replace)
            applied = [await self._migrations(owner, self._target).apply(copying=True) for owner in self._owners]
            anew = replace or (was_empty and any(applied))  # a migration may have put rows in by itself
            transfer = Transfer(snapshot, self._target, self._copied(), origin)
            all_tables = self._tables(self._target)
            arrived = await self._target.write(lambda: transfer.begin(anew=anew, all_tables=all_tables))
            rows = await transfer.run(arrived, progress)
        return Copied(rows, sum(each.rows for each in arrived.values()), await self._running())

    async def _look_at_target(self, *, replace: bool) -> bool:
        """Refuse a target before anything is done to it; tells whether it is empty."""
        found = await self.in_target()
        if found and not replace and not await _has(self._target, COPY):
            raise not_empty(found)
        if "rota_workers" in found:
            await self._refuse_workers(self._target, "target", "nothing may work there before the copy is finished")
        return not found

    async def _origin(self, snapshot: Snapshot) -> str:
        """Return what tells the source from other stores; refuse one that this code does not know all of."""
        if not await _has(self._source, "rota_migrations"):
            raise CopyRefused("FROM is no store of Rota's: it has none of its tables")
        if await _has(self._source, COPY):
            raise CopyRefused("FROM is itself an unfinished copy")
        rows = await snapshot.rows("SELECT owner, number, applied_at FROM rota_migrations ORDER BY owner, number")
        applied: dict[str, set[int]] = {owner.name: set() for owner in self._owners}
        for name, number, _ in rows:
            if name not in applied:
                raise CopyRefused(f"FROM also has what {name} keeps, which is not installed here")
            applied[name].add(number)
        self._kept = {ROTA.name} | {name for name, numbers in applied.items() if numbers}
        for owner in self._owners:
            if owner.name not in self._kept:
                continue
            known = self._migrations(owner, self._source)
            if max(applied[owner.name], default=0) > known.newest:
                raise SchemaTooNew(owner.name, max(applied[owner.name]), known.newest)
            if applied[owner.name] != known.numbers:
                raise CopyRefused("FROM is of an older Rota: bring it up to date first, with rota migrate")
        return json.dumps(rows)

    async def _refuse_workers(self, database: Database, which: str, advice: str) -> None:
        workers = await database.read(WorkerStore(database, RunStore(database)).list)
        alive = [each for each in workers if each.left > 0]
        if alive:
            number = "1 worker is" if len(alive) == 1 else f"{len(alive)} workers are"
            raise CopyRefused(
                f"{number} at work in the {which}, such as {alive[0].id}: stop what works there, {advice}"
            )

    async def _running(self) -> int:
        def count() -> Operation[int]:
            text = "SELECT count(*) FROM rota_runs WHERE state = 'running'"
            ((number,),) = yield Query(self._target.statements.write("copy", text), {})
            return int(number)

        return await self._target.read(count)

    def _copied(self) -> list[str]:
        left_out = frozenset[str]().union(*(owner.left_out for owner in self._owners))
        kept = [owner for owner in self._owners if owner.name in self._kept]
        tables = (table for owner in kept for table in self._migrations(owner, self._target).tables)
        return [table for table in tables if table not in left_out]

    def _tables(self, database: Database) -> list[str]:
        return [table for owner in self._owners for table in self._migrations(owner, database).tables]

    @staticmethod
    def _migrations(owner: Owner, database: Database) -> Migrations:
        return Migrations(owner.name, owner.migrations, database)


async def _has(database: Database, table: str) -> bool:
    def look() -> Operation[bool]:
        return bool((yield table_exists(database, table)))

    return await database.read(look)
