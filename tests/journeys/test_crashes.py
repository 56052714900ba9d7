"""Processes that die, freeze or are told to go: their runs go to others, once each, and nobody waits for nothing."""

import asyncio
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.journeys import work
from tests.journeys.ledger import audit, read, rows
from tests.journeys.processes import LEASE, Crew, eventually
from tests.journeys.steps import accepted, begun, ended

from rota import clock
from rota.app import Rota
from rota.tasks import Task

AT_ONCE = 15.0
"""Far more than "at once" takes, far less than the lease of the tests that use it: it tells the two apart."""
LONG_LEASE = 60.0


async def outcomes(client: Rota, run: int) -> list[str]:
    return [each.outcome for each in await client.runs.attempts(run)]


async def test_a_killed_worker_loses_nothing(crew: Crew, client: Rota, seed: int) -> None:
    chance = random.Random(seed)
    workers = [crew.worker(), crew.worker()]
    calls = [work.nap.call(round(chance.uniform(0.1, 0.8), 3)) for _ in range(10)]
    calls += [work.once.call(0.3)] * 5
    ids = await accepted(crew, client, *calls)
    await crew.working(*workers)
    await eventually(lambda: read(crew.books.effects))
    await asyncio.sleep(chance.uniform(0.0, 1.0))  # the instant is the seed's
    workers[0].kill()
    for run in ids:
        await ended(client, run)
    assert (await audit(crew.store, crew.books)).wrong == {}


async def test_what_must_not_run_twice_has_failed_when_its_worker_is_killed(crew: Crew, client: Rota) -> None:
    victim = crew.worker()
    (run,) = await accepted(crew, client, work.once.call(60))
    await begun(crew, run)
    crew.worker()
    victim.kill()
    found = await ended(client, run)
    assert found.state == "failed"
    assert found.error is not None
    assert found.error.kind == "Lost"
    assert (await audit(crew.store, crew.books)).wrong == {}


async def test_a_frozen_worker_comes_back_too_late(crew: Crew, client: Rota) -> None:
    """What it then says about its run is refused, and what it wrote in its own transaction is rolled back."""
    zombie = crew.worker()
    nap, own = await accepted(crew, client, work.nap.call(1.0), work.own.call(1.0))
    await begun(crew, nap, own)
    zombie.signal(signal.SIGSTOP)
    crew.worker()
    for run in (nap, own):
        assert (await ended(client, run)).attempt == 2
    zombie.signal(signal.SIGCONT)
    await eventually(lambda: zombie.said("was lost; its runs are stopped"))
    (again,) = await accepted(crew, client, work.nap.call(0))
    await ended(client, again)
    assert await outcomes(client, nap) == await outcomes(client, own) == ["lost", "succeeded"]
    assert [row[0] for row in await rows(crew.store, "SELECT attempt FROM journey_effects")] == [2]
    assert (await audit(crew.store, crew.books)).wrong == {}
    assert not zombie.gone


async def keep_working(crew: Crew, count: int, until: "asyncio.Future[Any]") -> None:
    """Start a worker anew whenever one dies, as whatever supervises them does."""
    workers = [crew.worker() for _ in range(count)]
    while not until.done():
        for number, each in enumerate(workers):
            if each.gone:
                workers[number] = crew.worker()
        await asyncio.sleep(0.05)


async def test_poison_fails_alone_after_its_cap_and_others_flow(crew: Crew, client: Rota) -> None:
    (poison,) = await accepted(crew, client, work.poison.call())
    done = asyncio.get_running_loop().create_future()
    supervised = asyncio.create_task(keep_working(crew, 2, done))
    others = await accepted(crew, client, *[work.nap.call(0.1)] * 20)
    found = await ended(client, poison, 60)
    assert (found.state, found.error and found.error.kind) == ("failed", "Lost")
    assert await outcomes(client, poison) == ["lost", "lost"]
    for run in others:
        assert (await ended(client, run)).state == "succeeded"
    done.set_result(None)
    await supervised


