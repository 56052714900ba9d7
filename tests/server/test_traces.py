"""A trace that comes in with a request goes on in the run that it makes."""

from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from tests.server.nouns import Client, ann
from tests.test_tracing import named, spans

from rota.app import Rota

__all__ = ["ann", "spans"]

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
COMES_IN = {"traceparent": f"00-{TRACE}-{PARENT}-01"}


async def test_the_trace_of_a_request_reaches_the_run(ann: Client, app: Rota, spans: InMemorySpanExporter) -> None:
    made = (await ann.post("/api/runs", json={"task": "refresh"}, headers=COMES_IN)).json()
    again = (await ann.post("/api/runs", json={"task": "refresh"}, headers={**COMES_IN, "Idempotency-Key": "k"})).json()
    assert (await app.tick(queues=["feeds"])).outcomes == {"succeeded": 2}
    assert made["id"] != again["id"]
    requests, sent, ran = (named(spans, name) for name in ("POST /api/runs", "enqueue refresh", "run refresh"))
    assert [len(each) for each in (requests, sent, ran)] == [2, 2, 2]
    assert {f"{each.context.trace_id:032x}" for each in (*requests, *sent, *ran)} == {TRACE}
    assert {(each.kind, f"{each.parent.span_id:016x}") for each in requests if each.parent} == {
        (SpanKind.SERVER, PARENT)
    }
    assert {each.parent.span_id for each in ran if each.parent} == {each.context.span_id for each in sent}
