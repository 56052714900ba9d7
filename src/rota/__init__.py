"""Rota: the durable engine for recurring and background work in Python.

What is here is the public API; nothing outside imports deeper.
"""

from rota import times
from rota.errors import (
    Invalid,
    InvalidArguments,
    InvalidData,
    InvalidDuration,
    InvalidMoment,
    InvalidPolicy,
    InvalidRule,
    InvalidTask,
    InvalidZone,
    MissingExtra,
    RotaError,
    UnknownTask,
    UnreadableArguments,
)
from rota.tasks import Call, Task
from rota.times import AnyOf, At, Calendar, Cron, Every, Retry, Rule
from rota.version import __version__

__all__ = [
    "AnyOf",
    "At",
    "Calendar",
    "Call",
    "Cron",
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
    "MissingExtra",
    "Retry",
    "RotaError",
    "Rule",
    "Task",
    "UnknownTask",
    "UnreadableArguments",
    "__version__",
    "times",
]
