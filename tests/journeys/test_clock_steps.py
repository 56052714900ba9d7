"""Somebody sets the machine's clock while workers work on SQLite, which has no other: no burst, and no silence."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.journeys import work
from tests.journeys.clocks import set_clock, turn_back, turn_by
from tests.journeys.ledger import audit, note, read
from tests.journeys.processes import LEASE, Crew, eventually

from rota.app import Rota

pytestmark = pytest.mark.parametrize("journey_store", ["sqlite"], indirect=True)


@pytest.fixture
def wall(tmp_path: Path) -> Path:
    found = tmp_path / "wall"
    set_clock(found, 0)
    return found


@pytest.fixture
async def client(crew: Crew, wall: Path) -> AsyncIterator[Rota]:
    """A client that lives by the same clock as the workers."""
    turn_by(wall)
    try:
        async with Rota(crew.store) as app:
            yield app
    finally:
        turn_back()


async def accepted(crew: Crew, client: Rota, seconds: float) -> int:
    run = await client.enqueue(work.nap.call(seconds))
    note(crew.books.accepted, run.id, "-")
    return run.id


async def begun(crew: Crew, count: int) -> None:
    await eventually(lambda: sum(line[2] == "begin" for line in read(crew.books.effects)) >= count)


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_step_of_the_clock_costs_no_living_worker_its_runs(
    crew: Crew, client: Rota, wall: Path, hours: int
) -> None:
    # A lease that is renewed less often than somebody sweeps: the step is seen before the next renewal.
    workers = [crew.worker(lease=6 * LEASE, ROTA_JOURNEY_CLOCK=str(wall)) for _ in range(3)]
    await crew.working(*workers)
    long = [await accepted(crew, client, 2 * LEASE) for _ in range(4)]
    await begun(crew, len(long))
    set_clock(wall, hours * 3600)
    short = [await accepted(crew, client, 0.1) for _ in range(6)]
    for run in short:  # no silence
        assert (await client.runs.wait(run, timeout=10 * LEASE)).attempt == 1
    for run in long:  # no burst
        assert (await client.runs.wait(run, timeout=10 * LEASE)).attempt == 1
    assert not any(each.said("was lost") for each in workers)
    assert (await audit(crew.store, crew.books)).wrong == {}


async def test_a_step_back_keeps_nothing_with_the_dead(crew: Crew, client: Rota, wall: Path) -> None:
    victim = crew.worker(slots=1, ROTA_JOURNEY_CLOCK=str(wall))
    run = await accepted(crew, client, 2 * LEASE)
    await begun(crew, 1)
    crew.worker(ROTA_JOURNEY_CLOCK=str(wall))
    await client.runs.wait(await accepted(crew, client, 0), timeout="30s")
    victim.kill()
    set_clock(wall, -3600)
    assert (await client.runs.wait(run, timeout=10 * LEASE)).attempt == 2
    assert (await audit(crew.store, crew.books)).wrong == {}
