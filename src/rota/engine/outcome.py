"""How an attempt ends, decided from what its task did. Pure."""

import traceback
from dataclasses import replace
from typing import Any

from rota.control import Cancel, RetryLater, Snooze
from rota.errors import TaskFailed
from rota.masking import masked
from rota.model import Outcome, RunError
from rota.store.runs import Claimed, Settled
from rota.times.backoff import Retry

_MOST_TEXT = 10_000
_UNKNOWN_TRIES = 10
_UNKNOWN_RETRY = Retry(attempts=_UNKNOWN_TRIES, first="5s", factor=2, cap="5m")
"""A deploy may bring a task that is not known yet: it is waited for, not for ever."""


def returned(run: Claimed, result: str) -> Settled:
    """The task returned."""
    return Settled(run.id, run.attempt, "succeeded", result, limited=run.limited, schedule=run.schedule)


def raised(run: Claimed, error: BaseException, retry: Retry) -> Settled:
    """The task raised."""
    if isinstance(error, Cancel):
        return _ended(run, "cancelled", error=RunError("Cancel", str(error)))
    if isinstance(error, Snooze):
        return _ended(run, "snoozed", delay=error.delay)
    described = described_error(error)
    delay = retry.delay(run.failures + 1, str(run.id))
    if delay is None:
        return _ended(run, "failed", error=described)
    chosen = error.delay if isinstance(error, RetryLater) else delay
    return _ended(run, "retry", error=described, delay=chosen)


def unknown(run: Claimed) -> Settled:
    """No task of that name is known here."""
    error = RunError("UnknownTask", f"no task named {run.task} is known to the worker")
    delay = _UNKNOWN_RETRY.delay(run.failures + 1, str(run.id))
    return _ended(run, "failed" if delay is None else "retry", error=error, delay=delay)


def undone(run: Claimed, ended: Settled, retry: Retry) -> Settled:
    """The task completed its run by itself. Where that was rolled back, the attempt failed, whatever came of it."""
    if ended.outcome == "succeeded":
        ended = raised(run, TaskFailed("RolledBack", "its own transaction did not commit"), retry)
    return replace(ended, completed=True)


def refused(run: Claimed, error: Exception) -> Settled:
    """The arguments or the result cannot be read or written: trying again would not help."""
    return _ended(run, "failed", error=described_error(error))


def cancelled(run: Claimed, why: str) -> Settled:
    """Somebody wanted it to end."""
    return _ended(run, "cancelled", error=RunError("Cancelled", why))


def described_error(error: BaseException) -> RunError:
    """Describe an error for the store, bounded in size and without what is secret in it."""
    if isinstance(error, TaskFailed):  # it happened in another process, which described it
        return _bounded(error.kind, error.message, error.trace)
    return _bounded(type(error).__qualname__, _message(error), "".join(traceback.format_exception(error)))


def _bounded(kind: str, message: str, trace: str) -> RunError:
    """Return an error without what is secret in it; that is looked for before a cut could hide its name."""
    return RunError(kind, masked(message[:_MOST_TEXT]), masked(trace[-2 * _MOST_TEXT :])[-_MOST_TEXT:])


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 (an error that cannot say itself is still to be settled)
        return "its message cannot be shown"


def _ended(run: Claimed, outcome: Outcome, **more: Any) -> Settled:
    return Settled(run.id, run.attempt, outcome, limited=run.limited, schedule=run.schedule, **more)


class Stopped(Exception):
    """The attempt was told to end, and why."""
