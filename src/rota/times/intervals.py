"""Intervals: a fixed series counted from an origin, or a distance from what the last run did."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from rota.errors import InvalidDuration, InvalidMoment
from rota.times.choices import one_of
from rota.times.durations import duration, duration_words
from rota.times.moments import EPOCH, SECOND, instant, iso, micros, moment
from rota.times.rule import Rule, bounded
from rota.times.series import Anchored, Periodic
from rota.times.words import moment_words

Since = Literal["due", "success", "finish", "start"]

SHORTEST = SECOND
"""The shortest interval; what must happen more often than once a second is no schedule."""


@dataclass(frozen=True, init=False, repr=False)
class Every(Rule):
    """Every so often.

    `since="due"` names a fixed series counted from `origin` (the epoch, so hourly means on the hour). The others are
    anchored: they count from the last run's success, finish or start, so `next(after)` is one interval later.
    """

    interval: timedelta
    since: Since = "due"
    origin: datetime = EPOCH
    start: datetime | None = None
    end: datetime | None = None

    def __init__(
        self,
        interval: str | float | timedelta,
        *,
        since: Since = "due",
        origin: datetime | str = EPOCH,
        start: datetime | str | None = None,
        end: datetime | str | None = None,
    ) -> None:
        length = duration(interval, "interval", least=SHORTEST)
        one_of("since", since, ("due", "success", "finish", "start"))
        counted = instant(origin, "origin")
        if since == "due" and length % SECOND:
            raise InvalidDuration(
                "interval", interval, "use whole seconds, or since='start' to count from the last run"
            )
        if counted % SECOND:
            raise InvalidMoment("origin", iso(counted), "use a whole second")
        if since != "due" and counted:
            raise InvalidMoment("origin", iso(counted), f"leave it out: since={since!r} counts from the last run")
        series = Periodic(length, counted) if since == "due" else Anchored(length)
        chosen, first, last = bounded(series, start, end)
        self._become(
            chosen,
            interval=timedelta(microseconds=length),
            since=since,
            origin=moment(counted),
            start=first,
            end=last,
        )

    @property
    def anchored(self) -> bool:
        """Whether the interval counts from the last run rather than from the origin."""
        return self.since != "due"

    def words(self) -> str:
        """Say in English when the rule fires."""
        length = duration_words(micros(self.interval), most=6)
        if self.since == "due":
            counted = "" if self.origin == EPOCH else f", counted from {moment_words(self.origin)}"
            return f"Every {length}{counted}"
        return f"{length} after the last {'run started' if self.since == 'start' else _ANCHORS[self.since]}"


_ANCHORS = {"success": "success", "finish": "run ended"}
