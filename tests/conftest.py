"""What all tests share: servers that start when the first test asks, and stop with the run."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import hypothesis
import pytest
from tests.servers import NAMES, Servers, given_url, install, psql
from tests.stores import Clock, emptied, migrated, on_clock

from rota.app import Rota
from rota.db.database import Database
from rota.store.runs import RunStore
from rota.store.workers import WorkerStore

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile(
    "rota", deadline=None, print_blob=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("rota")

DIRECTORY = "ROTA_TEST_SERVICES_DIR"
OWN_SERVERS = pytest.StashKey[Servers]()


def pytest_configure(config: pytest.Config) -> None:
    """Name the directory of the servers for this process and, through the environment, for all its workers."""
    signal.signal(signal.SIGTERM, close_in_order)
    if DIRECTORY not in os.environ:  # whoever named it, scripts/test or the parent of this worker, stops the servers
        config.stash[OWN_SERVERS] = Servers.new()
        os.environ[DIRECTORY] = str(config.stash[OWN_SERVERS].directory)


def close_in_order(*_: object) -> None:
    """End the run as Ctrl-C does, so that what the tests made is taken down; once is enough."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def pytest_unconfigure(config: pytest.Config) -> None:
    if OWN_SERVERS in config.stash:
        del os.environ[DIRECTORY]
        config.stash[OWN_SERVERS].stop()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Install the servers that the chosen tests need, now: it may take longer than a test has."""
    wanted = {fixture for item in session.items for fixture in getattr(item, "fixturenames", ())}
    needed = [name for name in NAMES if f"{name}_url" in wanted and not given_url(name)]
    if needed:
        with session.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            install(needed)


@pytest.fixture(scope="session")
def servers() -> Servers:
    """The private servers of this run."""
    return Servers(Path(os.environ[DIRECTORY]))


@pytest.fixture(scope="session")
def postgres_url(servers: Servers) -> str:
    return given_url("postgres") or servers.url("postgres")


@pytest.fixture(scope="session")
def redis_url(servers: Servers) -> str:
    return given_url("redis") or servers.url("redis")


@pytest.fixture(scope="session")
def rabbitmq_url(servers: Servers) -> str:
    return given_url("rabbitmq") or servers.url("rabbitmq")


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[str]:
    """The address of a database that is empty, and this test's alone."""
    name = f"rota_test_{uuid4().hex}"
    psql(postgres_url, f"CREATE DATABASE {name}")
    yield urlsplit(postgres_url)._replace(path=f"/{name}").geturl()
    psql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def postgres_store(postgres_url: str) -> Iterator[str]:
    """The address of a database that the tests of this process use one after the other."""
    name = f"rota_test_{uuid4().hex}"
    psql(postgres_url, f"CREATE DATABASE {name}")
    url = urlsplit(postgres_url)._replace(path=f"/{name}").geturl()
    asyncio.run(migrated(url))
    yield url
    psql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, postgres_store: str) -> str:
    """The address of a store without runs, on each database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/rota.db"
    asyncio.run(emptied(postgres_store))
    return postgres_store


@pytest.fixture
async def app(store: str) -> AsyncIterator[Rota]:
    """An application on the open store."""
    async with Rota(store) as app:
        yield app


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def db(store: str, clock: Clock) -> AsyncIterator[Database]:
    """The open database of a store, where it is as late as the test says."""
    database = await on_clock(store, clock)
    yield database
    await database.close()


@pytest.fixture
def runs(db: Database) -> RunStore:
    return RunStore(db)


@pytest.fixture
def workers(db: Database, runs: RunStore) -> WorkerStore:
    return WorkerStore(db, runs)
