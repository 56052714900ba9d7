"""Rota: the durable engine for recurring and background work in Python.

What is here is the public API; nothing outside imports deeper.
"""

from rota import testing, times
from rota.app import Rota, current_app
from rota.application import Application, Page
from rota.blocking import Blocking
from rota.context import CurrentRun, current_run
from rota.control import Cancel, RetryLater, Snooze
from rota.db.database import Database
from rota.db.transaction import Transaction
from rota.engine.tick import Ticked
from rota.errors import (
    ChildDied,
    CopyRefused,
    Invalid,
    InvalidArguments,
    InvalidData,
    InvalidDuration,
    InvalidMoment,
    InvalidPolicy,
    InvalidRule,
    InvalidSchedule,
    InvalidTask,
    InvalidZone,
    LeaseLost,
    LockHeld,
    LockLost,
    MissingExtra,
    NoCurrentRun,
    NotMigrated,
    RotaError,
    ScheduleExists,
    SchemaTooNew,
    StoreUnavailable,
    TaskFailed,
    TimedOut,
    UnknownLimit,
    UnknownRun,
    UnknownSchedule,
    UnknownTask,
    UnreadableArguments,
    WouldBlock,
)
from rota.limit import Limit
from rota.locks import Lock
from rota.model import Attempt, Finding, Run, RunError
from rota.schedule import Schedule
from rota.schedules import PutCounts, Upcoming, Why
from rota.simulation import Simulated, simulate
from rota.store.hours import Hour
from rota.store.limits import LimitState
from rota.store.schedule_reads import FiringState, HeldState, Revision, SchedulesStatus, ScheduleState
from rota.store.schedule_rows import Triggered
from rota.tasks import Call, Task, task
from rota.times import Adaptive, AnyOf, At, Calendar, Cron, Every, OnFailure, Retry, Rule
from rota.version import __version__

__all__ = [
    "Adaptive",
    "AnyOf",
    "Application",
    "At",
    "Attempt",
    "Blocking",
    "Calendar",
    "Call",
    "Cancel",
    "ChildDied",
    "CopyRefused",
    "Cron",
    "CurrentRun",
    "Database",
    "Every",
    "Finding",
    "FiringState",
    "HeldState",
    "Hour",
    "Invalid",
    "InvalidArguments",
    "InvalidData",
    "InvalidDuration",
    "InvalidMoment",
    "InvalidPolicy",
    "InvalidRule",
    "InvalidSchedule",
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
    "NotMigrated",
    "OnFailure",
    "Page",
    "PutCounts",
    "Retry",
    "RetryLater",
    "Revision",
    "Rota",
    "RotaError",
    "Rule",
    "Run",
    "RunError",
    "Schedule",
    "ScheduleExists",
    "ScheduleState",
    "SchedulesStatus",
    "SchemaTooNew",
    "Simulated",
    "Snooze",
    "StoreUnavailable",
    "Task",
    "TaskFailed",
    "Ticked",
    "TimedOut",
    "Transaction",
    "Triggered",
    "UnknownLimit",
    "UnknownRun",
    "UnknownSchedule",
    "UnknownTask",
    "UnreadableArguments",
    "Upcoming",
    "Why",
    "WouldBlock",
    "__version__",
    "current_app",
    "current_run",
    "simulate",
    "task",
    "testing",
    "times",
]
