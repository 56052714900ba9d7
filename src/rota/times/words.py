"""English for people, from the same parts that the engine fires by; where no words of ours fit, cronsim's are used."""

import re
from collections.abc import Sequence
from datetime import date, datetime

from cronsim.explain import Expression

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_NAMES = {name[:3].upper(): number for number, name in enumerate(WEEKDAYS[:7])}
_FEW = 4


def and_list(parts: Sequence[str]) -> str:
    """Join words as people do: `a`, `a and b`, `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def zone_words(key: str) -> str:
    """Say a zone: `Berlin time`, `UTC`."""
    return key if "/" not in key or key.startswith("Etc/") else f"{key.rpartition('/')[2].replace('_', ' ')} time"


def moment_words(moment: datetime) -> str:
    """Say a moment with its weekday and its zone: `Sun 28 Mar 2027 03:00 CEST`."""
    return f"{day_words(moment)} {clock_words(moment)} {moment.tzname()}"


def clock_words(moment: datetime) -> str:
    """Say a time of day, as exactly as it is: `09:00`, `09:00:30`, `09:00:30.5`."""
    if not moment.microsecond:
        return f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"
    return f"{moment:%H:%M:%S.%f}".rstrip("0")


def day_words(day: date) -> str:
    """Say a day, in English whatever the locale: `Sun 28 Mar 2027`."""
    return f"{WEEKDAYS[day.isoweekday()][:3]} {day.day} {MONTHS[day.month - 1][:3]} {day.year}"


def cron_words(parts: Sequence[str], tz: str) -> str:
    """Say a cron expression: `At 09:00, every Monday, Berlin time`."""
    times, days = _times(parts), _days(parts)
    plain = f"{times}{days}" if times and days is not None else _explained(parts)
    return f"{plain}, {zone_words(tz)}"


def _explained(parts: Sequence[str]) -> str:
    """Return cronsim's words, which take two day fields for both where cron means either."""
    said = Expression(list(parts))
    if said.day_and:
        return _numbered(said.explain())
    if said.day.star or said.dow.star:  # one of the two is every day, so all days are
        return _numbered(Expression([*parts[:-3], "*", parts[-2], "*"]).explain())
    time, _ = said.translate_time()
    month = "" if said.month.star else f" {said.month}"
    return _numbered(f"{time[0].upper()}{time[1:]} {said.day} or {said.dow}{month}")


def _numbered(text: str) -> str:
    """Write 21st, 22nd and 23rd, where cronsim says 21th, 22th and 23th."""
    endings = {"1": "st", "2": "nd", "3": "rd"}
    return re.sub(r"\b(\d*[02-9])([123])th\b", lambda found: f"{found[1]}{found[2]}{endings[found[2]]}", text)


def _times(parts: Sequence[str]) -> str | None:
    """Say the time of day, where it is one of the usual kinds."""
    if len(parts) == 6 and parts[0] != "0":
        return None
    minute, hour = parts[-5], parts[-4]
    if hour == "*" and minute == "*":
        return "Every minute"
    if hour == "*" and minute == "0":
        return "Every hour"
    step = int(minute[2:]) if minute.startswith("*/") and minute[2:].isdigit() else 0
    if hour == "*" and 1 < step < 60 and 60 % step == 0:
        return f"Every {step} minutes"
    minutes, hours = minute.split(","), hour.split(",")
    if all(each.isdigit() for each in (*minutes, *hours)) and len(minutes) * len(hours) <= _FEW:
        clock = sorted({f"{int(h):02}:{int(m):02}" for h in hours for m in minutes})
        return f"At {and_list(clock)}"
    return None


def _days(parts: Sequence[str]) -> str | None:
    """Say which days, where they are every day or some weekdays of every month."""
    day, month, weekday = parts[-3:]
    if (day, month) != ("*", "*"):
        return None
    if weekday == "*":
        return ", every day" if parts[-4] != "*" else ""
    first, dash, last = weekday.partition("-")
    numbers = [_weekday(each) for each in ((first, last) if dash else weekday.split(","))]
    known = [number for number in numbers if number is not None]
    if len(known) != len(numbers):
        return None
    if dash and known[1] - known[0] >= 6:
        return ", every day" if parts[-4] != "*" else ""
    if dash and known[0] + 1 < known[1]:
        return f", {WEEKDAYS[known[0]]} to {WEEKDAYS[known[1]]}"
    in_order = sorted({(number - 1) % 7 for number in known})  # from Monday on
    return f", every {and_list([WEEKDAYS[number + 1] for number in in_order])}"


def _weekday(text: str) -> int | None:
    return int(text) if text.isdigit() else _NAMES.get(text)
