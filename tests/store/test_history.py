"""Ended runs are kept for a time, then removed with their attempts; what is under way stays."""

import asyncio
from typing import Any

import asyncpg
import pytest
from tests.stores import DSN, SECOND, Clock, ask, claim, claim_one, emptied, ended, get, new, on_clock, put, settle

from rota.db.database import Database, Operation, Query
from rota.db.statements import Statement
from rota.model import Outcome
from rota.store.history import History
from rota.store.runs import RunStore

KEEP = 3600 * SECOND
ENDED: tuple[Outcome, ...] = ("succeeded", "failed", "cancelled")


async def sweep(db: Database, most: int = 1_000) -> int:
    return await db.write(lambda: History(db).sweep(KEEP, most))


async def ids(db: Database) -> list[int]:
    return [row[0] for row in await ask(db, "SELECT id FROM rota_runs ORDER BY id")]


async def end(db: Database, outcome: Outcome = "succeeded") -> int:
    """Store a run, and end it now."""
    await put(db)
    run = await claim_one(db)
    await settle(db, "w", [ended(run, outcome)])
    return run.id


async def many_ended(db: Database, number: int) -> None:
    """Store runs that ended one after the other, the first of them long ago."""
    await db.write(lambda: RunStore(db).insert([new()] * number))
    await ask(db, "UPDATE rota_runs SET state = 'succeeded', finished_at = id")


@pytest.mark.parametrize("outcome", ENDED)
async def test_an_ended_run_is_kept_for_so_long_and_then_removed(
    db: Database, runs: RunStore, clock: Clock, outcome: Outcome
) -> None:
    run = await end(db, outcome)
    clock.advance(3600)
    assert await sweep(db) == 0
    assert (await get(db, run)).state == outcome
    clock.advance(0.000_001)
    assert await sweep(db) == 1
    assert await db.read(lambda: runs.get(run)) is None
    assert await sweep(db) == 0


async def test_attempts_go_with_their_run_and_others_stay(db: Database, runs: RunStore, clock: Clock) -> None:
    old = await end(db, "failed")
    clock.advance(3601)
    young = await end(db, "failed")
    assert await sweep(db) == 1
    assert await db.read(lambda: runs.attempts(old)) == []
    assert [each.outcome for each in await db.read(lambda: runs.attempts(young))] == ["failed"]
    assert [row[0] for row in await ask(db, "SELECT run FROM rota_attempts")] == [young]


async def test_what_is_under_way_is_never_removed(db: Database, runs: RunStore, clock: Clock) -> None:
    await put(db, delay=1)
    await put(db)
    await claim(db)
    await put(db)
    again = await end(db, "failed")
    await db.write(lambda: runs.retry(again))
    clock.advance(100 * 365 * 86_400)
    assert {(await get(db, run)).state for run in await ids(db)} == {"waiting", "running", "ready"}
    assert await sweep(db) == 0
    assert len(await ids(db)) == 4


async def test_time_counts_from_the_end_not_from_the_making(db: Database, clock: Clock) -> None:
    await put(db)
    run = await claim_one(db)
    clock.advance(3601)
    await settle(db, "w", [ended(run, "succeeded")])
    clock.advance(3600)
    assert await sweep(db) == 0


async def test_a_round_removes_the_oldest_and_no_more_than_it_may(db: Database) -> None:
    await many_ended(db, 25)
    assert await sweep(db, 10) == 10
    assert await ids(db) == list(range(11, 26))
    assert [await sweep(db, 10), await sweep(db, 10), await sweep(db, 10)] == [10, 5, 0]


async def test_of_several_who_sweep_at_once_each_run_is_removed_by_one(db: Database) -> None:
    await many_ended(db, 1_000)
    assert sum(await asyncio.gather(*(sweep(db, 300) for _ in range(8)))) == 1_000
    assert await ids(db) == []


async def test_on_postgres_nobody_waits_for_a_run_that_another_has_locked(postgres_store: str, clock: Clock) -> None:
    await emptied(postgres_store)
    db = await on_clock(postgres_store, clock)
    await many_ended(db, 3)
    connection = await asyncpg.connect(postgres_store)
    async with connection.transaction():
        await connection.execute("SELECT 1 FROM rota_runs WHERE id = 2 FOR UPDATE")
        assert await asyncio.wait_for(sweep(db), 60) == 2
    await connection.close()
    assert await ids(db) == [2]
    await db.close()


async def test_a_schedule_keeps_its_newest_runs_and_skips_however_old(db: Database, clock: Clock) -> None:
    await many_ended(db, 250)
    await ask(db, "UPDATE rota_runs SET schedule = 'feed', kind = 'cron', nominal = id WHERE id <= 130")
    await ask(db, "UPDATE rota_runs SET schedule = 'rare', kind = 'cron', nominal = id WHERE id BETWEEN 131 AND 135")
    for _ in range(105):
        await ask(
            db,
            "INSERT INTO rota_skips (schedule, reason, first, last, count, at) VALUES ('feed', 'missed', 1, 1, 1, 1)",
        )
    assert await sweep(db) == 250
    assert await ids(db) == list(range(31, 136))
    assert (await ask(db, "SELECT count(*) FROM rota_skips"))[0][0] == 100
    assert await sweep(db) == 0  # nobody comes across them again
    await db.write(lambda: RunStore(db).insert([new()] * 2))
    await ask(
        db,
        "UPDATE rota_runs SET schedule = 'feed', kind = 'cron', nominal = id, state = 'failed', finished_at = 1"
        " WHERE state = 'ready'",
    )
    assert await sweep(db) == 2
    assert (await ids(db))[0] == 33


def plan(db: Database) -> Operation[str]:
    """Ask how the statement would be run."""
    found = db.query("history.old", keep=KEEP, most=1_000, now=2 * KEEP)
    how = "EXPLAIN" if db.dialect == "postgres" else "EXPLAIN QUERY PLAN"
    explained = Statement("plan", f"{how} {found.statement.text}", found.statement.parameters)
    rows: Any = yield Query(explained, found.values)
    return "\n".join(str(row[-1]) for row in rows)


async def test_old_runs_are_found_by_index_however_many_there_are(db: Database, store: str) -> None:
    await many_ended(db, 5_000)
    await ask(db, "ANALYZE")
    steps = await db.write(lambda: plan(db))
    assert "rota_runs_finished" in steps
    assert ("Seq Scan" if store.startswith(DSN) else "SCAN") not in steps, steps
