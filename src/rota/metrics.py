"""Metrics for Prometheus: what the store says, what this process counted, and what applications bring.

What is in the store is read when somebody asks, so that every instance says the same. What is of a process (how long
things took, what it fired) is counted there: sum it over the instances.
"""

import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, get_args
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from rota import settings
from rota.app import Rota
from rota.application import Application
from rota.engine.counts import Counts, Lengths
from rota.errors import RotaError
from rota.store.metrics import Measured, Measures
from rota.store.troubles import Kind
from rota.version import __version__

__all__ = ["CONTENT_TYPE", "families", "registry", "render"]

CONTENT_TYPE = CONTENT_TYPE_LATEST
"""What `render` returns is of this type."""

_log = logging.getLogger("rota.metrics")
_registries: WeakKeyDictionary[Rota, CollectorRegistry] = WeakKeyDictionary()
_STATES = ("active", "paused", "parked", "finished", "retired")
_WAITING = ("limit", "schedule", "worker")


def registry(app: Rota) -> CollectorRegistry:
    """Return the registry of an app: metrics of your own that you put into it come with the others."""
    if app not in _registries:
        _registries[app] = CollectorRegistry()
        ProcessCollector(registry=_registries[app])
    return _registries[app]


async def render(app: Rota) -> bytes:
    """Return all metrics of an app on its open store, in Prometheus' text format."""
    return generate_latest(_Found([each async for each in families(app)]))


async def families(app: Rota) -> AsyncIterator[Metric]:
    """Yield all metrics of an app. Where the store is away, `rota_store_up` is 0, and what it would say is missing."""
    yield _gauge("rota_info", "Which Rota this is.", {(__version__, app.name): 1}, "version", "app")
    found: Measured | None = None
    try:
        found = await app.database.read(lambda: Measures(app.database).measure(settings.metrics_schedules()))
    except RotaError as error:
        _log.warning("the store cannot be measured: %s", error, extra={"verb": "missed"})
    yield _gauge("rota_store_up", "Whether the store answers.", {(): int(found is not None)})
    counts = app.counts
    for each in (*(() if found is None else _of_store(found, counts)), *_of_process(counts)):
        yield each
    for one in registry(app).collect():
        yield one
    for application in app.applications:
        for brought in await _brought(app, application):
            yield brought


class _Found:
    """What was found, as the client library wants it."""

    def __init__(self, found: list[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterable[Metric]:
        return self._found


async def _brought(app: Rota, application: Application) -> list[Metric]:
    """Return the metrics of an application; where it fails, the others are still there."""
    try:
        return [] if application.metrics is None else list(await application.metrics(app))
    except Exception:  # noqa: BLE001 (it is logged whole)
        _log.exception("an application's metrics failed", extra={"verb": "failed"})
        return []


def _of_store(found: Measured, counts: Counts) -> Iterator[Metric]:
    by_state = {state: found.states.get(state, 0) for state in _STATES}
    yield _gauge("scheduled_jobs_total", "Schedules that fire.", {(): found.states.get("active", 0)})
    yield _gauge("rota_schedules", "Schedules by state.", by_state, "state")
    yield _gauge("rota_schedules_late", "Schedules that should have been fired a minute ago.", {(): found.late})
    last = {key: each / 1_000_000 for key, each in found.last.items()}
    for name, what, values in (
        ("last", "When its last run began.", counts.started | last),
        ("next", "When it is due next.", {key: each / 1_000_000 for key, each in found.next.items()}),
    ):
        yield _gauge(f"scheduler_{name}_run_timestamp", what, values, "schedule_id")
    depth = {(each.queue, each.state): each.number for each in found.queues}
    oldest = {each.queue: max(0, each.oldest) / 1_000_000 for each in found.queues if each.state == "ready"}
    yield _gauge("rota_queue_runs", "Runs under way, by queue and state.", depth, "queue", "state")
    yield _gauge("rota_queue_oldest_seconds", "For how long the oldest ready run has been due.", oldest, "queue")
    waiting = {why: found.waiting.get(why, 0) for why in _WAITING}
    yield _gauge("rota_runs_held", "Waiting runs whose time has come, by what they wait for.", waiting, "behind")
    yield _gauge("rota_workers", "Workers by state.", found.workers, "state")
    troubles = {kind: found.troubles.get(kind, 0) for kind in get_args(Kind)}
    yield _gauge("rota_troubles", "Troubles that are open.", troubles, "kind")
    yield _gauge("rota_worker_slots", "Slots of all workers that take new work.", {(): found.slots})


def _of_process(counts: Counts) -> Iterator[Metric]:
    yield _counter("scheduler_runs", "Runs of schedules that ended here.", counts.runs, "schedule_id", "status")
    took = counts.durations
    yield _lengths("scheduler_run_duration_seconds", "How long runs of schedules took.", took, "schedule_id")
    lost = counts.lost
    yield _counter("scheduler_lock_failures", "Firings that another instance had made before.", lost, "schedule_id")
    yield _lengths(
        "rota_attempt_duration_seconds", "How long attempts took.", counts.attempts, "task", "queue", "outcome"
    )
    late = counts.lateness
    yield _lengths("rota_attempt_lateness_seconds", "How long after they were due attempts began.", late, "queue")
    for name, what, one in (
        ("rota_claim_seconds", "How long claims took.", counts.claims),
        ("rota_settle_seconds", "How long it took to write how attempts ended.", counts.settles),
        ("rota_firing_lateness_seconds", "How long after they were due runs were made.", counts.fired_late),
    ):
        yield _lengths(name, what, {(): one})
    skipped = sum(counts.skipped.values())
    firings = {"fired": counts.fired, "skipped": skipped, "lost": sum(lost.values())}
    yield _counter("rota_firings", "Due instants, by what came of them here.", firings, "outcome")
    yield _counter("rota_skips", "Due instants that became no run, by reason.", counts.skipped, "reason")
    for name, what, number in (
        ("rota_fenced_writes", "Results that came too late: the run was another worker's.", counts.fenced),
        ("rota_sweeps", "Rounds of repair.", counts.sweeps),
        ("rota_swept_runs", "Runs taken back from workers that were lost.", counts.swept),
        ("rota_healed_schedules", "Schedules that had no next instant and got one.", counts.healed),
    ):
        yield _counter(name, what, {(): number})


def _gauge(name: str, what: str, values: Mapping[Any, float], *labels: str) -> Metric:
    found = GaugeMetricFamily(name, what, labels=labels)
    for key, value in values.items():
        found.add_metric(_values(key), value)
    return found


def _counter(name: str, what: str, values: Mapping[Any, float], *labels: str) -> Metric:
    found = CounterMetricFamily(name, what, labels=labels)
    for key, value in values.items():
        found.add_metric(_values(key), value)
    return found


def _lengths(name: str, what: str, values: Mapping[Any, Lengths], *labels: str) -> Metric:
    found = HistogramMetricFamily(name, what, labels=labels)
    for key, value in values.items():
        found.add_metric(_values(key), value.buckets(), value.total)
    return found


def _values(key: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of the labels: one, or as many as there are."""
    return (key,) if isinstance(key, str) else key
