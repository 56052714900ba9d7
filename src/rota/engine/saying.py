"""What the engine says in its log: one verb an event, with what it concerns as fields."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from rota import clock
from rota.store.runs import Claimed, Settled

_MOST = 100
"""How many usual things of a kind are said in a second; of what goes beyond, how many they were."""


class Saying:
    """A logger that says what is usual only as often as somebody could read it. What is wrong it always says."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._second = 0
        self._said = 0

    def usual(self, verb: str, text: str, fields: Callable[..., dict[str, Any]], *of: Any) -> None:
        """Say that something happened as it should, with the `fields` of what it concerns."""
        if not self._log.isEnabledFor(logging.INFO):
            return
        second = int(clock.monotonic())
        if second != self._second:
            left_out, self._second, self._said = self._said - _MOST, second, 0
            if left_out > 0:
                self._log.info("%s more of the like were not said", left_out, extra={"verb": "left out"})
        self._said += 1
        if self._said <= _MOST:
            self._log.info(text, extra={"verb": verb, **fields(*of)})


def run_facts(run: Claimed) -> dict[str, Any]:
    """Return what names an attempt in the log."""
    return {
        "job_id": run.id,
        "job_name": run.task,
        "attempt": run.attempt,
        "queue": run.queue,
        "priority": run.priority,
        "schedule_id": run.schedule,
    }


def end_facts(run: Claimed, ended: Settled, seconds: float) -> dict[str, Any]:
    """Return what is said of an attempt that ended; of one that is tried again, when."""
    facts = run_facts(run) | {"outcome": ended.outcome, "seconds": round(seconds, 3)}
    if ended.error is not None:
        facts["error"] = f"{ended.error.kind}: {ended.error.message}"
    if ended.delay is not None:
        facts["next_run"] = (clock.now() + timedelta(microseconds=ended.delay)).isoformat()
    return facts
