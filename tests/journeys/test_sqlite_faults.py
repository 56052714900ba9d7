"""A SQLite file that others lock, that many share, whose disk is full, whose writers are killed: it stays whole."""

import asyncio
import json
import random
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.journeys import work
from tests.journeys.ledger import audit, note, read, rows
from tests.journeys.processes import Crew, eventually
from tests.journeys.steps import quiet

from rota.app import Rota
from rota.db import sqlite
from rota.errors import StoreUnavailable

pytestmark = pytest.mark.parametrize("journey_store", ["sqlite"], indirect=True)


@contextmanager
def locked(crew: Crew) -> Iterator[None]:
    """Lock the file, as somebody's own tool may."""
    other = sqlite3.connect(crew.store.removeprefix("sqlite:///"), isolation_level=None, timeout=30)
    other.execute("BEGIN EXCLUSIVE")
    yield
    other.execute("ROLLBACK")
    other.close()


async def integrity(crew: Crew) -> str:
    return str((await rows(crew.store, "PRAGMA integrity_check"))[0][0])


async def test_a_locked_file_is_waited_for_and_nobody_is_told(crew: Crew, client: Rota) -> None:
    worker = crew.worker(lease=10)
    await crew.working(worker)
    before = await client.enqueue(work.nap.call(0.5))
    await eventually(lambda: read(crew.books.effects))
    with locked(crew):
        asked = asyncio.create_task(client.enqueue(work.nap.call(0)))
        await asyncio.sleep(2)  # a lock is a length of time
        assert not asked.done()
    for run in (before, await asked):
        note(crew.books.accepted, run.id, "-")
        assert (await client.runs.wait(run.id, timeout="30s")).attempt == 1
    assert (await audit(crew.store, crew.books)).wrong == {}


async def test_a_file_that_is_locked_for_too_long_is_a_store_that_is_away(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.2)
    worker = crew.worker(ROTA_JOURNEY_PATIENCE="0.2")
    await crew.working(worker)
    async with Rota(crew.store) as client:
        before = await client.enqueue(work.nap.call(0.5))
        await eventually(lambda: read(crew.books.effects))
        with locked(crew):
            with pytest.raises(StoreUnavailable, match="locked"):
                await client.enqueue(work.nap.call(0))
            assert (await client.runs.get(before.id)).state == "running"  # who only looks is not held up
            await eventually(lambda: worker.said("the store is away"))
        after = await client.enqueue(work.nap.call(0))
        for run in (before, after):
            assert (await client.runs.wait(run.id, timeout="30s")).state == "succeeded"
        assert [row[0] for row in await rows(crew.store, "SELECT id FROM rota_runs")] == [before.id, after.id]
    assert not worker.gone


async def test_four_processes_share_one_file(crew: Crew, seed: int) -> None:
    both = [crew.client(seed + number, "work") for number in range(4)]
    await eventually(lambda: len(read(crew.books.accepted)) >= 100, 60)
    for each in both[1:]:
        each.signal(signal.SIGTERM)
    for each in both[1:]:
        assert await each.exit_code() == 0, each.log.read_text()
    both[0].kill()
    last = crew.worker()
    await quiet(crew)
    assert (await audit(crew.store, crew.books)).wrong == {}
    assert not last.gone


async def test_what_a_killed_client_was_promised_is_there(crew: Crew, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(4):
        before = len(read(crew.books.accepted))
        client = crew.client(seed + number)
        await eventually(lambda before=before: len(read(crew.books.accepted)) >= before + 5)
        await asyncio.sleep(chance.uniform(0.0, 0.3))  # the instant is the seed's
        client.kill()
        stored = {row[0] for row in await rows(crew.store, "SELECT id FROM rota_runs")}
        assert {int(run) for run, _ in read(crew.books.accepted)} <= stored
        assert await integrity(crew) == "ok"


@pytest.mark.parametrize("kind", ["disk", "files"])
async def test_a_full_disk_refuses_and_resumes(crew: Crew, tmp_path: Path, kind: str) -> None:
    (tmp_path / "disk").mkdir()
    process = crew.python("small-disk", "-m", "tests.journeys.small_disk", kind, str(tmp_path / "disk"))
    assert await process.exit_code(60) == 0, process.log.read_text()
    found = json.loads(process.log.read_text().splitlines()[-1])
    assert found["accepted"] > 5
    assert len(found["refusals"]) == 5
    assert found["states"] == ["succeeded"]
    assert found["integrity"] == "ok"
    assert found["exact"]  # what was refused is not there
