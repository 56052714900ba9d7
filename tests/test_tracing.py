"""Spans: an enqueue inside a trace carries it to the run, in every kind of task; without a tracer nothing is done."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from tests.engine import isolated_tasks
from tests.stores import ask

import rota
from rota import tracing
from rota.app import Rota
from rota.tasks import Task
from rota.times import Every, Retry

LONG = 60


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What is collected; the provider of a process can be set once, so it is put in by hand, and taken out again."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


def named(spans: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [each for each in spans.get_finished_spans() if each.name == name]


async def done(app: Rota, *ids: int) -> None:
    async with app.running(scheduler=False, grace=0):
        for each in ids:
            await app.runs.wait(each, timeout=LONG)


async def test_the_trace_of_an_enqueue_goes_on_in_its_run(app: Rota, spans: InMemorySpanExporter) -> None:
    @app.task(name="news.refresh")
    async def refresh() -> None:
        with trace.get_tracer("mine").start_as_current_span("inside"):
            await asyncio.sleep(0)

    @app.task(name="news.parse")
    def parse() -> None:
        trace.get_tracer("mine").start_span("inside").end()

    for task in (refresh, parse):
        spans.clear()
        with trace.get_tracer("mine").start_as_current_span("request") as request:
            run = await app.enqueue(task.call())
        await done(app, run.id)
        (sent,), (ran,), (inside,) = (
            named(spans, each) for each in (f"enqueue {task.name}", f"run {task.name}", "inside")
        )
        assert sent.parent is not None
        assert ran.parent is not None
        assert inside.parent is not None
        assert sent.parent.span_id == request.get_span_context().span_id
        assert ran.parent.span_id == sent.context.span_id
        assert inside.parent.span_id == ran.context.span_id
        assert {each.context.trace_id for each in (sent, ran, inside)} == {request.get_span_context().trace_id}
        facts = {"rota.id": run.id, "rota.task": task.name, "rota.queue": "default", "rota.attempt": 1}
        assert dict(ran.attributes or {}) == facts | {"rota.outcome": "succeeded"}


async def test_many_are_enqueued_in_one_span_and_a_twin_keeps_its_own_trace(
    app: Rota, spans: InMemorySpanExporter
) -> None:
    @app.task(name="work")
    async def work() -> None: ...

    with trace.get_tracer("mine").start_as_current_span("request"):
        ids = await app.enqueue_many(work.call() for _ in range(3))
        first = await app.enqueue(work.call(), unique="one")
    with trace.get_tracer("mine").start_as_current_span("other"):
        assert (await app.enqueue(work.call(), unique="one")).id == first.id
    await done(app, *ids, first.id)
    assert len(await ask(app.database, "SELECT run FROM rota_traces")) == 4
    (several, single, _) = named(spans, "enqueue work")
    assert (several.attributes or {})["rota.runs"] == 3
    parents = [each.parent and each.parent.span_id for each in named(spans, "run work")]
    assert sorted(parents) == sorted([several.context.span_id] * 3 + [single.context.span_id])  # type: ignore[type-var]


async def test_outside_of_a_trace_nothing_is_stored_and_a_run_is_a_trace_of_its_own(
    app: Rota, spans: InMemorySpanExporter
) -> None:
    @app.task(name="work", retry=Retry(attempts=2, first=0))
    async def work() -> None:
        raise LookupError("token=canary")

    run = await app.enqueue(work.call())
    await done(app, run.id)
    assert await ask(app.database, "SELECT * FROM rota_traces") == []
    first, second = named(spans, "run work")
    assert (first.parent, second.parent) == (None, None)
    assert (first.attributes or {})["rota.outcome"] == "retry"
    assert (second.status.status_code, second.status.description) == (StatusCode.ERROR, "LookupError: token=…")


async def test_an_isolated_task_is_a_span_of_its_workers(app: Rota, spans: InMemorySpanExporter) -> None:
    task = isolated_tasks.add
    app.tasks.add(Task(task.function, name=task.name, options=task.options))
    with trace.get_tracer("mine").start_as_current_span("request") as request:
        run = await app.enqueue(task.call(1, 2))
    await done(app, run.id)
    (ran,) = named(spans, f"run {task.name}")
    assert ran.context.trace_id == request.get_span_context().trace_id


async def test_a_round_of_firing_is_a_span(app: Rota, spans: InMemorySpanExporter) -> None:
    @app.task(name="work")
    async def work() -> None: ...

    await app.schedules.put(rota.Schedule("s", work.call(), Every("1h", since="success")))
    await app.scheduler().firer.fire()
    (fired,) = named(spans, "fire")
    assert dict(fired.attributes or {}) == {"rota.runs": 1, "rota.skips": 0, "rota.lost": 0}


async def test_without_a_provider_nothing_is_traced(app: Rota) -> None:
    assert not tracing.is_on()
    with tracing.enqueuing("work") as carried, tracing.firing() as span:
        assert (carried, span) == (None, None)


def test_rota_alone_does_not_load_opentelemetry() -> None:
    text = (
        "import sys, json, rota; print(json.dumps([each for each in sys.modules if each.startswith('opentelemetry')]))"
    )
    shown = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
    assert json.loads(shown) == []
