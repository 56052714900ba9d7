"""Copying a store: all of it, once, whatever breaks in between; and the target goes on where the source was."""

import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from tests.copies import BrokenOff, copied, dialect, dump, rows, tables
from tests.scheduling import made
from tests.servers import psql
from tests.stores import START, ask, migrated, opened, worker

import rota
from rota.app import Rota
from rota.db import transfer
from rota.db.migrate import Migrations
from rota.errors import CopyRefused, SchemaTooNew, StoreUnavailable
from rota.store.copy import ROTA, Owner, StoreCopy
from rota.store.runs import RunStore
from rota.store.workers import WorkerStore

LIVING = {"rota_workers"}
"""The tables that speak of living processes: nothing of them is copied."""
COPIED = {
    *("rota_runs", "rota_attempts", "rota_schedules", "rota_tags", "rota_revisions", "rota_skips", "rota_pause"),
    *("rota_limits", "rota_taken", "rota_lines", "rota_holds", "rota_locks", "rota_hours", "rota_summed"),
    *("rota_tokens", "rota_idempotency", "rota_secrets", "rota_logs", "rota_traces", "rota_troubles"),
}
HANG_UP = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'rota'
"""
BOTH_WAYS = ["sqlite sqlite", "sqlite postgres", "postgres sqlite", "postgres postgres"]

app = Rota("sqlite://")


@app.task(name="copied.add", limits=["host:example.org"])
async def add(one: int) -> int:
    return one + 1


@app.task(name="copied.plain")
async def plain(one: int) -> int:
    return one + 1


@pytest.fixture(scope="module")
def two_databases(postgres_url: str) -> Iterator[list[str]]:
    """The addresses of two databases for the tests of this module, one after the other.

    They have an order of words of their own: a and Z are in another order there than in SQLite.
    """
    names = [f"rota_test_{uuid4().hex}" for _ in range(2)]
    for name in names:
        psql(postgres_url, f"CREATE DATABASE {name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'")
    yield [urlsplit(postgres_url)._replace(path=f"/{name}").geturl() for name in names]
    for name in names:
        psql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=BOTH_WAYS)
async def ends(request: pytest.FixtureRequest, tmp_path: Path, two_databases: list[str]) -> tuple[str, str]:
    """The addresses of a source and a target in which there is no table."""
    found = []
    for name, kind, database in zip(("source", "target"), request.param.split(), two_databases, strict=True):
        if kind == "postgres":
            await rows(database, "DROP SCHEMA public CASCADE")
            await rows(database, "CREATE SCHEMA public")
        found.append(database if kind == "postgres" else f"sqlite:///{tmp_path}/{name}.db")
    return found[0], found[1]


one_way = pytest.mark.parametrize("ends", ["sqlite postgres"], indirect=True)
two_ways = pytest.mark.parametrize("ends", ["sqlite postgres", "postgres sqlite"], indirect=True)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "_FETCH_ROWS", 2)
    monkeypatch.setattr(transfer, "_MOST_ROWS", 2)


def on(store: str) -> Rota:
    """An app with the tasks of this module on a store."""
    found = Rota(store, name="copies")
    found.tasks = app.tasks
    return found


async def lived_in(store: str) -> dict[str, int]:
    """Make a store in which something of everything has happened."""
    async with on(store) as here:
        await here.limits.put("host:*", rota.Limit(at_once=1, gap="1h"))
        names = [f"s{number}" for number in range(5)]
        await here.schedules.put_many([made(key, rota.Every("15m"), tags=["feeds", key]) for key in names])
        await here.schedules.pause("s1", note="moving", by="ann")
        await here.pause(note="all", by="bob")
        await here.lock("invoices", ttl="1h").acquire()
        lock = here.lock("done", ttl="1h")
        await lock.acquire()
        await lock.release()
        ended = [await here.enqueue(plain.call(one=number)) for number in range(7)]
        database = here.database
        runs = RunStore(database)
        await database.write(lambda: WorkerStore(database, runs).enter(worker("dead"), 1))
        await database.write(lambda: runs.claim("dead", "default", 7, lost_least=0, lost_most=9))
        over = ", ".join(str(run.id) for run in ended[:-1])
        for text in (
            f"UPDATE rota_runs SET state = 'failed', finished_at = {START}, error = '{{}}' WHERE id IN ({over})",
            "INSERT INTO rota_attempts SELECT id, 1, 'w', 2, 3, 'failed', error FROM rota_runs WHERE state = 'failed'",
            "INSERT INTO rota_logs SELECT id, 1, '[]' FROM rota_runs WHERE state = 'failed'",
            f"INSERT INTO rota_troubles VALUES ('worker w', {START}, 'silent', 'gone', NULL, 0, NULL, 0, 1)",
            "INSERT INTO rota_traces SELECT id, '{}' FROM rota_runs WHERE state = 'failed'",
            f"INSERT INTO rota_hours VALUES ({START}, 'a', 'b', 'failed', 7, 1, 2, 3)",
            f"INSERT INTO rota_summed VALUES (1, {START})",
            f"INSERT INTO rota_tokens VALUES ('h', 'ann', 'admin', {START}, NULL, NULL, {START})",
            f"INSERT INTO rota_idempotency VALUES ('k', 'r', 201, '{{}}', '{{}}', {START})",
            "INSERT INTO rota_secrets VALUES ('cursors', 'ab')",
        ):
            await ask(database, text)
        ready = await here.enqueue(plain.call(one=41))
        waiting = await here.enqueue(plain.call(one=42), delay="10h")
        removed = await here.enqueue(plain.call(one=43))
        await ask(database, f"DELETE FROM rota_runs WHERE id = {removed.id}")
        return {"running": ended[-1].id, "ready": ready.id, "waiting": waiting.id, "highest": removed.id}


async def test_every_table_of_the_store_is_copied_unless_it_speaks_of_living_processes(store: str) -> None:
    """A new table comes along by itself. Who adds one says here that this is right, or names it in ROTA.left_out."""
    db = await opened(store)
    known = Migrations(ROTA.name, ROTA.migrations, db).tables
    await db.close()
    assert set(known) | {"rota_migrations"} == await tables(store) - {"rota_copy"}
    assert known.index("rota_runs") < known.index("rota_attempts")
    assert (set(known) - ROTA.left_out, ROTA.left_out) == (COPIED, LIVING)


async def test_everything_arrives_as_it_was_and_is_counted(ends: tuple[str, str]) -> None:
    source, target = ends
    await lived_in(source)
    before = await dump(source)
    found = await copied(source, target)
    assert await dump(target) == before == await dump(source)
    assert found.rows == {table: len(rows) for table, rows in before.items() if table != "numbers"}
    assert (found.before, found.running) == (0, 1)
    assert all(
        found.rows[table] for table in ("rota_runs", "rota_attempts", "rota_schedules", "rota_tags", "rota_hours")
    )
    assert await rows(target, "SELECT * FROM rota_workers") == []


async def test_the_target_goes_on_where_the_source_was(ends: tuple[str, str]) -> None:
    source, target = ends
    ids = await lived_in(source)
    await copied(source, target)
    async with on(target) as there:
        assert (await there.enqueue(plain.call(one=1), delay="10h")).id > ids["highest"]
        assert not await there.lock("invoices").acquire()
        lock = there.lock("done")
        await lock.acquire()
        assert lock.fence == 2
        assert (await there.schedules.get("s1")).state == "paused"
        limited = await there.enqueue(add.call(one=1))
        async with there.running(worker=True, scheduler=False):
            assert (await there.runs.wait(ids["ready"], timeout=60)).state == "succeeded"
            again = await there.runs.wait(ids["running"], timeout=60)
            assert (await there.runs.wait(limited.id, timeout=60)).state == "succeeded"
        assert (again.state, again.lost, again.attempt) == ("succeeded", 1, 2)
        assert [each.outcome for each in await there.runs.attempts(again.id)] == ["lost", "succeeded"]
        assert (await there.runs.get(ids["waiting"])).state == "waiting"


@pytest.mark.usefixtures("small_batches")
async def test_a_copy_that_was_broken_off_goes_on_where_it_was(
    ends: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = ends
    await lived_in(source)
    total, before = 0, -1
    for most in range(1, 100, 4):
        monkeypatch.setattr(transfer, "_FETCH_ROWS", 1 + most % 3)  # batches need not begin where others ended
        try:
            found = await copied(source, target, most=most)
        except BrokenOff as broken:
            total = broken.args[2]
            there = await dump(target)
            (arrived,) = (await rows(target, "SELECT CAST(sum(arrived) AS BIGINT) FROM rota_copy"))[0]
            assert sum(len(there[name]) for (name,) in await rows(target, "SELECT name FROM rota_copy")) == arrived
            assert arrived >= before
            before = arrived
        else:
            break
    assert total == 2 * sum(found.rows.values())
    assert found.before == sum(found.rows.values())
    assert await dump(target) == await dump(source)


@two_ways
@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE rota_runs SET error = 'other' WHERE id = 1",
        "UPDATE rota_runs SET lost = 9 WHERE id = 4",
        "DELETE FROM rota_runs WHERE id = 2",
        "DELETE FROM rota_runs",
    ],
)
async def test_a_source_that_changed_since_the_break_is_noticed(ends: tuple[str, str], change: str) -> None:
    source, target = ends
    await lived_in(source)
    with pytest.raises(BrokenOff):
        await copied(source, target, most=3)
    if "DELETE" in change:
        await rows(source, "DELETE FROM rota_attempts")
        await rows(source, "DELETE FROM rota_logs")
        await rows(source, "DELETE FROM rota_traces")
    await rows(source, change)
    with pytest.raises(CopyRefused, match=r"rota_runs of the source has changed .*--replace"):
        await copied(source, target)
    await copied(source, target, replace=True)
    assert await dump(target) == await dump(source)


@two_ways
@pytest.mark.usefixtures("small_batches")
async def test_what_the_source_got_behind_the_break_comes_along(ends: tuple[str, str]) -> None:
    source, target = ends
    await lived_in(source)
    with pytest.raises(BrokenOff):
        await copied(source, target, most=9)
    async with on(source) as here:
        run = await here.enqueue(plain.call(one=44))
        await here.schedules.put(made("s9"))
    await copied(source, target)
    assert (await rows(target, f"SELECT args FROM rota_runs WHERE id = {run.id}"))[0] == ('{"one":44}',)
    assert await dump(target) == await dump(source)


@two_ways
@pytest.mark.usefixtures("small_batches")
async def test_nobody_works_on_a_target_that_is_not_finished(ends: tuple[str, str]) -> None:
    source, target = ends
    await lived_in(source)
    with pytest.raises(BrokenOff):
        await copied(source, target, most=3)
    with pytest.raises(CopyRefused, match="not finished"):
        async with Rota(target):
            pass
    await copied(source, target)
    async with Rota(target):
        pass


@two_ways
@pytest.mark.usefixtures("small_batches")
async def test_an_unfinished_copy_of_another_store_is_refused(ends: tuple[str, str], tmp_path: Path) -> None:
    source, target = ends
    await lived_in(source)
    with pytest.raises(BrokenOff):
        await copied(source, target, most=3)
    other = f"sqlite:///{tmp_path}/other.db"
    await migrated(other)
    with pytest.raises(CopyRefused, match="unfinished copy of another store"):
        await copied(other, target)
    with pytest.raises(CopyRefused, match="FROM is itself an unfinished copy"):
        await copied(target, other)
    await copied(other, target, replace=True)
    assert (await dump(target))["rota_runs"] == []


async def test_a_target_that_is_not_empty_is_refused_and_stays_as_it_is(ends: tuple[str, str]) -> None:
    source, target = ends
    await lived_in(source)
    async with on(target) as there:
        for number in range(3):
            await there.enqueue(plain.call(one=number), delay="10h")
    before = await dump(target)
    with pytest.raises(CopyRefused, match=r"TO is not empty \(rota_runs 3\): .*--replace"):
        await copied(source, target)
    assert await dump(target) == before
    await copied(source, target, replace=True)
    assert await dump(target) == await dump(source)


@two_ways
async def test_a_target_that_is_refused_is_not_brought_up_to_date(ends: tuple[str, str]) -> None:
    source, target = ends
    await migrated(source)
    await lived_in(target)
    await rows(target, "DELETE FROM rota_migrations WHERE number > 1")
    with pytest.raises(CopyRefused, match="TO is not empty"):
        await copied(source, target)
    assert await rows(target, "SELECT number FROM rota_migrations") == [(1,)]


@two_ways
async def test_what_comes_into_the_target_after_the_look_is_not_lost(
    ends: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = ends
    await migrated(source)
    await lived_in(target)

    async def nothing(_: StoreCopy) -> dict[str, int]:
        return {}

    monkeypatch.setattr(StoreCopy, "in_target", nothing)
    with pytest.raises(CopyRefused, match="TO is not empty"):
        await copied(source, target)
    assert (await dump(target))["rota_runs"]


@two_ways
async def test_what_is_written_to_the_source_meanwhile_does_not_come_along(ends: tuple[str, str]) -> None:
    source, target = ends
    await lived_in(source)
    before = await dump(source)

    def write() -> None:
        """As another process does, while this one does nothing else."""
        for text in ("DELETE FROM rota_attempts", "DELETE FROM rota_tags", "UPDATE rota_locks SET fence = 9"):
            if dialect(source) == "postgres":
                psql(source, text)
            else:
                with sqlite3.connect(source.removeprefix("sqlite:///")) as connection:
                    connection.execute(text)
                connection.close()

    await copied(source, target, meanwhile=write)
    assert await dump(target) == before != await dump(source)


@two_ways
@pytest.mark.usefixtures("small_batches")
async def test_a_postgres_that_hangs_up_is_one_line_and_the_copy_goes_on_later(ends: tuple[str, str]) -> None:
    source, target = ends
    await lived_in(source)
    (postgres,) = [each for each in ends if dialect(each) == "postgres"]
    said: list[str] = []
    try:
        await copied(source, target, meanwhile=lambda: psql(postgres, HANG_UP))
    except StoreUnavailable as error:
        said = str(error).splitlines()
    if said:
        assert len(said) == 1
        assert "PostgreSQL" in said[0]
        assert (await copied(source, target)).before == 2
    else:  # between two batches nobody has a connection to the target, and the pool may have noticed by then
        assert postgres == target
    assert await dump(target) == await dump(source)


@two_ways
async def test_numbering_begins_anew_with_an_empty_source(ends: tuple[str, str]) -> None:
    source, target = ends
    await migrated(source)
    await lived_in(target)
    await copied(source, target, replace=True)
    async with on(target) as there:
        assert (await there.enqueue(plain.call(one=1))).id == 1


async def test_a_store_is_not_copied_into_itself(store: str, tmp_path: Path) -> None:
    await migrated(store)
    if dialect(store) == "sqlite":
        (tmp_path / "link.db").symlink_to(store.removeprefix("sqlite:///"))
        other = f"sqlite:///{tmp_path}/link.db"
    else:
        other = f"{store}?application_name=other"
    for replace in (False, True):
        with pytest.raises(CopyRefused, match="the same database"):
            await copied(store, other, replace=replace)


async def test_two_schemas_of_a_database_are_two_stores(two_databases: list[str]) -> None:
    database = two_databases[0]
    for schema in ("public", "other"):
        await rows(database, f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        await rows(database, f"CREATE SCHEMA {schema}")
    await lived_in(database)
    found = await copied(database, f"{database}?search_path=other")
    there = await rows(database, "SELECT count(*) FROM other.rota_runs")
    await rows(database, "DROP SCHEMA other CASCADE")
    assert there == [(found.rows["rota_runs"],)]


@two_ways
async def test_workers_at_work_in_the_source_are_in_the_way_unless_it_is_told(ends: tuple[str, str]) -> None:
    source, target = ends
    ids = await lived_in(source)
    await rows(source, "UPDATE rota_workers SET lease = 9000000000000000")
    with pytest.raises(CopyRefused, match=r"1 worker is at work in the source, such as dead: .*--live"):
        await copied(source, target)
    assert (await copied(source, target, live=True)).running == 1
    assert await rows(target, "SELECT id FROM rota_runs WHERE state = 'running'") == [(ids["running"],)]


@two_ways
async def test_a_target_at_work_is_never_emptied(ends: tuple[str, str]) -> None:
    source, target = ends
    await migrated(source)
    await lived_in(target)
    await rows(target, "UPDATE rota_workers SET lease = 9000000000000000")
    with pytest.raises(CopyRefused, match="at work in the target"):
        await copied(source, target, replace=True)
    assert (await dump(target))["rota_runs"]


@two_ways
@pytest.mark.usefixtures("small_batches")
async def test_a_target_that_somebody_changes_meanwhile_is_noticed(ends: tuple[str, str]) -> None:
    source, target = ends
    await lived_in(source)
    with pytest.raises(BrokenOff):
        await copied(source, target, most=10)
    await rows(target, "UPDATE rota_runs SET priority = 7 WHERE id = 1")
    with pytest.raises(CopyRefused, match="rota_runs is not the same in the target"):
        await copied(source, target)


@two_ways
@pytest.mark.usefixtures("small_batches")
async def test_a_row_that_is_there_already_is_refused_in_one_line(ends: tuple[str, str]) -> None:
    source, target = ends
    await lived_in(source)
    with pytest.raises(BrokenOff):
        await copied(source, target, most=2)
    await rows(target, "UPDATE rota_runs SET id = 6 WHERE id = 1" if dialect(target) == "sqlite" else _SIX)
    with pytest.raises(CopyRefused, match="rota_runs does not take a row"):
        await copied(source, target)


_SIX = """
INSERT INTO rota_runs (id, task, queue, state, priority, due, args, max_lost, created_at) OVERRIDING SYSTEM VALUE
SELECT 6, task, queue, state, priority, due, args, max_lost, created_at FROM rota_runs WHERE id = 1
"""


@one_way
async def test_a_number_that_postgres_has_no_room_for_is_refused_in_one_line(ends: tuple[str, str]) -> None:
    source, target = ends
    await lived_in(source)
    await rows(source, "UPDATE rota_runs SET priority = 40000 WHERE id = 1")
    with pytest.raises(CopyRefused, match="rota_runs does not take a row"):
        await copied(source, target)


@two_ways
@pytest.mark.usefixtures("small_batches")
async def test_of_two_copies_into_one_target_one_goes_on(
    ends: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = ends
    await lived_in(source)
    bring = transfer.Transfer._put
    overtaken = False

    async def after_another(self: transfer.Transfer, *words: object) -> None:
        nonlocal overtaken
        if not overtaken:
            overtaken = True
            with pytest.raises(BrokenOff):
                await copied(source, target, most=3)
        await bring(self, *words)  # type: ignore[arg-type]

    monkeypatch.setattr(transfer.Transfer, "_put", after_another)
    with pytest.raises(CopyRefused, match="another copy into the same target is under way"):
        await copied(source, target)
    await copied(source, target)
    assert await dump(target) == await dump(source)


@two_ways
async def test_a_source_must_be_a_store_of_this_rota(ends: tuple[str, str]) -> None:
    source, target = ends
    with pytest.raises(CopyRefused, match="no store of Rota's"):
        await copied(source, target)
    await migrated(source)
    await rows(source, "DELETE FROM rota_migrations WHERE number = 7")
    with pytest.raises(CopyRefused, match="rota migrate"):
        await copied(source, target)
    await rows(source, "INSERT INTO rota_migrations VALUES ('rota', 7, 'x', 0), ('rota', 999, 'y', 0)")
    with pytest.raises(SchemaTooNew):
        await copied(source, target)
    await rows(source, "DELETE FROM rota_migrations WHERE number = 999")
    await rows(source, "INSERT INTO rota_migrations VALUES ('notes', 1, 'z', 0)")
    with pytest.raises(CopyRefused, match="what notes keeps, which is not installed here"):
        await copied(source, target)
    assert await tables(target) == set()


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Owner]:
    """An application with tables of its own."""
    folder = tmp_path / "copied_notes"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "0001.sql").write_text(
        "-- name: 0001_notes\n"
        "CREATE TABLE notes (name TEXT PRIMARY KEY, weight DOUBLE PRECISION, number BIGINT);\n"
        "CREATE TABLE notes_online (name TEXT PRIMARY KEY);\n"
        "CREATE TABLE old (name TEXT PRIMARY KEY);\n"
        "INSERT INTO notes VALUES ('first', 0.5, 1);\n"
    )
    (folder / "0002.sql").write_text(
        "-- name: 0002_old\nALTER TABLE old RENAME TO older;\nDROP TABLE IF EXISTS older;\n"
        "CREATE TABLE notes_new (name TEXT PRIMARY KEY, note TEXT REFERENCES notes (name));\n"
        "ALTER TABLE notes_new RENAME TO notes_more;\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Owner("notes", "copied_notes", frozenset({"notes_online"}))
    sys.modules.pop("copied_notes", None)


@two_ways
async def test_what_an_application_keeps_comes_along(ends: tuple[str, str], notes: Owner) -> None:
    source, target = ends
    db = await opened(source)
    await Migrations(notes.name, notes.migrations, db).apply()
    await db.close()
    await rows(source, "INSERT INTO notes VALUES ('Ä', 1e300, -1), ('a', NULL, NULL), ('Z', 0.1, 9000000000000000)")
    await rows(source, "INSERT INTO notes_more VALUES ('one', 'a')")
    await rows(source, "INSERT INTO notes_online VALUES ('me')")
    found = await copied(source, target, owners=(ROTA, notes))
    assert (found.rows["notes"], found.rows["notes_more"]) == (4, 1)
    assert "notes_online" not in found.rows
    everything = "SELECT * FROM notes ORDER BY number"
    assert sorted(await rows(target, everything), key=repr) == sorted(await rows(source, everything), key=repr)
    assert await rows(target, "SELECT * FROM notes_online") == []
