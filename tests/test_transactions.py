"""In the caller's own transaction: what is done with `connection=` happens if and only if the caller commits."""

import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import aiosqlite
import asyncpg
import psycopg
import psycopg2
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool
from tests.lenders import LENDERS, POSTGRES, Lender, alchemy_url, awaited, lend_psycopg
from tests.servers import psql
from tests.stores import ask, emptied, until

import rota
from rota import clock

HARD = ['"', "\\", "'", "{}", ",", "NULL", "", " ", "%s %(x)s %", "$1 :x ::text", "\n\t", "ß€😀", 'a\\"b']
"""Texts that are something else to some driver, if they are not bound well."""


@dataclass
class Shop:
    """An application with a store, and who lends it a connection."""

    app: rota.Rota
    url: str
    lend: Lender

    async def runs(self) -> int:
        return len(await self.app.runs.list(limit=200))

    async def keys(self, **chosen: Any) -> list[str]:
        return [each.key for each in await self.app.schedules.list(**chosen)]


@pytest.fixture(params=LENDERS)
async def shop(request: pytest.FixtureRequest, tmp_path: Path, postgres_store: str) -> AsyncIterator[Shop]:
    url = f"sqlite:///{tmp_path}/rota.db"
    if request.param in POSTGRES:
        await emptied(postgres_store)
        url = postgres_store
    async with rota.Rota(url) as app:
        app.task(name="note")(note)
        yield Shop(app, url, LENDERS[request.param])


async def note(text: str = "", number: int | None = None) -> str:
    return text


def call(app: rota.Rota, **given: Any) -> rota.Call[Any]:
    return app.tasks.get("note").call(**given)


def schedule(app: rota.Rota, key: str = "s", **more: Any) -> rota.Schedule:
    return rota.Schedule(key, call(app), rota.Every("1h"), **more)


# Runs


async def test_a_run_is_there_after_the_commit_and_not_before(shop: Shop) -> None:
    async with shop.lend(shop.url) as lent:
        made = await shop.app.enqueue(call(shop.app), connection=lent.connection)
        assert await shop.app.runs.list() == []
        await lent.commit()
    assert (await shop.app.runs.get(made.id)).state == "ready"


async def test_a_run_is_not_there_after_a_rollback(shop: Shop) -> None:
    async with shop.lend(shop.url) as lent:
        await shop.app.enqueue(call(shop.app), connection=lent.connection)
        await lent.rollback()
    assert await shop.runs() == 0


async def test_rota_never_commits(shop: Shop) -> None:
    async with shop.lend(shop.url) as lent:
        await shop.app.enqueue(call(shop.app), connection=lent.connection)
        await shop.app.schedules.put(schedule(shop.app), connection=lent.connection)
    assert (await shop.runs(), await shop.keys()) == (0, [])


