"""Times as people read them."""

from datetime import datetime, timedelta

from rota.times.durations import duration_words
from rota.times.moments import SECOND, instant, micros, moment


def relative(distance: timedelta) -> str:
    """Say how far away something is: `in 5 h 50 min`, `3 d ago`, `now`."""
    seconds = micros(distance) // SECOND
    if not seconds:
        return "now"
    length = duration_words(abs(seconds) * SECOND)
    return f"in {length}" if seconds > 0 else f"{length} ago"


def zone_name(moment: datetime) -> str:
    """Say the zone and its offset: `CEST +02:00`, or the offset alone where the zone has no letters."""
    name, offset = moment.tzname() or "", moment.isoformat()[-6:]
    return offset if not name or name[0] in "+-" else f"{name} {offset}"


def iso(found: datetime | None) -> str | None:
    """Write a moment that may be missing."""
    return None if found is None else found.isoformat()


def given_moment(given: str | None, field: str) -> datetime | None:
    """Read a moment that an option may name."""
    return None if given is None else moment(instant(given, field))
