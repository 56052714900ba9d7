"""Time, pure: rules and what they name, durations, spread, back-off, the decision what is due. No clock and no I/O."""

from rota.times.backoff import Retry
from rota.times.calendars import Calendar
from rota.times.changes import ClockChange, clock_changes
from rota.times.cron import Cron
from rota.times.decision import Decision, Firing, Hold, Past, Skip
from rota.times.due import decide
from rota.times.durations import duration, duration_text, duration_words
from rota.times.intervals import Every
from rota.times.listed import AnyOf, At
from rota.times.overlap import Room, room
from rota.times.policies import Adaptive, OnFailure, Policies
from rota.times.rule import Rule
from rota.times.spread import distribute, jitter_offset, spread_offset

__all__ = [
    "Adaptive",
    "AnyOf",
    "At",
    "Calendar",
    "ClockChange",
    "Cron",
    "Decision",
    "Every",
    "Firing",
    "Hold",
    "OnFailure",
    "Past",
    "Policies",
    "Retry",
    "Room",
    "Rule",
    "Skip",
    "clock_changes",
    "decide",
    "distribute",
    "duration",
    "duration_text",
    "duration_words",
    "jitter_offset",
    "room",
    "spread_offset",
]
