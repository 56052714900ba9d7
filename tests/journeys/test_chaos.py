"""Whatever is killed, stopped or crashed, and whenever: nothing accepted is lost, and nothing ends twice."""

from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from tests.journeys.chaos import Chaos
from tests.journeys.ledger import watch
from tests.journeys.plans import watch_plans
from tests.journeys.processes import Crew
from tests.servers import Servers, psql

from rota.app import Rota

SECONDS = 3.0
"""`scripts/soak` does it for as long as you like."""


@pytest.mark.parametrize("journey_store", ["sqlite"], indirect=True)
async def test_killed_and_stopped_processes_lose_nothing_and_double_nothing_on_sqlite(crew: Crew, seed: int) -> None:
    figures = await Chaos(crew, seed, None).run(SECONDS)
    assert figures.wrong == {}, figures
    assert figures.kills, figures
    assert figures.findings.accepted, figures


async def test_schedules_that_people_change_while_processes_die_answer_every_instant_once(
    crew: Crew, seed: int
) -> None:
    await watch_plans(crew.store)
    figures = await Chaos(crew, seed, None).run(2 * SECONDS, workers=2, clients=0, schedulers=3, planners=3)
    assert figures.wrong == {}, figures
    assert figures.plans is not None
    assert figures.plans.runs, figures


@pytest.mark.xdist_group("servers to break")
async def test_killed_processes_and_a_crashing_store_lose_nothing_and_double_nothing_on_postgres(
    servers_to_break: Servers, tmp_path: Path, seed: int
) -> None:
    url = servers_to_break.url("postgres")
    name = f"chaos_{uuid4().hex}"
    psql(url, f"CREATE DATABASE {name}")
    store = urlsplit(url)._replace(path=f"/{name}").geturl()
    async with Rota(store):
        await watch(store)
    with Crew(store, tmp_path) as crew:
        chaos = Chaos(crew, seed, servers_to_break)
        figures = await chaos.run(SECONDS, crashes=1)
    assert figures.wrong == {}, figures
    assert figures.crashes, figures
    assert figures.findings.accepted, figures
