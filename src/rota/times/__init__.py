"""Time, pure: rules and what they name, durations, spread, and the decision what is due. No clock and no I/O."""

from rota.times.calendars import Calendar
from rota.times.cron import Cron
from rota.times.durations import duration, duration_text, duration_words
from rota.times.intervals import Every
from rota.times.listed import AnyOf, At
from rota.times.rule import Rule

__all__ = ["AnyOf", "At", "Calendar", "Cron", "Every", "Rule", "duration", "duration_text", "duration_words"]
