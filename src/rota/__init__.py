"""Rota: the durable engine for recurring and background work in Python.

What is here is the public API; nothing outside imports deeper.
"""

from rota import times
from rota.errors import (
    Invalid,
    InvalidDuration,
    InvalidMoment,
    InvalidPolicy,
    InvalidRule,
    InvalidZone,
    MissingExtra,
    RotaError,
)
from rota.times import AnyOf, At, Calendar, Cron, Every, Rule
from rota.version import __version__

__all__ = [
    "AnyOf",
    "At",
    "Calendar",
    "Cron",
    "Every",
    "Invalid",
    "InvalidDuration",
    "InvalidMoment",
    "InvalidPolicy",
    "InvalidRule",
    "InvalidZone",
    "MissingExtra",
    "RotaError",
    "Rule",
    "__version__",
    "times",
]