async def test_a_run_goes_with_what_the_caller_did_before(shop: Shop) -> None:
    await ask(shop.app.database, "DROP TABLE IF EXISTS orders")
    await ask(shop.app.database, "CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    for end, expected in (("rollback", 0), ("commit", 1)):
        async with shop.lend(shop.url) as lent:
            await lent.do("INSERT INTO orders VALUES (1)")
            await shop.app.enqueue(call(shop.app), connection=lent.connection)
            await (lent.commit() if end == "commit" else lent.rollback())
        assert (await ask(shop.app.database, "SELECT count(*) FROM orders"))[0][0] == expected
        assert await shop.runs() == expected
    await ask(shop.app.database, "DROP TABLE orders")


async def test_many_runs_keep_their_order_and_their_arguments(shop: Shop) -> None:
    wanted = [{"text": text, "number": number} for text in HARD for number in (None, 0, -1, 2**62)]
    async with shop.lend(shop.url) as lent:
        calls = [call(shop.app, **each) for each in wanted]
        ids = await shop.app.enqueue_many(calls, connection=lent.connection)
        assert await shop.runs() == 0
        await lent.commit()
    found = [await shop.app.runs.get(each) for each in ids]
    assert [shop.app.tasks.get("note").load(each.args)[1] for each in found] == wanted
    assert len(set(ids)) == len(wanted)


async def test_every_option_of_a_run_goes_along(shop: Shop) -> None:
    async with shop.lend(shop.url) as lent:
        made = await shop.app.enqueue(
            call(shop.app, text="x"),
            delay="1h",
            priority=-7,
            queue="mail",
            unique="it's \\ 100%",
            unique_for="1d",
            limits=["host:example.org"],
            connection=lent.connection,
        )
        again = await shop.app.enqueue(call(shop.app), unique="it's \\ 100%", connection=lent.connection)
        assert (made.created, again.created, again.id) == (True, False, made.id)
        await lent.commit()
    found = await shop.app.runs.get(made.id)
    assert (found.state, found.priority, found.queue, found.unique) == ("waiting", -7, "mail", "it's \\ 100%")
    assert found.limits == ("host:example.org",)
    assert found.due > found.created_at


# Schedules


async def put(app: rota.Rota, connection: Any) -> None:
    assert (await app.schedules.put(schedule(app), connection=connection)).key == "s"


async def put_many(app: rota.Rota, connection: Any) -> None:
    several = [schedule(app, f"s{number}", tags=["a", text or "b"]) for number, text in enumerate(("", "x.y", "z"))]
    assert await app.schedules.put_many(several, connection=connection) == rota.PutCounts(made=3)


async def change(app: rota.Rota, connection: Any) -> None:
    assert await app.schedules.change("old", rule=rota.Every("30m"), note="it's 100%", connection=connection) == 1


async def change_those_it_has_just_put(app: rota.Rota, connection: Any) -> None:
    await app.schedules.put_many([schedule(app, f"new-{n}") for n in range(3)], connection=connection)
    assert await app.schedules.change(prefix="new-", priority="high", connection=connection) == 3


async def pause(app: rota.Rota, connection: Any) -> None:
    assert await app.schedules.pause(tag="tagged", note="moving", by="me", connection=connection) == 1


async def resume(app: rota.Rota, connection: Any) -> None:
    assert await app.schedules.resume("held", connection=connection) == 1


async def remove(app: rota.Rota, connection: Any) -> None:
    assert await app.schedules.remove(prefix="ol", connection=connection) == 1


async def trigger(app: rota.Rota, connection: Any) -> None:
    assert (await app.schedules.trigger("old", connection=connection)).count == 1


async def backfill(app: rota.Rota, connection: Any) -> None:
    end = clock.now()
    many = await app.schedules.backfill("old", end - timedelta(hours=2), end, connection=connection)
    assert many.count >= 1


async def spread(app: rota.Rota, connection: Any) -> None:
    new = [rota.Schedule(f"new-{n}", call(app), rota.Every("1h", since="success")) for n in range(3)]
    await app.schedules.put_many(new, connection=connection)
    assert await app.schedules.spread(prefix="new-", window="10h", connection=connection) == 3


async def put_limit(app: rota.Rota, connection: Any) -> None:
    await app.limits.put("host:*", rota.Limit(at_once=1, gap="1s"), connection=connection)


async def remove_limit(app: rota.Rota, connection: Any) -> None:
    await app.limits.remove("gpu", connection=connection)
    with pytest.raises(rota.UnknownLimit):
        await app.limits.remove("gpu", connection=connection)


@pytest.mark.parametrize(
    "verb",
    [
        put,
        put_many,
        change,
        change_those_it_has_just_put,
        pause,
        resume,
        remove,
        trigger,
        backfill,
        spread,
        put_limit,
        remove_limit,
    ],
    ids=lambda v: v.__name__,
)
async def test_schedules_and_limits_are_changed_if_and_only_if_the_caller_commits(
    shop: Shop, verb: Callable[[rota.Rota, Any], Awaitable[None]]
) -> None:
    app = shop.app
    await app.schedules.put_many([schedule(app, "old", tags=["tagged"]), schedule(app, "held")])
    await app.schedules.pause("held")
    await app.limits.put("gpu", rota.Limit(at_once=1))
    before = await picture(shop)
    async with shop.lend(shop.url) as lent:
        await verb(app, lent.connection)
        assert await picture(shop) == before
        await lent.rollback()
        assert await picture(shop) == before
    async with shop.lend(shop.url) as lent:
        await verb(app, lent.connection)
        await lent.commit()
    assert await picture(shop) != before


async def picture(shop: Shop) -> list[Any]:
    """All that a verb may change."""
    schedules = [
        (each.key, each.state, str(each.rule), each.priority, each.version) for each in await shop.app.schedules.list()
    ]
    limits = [each.key for each in await shop.app.limits.list()]
    return [schedules, limits, [each.id for each in await shop.app.runs.list()]]


# Waking


@pytest.mark.parametrize("shop", POSTGRES, indirect=True)  # a file tells by itself
async def test_workers_are_told_by_the_commit_and_not_before(shop: Shop) -> None:
    heard: set[str | None] = set()
    shop.app.database.listen(heard.add)
    while "begun" not in heard:  # it listens as soon as it can
        await shop.app.database.notify("begun")
    async with shop.lend(shop.url) as lent:
        await shop.app.enqueue(call(shop.app), connection=lent.connection)
        await shop.app.schedules.put(schedule(shop.app), connection=lent.connection)
        await shop.app.database.notify("probe")
        await until(lambda: "probe" in heard)
        assert heard <= {None, "begun", "probe"}
        await lent.commit()
        await until(lambda: heard >= {"ready", "waiting", "schedules"})
    shop.app.database.unlisten(heard.add)


async def test_a_limit_lets_in_what_waited_when_the_caller_has_taken_it_away(shop: Shop) -> None:
    await shop.app.limits.put("gpu", rota.Limit(at_once=1))
    async with shop.app.running(scheduler=False), shop.app.limits.hold("gpu"):
        made = await shop.app.enqueue(call(shop.app), limits=["gpu"])
        async with shop.lend(shop.url) as lent:
            await shop.app.limits.remove("gpu", connection=lent.connection)
            assert (await shop.app.runs.get(made.id)).state == "waiting"
            await lent.commit()
        assert (await shop.app.runs.wait(made.id, timeout="1m")).state == "succeeded"


async def test_a_worker_begins_when_the_caller_has_committed(shop: Shop) -> None:
    async with shop.app.running(scheduler=False), shop.lend(shop.url) as lent:
        made = await shop.app.enqueue(call(shop.app, text="done"), connection=lent.connection)
        await lent.commit()
        found = await shop.app.runs.wait(made.id, timeout="1m")
    assert (found.state, found.result) == ("succeeded", '"done"')


# Completion


@pytest.mark.parametrize("end", ["commit", "rollback"])
async def test_a_run_is_completed_if_and_only_if_its_task_commits(shop: Shop, end: str) -> None:
    lend, url = shop.lend, shop.url

    @shop.app.task(name="effect", retry=rota.Retry(attempts=2, first="1ms"))
    async def effect() -> str:
        me = rota.current_run()
        if me.attempt == 2:
            return "again"
        async with lend(url) as lent:
            await me.complete("once", connection=lent.connection)
            if end == "commit":
                await lent.commit()
                return "ignored"
            await lent.rollback()
        raise RuntimeError

    async with shop.app.running(scheduler=False):
        made = await effect.enqueue()
        found = await shop.app.runs.wait(made.id, timeout="1m")
    assert (found.state, await shop.app.runs.result(made.id)) == (
        "succeeded",
        "once" if end == "commit" else "again",
    )


@pytest.mark.parametrize("shop", ["aiosqlite", "asyncpg"], indirect=True)
@pytest.mark.parametrize(("end", "outcome"), [("commit", "succeeded"), ("rollback", "failed")])
async def test_a_run_that_its_task_completes_counts_as_what_became_of_it(shop: Shop, end: str, outcome: str) -> None:
    @shop.app.task(name="effect")
    async def effect() -> None:
        async with shop.lend(shop.url) as lent:
            await rota.current_run().complete(connection=lent.connection)
            await (lent.commit() if end == "commit" else lent.rollback())

    await effect.enqueue()
    ticked = await shop.app.tick()
    assert (ticked.outcomes, ticked.ok) == ({outcome: 1}, end == "commit")
    await effect.enqueue()
    assert getattr(await rota.testing.drain(shop.app), outcome) == 1


# What is refused


async def autocommit_sqlite3(url: str) -> tuple[Any, Any]:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    return connection, connection.close


async def autocommit_aiosqlite(url: str) -> tuple[Any, Any]:
    connection = await aiosqlite.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    return connection, connection.close


async def autocommit_asyncpg(url: str) -> tuple[Any, Any]:
    connection = await asyncpg.connect(url)
    return connection, connection.close


async def autocommit_psycopg(url: str) -> tuple[Any, Any]:
    connection = psycopg.connect(url, autocommit=True)
    return connection, connection.close


async def autocommit_psycopg2(url: str) -> tuple[Any, Any]:
    connection = psycopg2.connect(url)
    connection.autocommit = True
    return connection, connection.close


async def autocommit_async_psycopg(url: str) -> tuple[Any, Any]:
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    return connection, connection.close


def autocommit_core(driver: str) -> Callable[[str], Awaitable[tuple[Any, Any]]]:
    async def connect(url: str) -> tuple[Any, Any]:
        engine = sqlalchemy.create_engine(alchemy_url(url, driver), isolation_level="AUTOCOMMIT", poolclass=NullPool)
        connection = engine.connect()
        return connection, connection.close

    return connect


def autocommit_async_core(driver: str) -> Callable[[str], Awaitable[tuple[Any, Any]]]:
    async def connect(url: str) -> tuple[Any, Any]:
        engine = create_async_engine(alchemy_url(url, driver), isolation_level="AUTOCOMMIT", poolclass=NullPool)
        connection = await engine.connect()
        return connection, connection.close

    return connect


AUTOCOMMIT: dict[str, Callable[[str], Awaitable[tuple[Any, Any]]]] = {
    "sqlite3": autocommit_sqlite3,
    "aiosqlite": autocommit_aiosqlite,
    "sqlalchemy, pysqlite": autocommit_core("pysqlite"),
    "sqlalchemy, aiosqlite": autocommit_async_core("aiosqlite"),
    "asyncpg": autocommit_asyncpg,
    "psycopg": autocommit_psycopg,
    "psycopg, async": autocommit_async_psycopg,
    "psycopg2": autocommit_psycopg2,
    "sqlalchemy, psycopg2": autocommit_core("psycopg2"),
    "sqlalchemy, psycopg": autocommit_core("psycopg"),
    "sqlalchemy, async psycopg": autocommit_async_core("psycopg"),
    "sqlalchemy, asyncpg": autocommit_async_core("asyncpg"),
}


if sys.version_info >= (3, 12):

    async def autocommit_of_python_3_12(url: str) -> tuple[Any, Any]:
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), autocommit=True)
        return connection, connection.close

    AUTOCOMMIT["sqlite3, autocommit"] = autocommit_of_python_3_12


