"""Knocks may come twice, in any order, or never: the store is the truth, and a worker looks by itself."""

import random

import pytest
from tests.journeys import work
from tests.journeys.ledger import audit, rows
from tests.journeys.processes import Crew
from tests.journeys.steps import accepted, ended

from rota.app import Rota

TOPICS = ("ready", "waiting", "cancel", "ready", "what nobody knows")


async def test_many_knocks_let_each_run_through_once(crew: Crew, client: Rota, seed: int) -> None:
    chance = random.Random(seed)
    workers = [crew.worker(), crew.worker()]
    await crew.working(*workers)
    ids: list[int] = []
    for _ in range(40):
        for _ in range(5):
            await client._db.notify(chance.choice(TOPICS))
        ids += await accepted(crew, client, work.nap.call(0.01), delay=chance.choice([0, 0, 0.3]))
    for run in ids:
        assert (await ended(client, run)).attempt == 1
    assert await rows(crew.store, "SELECT run FROM rota_attempts") == []
    assert (await audit(crew.store, crew.books)).wrong == {}


@pytest.mark.parametrize("journey_store", ["postgres"], indirect=True)
async def test_a_worker_that_never_hears_a_knock_works_all_the_same(crew: Crew, client: Rota) -> None:
    worker = crew.worker(ROTA_JOURNEY_DEAF="yes")
    await crew.working(worker)
    for delay in (0, 0.2):
        (run,) = await accepted(crew, client, work.nap.call(0), delay=delay)
        assert (await ended(client, run)).state == "succeeded"
    assert (await audit(crew.store, crew.books)).wrong == {}
