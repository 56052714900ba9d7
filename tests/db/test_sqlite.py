"""SQLite: one writer that commits together what waits, readers beside it, several processes on one file."""

import asyncio
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.stores import ask, sql, until

from rota.db import sqlite
from rota.db.connect import database
from rota.db.database import Operation
from rota.db.sqlite import SqliteDatabase
from rota.errors import StoreUnavailable


def made(path: Path) -> SqliteDatabase:
    found = database(f"sqlite:///{path}", [])
    assert isinstance(found, SqliteDatabase)
    return found


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    database = made(tmp_path / "notes.db")
    await database.open()
    await ask(database, "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT UNIQUE)")
    yield database
    await database.close()


async def note(db: SqliteDatabase, text: str) -> None:
    await ask(db, "INSERT INTO notes (text) VALUES (:text)", text=text)


async def notes(db: SqliteDatabase) -> list[str]:
    rows = await db.read(lambda: sql("SELECT text FROM notes ORDER BY id", "sqlite"))
    return [row[0] for row in rows]


@contextmanager
def held_writer(db: SqliteDatabase) -> Iterator[None]:
    """Keep the writer busy, so that what is asked for meanwhile waits together."""
    begun, go_on = threading.Event(), threading.Event()

    def block() -> Operation[None]:
        begun.set()
        go_on.wait()
        yield from sql("SELECT 1", "sqlite")

    blocked = threading.Thread(target=lambda: db.write_from_thread(block))
    blocked.start()
    begun.wait()
    try:
        yield
    finally:
        go_on.set()
        blocked.join()


def twice(first: str, second: str) -> Operation[None]:
    for text in (first, second):
        yield from sql("INSERT INTO notes (text) VALUES (:text)", "sqlite", text=text)


async def together(db: SqliteDatabase, *works: Any) -> list[Any]:
    """Ask for operations that one commit takes along."""
    with held_writer(db):
        asked = [asyncio.ensure_future(db.write(work)) for work in works]
        await asyncio.gather(*(asyncio.sleep(0) for _ in asked))  # so that each has been asked for
    return await asyncio.gather(*asked, return_exceptions=True)


async def test_an_operation_is_all_or_nothing(db: SqliteDatabase) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        await db.write(lambda: twice("same", "same"))
    assert await notes(db) == []
    await db.write(lambda: twice("one", "two"))
    assert await notes(db) == ["one", "two"]


async def test_an_operation_that_fails_undoes_only_itself(db: SqliteDatabase) -> None:
    found = await together(db, lambda: twice("a", "b"), lambda: twice("c", "c"), lambda: twice("d", "e"))
    assert [type(each) for each in found] == [type(None), sqlite3.IntegrityError, type(None)]
    assert await notes(db) == ["a", "b", "d", "e"]


async def test_a_mistake_in_a_statement_is_its_own_alone(db: SqliteDatabase) -> None:
    found = await together(db, lambda: twice("a", "b"), lambda: sql("SELECT * FROM nowhere", "sqlite"))
    assert found[0] is None
    assert isinstance(found[1], sqlite3.OperationalError)
    assert await notes(db) == ["a", "b"]


async def test_an_error_of_the_operation_itself_is_handed_to_who_asked(db: SqliteDatabase) -> None:
    def changes_its_mind() -> Operation[None]:
        yield from twice("x", "y")
        raise LookupError("no")

    found = await together(db, lambda: twice("a", "b"), changes_its_mind)
    assert [type(each) for each in found] == [type(None), LookupError]
    with pytest.raises(LookupError, match="no"):
        await db.write(changes_its_mind)
    assert await notes(db) == ["a", "b"]


async def test_what_waits_is_committed_together(db: SqliteDatabase) -> None:
    said: list[str] = []
    assert db._writer is not None
    db._writer._connection.set_trace_callback(said.append)
    await together(db, *(lambda n=n: twice(f"{n}a", f"{n}b") for n in range(50)))
    assert len(await notes(db)) == 100
    assert said.count("COMMIT") == 2  # what kept the writer busy, and all the rest


async def test_what_goes_first_goes_before_what_waits(db: SqliteDatabase) -> None:
    with held_writer(db):
        last = asyncio.ensure_future(note(db, "last"))
        await asyncio.sleep(0)
        first = asyncio.ensure_future(
            db.write(lambda: sql("INSERT INTO notes (text) VALUES ('first')", "sqlite"), first=True)
        )
        await asyncio.sleep(0)
    await asyncio.gather(first, last)
    assert await notes(db) == ["first", "last"]


async def test_readers_do_not_wait_for_the_writer(db: SqliteDatabase) -> None:
    await note(db, "there")
    with held_writer(db):
        assert await notes(db) == ["there"]


async def test_a_reader_cannot_write(db: SqliteDatabase) -> None:
    await db.read(lambda: sql("INSERT INTO notes (text) VALUES ('sneaky') RETURNING id", "sqlite"))
    assert await notes(db) == []


