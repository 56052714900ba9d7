"""Calendar rules, for what cron cannot say: every second Tuesday; every 2 months on the last weekday at 10:00."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from zoneinfo import ZoneInfo

from rota.errors import InvalidMoment, InvalidRule
from rota.times.calendardays import CalendarDays, Unit, pick
from rota.times.choices import one_of, some, whole_number
from rota.times.clockface import mask_of
from rota.times.moments import SECOND
from rota.times.monthdays import EPOCH_DAY
from rota.times.rule import Rule, bounded
from rota.times.wall import Gap, Repeat, Wall
from rota.times.words import and_list, zone_words
from rota.times.zones import zone

MOST_EVERY = 1_000
MOST_DAYS = 100
MOST_TIMES = 100
_TIME = re.compile("([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?")
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, init=False, repr=False)
class Calendar(Rule):
    """Fixed times of day on chosen days of every n-th day, week, month or year.

    `origin` is any day of a period that counts; weeks begin on Monday. A day that a month does not have is left out.
    """

    unit: Unit
    every: int = 1
    on: tuple[str, ...] = ()
    at: tuple[str, ...] = ("00:00",)
    tz: str = "UTC"
    origin: date = _EPOCH
    gap: Gap = "after"
    repeat: Repeat = "first"
    start: datetime | None = None
    end: datetime | None = None

    def __init__(
        self,
        unit: Unit,
        *,
        every: int = 1,
        on: str | int | Iterable[str | int] = (),
        at: str | Iterable[str] = "00:00",
        tz: str | ZoneInfo = "UTC",
        origin: date | str = _EPOCH,
        gap: Gap = "after",
        repeat: Repeat = "first",
        start: datetime | str | None = None,
        end: datetime | str | None = None,
    ) -> None:
        one_of("unit", unit, ("day", "week", "month", "year"))
        whole_number("every", every, 1, MOST_EVERY)
        one_of("gap", gap, ("after", "skip"))
        one_of("repeat", repeat, ("first", "second", "both"))
        where, counted, times = zone(tz), _day(origin), TimeList(_times(at))
        given = [on] if isinstance(on, (str, int)) else on
        if unit == "day" and given not in ((), []):
            raise InvalidRule("on", on, "leave it out: every day of the period counts", "has no meaning for days")
        picks = [pick(unit, each) for each in some("on", given, MOST_DAYS)] if unit != "day" else []
        days = CalendarDays(unit, every, counted.toordinal() - EPOCH_DAY, picks)
        if days.next(0) is None:
            raise InvalidRule(
                "on", given, "use a day that comes in the years 1970 to 2199", "is a day that never comes"
            )
        series, first, last = bounded(Wall(where, days, times, fixed=True, gap=gap, repeat=repeat), start, end)
        self._become(
            series,
            unit=unit,
            every=every,
            on=tuple(dict.fromkeys(each.text() for each in picks)),
            at=tuple(map(_clock, times.times)),
            tz=where.key,
            origin=counted,
            gap=gap,
            repeat=repeat,
            start=first,
            end=last,
        )

    @property
    def tzinfo(self) -> tzinfo:
        """The zone whose wall clock the times speak of."""
        return zone(self.tz).tzinfo

    @property
    def grain(self) -> int:
        """A minute, unless a time names seconds."""
        return 60 * SECOND if all(len(each) == 5 for each in self.at) else SECOND

    def words(self) -> str:
        """Say in English when the rule fires."""
        period = f"every {self.unit}" if self.every == 1 else f"every {self.every} {self.unit}s"
        days = f" on {and_list([pick(self.unit, each).words() for each in self.on])}" if self.on else ""
        return f"At {and_list(self.at)}, {period}{days}, {zone_words(self.tz)}"


class TimeList:
    """A few times of day."""

    __slots__ = ("first", "last", "times")

    def __init__(self, times: Iterable[int]) -> None:
        self.times = sorted(set(times))
        self.first, self.last = self.times[0], self.times[-1]

    def next(self, time: int) -> int | None:
        """Return the first time that is not before this one."""
        at = bisect_left(self.times, time)
        return self.times[at] if at < len(self.times) else None

    def previous(self, time: int) -> int | None:
        """Return the last time that is not after this one."""
        at = bisect_right(self.times, time)
        return self.times[at - 1] if at else None

    def below(self, time: int) -> int:
        """Count the times before this one."""
        return bisect_left(self.times, time)

    def bits(self) -> int:
        """Return the times as a bitmap of a day's seconds."""
        return mask_of(self.times)


def _times(at: str | Iterable[str]) -> list[int]:
    found = []
    for each in some("at", [at] if isinstance(at, str) else at, MOST_TIMES):
        read = _TIME.fullmatch(each) if isinstance(each, str) else None
        if not read:
            raise InvalidRule("at", each, "use 00:00 to 23:59, with seconds if wanted (09:30:15)", "is no time of day")
        found.append((int(read[1]) * 60 + int(read[2])) * 60 + int(read[3] or 0))
    return found


def _clock(time: int) -> str:
    clock = f"{time // 3600:02}:{time // 60 % 60:02}"
    return f"{clock}:{time % 60:02}" if time % 60 else clock


def _day(origin: date | str) -> date:
    if isinstance(origin, str):
        try:
            origin = date.fromisoformat(origin)
        except ValueError:
            raise InvalidMoment("origin", origin, "use a date such as 2026-11-16", "is not a date") from None
    if type(origin) is not date or not 1970 <= origin.year <= 2199:
        raise InvalidMoment("origin", origin, "use a date in the years 1970 to 2199", "is not a date that Rota knows")
    return origin
