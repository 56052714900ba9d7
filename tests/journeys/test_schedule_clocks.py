"""Schedules by clocks that are wrong: one run for each instant, none early, no burst and no silence."""

import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.journeys import work
from tests.journeys.clocks import set_clock
from tests.journeys.ledger import audit, rows
from tests.journeys.plans import audit_plans, watch_plans
from tests.journeys.processes import Crew, eventually
from tests.journeys.steps import quiet

import rota
from rota import clock
from rota.app import Rota

on_sqlite = pytest.mark.parametrize("journey_store", ["sqlite"], indirect=True)
on_postgres = pytest.mark.parametrize("journey_store", ["postgres"], indirect=True)
HOUR = 3_600_000_000


def plan(key: str, rule: rota.Rule, **more: Any) -> rota.Schedule:
    return rota.Schedule(key, work.planned.call(key, 0.0), rule, **more)


@on_postgres
async def test_schedulers_with_wrong_clocks_fire_by_that_of_the_database_whoever_is_frozen(
    crew: Crew, client: Rota, tmp_path: Path, seed: int
) -> None:
    """Five minutes fast, and five minutes slow."""
    await watch_plans(crew.store)
    schedulers = []
    for seconds in (300, -300):
        wall = tmp_path / f"wall{seconds}"
        set_clock(wall, seconds)
        schedulers.append(crew.scheduler(ROTA_JOURNEY_CLOCK=str(wall)))
    crew.worker()
    await client.schedules.put_many(
        [plan(f"fixed-{n}", rota.Every("1s"), missed="all", overlap="queue_all") for n in range(5)]
        + [plan(f"anchored-{n}", rota.Every("1s", since="finish")) for n in range(2)]
    )
    for victim in (None, *schedulers):
        if victim is not None:
            victim.signal(signal.SIGSTOP)
        since = clock.micros() + 1_000_000
        await eventually(
            lambda since=since: none(
                crew, f"SELECT 1 FROM rota_schedules WHERE through IS NULL OR through < {since} LIMIT 1"
            )
        )
        if victim is not None:
            victim.signal(signal.SIGCONT)
    await client.schedules.pause(prefix="fixed")
    await client.schedules.pause(prefix="anchored")
    await quiet(crew)
    found = await audit_plans(crew.store, crew.books, random.Random(seed))
    assert found.mistakes == []  # also that the database's clock, asked by a trigger, was never before the instant
    assert found.skipped == 0
    assert (await audit(crew.store, crew.books)).wrong == {}


KEYS = {"latest": 2, "some": 6, "since": 2}
"""How many runs there may be, at most, of an hour that the clock leaps over: one second may pass beside the leap."""


@on_sqlite
async def test_a_clock_that_is_set_forward_and_back_makes_no_burst_and_no_silence_and_nothing_runs_twice(
    crew: Crew, client_by_wall: Rota, wall: Path
) -> None:
    """On one file the machine's clock is all there is; somebody sets it an hour ahead, and then right again."""
    for _ in range(2):
        crew.scheduler(ROTA_JOURNEY_CLOCK=str(wall))
        crew.worker(ROTA_JOURNEY_CLOCK=str(wall))
    await client_by_wall.schedules.put_many(
        [
            plan("latest", rota.Every("1s")),
            plan("some", rota.Every("1s"), missed="all", max_missed=5, overlap="queue_all"),
            plan("since", rota.Every("1s", since="finish")),
        ]
    )
    await more_runs(crew)
    before = clock.micros()
    set_clock(wall, 3600)
    after = clock.micros()
    await more_runs(crew)
    leapt = await counted(crew, f"nominal > {before} AND nominal <= {after}")
    assert all(leapt[key] <= most for key, most in KEYS.items()), leapt  # no burst
    last = (await rows(crew.store, "SELECT max(id) FROM rota_runs"))[0][0]
    set_clock(wall, 0)
    right = clock.micros()
    await more_runs(crew)  # no silence
    for key in KEYS:
        await client_by_wall.schedules.pause(key)
    end = clock.micros()
    # No burst: by the right clock again, at most one in a second.
    made = await counted(crew, f"id > {last} AND created_at < {right + HOUR // 2}")
    assert all(1 <= made[key] <= (end - right) // 1_000_000 + 2 for key in KEYS), made
    twice = "SELECT schedule, nominal FROM rota_runs GROUP BY schedule, nominal HAVING count(*) > 1"
    assert await rows(crew.store, twice) == []
    await quiet(crew)
    assert (await audit(crew.store, crew.books)).wrong == {}


async def more_runs(crew: Crew) -> None:
    """Wait until three more runs of each schedule have succeeded."""
    earlier = await counted(crew, "state = 'succeeded'")

    async def come() -> bool:
        found = await counted(crew, "state = 'succeeded'")
        return all(found[key] >= earlier[key] + 3 for key in KEYS)

    await eventually(come, 60, f"more runs than {earlier}")


async def counted(crew: Crew, condition: str) -> Counter[str]:
    return Counter(row[0] for row in await rows(crew.store, f"SELECT schedule FROM rota_runs WHERE {condition}"))


async def none(crew: Crew, text: str) -> bool:
    return not await rows(crew.store, text)
