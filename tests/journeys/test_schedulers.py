"""Schedulers that die and freeze: every due instant has one answer, whoever is there."""

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from tests.journeys import work
from tests.journeys.ledger import audit, rows
from tests.journeys.plans import watch_plans
from tests.journeys.processes import Crew, eventually
from tests.journeys.steps import ended

import rota
from rota.app import Rota

SECONDS = 8.0


def schedules() -> list[rota.Schedule]:
    """Of each kind some: a run a second whatever comes, one at a time, and intervals that count from the last run."""
    found = [
        rota.Schedule(f"each-{n}", work.nap.call(0.0), rota.Every("1s"), missed="all", overlap="queue_all")
        for n in range(5)
    ]
    found += [rota.Schedule(f"latest-{n}", work.nap.call(0.1), rota.Every("1s")) for n in range(5)]
    found += [rota.Schedule(f"since-{n}", work.nap.call(0.1), rota.Every("1s", since="finish")) for n in range(5)]
    return found


async def answers(app: Rota, key: str) -> tuple[list[datetime], int]:
    """Return the due instants that ran, in order, and how many were skipped."""
    found = await app.schedules.firings(key, limit=1_000)
    ran = sorted(each.due for each in found if each.run is not None)
    return ran, sum(each.count for each in found if each.reason is not None)


async def test_killed_and_frozen_schedulers_answer_every_due_instant_once(crew: Crew, client: Rota, seed: int) -> None:
    chance = random.Random(seed)
    schedulers = [crew.scheduler() for _ in range(3)]
    workers = [crew.worker(), crew.worker()]
    await crew.working(*workers)
    await client.schedules.put_many(schedules())
    loop = asyncio.get_running_loop()
    until = loop.time() + SECONDS
    while loop.time() < until:
        await asyncio.sleep(chance.uniform(0.1, 0.6))  # the instants are the seed's
        victim = chance.choice(schedulers)
        if chance.random() < 0.5:
            victim.kill()
            schedulers.remove(victim)
            schedulers.append(crew.scheduler())
        else:
            victim.signal(signal.SIGSTOP)
            await asyncio.sleep(chance.uniform(0.1, 0.6))
            victim.signal(signal.SIGCONT)
        if chance.random() < 0.2:
            workers.pop(0).kill()
            workers.append(crew.worker())
    await client.schedules.pause(prefix="each")
    await client.schedules.pause(prefix="latest")
    await client.schedules.pause(prefix="since")
    await eventually(
        lambda: rows_are_none(crew, "SELECT 1 FROM rota_runs WHERE state IN ('waiting', 'ready', 'running')"), 60
    )
    for each in schedules():
        ran, skipped = await answers(client, each.key)
        assert len(set(ran)) == len(ran) > 0, each.key  # never twice for one instant
        known = await client.schedules.get(each.key)
        if each.key.startswith("since"):
            gaps = [later - earlier for earlier, later in pairwise(ran)]
            assert all(gap >= timedelta(seconds=1) for gap in gaps), each.key
            continue
        assert known.answered_through is not None
        named = int((known.answered_through - ran[0]).total_seconds()) + 1
        assert len(ran) + skipped == named, each.key  # every instant has its answer
        if each.key.startswith("each"):
            assert skipped == 0, each.key
    assert (await audit(crew.store, crew.books)).wrong == {}


VERBS: dict[str, Callable[[Rota], Awaitable[Any]]] = {
    "remove": lambda client: client.schedules.remove("plan"),
    "pause": lambda client: client.schedules.pause("plan"),
    "change": lambda client: client.schedules.change("plan", rule=rota.Every("1h"), call=work.planned.call("new", 0.0)),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_run_of_a_schedule_that_is_changed_meanwhile_ends_and_is_the_last_of_the_old_plan(
    crew: Crew, client: Rota, verb: str
) -> None:
    await watch_plans(crew.store)
    crew.scheduler()
    crew.worker()
    call = work.planned.call("old", 1.0)
    await client.schedules.put(rota.Schedule("plan", call, rota.Every("1s"), overlap="queue_one"))
    (run,) = await eventually(lambda: rows(crew.store, "SELECT id FROM rota_runs WHERE state = 'running'"))
    await VERBS[verb](client)
    (last,) = await rows(crew.store, "SELECT max(id) FROM rota_runs")
    assert (await ended(client, run[0])).state == "succeeded"
    marker = rota.Schedule("marker", work.planned.call("marker", 0.0), rota.Every("1s"), overlap="allow", max_running=9)
    await client.schedules.put(marker)
    await eventually(lambda: rows(crew.store, "SELECT 1 FROM rota_runs WHERE schedule = 'marker' LIMIT 1 OFFSET 2"))
    assert await rows_are_none(crew, f"SELECT 1 FROM rota_runs WHERE args LIKE '%old%' AND id > {last[0]}")
    assert run[0] in {each.run for each in await client.schedules.firings("plan")}
    assert await rows_are_none(crew, "SELECT 1 FROM journey_plans WHERE what = 'stopped'")


async def rows_are_none(crew: Crew, text: str) -> bool:
    return not await rows(crew.store, text)
