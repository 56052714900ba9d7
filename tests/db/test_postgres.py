"""PostgreSQL: what is lost is an error to whoever used it, and the next one finds it healed."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest
from tests.stores import ask, sql

from rota.db import postgres
from rota.db.connect import database
from rota.db.database import Operation
from rota.db.postgres import NOW, PostgresDatabase
from rota.db.statements import Statements
from rota.errors import StoreUnavailable

HANG_UP = "SELECT pg_terminate_backend(pg_backend_pid())"


@pytest.fixture
async def db(postgres_database: str) -> AsyncIterator[PostgresDatabase]:
    found = PostgresDatabase(postgres_database, Statements([], "postgres", NOW), None)
    await found.open()
    await ask(found, "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
    yield found
    await found.close()


@pytest.fixture
async def outside(postgres_database: str) -> AsyncIterator[Any]:
    """A connection that is not Rota's."""
    connection = await asyncpg.connect(postgres_database)
    yield connection
    await connection.close()


def notes(*ids: int) -> Operation[None]:
    for number in ids:
        yield from sql("INSERT INTO notes VALUES (CAST(:id AS INTEGER), 'x')", "postgres", id=number)


async def count(db: PostgresDatabase) -> int:
    return int((await db.read(lambda: sql("SELECT count(*) FROM notes", "postgres")))[0][0])


async def test_an_operation_is_all_or_nothing(db: PostgresDatabase) -> None:
    with pytest.raises(asyncpg.UniqueViolationError):
        await db.write(lambda: notes(1, 1))
    assert await count(db) == 0
    await db.write(lambda: notes(1, 2))
    assert await count(db) == 2


async def test_now_is_the_statements_however_old_its_transaction_is(db: PostgresDatabase) -> None:
    def asked() -> Operation[list[int]]:
        found = []
        for _ in range(2):
            rows = yield from sql(f"SELECT {NOW}, pg_sleep(0.002)", "postgres")
            found.append(rows[0][0])
        return found

    first, second = await db.write(asked)
    assert second - first >= 2_000


async def test_threads_that_share_the_connection_aside_take_turns(db: PostgresDatabase) -> None:
    await ask(db, "CREATE TABLE IF NOT EXISTS turns (id INTEGER)")
    writes = [
        asyncio.to_thread(db.write_from_thread, lambda: sql("INSERT INTO turns VALUES (1) RETURNING id", "postgres"))
        for _ in range(20)
    ]
    assert [rows[0][0] for rows in await asyncio.gather(*writes)] == [1] * 20


async def waits_for_a_lock(outside: Any) -> None:
    asked = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    while not await outside.fetch(asked):
        pass


async def test_what_a_deadlock_undid_is_done_again(db: PostgresDatabase, outside: Any, postgres_database: str) -> None:
    await db.write(lambda: notes(1, 2))
    tries = 0

    def both() -> Operation[None]:
        nonlocal tries
        tries += 1
        for number in (1, 2):
            yield from sql("UPDATE notes SET text = text || '!' WHERE id = CAST(:id AS INTEGER)", "postgres", id=number)

    watcher = await asyncpg.connect(postgres_database)
    await outside.execute("SET deadlock_timeout = '1min'")  # so that it is the other one who is given up
    async with outside.transaction():
        await outside.execute("UPDATE notes SET text = 'outside' WHERE id = 2")
        writing = asyncio.ensure_future(db.write(both))
        await waits_for_a_lock(watcher)
        await outside.execute("UPDATE notes SET text = 'outside' WHERE id = 1")
    await writing
    await watcher.close()
    assert tries == 2
    assert [row["text"] for row in await ask(db, "SELECT text FROM notes ORDER BY id")] == ["outside!", "outside!"]


@pytest.mark.parametrize("kind", [asyncpg.DeadlockDetectedError, asyncpg.SerializationError])
async def test_what_is_undone_again_and_again_means_the_store_is_away(
    db: PostgresDatabase, kind: type[Exception]
) -> None:
    tries = 0

    def unlucky() -> Operation[None]:
        nonlocal tries
        tries += 1
        yield from sql("SELECT 1", "postgres")
        raise kind("again")

    with pytest.raises(StoreUnavailable, match=r"^PostgreSQL cannot now: again$"):
        await db.write(unlucky)
    assert tries == 5


