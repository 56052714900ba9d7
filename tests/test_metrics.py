"""Metrics: the store's are the same for every instance, a process's are what it did; names and labels are bounded."""

from typing import Any

import pytest
from prometheus_client import Counter
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families
from tests.scheduling import Bench, made
from tests.stores import Clock, ask, claim_one, ended, new, put, settle, worker

import rota
from rota import metrics
from rota.app import Rota
from rota.application import Application
from rota.db.database import Database
from rota.engine.counts import MOST_LABELS, OTHERS, Counts, Lengths
from rota.engine.fire import Firer
from rota.errors import Invalid
from rota.model import Outcome
from rota.store.runs import Claimed, RunStore
from rota.store.schedules import ScheduleStore
from rota.store.troubles import TroubleStore
from rota.store.workers import WorkerStore
from rota.times.intervals import Every

LONG = 60
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


async def samples(app: Rota) -> Samples:
    text = (await metrics.render(app)).decode()
    return {
        (each.name, tuple(sorted(each.labels.items()))): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((name, tuple(sorted(labels.items()))))


@pytest.fixture
async def bench(db: Database, clock: Clock) -> Bench:
    return Bench(db, clock)


@pytest.fixture
def measured(db: Database) -> Rota:
    """An app on the store of the bench."""
    app = Rota("sqlite://", name="news")
    app.move(db)
    return app


async def test_what_the_store_says_is_the_same_for_every_instance(bench: Bench, measured: Rota) -> None:
    await bench.facade.put_many([made("a"), made("b"), made("c", Every("1h"))])
    await bench.facade.pause("b")
    await bench.go(61)
    await bench.enter()
    await bench.work()
    await put(bench.db, new(queue="mail"))
    bench.clock.advance(10)
    other = Rota("sqlite://", name="other")
    other.move(bench.db)
    for app in (measured, other):
        found = await samples(app)
        assert value(found, "rota_store_up") == 1
        assert value(found, "scheduled_jobs_total") == 2
        assert value(found, "rota_schedules", state="paused") == 1
        assert value(found, "rota_schedules", state="parked") == 0
        assert value(found, "scheduler_last_run_timestamp", schedule_id="a") == 1_800_000_061
        assert value(found, "scheduler_next_run_timestamp", schedule_id="a") == 1_800_000_120
        assert value(found, "scheduler_last_run_timestamp", schedule_id="b") is None
        assert value(found, "rota_queue_runs", queue="mail", state="ready") == 1
        assert value(found, "rota_queue_oldest_seconds", queue="mail") == 10
        assert value(found, "rota_workers", state="alive") == 1
        assert value(found, "rota_workers", state="silent") == 0
        assert value(found, "rota_worker_slots") == 10


async def test_a_silent_worker_a_late_schedule_and_what_waits_are_seen(bench: Bench, measured: Rota) -> None:
    await bench.put("a", overlap="queue_all")
    for second in (61, 121, 181):
        await bench.go(second)
    await bench.enter()
    bench.clock.advance(200)
    found = await samples(measured)
    assert value(found, "rota_workers", state="silent") == 1
    assert value(found, "rota_worker_slots") == 0
    assert value(found, "rota_schedules_late") == 1
    assert value(found, "rota_runs_held", behind="schedule") == 2
    assert value(found, "rota_runs_held", behind="limit") == 0
    await bench.db.write(lambda: TroubleStore(bench.db).look(3))
    found = await samples(measured)
    assert (value(found, "rota_troubles", kind="overdue"), value(found, "rota_troubles", kind="parked")) == (1, 0)


async def test_beyond_the_first_schedules_metrics_are_by_task(
    bench: Bench, measured: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_METRICS_SCHEDULES", "2")
    await bench.facade.put_many([made(f"s{number}") for number in range(5)])
    found = await samples(measured)
    shown = {dict(labels)["schedule_id"] for name, labels in found if name == "scheduler_next_run_timestamp"}
    assert shown == {"s0", "s1", "task tests.scheduling.work"}


async def test_a_process_counts_what_it_fired_and_what_others_had_fired(bench: Bench) -> None:
    counts = Counts()

    async def knock(_: Any) -> None: ...

    firer = Firer(bench.db, ScheduleStore(bench.db), knock, lambda: None, counts)
    await bench.put("a", missed="none")
    await bench.put("b")
    bench.clock.advance(305)
    await firer.fire()
    assert (counts.fired, counts.skipped) == (2, {"merged": 4, "missed": 4})
    await ask(bench.db, "UPDATE rota_schedules SET through = NULL, next = due, wake = due, due = NULL, runs = 0")
    await ask(bench.db, "UPDATE rota_runs SET state = 'succeeded', finished_at = 1")
    await firer.fire()
    assert counts.lost == {"a": 1, "b": 1}
    assert sum(counts.fired_late.counts) >= 2


async def test_an_app_shows_how_its_runs_ended(app: Rota) -> None:
    @app.task(name="news.refresh")
    async def refresh(fail: bool = False) -> None:
        if fail:
            raise LookupError

    async with app.running(grace=0):
        runs = [await app.enqueue(refresh.call(fail=each)) for each in (False, False, True)]
        await app.schedules.put(rota.Schedule("feed", refresh.call(), Every("1h", since="success")))
        for run in runs:
            await app.runs.wait(run.id, timeout=LONG)
        while (await app.schedules.get("feed")).last_success is None:
            pass
    found = await samples(app)
    name, labels = "rota_attempt_duration_seconds_count", {"task": "news.refresh", "queue": "default"}
    assert value(found, name, outcome="succeeded", **labels) == 3
    assert value(found, name, outcome="failed", **labels) == 1
    assert value(found, "scheduler_runs_total", schedule_id="feed", status="succeeded") == 1
    assert value(found, "scheduler_run_duration_seconds_count", schedule_id="feed") == 1
    assert value(found, "rota_attempt_lateness_seconds_count", queue="default") == 4
    assert value(found, "rota_firings_total", outcome="fired") == 1
    for each in ("rota_claim_seconds_count", "rota_settle_seconds_count", "rota_sweeps_total"):
        assert value(found, each), each


async def test_a_fenced_write_is_counted(app: Rota) -> None:
    working = app.worker()
    run = await put(app.database)
    await app.database.write(lambda: WorkerStore(app.database, RunStore(app.database)).enter(worker("w"), 1_000))
    claimed = await claim_one(app.database)
    assert await settle(app.database, "w", [ended(claimed, "succeeded")]) == {run.id}
    working._settler.add(ended(claimed, "succeeded"))
    await working._settler.run_once()
    assert value(await samples(app), "rota_fenced_writes_total") == 1


async def test_without_its_store_a_process_still_shows_its_own(measured: Rota, db: Database) -> None:
    await db.close()
    found = await samples(measured)
    assert value(found, "rota_store_up") == 0
    assert value(found, "rota_sweeps_total") == 0
    assert value(found, "scheduled_jobs_total") is None


async def test_metrics_of_users_and_of_applications_come_along(caplog: pytest.LogCaptureFixture) -> None:
    async def orders(_: Rota) -> list[GaugeMetricFamily]:
        return [GaugeMetricFamily("shop_orders_open", "Orders.", value=3)]

    async def broken(_: Rota) -> list[GaugeMetricFamily]:
        raise LookupError

    app = Rota("sqlite://")
    app.include(Application("broken", metrics=broken), Application("shop", metrics=orders))
    Counter("own_things", "Mine.", registry=metrics.registry(app)).inc(2)
    async with app:
        found = await samples(app)
    assert value(found, "shop_orders_open") == 3
    assert value(found, "own_things_total") == 2
    assert value(found, "process_cpu_seconds_total") is not None
    assert "an application's metrics failed" in caplog.text
    assert value(await samples(Rota("sqlite://")), "own_things_total") is None


def claimed(task: str = "t", schedule: str | None = None, queue: str = "q") -> Claimed:
    return Claimed(1, task, "{}", 1, 0, 0, 50, queue, 2_000_000, False, 0, None, None, schedule)


def test_labels_are_bounded_whatever_names_come_up() -> None:
    counts = Counts()
    for number in range(4 * MOST_LABELS):
        counts.ended(claimed(f"t{number}", f"s{number}", f"q{number}"), "failed", 1.0)
    assert len(counts.attempts) == len(counts.lateness) == MOST_LABELS + 1
    assert sum(counts.attempts[OTHERS, OTHERS, "failed"].counts) == 3 * MOST_LABELS
    assert len(counts.durations) <= 1_000 + MOST_LABELS + 1
    assert sum(counts.runs.values()) == 4 * MOST_LABELS


@pytest.mark.parametrize(("outcome", "counted"), [("succeeded", 1), ("failed", 1), ("cancelled", 1), ("retry", 0)])
def test_a_run_of_a_schedule_is_counted_when_it_has_ended(outcome: Outcome, counted: int) -> None:
    counts = Counts()
    counts.ended(claimed(schedule="s"), outcome, 0.5)
    assert sum(counts.runs.values()) == counted
    assert counts.lateness["q"].total == 2


def test_lengths_fall_into_the_bucket_of_the_bound_that_they_reach() -> None:
    found = Lengths((1.0, 2.0))
    for seconds in (0.5, 1.0, 1.5, 9.0):
        found.add(seconds)
    assert (found.buckets(), found.total) == ([("1.0", 2), ("2.0", 3), ("+Inf", 4)], 12)


@pytest.mark.parametrize("given", ["many", "-1", "100001", "1.5"])
def test_a_wrong_number_of_schedules_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_METRICS_SCHEDULES", given)
    with pytest.raises(Invalid, match="ROTA_METRICS_SCHEDULES"):
        Rota("sqlite://")
