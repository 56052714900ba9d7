"""Thousands of steps of schedulers, workers and clients, and whatever may go wrong between any two of them.

Each seed is another order of another history. `ROTA_TEST_SEED=… scripts/test tests/engine/test_interleavings.py` does
one seed again; on SQLite step by step the same.
"""

import asyncio
import contextlib
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.interleavings import SHOWN, Mistake, SqliteStore, World, on_postgres, on_sqlite, watch
from tests.stores import opened

GIVEN = os.environ.get("ROTA_TEST_SEED")
SQLITE = [int(GIVEN)] if GIVEN else list(range(120))
POSTGRES = [int(GIVEN)] if GIVEN else list(range(3))
"""Always the same seeds, so that a failure here is a change's; `scripts/soak` tries new ones."""
PARTS = 4


@pytest.fixture(scope="module")
def sqlite_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    with contextlib.closing(SqliteStore(tmp_path_factory.mktemp("interleavings"))) as store:
        yield store


@pytest.mark.parametrize("part", range(PARTS))
def test_the_promises_hold_whatever_is_killed_frozen_cut_off_or_set_on_sqlite(
    sqlite_store: SqliteStore, part: int
) -> None:
    for seed in SQLITE[part::PARTS]:
        world = on_sqlite(sqlite_store, seed)
        assert world.figures["steps"] > SHOWN


def test_the_promises_hold_where_steps_of_several_meet_on_postgres(postgres_database: str) -> None:
    asyncio.run(prepared(postgres_database))
    for seed in POSTGRES:
        world = on_postgres(postgres_database, seed)
        assert world.figures["steps"] > SHOWN


def test_a_seed_does_the_same_again_in_another_process(tmp_path: Path) -> None:
    for hashes in ("1", "2"):
        (tmp_path / hashes).mkdir()
    texts = [
        subprocess.run(
            [sys.executable, "-m", "tests.engine.test_interleavings", str(tmp_path / hashes), "7"],
            env=os.environ | {"PYTHONHASHSEED": hashes},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hashes in ("1", "2")
    ]
    assert texts[0] == texts[1]
    assert len(texts[0].split()) == 3, texts[0]


def test_a_law_that_is_broken_is_told_with_its_seed_and_the_steps_before(
    sqlite_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.engine.witness.MOVES", {(None, "waiting"), (None, "ready")})
    with pytest.raises(Mistake) as caught:
        on_sqlite(sqlite_store, 3)
    first, *steps = str(caught.value).splitlines()
    assert first.startswith("seed 3 at ")
    assert "went from" in first
    assert len(steps) == min(SHOWN, len(steps)) > 0


async def prepared(url: str) -> None:
    """Make the tables of a store, and have it watched."""
    db = await opened(url)
    await watch(db)
    await db.close()


def told(folder: Path, seed: int) -> str:
    """Run a seed; return how many steps it had, and the sums of its steps and of all that it left in the store."""
    found: list[str] = []

    async def look(world: World) -> None:
        both = (world.told(), await world.tables())
        found.extend(hashlib.sha256("\n".join(lines).encode()).hexdigest() for lines in both)

    with contextlib.closing(SqliteStore(folder)) as store:
        world = on_sqlite(store, seed, look)
    return " ".join([str(world.figures["steps"]), *found])


if __name__ == "__main__":
    sys.stdout.write(told(Path(sys.argv[1]), int(sys.argv[2])))
