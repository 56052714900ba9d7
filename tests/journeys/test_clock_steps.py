"""Somebody sets the machine's clock while workers work on SQLite, which has no other: no burst, and no silence."""

from pathlib import Path

import pytest
from tests.journeys import work
from tests.journeys.clocks import set_clock
from tests.journeys.ledger import audit
from tests.journeys.processes import LEASE, Crew
from tests.journeys.steps import accepted, begun, ended

from rota.app import Rota

pytestmark = pytest.mark.parametrize("journey_store", ["sqlite"], indirect=True)


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_step_of_the_clock_costs_no_living_worker_its_runs(
    crew: Crew, client_by_wall: Rota, wall: Path, hours: int
) -> None:
    # A lease that is renewed less often than somebody sweeps: the step is seen before the next renewal.
    workers = [crew.worker(lease=3 * LEASE, ROTA_JOURNEY_CLOCK=str(wall)) for _ in range(3)]
    await crew.working(*workers)
    long = await accepted(crew, client_by_wall, *[work.nap.call(LEASE)] * 4)
    await begun(crew, *long)
    set_clock(wall, hours * 3600)
    short = await accepted(crew, client_by_wall, *[work.nap.call(0.1)] * 6)
    for run in (*short, *long):  # no silence, and no burst
        assert (await ended(client_by_wall, run)).attempt == 1
    assert not any(each.said("was lost") for each in workers)
    assert (await audit(crew.store, crew.books)).wrong == {}


async def test_a_step_back_keeps_nothing_with_the_dead(crew: Crew, client_by_wall: Rota, wall: Path) -> None:
    victim = crew.worker(slots=1, ROTA_JOURNEY_CLOCK=str(wall))
    (run,) = await accepted(crew, client_by_wall, work.nap.call(LEASE))
    await begun(crew, run)
    crew.worker(ROTA_JOURNEY_CLOCK=str(wall))
    (other,) = await accepted(crew, client_by_wall, work.nap.call(0))
    await ended(client_by_wall, other)
    victim.kill()
    set_clock(wall, -3600)
    assert (await ended(client_by_wall, run)).attempt == 2
    assert (await audit(crew.store, crew.books)).wrong == {}
