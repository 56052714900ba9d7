"""What log lines know of the run that they are written in.

Rota logs through the loggers `rota.…` and configures none: that is for whoever owns the process, which for `rota
worker` and its like is the command. `RunFields` brings the run into the lines of any handler, `add_run_fields` into
those of structlog.
"""

import logging
from collections.abc import MutableMapping
from typing import Any

from rota.context import CurrentRun, current_or_none

__all__ = ["RunFields", "add_run_fields", "run_fields"]


def run_fields() -> dict[str, Any]:
    """Return what names the run that the code is in; nothing outside of one."""
    run = current_or_none()
    return {} if run is None else fields_of(run)


def fields_of(run: CurrentRun) -> dict[str, Any]:
    """Return what names a run in a log."""
    named = {"job_id": run.id, "job_name": run.task, "attempt": run.attempt, "queue": run.queue}
    return named if run.schedule is None else named | {"schedule_id": run.schedule}


class RunFields(logging.Filter):
    """Gives records the fields of the run that they are made in: put it on a handler. It lets all records pass.

    The fields are `job_id` (the run), `job_name` (its task), `attempt`, `queue` and, of a schedule's run,
    `schedule_id`. Outside of a run they are None, so that a format may name them. What a record has already stays.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields."""
        found = run_fields()
        for name in ("job_id", "job_name", "attempt", "queue", "schedule_id"):
            if name not in record.__dict__:
                record.__dict__[name] = found.get(name)
        return True


def add_run_fields(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Give an event of structlog the fields of the run that it is said in, as one of its processors."""
    for name, value in run_fields().items():
        event.setdefault(name, value)
    return event
