"""Rota: the durable engine for recurring and background work in Python.

What is here is the public API; nothing outside imports deeper.
"""

from rota import http, logs, notify, testing, times
from rota.app import Rota, current_app
from rota.application import Application, Page
from rota.blocking import Blocking
from rota.busy import Busy
from rota.context import CurrentRun, current_run
from rota.control import Cancel, RetryLater, Snooze
from rota.db.database import Database
from rota.db.transaction import Transaction
from rota.engine.tick import Ticked
from rota.errors import (
    AddressRefused,
    BadSignature,
    ChildDied,
    CommandFailed,
    CopyRefused,
    FetchFailed,
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
    NotifyFailed,
    NotMigrated,
    OutdatedVersion,
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
    UnknownToken,
    UnknownWorker,
    UnreadableArguments,
    WouldBlock,
)
from rota.kept import LogLine
from rota.limit import Limit
from rota.locks import Lock
from rota.model import Attempt, Finding, Run, RunError
from rota.schedule import Schedule
from rota.schedules import PutCounts, Upcoming, Why
from rota.simulation import Simulated, simulate
from rota.store.hours import Hour
from rota.store.limits import LimitState
from rota.store.reads import Statistics
from rota.store.schedule_reads import FiringState, HeldState, Revision, SchedulesStatus, ScheduleState
from rota.store.schedule_rows import Triggered
from rota.store.tokens import TokenState
from rota.store.troubles import Trouble
from rota.tasks import Call, Task, task
from rota.times import Adaptive, AnyOf, At, Calendar, Cron, Every, OnFailure, Retry, Rule
from rota.tokens import Caller, NewToken, Role
from rota.version import __version__

__all__ = [
    "Adaptive",
    "AddressRefused",
    "AnyOf",
    "Application",
    "At",
    "Attempt",
    "BadSignature",
    "Blocking",
    "Busy",
    "Calendar",
    "Call",
    "Caller",
    "Cancel",
    "ChildDied",
    "CommandFailed",
    "CopyRefused",
    "Cron",
    "CurrentRun",
    "Database",
    "Every",
    "FetchFailed",
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
    "LogLine",
    "MissingExtra",
    "NewToken",
    "NoCurrentRun",
    "NotMigrated",
    "NotifyFailed",
    "OnFailure",
    "OutdatedVersion",
    "Page",
    "PutCounts",
    "Retry",
    "RetryLater",
    "Revision",
    "Role",
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
    "Statistics",
    "StoreUnavailable",
    "Task",
    "TaskFailed",
    "Ticked",
    "TimedOut",
    "TokenState",
    "Transaction",
    "Triggered",
    "Trouble",
    "UnknownLimit",
    "UnknownRun",
    "UnknownSchedule",
    "UnknownTask",
    "UnknownToken",
    "UnknownWorker",
    "UnreadableArguments",
    "Upcoming",
    "Why",
    "WouldBlock",
    "__version__",
    "current_app",
    "current_run",
    "http",
    "logs",
    "notify",
    "simulate",
    "task",
    "testing",
    "times",
]
