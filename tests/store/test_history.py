"""Ended runs are kept for a time, then removed with their attempts; what is under way stays."""

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from tests.scheduling import Bench, made
from tests.stores import (
    SECOND,
    START,
    Clock,
    ask,
    claim,
    claim_one,
    emptied,
    ended,
    get,
    new,
    on_clock,
    put,
    settle,
)

from rota.db.database import Database
from rota.model import Outcome
from rota.store.history import NEWEST, History
from rota.store.hours import KEPT, Hours
from rota.store.runs import RunStore
from rota.times.moments import HOUR, LATEST, instant

KEEP = 7_200 * SECOND
ENDED: tuple[Outcome, ...] = ("succeeded", "failed", "cancelled")


async def sum_up(db: Database) -> None:
    """Sum up every full hour."""
    hours = Hours(db)
    while (found := await db.read(hours.next)) is not None:
        await db.write(lambda found=found: hours.put(found))  # type: ignore[misc]


async def sweep(db: Database, most: int = 1_000) -> int:
    await sum_up(db)
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
    clock.advance(7_200)
    assert await sweep(db) == 0
    assert (await get(db, run)).state == outcome
    clock.advance(0.000_001)
    assert await sweep(db) == 1
    assert await db.read(lambda: runs.get(run)) is None
    assert await sweep(db) == 0


async def test_attempts_go_with_their_run_and_others_stay(db: Database, runs: RunStore, clock: Clock) -> None:
    old = await end(db, "failed")
    clock.advance(7_201)
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
    clock.advance(7_201)
    await settle(db, "w", [ended(run, "succeeded")])
    clock.advance(7_200)
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
    bench = Bench(db, clock)
    await bench.facade.put_many([made("feed"), made("rare")])
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


async def test_a_schedule_that_never_runs_keeps_its_newest_skips(db: Database, clock: Clock) -> None:
    await Bench(db, clock).put("idle")
    for number in range(105):
        await ask(
            db,
            "INSERT INTO rota_skips (schedule, reason, first, last, count, at)"
            " VALUES ('idle', 'excluded', :at, :at, 1, :at)",
            at=number,
        )
    assert await sweep(db) == 105
    assert [row[0] for row in await ask(db, "SELECT first FROM rota_skips ORDER BY first")] == list(range(5, 105))
    assert await sweep(db) == 0


async def test_a_schedule_keeps_its_newest_revisions(db: Database, clock: Clock) -> None:
    bench = Bench(db, clock)
    await bench.put("busy")
    for number in range(NEWEST + 5):
        await bench.facade.change("busy", description=str(number))
    await bench.put("rare")
    clock.advance(7_201)
    assert await sweep(db) == NEWEST + 7
    assert [each.version for each in await bench.facade.revisions("busy", limit=1_000)] == list(
        range(NEWEST + 6, 6, -1)
    )
    assert len(await bench.facade.revisions("rare")) == 1
    assert await sweep(db) == 0


async def test_what_was_removed_keeps_nothing_beyond_the_age(db: Database, clock: Clock) -> None:
    bench = Bench(db, clock)
    await bench.put()
    await bench.go(60)
    await bench.work()
    await bench.go(120)
    await bench.go(180)
    clock.advance(20_000)
    await bench.fire()
    assert await sweep(db) > 0  # marked, because the schedule keeps its newest
    await bench.facade.remove("s")
    await sweep(db)
    assert len(await ids(db)) == 1  # cancelled just now
    clock.advance(20_000)
    await sweep(db)
    for table in ("runs", "skips", "revisions"):
        assert await ask(db, f"SELECT * FROM rota_{table}") == []


async def test_a_run_goes_only_when_its_hour_is_summed_up(db: Database, clock: Clock) -> None:
    run = await end(db)
    clock.advance(7_201)
    assert await db.write(lambda: History(db).sweep(KEEP, 10)) == 0
    await sum_up(db)
    assert await db.write(lambda: History(db).sweep(KEEP, 10)) == 1
    assert run not in await ids(db)


