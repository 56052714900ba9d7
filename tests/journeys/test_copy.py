"""A copy that is killed again and again arrives whole, and workers on the target go on with it."""

import asyncio
import random
import sqlite3
from pathlib import Path

import asyncpg
import pytest
from tests.copies import dump, rows
from tests.journeys import work
from tests.journeys.processes import Crew, Process, eventually
from tests.journeys.steps import accepted, begun, ended

from rota.app import Rota

ENDED = 20_000
HISTORY = f"""
WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < {ENDED})
INSERT INTO rota_runs (task, queue, state, priority, due, args, max_lost, created_at, finished_at, result)
SELECT 'some.task', 'default', 'succeeded', 50, i, '{{"number":' || i || '}}', 3, i, 9000000000000000, 'null'
FROM numbers
"""
ATTEMPTS = """
INSERT INTO rota_attempts SELECT id, 1, 'w', created_at, finished_at, 'failed', NULL FROM rota_runs
WHERE state = 'succeeded'
"""
KILLS = 4


@pytest.fixture(params=["sqlite postgres", "postgres sqlite"])
def ends(request: pytest.FixtureRequest, tmp_path: Path, postgres_database: str) -> list[str]:
    file = f"sqlite:///{tmp_path}/rota.db"
    return [file if kind == "sqlite" else postgres_database for kind in request.param.split()]


async def number(target: str, text: str) -> int:
    """Ask for a number; there may be no table yet, or no longer."""
    if not there(target):
        return 0
    try:
        return int((await rows(target, text))[0][0] or 0)
    except (sqlite3.OperationalError, asyncpg.UndefinedTableError):
        return 0


def there(target: str) -> bool:
    return not target.startswith("sqlite") or Path(target.removeprefix("sqlite:///")).exists()


async def arrived(target: str) -> int:
    """Return how many rows have arrived, while the copy is under way."""
    return await number(target, "SELECT sum(arrived) FROM rota_copy")


async def finished(target: str) -> bool:
    """Tell whether all have arrived, whatever became of the process that says so."""
    begun = await number(target, "SELECT count(*) FROM rota_copy")
    return not begun and await number(target, "SELECT count(*) FROM rota_runs") > 0


async def killed(crew: Crew, ends: list[str], chance: random.Random) -> Process:
    """Begin a copy, and kill it: at any time, or when so many rows have arrived."""
    process = crew.python("copy", "-m", "rota", "copy", *ends)
    wanted = chance.randrange(0, 2 * ENDED)

    async def come() -> bool:
        return process.gone or await arrived(ends[1]) >= wanted

    if chance.random() < 0.3:
        await asyncio.sleep(chance.uniform(0.0, 2.0))  # the instant is the seed's
    else:
        await eventually(come, what=f"{wanted} rows")
    process.kill()
    return process


async def test_a_copy_that_is_killed_again_and_again_arrives_whole(ends: list[str], tmp_path: Path, seed: int) -> None:
    source, target = ends
    chance = random.Random(seed)
    with Crew(source, tmp_path) as crew:
        async with Rota(source) as client:
            worker = crew.worker()
            (running,) = await accepted(crew, client, work.nap.call(0.5))
            await begun(crew, running)
            worker.kill()
            ready = await accepted(crew, client, *[work.nap.call(0)] * 10)

            async def dead() -> bool:
                return all(each.left < 0 for each in await client.workers())

            await eventually(dead, what="the end of the lease")
        await rows(source, HISTORY)
        await rows(source, ATTEMPTS)
        before = await dump(source)

        most = 0
        for _ in range(KILLS):
            process = await killed(crew, ends, chance)
            if await finished(target):  # it was faster
                break
            assert process.log.read_text() == ""
            now = await arrived(target)
            assert now >= most
            most = now
        else:
            last = crew.python("copy", "-m", "rota", "copy", *ends)
            assert await last.exit_code(90) == 0, last.log.read_text()
            assert last.said(f"Done and compared: {sum(map(len, before.values())) - len(before['numbers']):,} rows")
        assert await dump(target) == before == await dump(source)

        async with Rota(target) as client:
            crew.worker(store=target)
            for run in (running, *ready):
                assert (await ended(client, run, 60)).state == "succeeded"
            outcomes = [each.outcome for each in await client.runs.attempts(running)]
            assert outcomes == ["lost", "succeeded"]