async def test_a_lost_connection_is_an_error_to_who_used_it_and_heals(db: PostgresDatabase) -> None:
    def half() -> Operation[None]:
        yield from notes(1)
        yield from sql(HANG_UP, "postgres")

    for single in (False, True):
        with pytest.raises(StoreUnavailable, match=r"^PostgreSQL"):
            await db.write(lambda: sql(HANG_UP, "postgres"), single=single)
    with pytest.raises(StoreUnavailable, match=r"^PostgreSQL"):
        await db.write(half)
    with pytest.raises(StoreUnavailable, match=r"^PostgreSQL"):
        await db.read(lambda: sql(HANG_UP, "postgres"))
    assert await count(db) == 0
    await db.write(lambda: notes(1))
    assert await count(db) == 1


async def test_a_connection_that_the_server_is_hanging_up_is_a_store_that_is_away(db: PostgresDatabase) -> None:
    def half_closed() -> Operation[None]:
        yield from sql("SELECT 1", "postgres")
        raise asyncpg.InternalClientError("cannot switch to state 15; another operation (2) is in progress")

    for single in (False, True):
        with pytest.raises(StoreUnavailable, match=r"^PostgreSQL does not answer"):
            await db.write(half_closed, single=single)


async def hung_up_on(db: PostgresDatabase, outside: Any) -> None:
    """End every connection of Rota's while it is idle."""
    await outside.execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


async def test_connections_that_were_lost_while_idle_are_made_anew(db: PostgresDatabase, outside: Any) -> None:
    await asyncio.gather(*(count(db) for _ in range(5)))
    await hung_up_on(db, outside)
    for _ in range(20):  # as many as were in the pool may be noticed only when they are used
        try:
            await db.write(lambda: notes(1))
            break
        except StoreUnavailable:
            continue
    assert await count(db) == 1


async def test_a_value_that_does_not_fit_is_no_outage(db: PostgresDatabase) -> None:
    with pytest.raises(asyncpg.DataError):
        await ask(db, "SELECT CAST(:a AS INTEGER)", a="many")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"port": "1"}, "does not answer"),
        ({"name": "nowhere"}, 'refuses: database "nowhere" does not exist'),
        ({"user": "nobody"}, "refuses: "),
    ],
)
async def test_a_server_that_cannot_be_reached_is_one_clear_line_without_the_password(
    postgres_url: str, change: dict[str, str], says: str
) -> None:
    parts = urlsplit(postgres_url)
    user = change.get("user", parts.username)
    port = change.get("port", parts.port)
    name = change.get("name", parts.path[1:])
    db = database(f"postgresql://{user}:{parts.password}@{parts.hostname}:{port}/{name}", [])
    with pytest.raises(StoreUnavailable) as caught:
        await db.open()
    assert str(caught.value).startswith(f"PostgreSQL {says}")
    assert "\n" not in str(caught.value)
    assert str(parts.password) not in str(caught.value)
    await db.close()


