"""Progress: the last word of a run is in the store, in order, and with its end at the latest."""

import asyncio
import math
from collections.abc import AsyncIterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from tests.engine.test_execute import NoHost, claimed, context_of
from tests.stores import Clock, claim_one, ended, get, put, settle, until
from tests.test_app import LONG, said, transaction, working

from rota.app import Rota
from rota.context import current_run
from rota.db.database import Database
from rota.engine import progress as progressing
from rota.engine.progress import Progress
from rota.errors import Invalid, StoreUnavailable
from rota.store.runs import RunStore
from rota.tasks import Task
from rota.times.backoff import Retry


class Door:
    """Lets writes of a database through one by one, and counts them."""

    def __init__(self, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self._real: Any = db.write
        self.asked = asyncio.Semaphore(0)
        self.let = asyncio.Semaphore(0)
        self.inside = self.most_inside = 0
        monkeypatch.setattr(db, "write", self._write)

    async def _write(self, *args: Any, **kwargs: Any) -> Any:
        self.inside += 1
        self.most_inside = max(self.inside, self.most_inside)
        self.asked.release()
        await self.let.acquire()
        try:
            return await self._real(*args, **kwargs)
        finally:
            self.inside -= 1


@pytest.fixture
async def progress(db: Database, runs: RunStore, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Progress]:
    monkeypatch.setattr(progressing, "_EVERY_SECONDS", 0)
    loop = asyncio.get_running_loop()
    found = Progress(db, runs, lambda: "w", lambda: loop)
    yield found
    await found.close()


async def test_of_many_words_the_last_one_is_written_and_one_at_a_time(
    db: Database, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(db)
    run = await claim_one(db)
    door = Door(db, monkeypatch)
    progress.note(run, 0.1, "first")
    await door.asked.acquire()
    for number in range(2, 100):
        progress.note(run, number / 100, "more")
    door.let.release()
    await door.asked.acquire()
    assert (await get(db, run.id)).progress == (0.1, "first")
    door.let.release()
    await until(lambda: not progress._writing)
    assert (await get(db, run.id)).progress == (0.99, "more")
    assert door.most_inside == 1
    assert door.asked.locked()  # two writes for a hundred words


async def test_a_word_is_kept_while_the_store_is_away(
    db: Database, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(db)
    run = await claim_one(db)
    real: Any = db.write
    failures = iter(range(3))

    async def away(*args: Any, **kwargs: Any) -> Any:
        for _ in failures:
            raise StoreUnavailable("away")
        return await real(*args, **kwargs)

    monkeypatch.setattr(db, "write", away)
    progress.note(run, 0.5, "half")
    assert progress.unwritten(run) == (0.5, "half")
    await until(lambda: not progress.unwritten(run))
    assert (await get(db, run.id)).progress == (0.5, "half")


async def test_who_lost_the_run_says_nothing_any_more(db: Database, progress: Progress) -> None:
    await put(db)
    run = await claim_one(db, "another")
    progress.note(run, 0.5, "half")
    await until(lambda: not progress.unwritten(run))
    assert (await get(db, run.id)).progress is None


async def test_a_new_attempt_begins_without_the_progress_of_the_last(db: Database, clock: Clock) -> None:
    await put(db)
    run = await claim_one(db)
    await settle(db, "w", [ended(run, "retry", delay=0, progress=(0.7, "far"))])
    assert (await get(db, run.id)).progress == (0.7, "far")
    await db.write(lambda: RunStore(db).admit(10))
    await claim_one(db)
    assert (await get(db, run.id)).progress is None


# In a worker


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are hardly ever written before the end."""
    monkeypatch.setattr(progressing, "_EVERY_SECONDS", 3_600)


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_the_last_word_is_there_when_the_run_has_ended(app: Rota, kind: str) -> None:
    @app.task(name="async")
    async def one() -> None:
        for number in range(100):
            current_run().progress(number / 100)
            await asyncio.sleep(0)
        current_run().progress(1, "all")

    @app.task(name="plain")
    def two() -> None:
        for number in range(100):
            current_run().progress(number / 100)
        current_run().progress(1, "all")

    run = await app.enqueue({"async": one, "plain": two}[kind].call())
    async with working(app):
        assert (await app.runs.wait(run.id, timeout=LONG)).progress == (1.0, "all")


@pytest.mark.usefixtures("slow")
async def test_the_last_word_is_there_when_a_task_completes_its_run_by_itself(app: Rota, store: str) -> None:
    @app.task
    async def completes() -> None:
        me = current_run()
        me.progress(0.1)
        me.progress(1, "all")
        async with transaction(store) as connection:
            await me.complete(connection=connection)
            await said(connection, "SELECT 1")

    run = await app.enqueue(completes.call())
    async with working(app):
        assert (await app.runs.wait(run.id, timeout=LONG)).progress == (1.0, "all")


async def test_a_run_that_is_tried_again_shows_the_progress_of_its_own_attempt(app: Rota) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.task(retry=Retry(attempts=2, first=0))
    async def twice() -> None:
        if current_run().attempt == 1:
            current_run().progress(0.9, "nearly")
            raise LookupError
        begun.set()
        await go_on.wait()

    run = await app.enqueue(twice.call())
    async with working(app):
        await begun.wait()
        assert (await app.runs.get(run.id)).progress is None
        go_on.set()
        await app.runs.wait(run.id, timeout=LONG)


async def test_a_note_comes_back_without_nul_and_within_its_bound_from_each_store(app: Rota) -> None:
    @app.task
    async def wordy(note: str) -> None:
        current_run().progress(0.5, note)

    notes = ["nul \0 and ü", "x" * 5_000]
    runs = [await app.enqueue(wordy.call(note)) for note in notes]
    async with working(app):
        found = [(await app.runs.wait(run.id, timeout=LONG)).progress for run in runs]
    assert found == [(0.5, "nul \ufffd and ü"), (0.5, "x" * 1_000)]


# What may be said


def heard(share: Any, note: Any = "") -> list[tuple[float, str]]:
    current = context_of(claimed(), Task(nothing))
    words: list[tuple[float, str]] = []

    class Listening(NoHost):
        def note_progress(self, share: float, note: str) -> None:
            words.append((share, note))

    current.host = Listening()
    current.progress(share, note)
    return words


def nothing() -> None: ...


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0, 0.0), (1, 1.0), (0.25, 0.25), (-3, 0.0), (7, 1.0), (10**400, 1.0), (Fraction(1, 2), 0.5)],
)
def test_a_share_lies_between_0_and_1(share: Any, expected: float) -> None:
    assert heard(share) == [(expected, "")]


@pytest.mark.parametrize("share", [math.nan, math.inf, -math.inf, "0.5", None, True, 1j, Decimal("0.5"), [0.5]])
def test_a_share_that_is_no_number_is_refused(share: Any) -> None:
    with pytest.raises(Invalid, match=r"share: .* is not allowed; use a number from 0 to 1"):
        heard(share)


@pytest.mark.parametrize("note", [None, 5, b"half"])
def test_a_note_that_is_no_text_is_refused(note: Any) -> None:
    with pytest.raises(Invalid, match=r"note: .* is not allowed; use text"):
        heard(0.5, note)