@pytest.mark.parametrize("name", AUTOCOMMIT)
async def test_a_connection_that_commits_by_itself_is_refused(tmp_path: Path, postgres_store: str, name: str) -> None:
    url = postgres_store if name in POSTGRES else f"sqlite:///{tmp_path}/rota.db"
    async with rota.Rota(url) as app:
        app.task(name="note")(note)
        connection, close = await AUTOCOMMIT[name](url)
        before = len(await app.runs.list())
        with pytest.raises(rota.Invalid, match=r"^connection: .* has no transaction open; begin one, .*never commits$"):
            await app.enqueue(call(app), connection=connection)
        await awaited(close())
        assert len(await app.runs.list()) == before


@pytest.mark.parametrize("name", ["psycopg", "psycopg, async", "sqlite3"])
async def test_a_transaction_on_a_connection_that_commits_by_itself_will_do(
    tmp_path: Path, postgres_store: str, name: str
) -> None:
    url = postgres_store if name in POSTGRES else f"sqlite:///{tmp_path}/rota.db"
    async with rota.Rota(url) as app:
        app.task(name="note")(note)
        connection, close = await AUTOCOMMIT[name](url)
        if name == "psycopg":
            with connection.transaction():
                made = await app.enqueue(call(app), connection=connection)
        elif name == "sqlite3":
            connection.execute("BEGIN")
            made = await app.enqueue(call(app), connection=connection)
            connection.execute("COMMIT")
        else:
            async with connection.transaction():
                made = await app.enqueue(call(app), connection=connection)
        await awaited(close())
        assert (await app.runs.get(made.id)).state == "ready"