async def test_a_run_that_is_tried_again_by_hand_is_young_again(db: Database, runs: RunStore, clock: Clock) -> None:
    await Bench(db, clock).put("feed")
    run = await end(db, "failed")
    await ask(db, "UPDATE rota_runs SET schedule = 'feed', kind = 'manual', nominal = 1")
    clock.advance(20_000)
    assert await sweep(db) > 0  # it is kept, because it is the schedule's newest
    await db.write(lambda: runs.retry(run))
    await settle(db, "w", [ended(await claim_one(db), "succeeded")])
    assert [each[2:] for each in await hours(db)] == [("failed", 1), ("succeeded", 1)]
    clock.advance(7_300)
    await sweep(db)
    assert [each[2:] for each in await hours(db)] == [("failed", 1), ("succeeded", 1)]


# Hours


async def hours(db: Database, **more: Any) -> list[tuple[int, str, str, int]]:
    """Return (hour since the start, task, state, runs)."""
    found = await db.read(lambda: Hours(db).list(0, LATEST, **more))
    return [((instant(each.hour) - START) // HOUR, each.task, each.state, each.runs) for each in found]


async def test_an_hour_says_how_many_ended_in_it_and_how(db: Database, clock: Clock) -> None:
    clock.advance(600)
    await end(db)
    await put(db)
    clock.advance(5)
    run = await claim_one(db)
    clock.advance(30)
    await settle(db, "w", [ended(run, "succeeded")])
    await end(db, "failed")
    clock.advance(3_600)
    await end(db)
    before = await db.read(lambda: Hours(db).list(0, LATEST))
    assert await hours(db) == [
        (0, "some.task", "failed", 1),
        (0, "some.task", "succeeded", 2),
        (1, "some.task", "succeeded", 1),
    ]
    slow = before[1]
    assert slow.busy == slow.longest == timedelta(seconds=30)
    assert slow.waited == timedelta(seconds=5)
    await sum_up(db)
    assert await db.read(lambda: Hours(db).list(0, LATEST)) == before
    clock.advance(14_400)
    await sweep(db)
    assert await ids(db) == []
    assert await db.read(lambda: Hours(db).list(0, LATEST)) == before
    assert await hours(db, task="other") == await hours(db, queue="other") == []
    assert len(await hours(db, task="some.task", queue="default")) == 3


async def test_an_hour_is_summed_up_once_whoever_does_it(db: Database, clock: Clock) -> None:
    await end(db)
    clock.advance(7_200)
    store = Hours(db)
    found = await db.read(store.next)
    assert found is not None
    assert await db.write(lambda: store.put(found))
    assert not await db.write(lambda: store.put(found))
    assert await hours(db) == [(0, "some.task", "succeeded", 1)]


async def test_an_hour_is_full_only_when_late_commits_have_come(db: Database, clock: Clock) -> None:
    await end(db)
    clock.advance(3_600 + 119)
    found = await db.read(Hours(db).next)
    assert found is not None
    assert found.rows == ()
    clock.advance(1)
    found = await db.read(Hours(db).next)
    assert found is not None
    assert len(found.rows) == 1


async def test_what_ends_after_the_clock_was_set_back_is_counted(db: Database, clock: Clock) -> None:
    clock.advance(100 * 3_600)
    await end(db)
    clock.advance(7_200)
    await sum_up(db)
    clock.advance(-80 * 3_600)
    await sum_up(db)
    await end(db)
    clock.advance(100 * 3_600)
    await sum_up(db)
    assert await hours(db) == [(22, "some.task", "succeeded", 1), (100, "some.task", "succeeded", 1)]


async def test_hours_go_after_more_than_a_year(db: Database, clock: Clock) -> None:
    await end(db)
    clock.advance(7_200)
    await sum_up(db)
    clock.now = START + KEPT
    await sum_up(db)
    assert len(await hours(db)) == 1
    clock.advance(3_600 + 120)
    await sum_up(db)
    assert await hours(db) == []