async def test_a_pool_that_is_used_up_means_the_store_is_away_for_now(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = PostgresDatabase(postgres_database, Statements([], "postgres", NOW), None, connections=1)
    await db.open()
    monkeypatch.setattr(db._pool, "_patience", 0.01)
    async with db._lent():
        with pytest.raises(StoreUnavailable, match="does not answer"):
            await ask(db, "SELECT 1")
    assert (await ask(db, "SELECT 1"))[0][0] == 1
    await db.close()


async def test_what_is_told_is_heard_by_every_process(db: PostgresDatabase, postgres_database: str) -> None:
    other = PostgresDatabase(postgres_database, Statements([], "postgres", NOW), None)
    listening, heard = asyncio.Event(), asyncio.Event()
    other.listen(lambda topic: (heard if topic == "ready" else listening).set())
    await other.open()
    await asyncio.wait_for(listening.wait(), 10)  # from now on nothing is missed
    await db.notify("ready")
    await asyncio.wait_for(heard.wait(), 10)
    await other.close()


async def test_who_could_not_listen_for_a_while_is_told_that_anything_may_have_changed(
    db: PostgresDatabase, outside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_AGAIN_SECONDS", 0)
    back: asyncio.Queue[str | None] = asyncio.Queue()
    db.listen(back.put_nowait)
    await hung_up_on(db, outside)
    while await asyncio.wait_for(back.get(), 10) is not None:
        pass


async def test_who_stops_listening_hears_no_more(db: PostgresDatabase) -> None:
    heard: list[str | None] = []
    db.listen(heard.append)
    db.unlisten(heard.append)
    assert db._listeners == []


async def test_a_thread_has_a_connection_of_its_own_that_heals(db: PostgresDatabase) -> None:
    await asyncio.to_thread(db.write_from_thread, lambda: notes(1))
    with pytest.raises(StoreUnavailable):
        await asyncio.to_thread(db.write_from_thread, lambda: sql(HANG_UP, "postgres"))
    await asyncio.to_thread(db.write_from_thread, lambda: notes(2))
    assert await count(db) == 2


async def test_a_thread_does_not_wait_for_an_event_loop_that_is_busy(db: PostgresDatabase) -> None:
    done = threading.Event()

    def write() -> None:
        db.write_from_thread(lambda: notes(1))
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert done.wait(20)  # the event loop stands still meanwhile
    thread.join()


async def test_a_closed_store_says_so_and_leaves_no_thread_behind(postgres_database: str) -> None:
    db = PostgresDatabase(postgres_database, Statements([], "postgres", NOW), None)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="the store is not open"):
            await ask(db, "SELECT 1")
        with pytest.raises(StoreUnavailable, match="the store is not open"):
            db.write_from_thread(lambda: sql("SELECT 1", "postgres"))
        await db.open()
        await asyncio.to_thread(db.write_from_thread, lambda: sql("SELECT 1", "postgres"))
        await db.close()
    assert "rota-aside" not in {thread.name for thread in threading.enumerate()}


async def test_closing_ends_what_a_thread_still_waits_for(
    db: PostgresDatabase, outside: Any, postgres_database: str
) -> None:
    await db.write(lambda: notes(1))
    watcher = await asyncpg.connect(postgres_database)
    async with outside.transaction():
        await outside.execute("UPDATE notes SET text = 'mine'")
        stuck = asyncio.ensure_future(
            asyncio.to_thread(db.write_from_thread, lambda: sql("UPDATE notes SET text = 'yours'", "postgres"))
        )
        await waits_for_a_lock(watcher)
        await db.close()
        with pytest.raises(StoreUnavailable):
            await stuck
    await watcher.close()


async def test_a_table_that_somebody_migrates_under_a_running_process_is_read_again(db: PostgresDatabase) -> None:
    """Rolling upgrades: what was prepared for the old columns is prepared anew, also inside a transaction."""
    await ask(db, "CREATE TABLE grown (id INTEGER)")
    await ask(db, "INSERT INTO grown VALUES (1)")

    def twice() -> Operation[int]:
        yield from sql("SELECT 1", "postgres")
        return len((yield from sql("SELECT * FROM grown", "postgres"))[0])

    assert await db.write(twice) == 1
    other = await asyncpg.connect(db._url)
    await other.execute("ALTER TABLE grown ADD COLUMN more INTEGER")
    await other.close()
    assert await db.write(twice) == 2
    assert await db.read(twice) == 2


async def test_who_listens_listens_again_whatever_the_connection_said_when_it_was_hung_up(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_AGAIN_SECONDS", 0)
    listen, tried = asyncpg.Connection.add_listener, 0

    async def once(self: Any, *args: Any) -> None:
        nonlocal tried
        tried += 1
        if tried == 1:
            raise asyncpg.InternalClientError("cannot switch to state 15")
        await listen(self, *args)

    monkeypatch.setattr(asyncpg.Connection, "add_listener", once)
    db = PostgresDatabase(postgres_database, Statements([], "postgres", NOW), None)
    back: asyncio.Queue[str | None] = asyncio.Queue()
    db.listen(back.put_nowait)
    await db.open()
    assert await asyncio.wait_for(back.get(), 20) is None
    await db.close()
