"""Spans for OpenTelemetry, by its API alone.

Nothing is done, and not even the API is loaded, where the process has no tracer provider: spans are for who asks.
"""

import contextlib
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rota.masking import masked
from rota.version import __version__

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

_LONGEST = 1_000


def is_on() -> bool:
    """Tell whether somebody collects spans in this process."""
    api: Any = sys.modules.get("opentelemetry.trace")
    return api is not None and not isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)


@contextlib.contextmanager
def enqueuing(task: str, count: int = 1) -> Iterator[str | None]:
    """Trace an enqueue that is part of a trace; yields what the run is to carry, None where there is no trace."""
    if not is_on():
        yield None
        return
    from opentelemetry import propagate, trace  # noqa: PLC0415 (only where it is used)

    if not trace.get_current_span().get_span_context().is_valid:
        yield None
        return
    facts: dict[str, str | int] = {"rota.task": task, "rota.runs": count}
    with _tracer().start_as_current_span(f"enqueue {task}", kind=trace.SpanKind.PRODUCER, attributes=facts):
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        yield json.dumps(carrier)


@contextlib.contextmanager
def firing() -> "Iterator[Span | None]":
    """Trace a round of firing; what comes of it is set on the span."""
    if not is_on():
        yield None
        return
    with _tracer().start_as_current_span("fire", record_exception=False) as span:
        yield span


class RunSpan:
    """The span of one attempt, from its beginning to its end."""

    def __init__(self, facts: dict[str, Any], carried: str | None) -> None:
        from opentelemetry import context, propagate, trace  # noqa: PLC0415 (only where it is used)

        parent = propagate.extract(json.loads(carried or "{}"), context=context.Context())
        named = {f"rota.{name}": value for name, value in facts.items() if value is not None}
        kind = trace.SpanKind.CONSUMER
        self._span = _tracer().start_span(f"run {facts['task']}", context=parent, kind=kind, attributes=named)
        self._context = trace.set_span_in_context(self._span, parent)

    def enter(self) -> None:
        """Make it the current span of the context that its task is called in."""
        from opentelemetry import context  # noqa: PLC0415 (only where it is used)

        context.attach(self._context)

    def carried(self) -> str:
        """Return what another process needs to go on with it."""
        from opentelemetry import propagate  # noqa: PLC0415 (only where it is used)

        carrier: dict[str, str] = {}
        propagate.inject(carrier, context=self._context)
        return json.dumps(carrier)

    def end(self, outcome: str, error: str | None) -> None:
        """Say how the attempt ended; what is secret in an error is masked."""
        from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 (only where it is used)

        self._span.set_attribute("rota.outcome", outcome)
        if outcome in ("failed", "retry"):
            self._span.set_status(Status(StatusCode.ERROR, masked(error or outcome)[:_LONGEST]))
        self._span.end()


def go_on(carried: str) -> None:
    """Go on with a span of another process, in this context."""
    if is_on():
        from opentelemetry import context, propagate  # noqa: PLC0415 (only where it is used)

        context.attach(propagate.extract(json.loads(carried)))


def _tracer() -> "Tracer":
    from opentelemetry import trace  # noqa: PLC0415 (only where it is used)

    return trace.get_tracer("rota", __version__)
