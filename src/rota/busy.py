"""How many schedules are due in each minute of the hour that lies ahead."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from rota import clock
from rota.times.exclusion import excluded
from rota.times.intervals import Every
from rota.times.moments import SECOND, Instant, moment
from rota.times.policies import Policies
from rota.times.rule import Rule

MINUTE = 60 * SECOND
_MINUTES = 60
_SECONDS = 0.05
"""How long to look at most: others wait meanwhile."""


@dataclass(frozen=True, slots=True)
class Busy:
    """How many schedules are due in each of 60 minutes, the first of which is the one that is."""

    start: datetime
    counts: tuple[int, ...]
    complete: bool
    """False where there were too many different rules to look at each to its end."""


def busy_minutes(now: Instant, rules: Iterable[tuple[Rule, Policies, Instant, int]], *, complete: bool) -> Busy:
    """Count what is due: rules with their policies, when each is due next, and how many schedules have it.

    What is overdue counts as due now; an interval that counts from its last run is due once.
    """
    start = now // MINUTE * MINUTE
    counts = [0] * _MINUTES
    until = clock.monotonic() + _SECONDS
    for rule, policies, following, number in rules:
        due: Instant | None = max(following, now)
        while due is not None and due < start + _MINUTES * MINUTE:
            minute = (due - start) // MINUTE
            if due == following or not excluded(policies.exclude, due):
                counts[minute] += number
            if isinstance(rule, Every) and rule.anchored:
                break
            if clock.monotonic() > until:
                complete = False
                break
            due = rule.series.next(start + (minute + 1) * MINUTE - 1)
    return Busy(moment(start), tuple(counts), complete)
