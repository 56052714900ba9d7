"""Migrations: forward only, one at a time, and never on a store that a newer Rota has changed."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.habits.source import ROOT
from tests.stores import ask

from rota.app import Rota
from rota.db.connect import database
from rota.db.database import Database
from rota.db.migrate import Migrations
from rota.errors import RotaError, SchemaTooNew

OWN = sorted(path.stem for path in (ROOT / "src/rota/store/migrations").glob("*.sql"))
NEWEST = int(OWN[-1][:4])

NOTES = """
-- name: 0001_notes
CREATE TABLE notes (id INTEGER PRIMARY KEY);
INSERT INTO notes VALUES (1);
"""
TAGS = """
-- name: 0002_tags
-- A comment; with a semicolon.
ALTER TABLE notes ADD COLUMN tag TEXT;
UPDATE notes SET tag = 'a;b';
"""
BROKEN = """
-- name: 0003_broken
CREATE TABLE half (id INTEGER PRIMARY KEY);
INSERT INTO nowhere VALUES (1);
"""


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path, postgres_database: str) -> str:
    """The address of a store that nobody has used yet."""
    return f"sqlite:///{tmp_path}/empty.db" if request.param == "sqlite" else postgres_database


@pytest.fixture
async def db(empty: str) -> AsyncIterator[Database]:
    found = database(empty, [])
    await found.open()
    yield found
    await found.close()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package for migrations of a test's own."""
    folder = tmp_path / "notes_migrations"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    sys.modules.pop("notes_migrations", None)


def migrations(db: Database, package: Path, *texts: str) -> Migrations:
    for number, text in enumerate(texts):
        (package / f"{number}.sql").write_text(text)
    return Migrations("notes", "notes_migrations", db)


async def test_what_is_applied_is_applied_once(db: Database) -> None:
    own = Migrations("rota", "rota.store.migrations", db)
    assert await own.check() == OWN
    assert await own.apply() == OWN
    assert await own.apply() == []
    assert await own.check() == []
    assert own.newest == NEWEST


async def test_a_store_is_brought_from_any_version_to_the_newest(db: Database, package: Path) -> None:
    assert await migrations(db, package, NOTES).apply() == ["0001_notes"]
    later = migrations(db, package, NOTES, TAGS)
    assert await later.check() == ["0002_tags"]
    assert await later.apply() == ["0002_tags"]
    assert [tuple(row) for row in await ask(db, "SELECT id, tag FROM notes")] == [(1, "a;b")]


async def test_it_is_written_down_what_was_applied_and_when(db: Database, package: Path) -> None:
    await migrations(db, package, NOTES, TAGS).apply()
    rows = await ask(db, "SELECT owner, number, name, applied_at FROM rota_migrations ORDER BY number")
    assert [tuple(row)[:3] for row in rows] == [("notes", 1, "0001_notes"), ("notes", 2, "0002_tags")]
    assert all(row[3] > 1_700_000_000_000_000 for row in rows)


async def test_a_migration_that_fails_leaves_nothing_behind(db: Database, package: Path) -> None:
    broken = migrations(db, package, NOTES, TAGS, BROKEN)
    with pytest.raises(Exception, match="nowhere"):
        await broken.apply()
    assert await broken.check() == ["0001_notes", "0002_tags", "0003_broken"]
    assert await migrations(db, package, NOTES, TAGS, "").apply() == ["0001_notes", "0002_tags"]


async def test_owners_do_not_know_each_other(db: Database, package: Path) -> None:
    await Migrations("rota", "rota.store.migrations", db).apply()
    assert await migrations(db, package, NOTES).apply() == ["0001_notes"]
    assert await Migrations("rota", "rota.store.migrations", db).check() == []


async def test_a_store_of_a_newer_rota_is_refused_in_one_clear_line(db: Database, empty: str) -> None:
    await Migrations("rota", "rota.store.migrations", db).apply()
    await ask(db, "INSERT INTO rota_migrations VALUES ('rota', 99, '0099_later', 0)")
    with pytest.raises(SchemaTooNew) as caught:
        await Rota(empty).open()
    assert str(caught.value) == f"the store's tables of rota are at version 99, this code knows {NEWEST}: upgrade it"
    assert isinstance(caught.value, RotaError)
    for asked in ("check", "apply"):
        with pytest.raises(SchemaTooNew):
            await getattr(Migrations("rota", "rota.store.migrations", db), asked)()


async def test_several_who_migrate_at_once_do_it_once(empty: str) -> None:
    apps = [Rota(empty) for _ in range(4)]
    await asyncio.gather(*(app.open() for app in apps))
    await asyncio.gather(*(app.close() for app in apps))


MIGRATE = """
import asyncio, sys
from rota.db.connect import database
from rota.db.migrate import Migrations

async def main(url):
    db = database(url, [])
    print("ready", flush=True)
    sys.stdin.readline()
    await db.open()
    print(await Migrations("rota", "rota.store.migrations", db).apply(), flush=True)
    await db.close()

asyncio.run(main(sys.argv[1]))
"""


def started(url: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", MIGRATE, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


async def test_of_two_processes_one_migrates_and_the_other_finds_nothing_to_do(empty: str) -> None:
    both: list[Any] = [started(empty) for _ in range(2)]
    for each in both:
        assert each.stdout.readline() == "ready\n"
    for each in both:
        each.stdin.write("go\n")
        each.stdin.flush()
    assert sorted(each.communicate()[0] for each in both) == [f"{OWN}\n", "[]\n"]


async def test_a_plain_reader_sees_the_tables_in_the_file(tmp_path: Path) -> None:
    async with Rota(f"sqlite:///{tmp_path}/rota.db"):
        pass
    file = sqlite3.connect(tmp_path / "rota.db")
    names = {row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    file.close()
    assert names >= {"rota_runs", "rota_attempts", "rota_workers", "rota_locks", "rota_migrations"}