@pytest.mark.parametrize("journey_store", ["sqlite"], indirect=True)
async def test_a_worker_that_runs_out_of_memory_is_like_a_killed_one(crew: Crew, client: Rota) -> None:
    """The test plays the kernel's part: it kills who has taken too much."""
    (hungry,) = await accepted(crew, client, work.hungry.call())
    done = asyncio.get_running_loop().create_future()
    supervised = asyncio.create_task(keep_working(crew, 2, done))

    async def kernel() -> None:
        while not done.done():
            for each in crew.processes:
                if not each.gone and resident(each.pid) > 200_000_000:
                    each.kill()
            await asyncio.sleep(0.01)

    killing = asyncio.create_task(kernel())
    others = await accepted(crew, client, *[work.nap.call(0.1)] * 10)
    found = await ended(client, hungry, 60)
    assert (found.state, found.error and found.error.kind) == ("failed", "Lost")
    for run in others:
        assert (await ended(client, run)).state == "succeeded"
    done.set_result(None)
    await asyncio.gather(supervised, killing)


def resident(pid: int) -> int:
    """Return how many bytes of memory a process has."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    except (OSError, IndexError):
        return 0


@pytest.mark.parametrize("journey_store", ["sqlite"], indirect=True)
async def test_what_does_not_listen_frees_its_slot_and_costs_no_lease(crew: Crew, client: Rota) -> None:
    """A coroutine that swallows its cancellation, a thread that never ends, and one that blocks the whole loop."""
    worker = crew.worker(lease=LEASE, slots=2)
    deaf, endless = await accepted(crew, client, work.deaf.call(), work.endless.call())
    for run in (deaf, endless):
        found = await ended(client, run)
        assert (found.state, found.error and found.error.kind) == ("failed", "TimedOut")
    (blocking,) = await accepted(crew, client, work.blocking.call(1.2 * LEASE))
    await begun(crew, blocking)
    crew.worker(lease=LEASE)  # it would take what is lost
    assert (await ended(client, blocking)).attempt == 1
    (after,) = await accepted(crew, client, work.nap.call(0))
    assert (await ended(client, after)).attempt == 1
    assert not worker.said("was lost")


async def test_a_worker_that_is_told_twice_hands_back_at_once(crew: Crew, client: Rota) -> None:
    first = crew.worker(lease=LONG_LEASE)
    (run,) = await accepted(crew, client, work.nap.call(3600))
    await begun(crew, run)
    first.signal(signal.SIGTERM)
    crew.worker(lease=LONG_LEASE)
    waiting = await accepted(crew, client, work.nap.call(0))  # the second worker is there, the first takes nothing new
    await ended(client, waiting[0])
    told = clock.monotonic()
    first.signal(signal.SIGTERM)
    await begun(crew, run, times=2)
    took = clock.monotonic() - told
    print(f"handed over in {took:.2f} s")  # noqa: T201 (a measurement)
    assert took < AT_ONCE
    assert await first.exit_code() == 0


@pytest.mark.parametrize("journey_store", ["sqlite"], indirect=True)
async def test_a_worker_that_is_told_once_finishes_what_runs(crew: Crew, client: Rota) -> None:
    worker = crew.worker(lease=LONG_LEASE)
    (run,) = await accepted(crew, client, work.nap.call(1.0))
    await begun(crew, run)
    worker.signal(signal.SIGTERM)
    (later,) = await accepted(crew, client, work.nap.call(0))
    assert await worker.exit_code() == 0
    assert (await ended(client, run)).attempt == 1
    assert (await client.runs.get(later)).state == "ready"


@pytest.mark.parametrize("stuck", [work.endless, work.deaf], ids=lambda task: task.name)
@pytest.mark.parametrize("journey_store", ["sqlite"], indirect=True)
async def test_a_worker_in_which_a_task_is_stuck_ends_when_it_is_told_to(
    crew: Crew, client: Rota, stuck: Task[..., None]
) -> None:
    worker = crew.worker(lease=LONG_LEASE)
    (run,) = await accepted(crew, client, stuck.call())
    assert (await ended(client, run)).state == "failed"
    worker.signal(signal.SIGTERM)
    assert await worker.exit_code(AT_ONCE) == 0
