"""Connections to PostgreSQL: lent to one at a time, made anew where they break, never more than allowed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import pytest
from tests.stores import until

from rota.db import pool
from rota.db.pool import Line, Pool
from rota.errors import StoreUnavailable

SLEEP = "SELECT pg_sleep(600)"
Make = Callable[..., Pool]


@pytest.fixture
async def make(postgres_database: str) -> AsyncIterator[Make]:
    made: list[Pool] = []

    def one(most: int = 2, *, patience: float = 30, silence: float = 30) -> Pool:
        found = Pool(lambda: asyncpg.connect(postgres_database), most, patience=patience, silence=silence)
        made.append(found)
        return found

    yield one
    for each in made:
        await each.close()


async def number(line: Line) -> Any:
    """Return the number of a line's server process."""
    return (await line.fetch("SELECT pg_backend_pid()"))[0][0]


async def ask(pool: Pool) -> Any:
    async with pool.lend() as line:
        return await number(line)


async def test_a_line_that_came_back_is_lent_again(make: Make) -> None:
    pool = make()
    assert await ask(pool) == await ask(pool)


async def test_there_are_never_more_lines_than_allowed(make: Make) -> None:
    pool = make(3)
    assert len({*await asyncio.gather(*(ask(pool) for _ in range(30)))}) == 3


async def test_an_error_of_a_statement_leaves_the_line_whole(make: Make) -> None:
    pool = make(1)
    before = await ask(pool)
    with pytest.raises(asyncpg.UndefinedTableError):
        async with pool.lend() as line:
            await line.fetch("SELECT * FROM nowhere")
    assert await ask(pool) == before


async def test_who_waits_gets_a_line_in_turn(make: Make) -> None:
    pool = make(1)
    came: list[int] = []

    async def wait(turn: int) -> None:
        async with pool.lend():
            came.append(turn)

    async with pool.lend():
        waiting = [asyncio.ensure_future(wait(turn)) for turn in range(5)]
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    assert came == [0, 1, 2, 3, 4]


async def test_a_line_that_comes_too_late_for_one_goes_to_the_next(make: Make) -> None:
    pool = make(1)
    lent = pool.lend()
    await lent.__aenter__()
    late, patient = (asyncio.ensure_future(ask(pool)) for _ in range(2))
    await asyncio.sleep(0)
    await lent.__aexit__(None, None, None)  # the first is handed the line now
    late.cancel()
    assert await patient
    assert late.cancelled()


async def test_who_cannot_connect_leaves_room_for_the_next(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = make(1)
    connect = pool._connect

    async def refused() -> Any:
        raise ConnectionRefusedError

    monkeypatch.setattr(pool, "_connect", refused)
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError):
            await ask(pool)
    monkeypatch.setattr(pool, "_connect", connect)
    assert await ask(pool)


async def test_a_statement_that_is_cancelled_ends_at_the_server_and_its_line_is_not_lent_again(
    make: Make, postgres_database: str
) -> None:
    pool = make(1)
    begun: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def sleep() -> None:
        async with pool.lend() as line:
            begun.set_result(await number(line))
            await line.fetch(SLEEP)

    asleep = asyncio.ensure_future(sleep())
    slept = await begun
    outside = await asyncpg.connect(postgres_database)
    seen = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND query = $2 AND state = 'active'"
    while not await outside.fetchval(seen, slept, SLEEP):
        pass
    asleep.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asleep
    assert await ask(pool) != slept
    while await outside.fetchval("SELECT count(*) FROM pg_stat_activity WHERE pid = $1", slept):
        pass
    await outside.close()


async def test_a_line_that_is_silent_for_too_long_is_cut(make: Make) -> None:
    pool = make(1, silence=0.1)
    with pytest.raises((asyncpg.PostgresConnectionError, asyncpg.InterfaceError)):
        async with pool.lend() as line:
            await line.fetch(SLEEP)
    assert await ask(pool)


async def test_a_line_that_answers_is_not_cut_however_long_it_is_out(make: Make) -> None:
    pool = make(1, silence=0.5)
    loop = asyncio.get_running_loop()
    async with pool.lend() as line:
        end = loop.time() + 1
        while loop.time() < end:
            await line.fetch("SELECT 1")


async def test_lines_that_nobody_needs_are_closed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_IDLE_SECONDS", 0)
    found = make(2, silence=0.06)
    assert await ask(found)
    await until(lambda: not found._made)
    assert await ask(found)


async def test_a_line_inside_a_transaction_is_not_lent_again(make: Make) -> None:
    pool = make(1)
    async with pool.lend() as line:
        before = await number(line)
        await line.fetch("BEGIN")
    assert await ask(pool) != before


async def test_closing_waits_for_what_is_out_and_refuses_who_comes_then(make: Make) -> None:
    pool = make(1)
    async with pool.lend() as line:
        waiting = asyncio.ensure_future(ask(pool))
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(pool.close())
        await asyncio.sleep(0)
        for each in (waiting, asyncio.ensure_future(ask(pool))):
            with pytest.raises(StoreUnavailable, match="closing"):
                await each
        assert not closing.done()
        assert await number(line)
    await closing


async def test_closing_cuts_what_does_not_come_back(make: Make) -> None:
    pool = make(1, patience=0.05)
    async with pool.lend() as line:
        await pool.close()
        assert line.connection.is_closed()
