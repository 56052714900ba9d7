"""What journeys share: servers that may be broken, stores that are watched, and the processes on them."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.journeys.chaos import chosen_seed
from tests.journeys.clocks import set_clock, turn_back, turn_by
from tests.journeys.ledger import watch
from tests.journeys.processes import Crew
from tests.servers import Servers

from rota.app import Rota


@pytest.fixture(scope="session")
def servers_to_break() -> Iterator[Servers]:
    """Servers that a test breaks are nobody else's; the tests that share them run in one process."""
    servers = Servers.new()
    yield servers
    servers.stop()


@pytest.fixture(params=["sqlite", "postgres"])
def journey_store(request: pytest.FixtureRequest, tmp_path: Path, postgres_database: str) -> str:
    """The address of a store that is this test's alone, on each database."""
    return postgres_database if request.param == "postgres" else f"sqlite:///{tmp_path}/rota.db"


@pytest.fixture
def seed() -> int:
    """Where the instants of this test come from; shown when it fails, and chosen by `ROTA_TEST_SEED`."""
    found = chosen_seed()
    print(f"again: ROTA_TEST_SEED={found}")  # noqa: T201 (pytest shows it with a failure)
    return found


@pytest.fixture
async def crew(journey_store: str, tmp_path: Path) -> AsyncIterator[Crew]:
    """Processes on a watched store."""
    async with Rota(journey_store):
        await watch(journey_store)
    with Crew(journey_store, tmp_path) as found:
        yield found


@pytest.fixture
async def client(crew: Crew) -> AsyncIterator[Rota]:
    """An application on the same store, in the test's own process."""
    async with Rota(crew.store) as app:
        yield app


@pytest.fixture
def wall(tmp_path: Path) -> Path:
    found = tmp_path / "wall"
    set_clock(found, 0)
    return found


@pytest.fixture
async def client_by_wall(crew: Crew, wall: Path) -> AsyncIterator[Rota]:
    """A client that lives by the same clock as the others."""
    turn_by(wall)
    try:
        async with Rota(crew.store) as app:
            yield app
    finally:
        turn_back()
