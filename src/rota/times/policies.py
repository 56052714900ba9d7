"""What a schedule does when things go differently: values, checked when they are made."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from rota.errors import InvalidPolicy
from rota.times.choices import one_of, whole_number
from rota.times.durations import duration
from rota.times.listed import combinable
from rota.times.moments import micros
from rota.times.rule import Rule

Overlap = Literal["skip", "queue_one", "queue_all", "cancel_running", "allow"]
Missed = Literal["latest", "all", "none"]

MOST_EXCLUDED = 100
MOST_RUNNING = 1_000
MOST_MISSED = 10_000
MOST_RUNS = 1_000_000_000
MOST_FAILURES = 1_000_000

Length = str | float | timedelta


@dataclass(frozen=True, init=False)
class OnFailure:
    """What consecutive failed runs change: from the n-th on the interval doubles, up to a cap; then a pause; an alert.

    The user's interval stays as it is: the longer one is derived, and one success restores it.
    """

    double_from: int | None
    cap: timedelta
    pause_after: int | None
    alert_after: int | None

    def __init__(
        self,
        *,
        double_from: int | None = None,
        cap: Length = "24h",
        pause_after: int | None = None,
        alert_after: int | None = None,
    ) -> None:
        for field, value in (("double_from", double_from), ("pause_after", pause_after), ("alert_after", alert_after)):
            if value is not None:
                whole_number(field, value, 1, MOST_FAILURES, InvalidPolicy)
        longest = timedelta(microseconds=duration(cap, "cap", least=1))
        vars(self).update(double_from=double_from, cap=longest, pause_after=pause_after, alert_after=alert_after)

    def interval(self, own: int, failures: int) -> int:
        """Return the interval after so many failures: doubled at the n-th and each further one, never below its own."""
        if self.double_from is None or failures < self.double_from:
            return own
        doublings = min(failures - self.double_from + 1, 64)  # more would pass any cap
        return max(own, min(micros(self.cap), own << doublings))

    def pauses(self, failures: int) -> bool:
        """Tell whether a run that just failed, as the so-many-th in a row, pauses the schedule."""
        return self.pause_after is not None and failures >= self.pause_after

    def alerts(self, failures: int) -> bool:
        """Tell whether a run that just failed, as the so-many-th in a row, alerts someone."""
        return self.alert_after is not None and failures >= self.alert_after


@dataclass(frozen=True, init=False)
class Adaptive:
    """How an interval follows what is new: many new items a run halve it, few double it.

    The bounds hold back what adapting does; they never move an interval past where the user put it.
    """

    busy: float
    quiet: float
    floor: timedelta
    ceiling: timedelta

    def __init__(self, *, busy: float = 10, quiet: float = 1, floor: Length = "15m", ceiling: Length = "24h") -> None:
        for field, value in (("busy", busy), ("quiet", quiet)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
                raise InvalidPolicy(field, value, "use a number that is not negative")
        if quiet > busy:
            raise InvalidPolicy("quiet", quiet, f"use at most busy, {busy}", "is more than busy")
        least, most = duration(floor, "floor", least=1), duration(ceiling, "ceiling", least=1)
        if most < least:
            raise InvalidPolicy("ceiling", ceiling, "use one that is not below the floor", "is below the floor")
        bounds = {"floor": timedelta(microseconds=least), "ceiling": timedelta(microseconds=most)}
        vars(self).update(busy=busy, quiet=quiet, **bounds)

    def interval(self, own: int, average: float | None) -> int:
        """Return the interval for so many new items a run on average; None means that there was no recent run."""
        if average is not None and average > self.busy:
            return max(own // 2, min(own, micros(self.floor)))
        if average is not None and average < self.quiet:
            return min(own * 2, max(own, micros(self.ceiling)))
        return own


@dataclass(frozen=True, init=False)
class Policies:
    """Everything besides its rule that decides what a schedule's due instants become."""

    overlap: Overlap
    max_running: int
    missed: Missed
    max_missed: int
    grace: timedelta | None
    spread: timedelta
    jitter: timedelta
    exclude: tuple[Rule, ...]
    max_runs: int | None
    on_failure: OnFailure
    adaptive: Adaptive | None

    def __init__(
        self,
        *,
        overlap: Overlap = "skip",
        max_running: int = 1,
        missed: Missed = "latest",
        max_missed: int = 100,
        grace: Length | None = None,
        spread: Length = 0,
        jitter: Length = 0,
        exclude: Rule | Iterable[Rule] = (),
        max_runs: int | None = None,
        on_failure: OnFailure | None = None,
        adaptive: Adaptive | None = None,
    ) -> None:
        one_of("overlap", overlap, ("skip", "queue_one", "queue_all", "cancel_running", "allow"), InvalidPolicy)
        one_of("missed", missed, ("latest", "all", "none"), InvalidPolicy)
        whole_number("max_running", max_running, 1, MOST_RUNNING, InvalidPolicy)
        whole_number("max_missed", max_missed, 1, MOST_MISSED, InvalidPolicy)
        if max_running > 1 and overlap != "allow":
            raise InvalidPolicy(
                "max_running", max_running, "use overlap='allow' with it", f"does not fit overlap={overlap!r}"
            )
        if max_runs is not None:
            whole_number("max_runs", max_runs, 1, MOST_RUNS, InvalidPolicy)
        given: object = exclude
        if isinstance(given, str):
            raise InvalidPolicy("exclude", exclude, "use a rule, such as Cron('* * 24 12 *'), or a list of them")
        excluded = (exclude,) if isinstance(exclude, Rule) else tuple(exclude)
        if len(excluded) > MOST_EXCLUDED:
            raise InvalidPolicy("exclude", f"{len(excluded):,} rules", f"use at most {MOST_EXCLUDED}", "are too many")
        for rule in excluded:
            combinable(rule, "exclude")
        if not isinstance(on_failure, OnFailure | None):
            raise InvalidPolicy("on_failure", on_failure, "use OnFailure(…)")
        if not isinstance(adaptive, Adaptive | None):
            raise InvalidPolicy("adaptive", adaptive, "use Adaptive(…)")
        vars(self).update(
            overlap=overlap,
            max_running=max_running,
            missed=missed,
            max_missed=max_missed,
            grace=None if grace is None else _length(grace, "grace"),
            spread=_length(spread, "spread"),
            jitter=_length(jitter, "jitter"),
            exclude=excluded,
            max_runs=max_runs,
            on_failure=on_failure or _USUAL,
            adaptive=adaptive,
        )

    @property
    def plain(self) -> bool:
        """Whether nothing but the overlap decides about an instant that is due alone."""
        latest = self.missed == "latest" and self.grace is None
        return latest and not (self.spread or self.jitter or self.exclude) and self.max_runs is None


_USUAL = OnFailure()


def _length(given: Length, field: str) -> timedelta:
    return timedelta(microseconds=duration(given, field))
