"""Keeping what tasks log: every record that is made inside a run is shown to that run, whoever handles it.

This is done where records are made, so that no handler is added, no level is changed, and nobody who logs nothing pays.
"""

import logging
import os
from collections.abc import Callable
from typing import Any

from rota.context import CurrentRun, current_or_none
from rota.kept import KeptLog
from rota.masking import hide_environment
from rota.model import Outcome

SLOW_SECONDS = 2.0
"""From how long on the log of an attempt that succeeded is kept."""

_watching = False


def watch_records() -> None:
    """Show runs what is logged in them, from now on in this process."""
    global _watching  # noqa: PLW0603 (there is one way to make records in a process)
    if _watching:
        return
    _watching = True
    hide_environment(os.environ)  # nor does what is kept show it
    make = logging.getLogRecordFactory()

    def factory(name: Any, *args: Any, **named: Any) -> logging.LogRecord:
        record = make(name, *args, **named)
        if name is not None:  # a record that is copied, or comes from elsewhere, has no name yet
            run = current_or_none()
            if run is not None:
                keep(run, record)
        return record

    logging.setLogRecordFactory(factory)


def keep(run: CurrentRun, record: logging.LogRecord) -> None:
    """Show a run what was logged in it."""
    if run.kept is None:
        run.kept = KeptLog()
    run.kept.add(record)


def worth_keeping(run: CurrentRun, outcome: Outcome, seconds: Callable[[], float]) -> str | None:
    """Return the log of an attempt that ended as the store is to keep it: where it failed, or took long."""
    if run.kept is None or not (outcome in ("failed", "retry") or seconds() >= SLOW_SECONDS):
        return None
    return run.kept.text()
