"""Lengths of time, in and out: `90m`, `1h30m`, `PT1H30M`, seconds, or a timedelta."""

import re
from datetime import timedelta
from fractions import Fraction
from functools import lru_cache

from rota.errors import InvalidDuration
from rota.times.moments import DAY, SECOND, micros

LONGEST = 36_525 * DAY
"""A hundred years: more is a mistake."""

_ALLOWED = "use seconds, a timedelta, or text such as 45s, 90m, 1h30m, 2d or PT1H30M"

_UNITS = {"w": 7 * DAY, "d": DAY, "h": 3600 * SECOND, "m": 60 * SECOND, "s": SECOND, "ms": 1000, "us": 1}
_NAMES = {
    **dict.fromkeys(("w", "week", "weeks"), "w"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("us", "µs", "microsecond", "microseconds"), "us"),
}
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
_PLAIN = re.compile(_NUMBER)
_PART = re.compile(rf"({_NUMBER}) ?([a-zµ]+)(?: |(?=[0-9])|$)")
_ISO = re.compile(
    rf"P(?:({_NUMBER})W)?(?:({_NUMBER})D)?(?:T(?=[0-9])(?:({_NUMBER})H)?(?:({_NUMBER})M)?(?:({_NUMBER})S)?)?",
    re.IGNORECASE,
)


def duration(length: str | float | timedelta, field: str = "duration", *, least: int = 0, most: int = LONGEST) -> int:
    """Turn a length of time into microseconds, between `least` and `most`."""
    if isinstance(length, timedelta):
        found = micros(length)
    elif isinstance(length, str):
        found = _read(length, field)
    elif isinstance(length, (int, float)) and not isinstance(length, bool) and length == length:  # noqa: PLR0124 (no NaN)
        found = round(
            min(max(length, -1), LONGEST // SECOND + 1) * SECOND
        )  # infinities and what is far out of bounds too
    else:
        raise InvalidDuration(field, length, _ALLOWED, "is not a duration")
    if found < least:
        problem = "is negative" if found < 0 else "is too short"
        raise InvalidDuration(field, length, f"use at least {duration_text(least)}", problem)
    if found > most:
        raise InvalidDuration(field, length, f"use at most {duration_text(most)}", "is too long")
    return found


def duration_text(length: int) -> str:
    """Write microseconds in the short form that `duration` reads back."""
    parts = []
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, length = divmod(length, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def duration_words(length: int, most: int = 2) -> str:
    """Write microseconds for people, by default in at most two units: `1 h 30 min`, `13 min 4 s`, `3 d 4 h`."""
    words = {"d": "d", "h": "h", "m": "min", "s": "s", "ms": "ms", "us": "µs"}
    parts: list[str] = []
    for unit, word in words.items():
        count, length = divmod(length, _UNITS[unit])
        if count:
            parts.append(f"{count} {word}")
        if len(parts) == most or (parts and not count and most == 2):
            break
    return " ".join(parts) or "0 s"


@lru_cache(1_024)  # a program writes the same few over and over
def _read(text: str, field: str) -> int:
    stripped = text.strip()
    if _PLAIN.fullmatch(stripped):
        return round(Fraction(stripped) * SECOND)
    if stripped[:1] in ("P", "p"):
        found = _ISO.fullmatch(stripped)
        counts = found.groups() if found else ()
        if any(counts):
            return round(sum(Fraction(n) * _UNITS[unit] for n, unit in zip(counts, "wdhms", strict=True) if n))
        raise InvalidDuration(
            field, text, "use ISO 8601 weeks, days, hours, minutes and seconds, such as P1DT2H", "is not a duration"
        )
    return _read_parts(stripped, text, field)


def _read_parts(stripped: str, text: str, field: str) -> int:
    total, at, order = Fraction(0), 0, list(_UNITS)
    while at < len(stripped) or not at:
        part = _PART.match(stripped, at)
        unit = part and _NAMES.get(part[2])
        if not part or unit not in order:  # unreadable, or not from the largest unit to the smallest
            raise InvalidDuration(field, text, _ALLOWED, "is not a duration")
        del order[: order.index(unit) + 1]
        total += Fraction(part[1]) * _UNITS[unit]
        at = part.end()
    return round(total)