async def test_a_connection_to_another_database_is_refused(shop: Shop, tmp_path: Path, postgres_database: str) -> None:
    other = f"sqlite:///{tmp_path}/other.db" if shop.url.startswith("sqlite") else postgres_database
    async with rota.Rota(other) as another:
        async with shop.lend(other) as lent:
            with pytest.raises(rota.Invalid, match=r"^connection: .* is not to the store's database; use a connection"):
                await shop.app.enqueue(call(shop.app), connection=lent.connection)
            await lent.rollback()
        assert await another.runs.list() == []


@pytest.mark.parametrize("name", LENDERS)
async def test_a_store_without_tables_says_what_to_do(tmp_path: Path, postgres_database: str, name: str) -> None:
    url = postgres_database if name in POSTGRES else f"sqlite:///{tmp_path}/rota.db"
    app = rota.Rota(url)
    app.task(name="note")(note)
    async with LENDERS[name](url) as lent:
        await lent.do("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        with pytest.raises(rota.NotMigrated, match=r"tables are not there.*: run rota migrate, or open the app once"):
            await app.enqueue(call(app), connection=lent.connection)
        await lent.rollback()


async def test_a_connection_to_the_other_kind_of_store_is_refused(
    shop: Shop, tmp_path: Path, postgres_store: str
) -> None:
    sqlite = shop.url.startswith("sqlite")
    url = postgres_store if sqlite else f"sqlite:///{tmp_path}/rota.db"
    names = "sqlite3, aiosqlite or SQLAlchemy" if sqlite else "asyncpg, psycopg or SQLAlchemy"
    for name in ("psycopg", "sqlalchemy, asyncpg") if sqlite else ("sqlite3", "sqlalchemy, aiosqlite"):
        async with LENDERS[name](url) as lent:
            with pytest.raises(rota.Invalid, match=rf"does not go with the store; use a connection of {names} to"):
                await shop.app.enqueue(call(shop.app), connection=lent.connection)
            await lent.rollback()


async def test_what_is_no_connection_is_refused(app: rota.Rota, store: str) -> None:
    app.task(name="note")(note)
    engines = [sqlalchemy.create_engine("sqlite://"), create_async_engine("sqlite+aiosqlite://")]
    for wrong in ("a string", 42, object(), *engines):
        with pytest.raises(rota.Invalid, match=r"^connection: .* does not go with the store; use a connection of "):
            await app.enqueue(call(app), connection=wrong)


async def test_a_pool_is_no_connection(postgres_store: str) -> None:
    async with rota.Rota(postgres_store) as app, asyncpg.create_pool(postgres_store, min_size=1) as pool:
        app.task(name="note")(note)
        with pytest.raises(rota.Invalid, match="does not go with the store"):
            await app.enqueue(call(app), connection=pool)
        async with pool.acquire() as connection, connection.transaction():
            assert (await app.enqueue(call(app), connection=connection)).created


async def test_a_server_that_does_not_tell_its_number_is_trusted(postgres_database: str) -> None:
    role = f"rota_test_{uuid4().hex}"
    parts = urlsplit(postgres_database)
    for statement in (
        f"CREATE ROLE {role} LOGIN PASSWORD 'secret'",
        f"ALTER DATABASE {parts.path[1:]} OWNER TO {role}",
        "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC",
    ):
        psql(postgres_database, statement)
    url = parts._replace(netloc=f"{role}:secret@{parts.hostname}:{parts.port}").geturl()
    async with rota.Rota(url) as app, lend_psycopg(url) as lent:
        app.task(name="note")(note)
        await app.enqueue(call(app), connection=lent.connection)
        await lent.commit()
        assert len(await app.runs.list()) == 1
    psql(postgres_database, f"REASSIGN OWNED BY {role} TO CURRENT_USER; DROP OWNED BY {role}; DROP ROLE {role}")


def test_no_driver_is_imported_before_somebody_uses_it() -> None:
    code = "import rota, sys; print(sorted({'psycopg', 'psycopg2', 'sqlalchemy', 'aiosqlite'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
