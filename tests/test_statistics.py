"""Statistics over a rolling window, from the store: the same for every process."""

import json
from typing import Any

import pytest
from tests.scheduling import Bench
from tests.stores import Clock, ask
from typer.testing import CliRunner

from rota.app import Rota
from rota.cli import app as cli
from rota.db.database import Database
from rota.errors import Invalid
from rota.store.reads import Statistics

MINUTE = 60_000_000


@pytest.fixture
def app(db: Database) -> Rota:
    found = Rota("sqlite://")
    found.move(db)
    return found


async def end(db: Database, clock: Clock, ago: float, state: str = "succeeded", ms: int = 100, **more: Any) -> None:
    """Put in a run that ended so many minutes ago."""
    finished = clock.now - round(ago * MINUTE)
    row = {"task": "t", "queue": "q", "schedule": None} | more
    await ask(
        db,
        "INSERT INTO rota_runs (task, queue, state, priority, due, args, max_lost, created_at, started_at, finished_at,"
        " schedule) VALUES (:task, :queue, :state, 50, 0, '{}', 3, 0, :started, :finished, :schedule)",
        state=state,
        started=finished - ms * 1_000,
        finished=finished,
        **row,
    )


async def test_where_nothing_ended_all_is_zero(app: Rota) -> None:
    assert await app.runs.statistics() == Statistics(0, 0, 0, 0.0, 0.0, 0.0)


async def test_the_window_rolls_and_counts_what_ended_in_it(app: Rota, db: Database, clock: Clock) -> None:
    for ago, state, ms in ((61, "failed", 1), (30, "succeeded", 100), (20, "succeeded", 300), (10, "failed", 9_000)):
        await end(db, clock, ago, state, ms)
    await end(db, clock, 5, "cancelled")
    found = await app.runs.statistics()
    assert (found.total, found.successful, found.failed) == (3, 2, 1)
    assert found.success_rate == pytest.approx(200 / 3)
    assert found.average_duration_ms == 200
    assert found.checks_per_minute == pytest.approx(3 / 30)
    assert (await app.runs.statistics("2h")).total == 4
    assert (await app.runs.statistics("15m")).total == 1


async def test_the_pace_is_counted_over_at_least_a_minute(app: Rota, db: Database, clock: Clock) -> None:
    for ago in (0, 0.1, 0.2):
        await end(db, clock, ago)
    assert (await app.runs.statistics()).checks_per_minute == 3


async def test_statistics_of_a_task_a_schedule_or_a_queue(app: Rota, db: Database, clock: Clock) -> None:
    await end(db, clock, 1, task="a", queue="x", schedule="s")
    await end(db, clock, 1, "failed", task="b", queue="x")
    for named, total in (({"task": "a"}, 1), ({"schedule": "s"}, 1), ({"queue": "x"}, 2), ({"queue": "y"}, 0)):
        assert (await app.runs.statistics(**named)).total == total  # type: ignore[arg-type]
    assert (await app.runs.statistics(queue="x")).success_rate == 50


async def test_a_wrong_window_is_refused(app: Rota) -> None:
    with pytest.raises(Invalid, match="window"):
        await app.runs.statistics("no time")
    with pytest.raises(Invalid, match="task"):
        await app.runs.statistics(task="a\0")


async def test_a_success_of_a_schedule_counts(bench: Bench, app: Rota) -> None:
    await bench.put("s")
    await bench.go(61)
    await bench.work()
    assert (await app.runs.statistics(schedule="s")).successful == 1


@pytest.fixture
def bench(db: Database, clock: Clock) -> Bench:
    return Bench(db, clock)


def test_the_command_shows_them(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/rota.db"
    assert CliRunner().invoke(cli, ["migrate", "--store", url]).exit_code == 0
    shown = CliRunner().invoke(cli, ["runs", "statistics", "--store", url, "--window", "2h"]).output
    assert shown == (
        "0 ended in the last 2h: 0 succeeded, 0 failed\nsuccess rate 0.0 %, 0.0 ms on average, 0.0 a minute\n"
    )
    found = json.loads(CliRunner().invoke(cli, ["runs", "statistics", "--store", url, "--json"]).output)
    assert set(found) == set(Statistics.__slots__)
