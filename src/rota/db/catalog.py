"""What a table looks like, as the database itself says it."""

from dataclasses import dataclass

from rota.db.database import Database, Operation, Query, Snapshot

_COLUMNS = {  # each with: is it text, its place in the primary key, does it number the rows by itself
    "sqlite": """
SELECT name, type = 'TEXT', nullif(pk, 0),
  pk = 1 AND (SELECT sql LIKE '%AUTOINCREMENT%' FROM sqlite_master WHERE type = 'table' AND name = '{table}')
FROM pragma_table_info('{table}') ORDER BY cid""",
    "postgres": """
SELECT attname, attcollation <> 0, array_position(indkey::int2[], attnum), attidentity <> ''
FROM pg_attribute LEFT JOIN pg_index ON indrelid = attrelid AND indisprimary
WHERE attrelid = to_regclass('{table}') AND attnum > 0 AND NOT attisdropped ORDER BY attnum""",
}
_COUNTER = {
    "sqlite": "SELECT seq FROM sqlite_sequence WHERE name = '{table}'",
    "postgres": "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('{table}', '{column}')::regclass), 0)",
}
_GO_ON = {
    "sqlite": (
        "DELETE FROM sqlite_sequence WHERE name = '{table}'",
        """
INSERT INTO sqlite_sequence (name, seq)
SELECT '{table}', max(:last, coalesce(max("{column}"), 0)) FROM "{table}"
""",
    ),
    "postgres": (
        """
SELECT setval(pg_get_serial_sequence('{table}', '{column}'), greatest(last, 1), last > 0)
FROM (SELECT greatest(:last::bigint, max("{column}")) AS last FROM "{table}") AS numbers
""",
    ),
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table, in the words of one database."""

    name: str
    columns: tuple[str, ...]
    order: tuple[str, ...]
    """Its primary key, in the one order that both databases have: that of the bytes."""
    counter: str | None
    """The column that numbers the rows by itself, if there is one."""

    @property
    def select(self) -> str:
        """The text that reads all of it, in its order."""
        return f'SELECT {quoted(self.columns)} FROM "{self.name}" ORDER BY {", ".join(self.order)}'  # noqa: S608 (names of the schema)


def quoted(names: tuple[str, ...]) -> str:
    """Write names so that none is taken for a word of SQL."""
    return ", ".join(f'"{name}"' for name in names)


async def table_of(snapshot: Snapshot, name: str) -> Table:
    """Look at a table; one that is not there has no columns."""
    rows = await snapshot.rows(_COLUMNS[snapshot.dialect].format(table=name))
    collate = ' COLLATE "C"' if snapshot.dialect == "postgres" else ""
    key = sorted(
        (place, f'"{column}"{collate if text else ""}') for column, text, place, _ in rows if place is not None
    )
    counters = [column for column, _, _, counts in rows if counts]
    return Table(name, tuple(row[0] for row in rows), tuple(each for _, each in key), next(iter(counters), None))


async def last_number(snapshot: Snapshot, table: Table) -> int | None:
    """Return the highest number that a table ever gave to a row; None where it gives none."""
    if table.counter is None:
        return None
    rows = await snapshot.rows(_COUNTER[snapshot.dialect].format(table=table.name, column=table.counter))
    return int(rows[0][0]) if rows else 0


def go_on_after(database: Database, table: Table, last: int) -> Operation[None]:
    """Let a table number its rows from here on, or from the highest that it has."""
    for text in _GO_ON[database.dialect]:
        written = database.statements.write("go_on_after", text.format(table=table.name, column=table.counter))
        yield Query(written, {"last": last})
