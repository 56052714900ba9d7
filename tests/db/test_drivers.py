"""A connection of the caller's own beside an event loop: what it waits for may be held by somebody there."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import psycopg
import pytest
from tests.stores import ask

import rota

HELD = "SELECT 1 FROM rota_schedules WHERE key = 's' FOR UPDATE"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'caller' AND wait_event_type = 'Lock'"


@pytest.fixture
async def app(postgres_database: str) -> AsyncIterator[rota.Rota]:
    async with rota.Rota(postgres_database) as app:
        task = app.task(name="note")(lambda: None)
        await app.schedules.put(rota.Schedule("s", task.call(), rota.Every("1h")))
        yield app


async def waits(app: rota.Rota) -> None:
    """Wait until the caller's connection waits for a lock."""
    while (await ask(app.database, WAITING))[0][0] == 0:
        pass


async def test_a_plain_connection_may_wait_for_what_is_held_in_the_same_event_loop(
    app: rota.Rota, postgres_database: str
) -> None:
    other = await asyncpg.connect(postgres_database)
    with psycopg.connect(postgres_database, application_name="caller") as connection:
        async with other.transaction():
            await other.execute(HELD)
            pausing = asyncio.create_task(app.schedules.pause("s", connection=connection))
            await waits(app)
        assert await pausing == 1
    assert (await app.schedules.get("s")).state == "paused"
    await other.close()


async def test_who_is_cancelled_while_it_waits_can_roll_back(app: rota.Rota, postgres_database: str) -> None:
    other = await asyncpg.connect(postgres_database)
    with psycopg.connect(postgres_database, application_name="caller") as connection:
        async with other.transaction():
            await other.execute(HELD)
            pausing = asyncio.create_task(app.schedules.pause("s", connection=connection))
            await waits(app)
            pausing.cancel()
            await asyncio.wait([pausing])
            connection.rollback()  # it would wait for ever, and the lock with it
    assert pausing.cancelled()
    assert (await app.schedules.get("s")).state == "active"
    await other.close()