async def test_a_write_that_nobody_waits_for_any_more_harms_nobody(db: SqliteDatabase) -> None:
    with held_writer(db):
        given_up = asyncio.ensure_future(note(db, "given up"))
        await asyncio.sleep(0)
        given_up.cancel()
        other = asyncio.ensure_future(note(db, "other"))
        await asyncio.sleep(0)
    await other
    assert "other" in await notes(db)


async def test_many_writers_in_one_process_all_get_through(db: SqliteDatabase) -> None:
    await asyncio.gather(*(note(db, str(n)) for n in range(500)))
    assert sorted(map(int, await notes(db))) == list(range(500))


WRITER = """
import asyncio, sys
from rota.db import sqlite
from rota.db.connect import database
from tests.stores import ask

async def main(url, name):
    db = database(url, [])
    await db.open()
    await ask(db, "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT UNIQUE)")
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(50):
        texts = [f"{name}-{n}-{m}" for m in range(4)]
        await asyncio.gather(*(ask(db, "INSERT INTO notes (text) VALUES (:text)", text=text) for text in texts))
    await db.close()

asyncio.run(main(*sys.argv[1:]))
"""


def process(url: str, name: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, url, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


async def test_four_processes_write_at_once_and_nobody_hears_of_a_lock(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    writers = [process(url, f"w{n}") for n in range(4)]  # they also make the file at once
    for each in writers:
        assert each.stdin
        assert each.stdout
        assert each.stdout.readline() == "ready\n", each.stdout.read()
        each.stdin.write("go\n")
        each.stdin.flush()
    said = [each.communicate()[0] for each in writers]
    assert said == [""] * 4
    with sqlite3.connect(tmp_path / "shared.db") as file:
        assert file.execute("SELECT count(*), count(DISTINCT text) FROM notes").fetchone() == (800, 800)
    file.close()


async def test_a_process_notices_what_another_wrote(db: SqliteDatabase) -> None:
    heard = asyncio.Event()
    db.listen(lambda topic: heard.set() if topic is None else None)
    other = sqlite3.connect(db._file)
    with other:
        other.execute("INSERT INTO notes (text) VALUES ('from elsewhere')")
    other.close()
    await asyncio.wait_for(heard.wait(), 10)


async def test_what_is_told_is_heard_in_this_process(db: SqliteDatabase) -> None:
    heard: list[str | None] = []
    db.listen(heard.append)
    await db.notify("ready")
    assert "ready" in heard


async def test_who_stops_listening_hears_no_more(db: SqliteDatabase) -> None:
    heard: list[str | None] = []
    db.listen(heard.append)
    db.unlisten(heard.append)
    await db.notify("ready")
    assert heard == []


def modes_in(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


async def test_the_file_is_its_owners_alone(db: SqliteDatabase, tmp_path: Path) -> None:
    await note(db, "secret")
    assert modes_in(tmp_path) == dict.fromkeys(("notes.db", "notes.db-wal", "notes.db-shm"), 0o600)


async def test_memory_is_a_temporary_file_that_goes_with_the_store() -> None:
    db = database("sqlite://", [])
    assert isinstance(db, SqliteDatabase)
    await db.open()
    path = Path(db._file)
    assert modes_in(path.parent)["rota.db"] == 0o600
    await ask(db, "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
    await note(db, "there")
    assert await notes(db) == ["there"]  # by another connection
    await db.close()
    assert not await asyncio.to_thread(path.parent.exists)


async def test_closing_finishes_what_was_asked_for(tmp_path: Path) -> None:
    db = made(tmp_path / "closing.db")
    await db.open()
    await ask(db, "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT UNIQUE)")
    with held_writer(db):
        asked = [asyncio.ensure_future(note(db, str(n))) for n in range(100)]
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(db.close())
        await asyncio.sleep(0)
    await asyncio.gather(closing, *asked)
    file = sqlite3.connect(tmp_path / "closing.db")
    assert file.execute("SELECT count(*) FROM notes").fetchone() == (100,)
    file.close()


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    db = made(tmp_path / "closed.db")
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="the store is not open"):
            await ask(db, "SELECT 1")
        with pytest.raises(StoreUnavailable, match="the store is not open"):
            await db.read(lambda: sql("SELECT 1", "sqlite"))
        with pytest.raises(StoreUnavailable, match="the store is not open"):
            db.write_from_thread(lambda: sql("SELECT 1", "sqlite"))
        await db.open()
        assert (await ask(db, "SELECT 1"))[0][0] == 1
        await db.close()


@pytest.mark.parametrize("content", [None, b"This is a letter, not a database. " * 100])
async def test_a_file_that_cannot_be_opened_is_one_clear_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "nowhere" / "rota.db" if content is None else tmp_path / "letter.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StoreUnavailable, match=rf"^the SQLite file {path} cannot be opened: .+$"):
        await made(path).open()


async def test_a_lock_that_never_ends_means_the_store_is_away(db: SqliteDatabase) -> None:
    other = sqlite3.connect(db._file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert db._writer is not None
    db._writer._connection.execute("PRAGMA busy_timeout = 1")
    with pytest.raises(StoreUnavailable, match=r"^SQLite: database is locked$"):
        await note(db, "locked out")
    other.execute("ROLLBACK")
    other.close()
    await note(db, "back")
    assert await notes(db) == ["back"]


async def test_a_full_disk_means_the_store_is_away_and_nothing_is_half_written(db: SqliteDatabase) -> None:
    assert db._writer is not None
    connection = db._writer._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(StoreUnavailable, match=r"^SQLite: database or disk is full$"):
        await db.write(lambda: twice("a", "x" * 100_000))
    found = await together(db, lambda: twice("b", "c"), lambda: twice("d", "x" * 100_000))
    assert {type(each) for each in found} == {StoreUnavailable}
    assert await notes(db) == []
    connection.execute("PRAGMA max_page_count = 1000000")
    await db.write(lambda: twice("e", "f"))
    assert await notes(db) == ["e", "f"]


async def test_who_opens_a_new_file_while_another_does_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sqlite3.connect(tmp_path / "new.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(sqlite.time, "sleep", lambda _: other.rollback())
    db = made(tmp_path / "new.db")
    await db.open()
    assert (await ask(db, "PRAGMA journal_mode"))[0][0] == "wal"
    await db.close()
    other.close()


async def test_a_file_that_nobody_else_may_open_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.0)
    other = sqlite3.connect(tmp_path / "new.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    db = made(tmp_path / "new.db")
    with pytest.raises(StoreUnavailable, match="cannot be opened: database is locked"):
        await db.open()
    await db.close()
    other.close()


async def test_a_reader_that_cannot_open_the_file_says_that_the_store_is_away(tmp_path: Path) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir()
    db = made(folder / "notes.db")
    await db.open()
    await ask(db, "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
    away = folder.rename(tmp_path / "away")
    with pytest.raises(StoreUnavailable, match="unable to open"):
        await notes(db)
    away.rename(folder)
    assert await notes(db) == []
    await db.close()


def where(text: str = "x") -> Operation[int]:
    """Write a note, and return which thread did."""
    yield from sql("INSERT INTO notes (text) VALUES (:text)", "sqlite", text=text)
    return threading.get_ident()


@pytest.mark.parametrize("single", [True, False])
async def test_what_is_brief_is_written_in_the_callers_thread(db: SqliteDatabase, single: bool) -> None:
    assert await db.write(where, brief=True, single=single) == threading.get_ident()
    assert await notes(db) == ["x"]


async def test_what_is_brief_but_synced_leaves_the_event_loop_alone(tmp_path: Path) -> None:
    db = database(f"sqlite:///{tmp_path / 'synced.db'}?synchronous=full", [])
    await db.open()
    await ask(db, "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT UNIQUE)")
    assert await db.write(where, brief=True, single=True) != threading.get_ident()
    await db.close()


async def test_what_is_brief_waits_in_line_where_somebody_writes(db: SqliteDatabase) -> None:
    with held_writer(db):
        asked = asyncio.ensure_future(db.write(where, brief=True))
        await asyncio.sleep(0)
        assert not asked.done()
    assert await asked != threading.get_ident()


@pytest.mark.parametrize("single", [True, False])
async def test_what_is_brief_does_not_hold_up_the_event_loop_while_another_process_writes(
    db: SqliteDatabase, tmp_path: Path, single: bool
) -> None:
    outside = sqlite3.connect(tmp_path / "notes.db", isolation_level=None)
    outside.execute("BEGIN IMMEDIATE")
    asked = asyncio.ensure_future(db.write(where, brief=True, single=single))
    await asyncio.sleep(0)
    assert not asked.done()
    outside.execute("COMMIT")
    outside.close()
    assert await asked != threading.get_ident()


async def test_what_is_brief_and_fails_is_undone_as_a_whole(db: SqliteDatabase) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        await db.write(lambda: twice("same", "same"), brief=True)
    assert await notes(db) == []
    assert await db.write(where, brief=True) == threading.get_ident()


async def test_whoever_writes_briefly_without_a_pause_lets_others_in(db: SqliteDatabase) -> None:
    came = asyncio.Event()
    asyncio.get_running_loop().call_soon(came.set)
    for number in range(100):
        await db.write(lambda number=number: where(str(number)), brief=True, single=True)  # type: ignore[misc]
    assert came.is_set()


async def test_the_log_of_brief_writes_is_brought_into_the_file(
    db: SqliteDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_CHECKPOINT_AFTER", 10)
    file = tmp_path / "notes.db"
    before = file.stat().st_mtime_ns
    for number in range(20):
        await db.write(lambda number=number: where(str(number)), brief=True, single=True)  # type: ignore[misc]
    await until(lambda: file.stat().st_mtime_ns > before)
