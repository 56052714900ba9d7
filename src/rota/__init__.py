"""Rota: the durable engine for recurring and background work in Python.

What is here is the public API; nothing outside imports deeper.
"""

from rota import times
from rota.app import Rota
from rota.context import CurrentRun, current_run
from rota.control import Cancel, RetryLater, Snooze
from rota.errors import (
    ChildDied,
    Invalid,
    InvalidArguments,
    InvalidData,
    InvalidDuration,
    InvalidMoment,
    InvalidPolicy,
    InvalidRule,
    InvalidTask,
    InvalidZone,
    LeaseLost,
    LockHeld,
    LockLost,
    MissingExtra,
    NoCurrentRun,
    RotaError,
    SchemaTooNew,
    StoreUnavailable,
    TaskFailed,
    TimedOut,
    UnknownLimit,
    UnknownRun,
    UnknownTask,
    UnreadableArguments,
)
from rota.limit import Limit
from rota.locks import Lock
from rota.model import Attempt, Run, RunError
from rota.store.limits import LimitState
from rota.tasks import Call, Task
from rota.times import AnyOf, At, Calendar, Cron, Every, Retry, Rule
from rota.version import __version__

__all__ = [
    "AnyOf",
    "At",
    "Attempt",
    "Calendar",
    "Call",
    "Cancel",
    "ChildDied",
    "Cron",
    "CurrentRun",
    "Every",
    "Invalid",
    "InvalidArguments",
    "InvalidData",
    "InvalidDuration",
    "InvalidMoment",
    "InvalidPolicy",
    "InvalidRule",
    "InvalidTask",
    "InvalidZone",
    "LeaseLost",
    "Limit",
    "LimitState",
    "Lock",
    "LockHeld",
    "LockLost",
    "MissingExtra",
    "NoCurrentRun",
    "Retry",
    "RetryLater",
    "Rota",
    "RotaError",
    "Rule",
    "Run",
    "RunError",
    "SchemaTooNew",
    "Snooze",
    "StoreUnavailable",
    "Task",
    "TaskFailed",
    "TimedOut",
    "UnknownLimit",
    "UnknownRun",
    "UnknownTask",
    "UnreadableArguments",
    "__version__",
    "current_run",
    "times",
]
