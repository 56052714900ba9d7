"""A PostgreSQL that is slow, silent, treacherous or gone: no run is lost or doubled, and work goes on by itself."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from tests.journeys import work
from tests.journeys.ledger import audit, rows
from tests.journeys.processes import LEASE, Crew, eventually
from tests.journeys.proxy import Proxy
from tests.journeys.steps import accepted, ended, quiet

from rota import clock
from rota.app import Rota
from rota.errors import StoreUnavailable


@pytest.fixture
def journey_store(postgres_database: str) -> str:
    return postgres_database


@pytest.fixture
async def proxy(journey_store: str, seed: int) -> AsyncIterator[Proxy]:
    async with Proxy(journey_store, seed) as found:
        yield found


async def lost(crew: Crew) -> list[Any]:
    return await rows(crew.store, "SELECT run, number FROM rota_attempts WHERE outcome = 'lost'")


async def napping(crew: Crew, client: Rota, *naps: float) -> list[int]:
    return await accepted(crew, client, *map(work.nap.call, naps))


async def succeeded(client: Rota, ids: list[int]) -> None:
    for run in ids:
        assert (await ended(client, run)).state == "succeeded"


async def renewed(crew: Crew, count: int) -> None:
    """Wait until so many workers have renewed their lease."""
    seen: dict[str, int] = {}

    async def have() -> bool:
        found = await rows(crew.store, "SELECT id, lease FROM rota_workers")
        return sum(seen.setdefault(name, lease) < lease for name, lease in found) >= count

    await eventually(have, what="a renewal of the lease")


async def test_a_slow_store_costs_no_worker_its_lease(crew: Crew, client: Rota, proxy: Proxy) -> None:
    """Each question takes a fifteenth of the lease, as 2 s do of 30 s: a renewal takes two of them.

    To connect takes more, so the workers have renewed before.
    """
    workers = [crew.worker(lease=6, store=proxy.url) for _ in range(2)]
    await crew.working(*workers)
    await renewed(crew, 2)
    ids = await napping(crew, client, *[0.0] * 4, 7.0)
    proxy.delay = 0.4
    await succeeded(client, ids)
    assert await lost(crew) == []
    assert not any(each.said("was lost") for each in workers)
    assert (await audit(crew.store, crew.books)).wrong == {}


async def test_after_a_black_hole_work_goes_on_and_nothing_was_taken_away(
    crew: Crew, client: Rota, proxy: Proxy
) -> None:
    workers = [crew.worker(lease=6, store=proxy.url) for _ in range(2)]
    await crew.working(*workers)
    ids = await napping(crew, client, *[0.2] * 4, 3.0, 3.0)
    await eventually(lambda: rows(crew.store, "SELECT 1 FROM rota_runs WHERE state = 'running'"))
    proxy.hang()
    more = await napping(crew, client, *[0.0] * 4)
    await asyncio.sleep(3)  # a black hole is a length of time: several renewals
    proxy.resume()
    await succeeded(client, ids + more)
    assert await lost(crew) == []
    assert (await audit(crew.store, crew.books)).wrong == {}


async def test_connections_that_died_in_silence_are_made_anew(crew: Crew, client: Rota, proxy: Proxy) -> None:
    """As behind a firewall that forgot them: nothing ever says that they are gone."""
    worker = crew.worker(lease=3, store=proxy.url, ROTA_JOURNEY_PATIENCE="0.5")
    await crew.working(worker)
    await succeeded(client, await napping(crew, client, 0.0))
    proxy.forget()
    ids = await napping(crew, client, 0.0)
    await succeeded(client, ids)

    await renewed(crew, 1)
    assert (await audit(crew.store, crew.books)).wrong == {}
    assert not worker.gone


async def test_a_commit_whose_answer_was_lost_is_not_done_again(crew: Crew, client: Rota, proxy: Proxy) -> None:
    crew.worker()
    call = work.nap.call(0)
    async with Rota(proxy.url) as app:
        proxy.lose_once = b"COMMIT"
        with pytest.raises(StoreUnavailable):
            await app.enqueue(call, unique="key", unique_for="1h")
        assert proxy.harmed == 1
        ((run,),) = await rows(crew.store, "SELECT id FROM rota_runs")
        await ended(client, run)
        again = await app.enqueue(call, unique="key", unique_for="1h")
    assert (again.id, again.created) == (run, False)


async def test_answers_that_were_lost_double_nothing(crew: Crew, client: Rota, proxy: Proxy, seed: int) -> None:
    """Of commits too: who asked does not know, asks again, and it has happened once."""
    workers = [crew.worker(lease=LEASE, store=proxy.url) for _ in range(2)]
    await crew.working(*workers)
    proxy.lose_answers, proxy.late = 0.03, 0.01
    async with Proxy(crew.store, seed + 1) as worse:
        worse.lose_answers = 0.15
        clients = [crew.client(seed + number, store=worse.url) for number in range(2)]
        await eventually(lambda: proxy.harmed >= 15 and worse.harmed >= 15, 60)
        for each in clients:
            each.signal(signal.SIGTERM)
        proxy.lose_answers = proxy.late = worse.lose_answers = 0.0
        for each in clients:
            assert await each.exit_code() == 0, each.log.read_text()
    await quiet(crew)
    assert (await audit(crew.store, crew.books)).wrong == {}
    assert not any(each.gone for each in workers)


async def test_a_claim_that_arrives_late_is_found_and_handed_back(crew: Crew, client: Rota, proxy: Proxy) -> None:
    """Its connection was cut, the worker has looked what it holds, and only then the store hears of the claim."""
    worker = crew.worker(lease=LEASE, slots=1, store=proxy.url)
    await crew.working(worker)
    await succeeded(client, await napping(crew, client, 0.0))
    proxy.late_once = b"SET state = 'running'"
    await succeeded(client, await napping(crew, client, *[0.4] * 12))
    assert proxy.harmed == 1
    assert (await audit(crew.store, crew.books)).wrong == {}
    assert not worker.gone


async def test_an_exhausted_pool_costs_no_worker_its_lease(crew: Crew, client: Rota, proxy: Proxy) -> None:
    """Renewals have a connection of their own."""
    async with AsyncExitStack() as held, Rota(proxy.url) as app:
        worker = app.worker(lease=LEASE)
        working = asyncio.create_task(worker.run())
        await eventually(lambda: worker.id)
        name = worker.id
        pool: Any = app._db._pool  # type: ignore[attr-defined]
        for _ in range(pool._most):
            await held.enter_async_context(pool.lend())
        until = clock.monotonic() + 1.5 * LEASE
        other = crew.worker(lease=LEASE)  # it would take what is lost
        await crew.working(other)
        await eventually(lambda: clock.monotonic() > until)
        await held.aclose()
        assert name in {each.id for each in await client.workers()}
        assert worker.id == name
        worker.stop()
        await working
