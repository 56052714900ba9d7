"""The decision for anchored intervals: counted from the last run's success, finish or start."""

from rota.times.decision import Decision, Firing, Past, Skip
from rota.times.exclusion import excluded
from rota.times.fixed import ON_TIME
from rota.times.intervals import Every
from rota.times.moments import Instant, micros
from rota.times.policies import Policies
from rota.times.spread import jitter_offset, spread_offset

_MOST_STEPS = 1_000


def decide_anchored(key: str, rule: Every, policies: Policies, past: Past, now: Instant) -> Decision:
    """Decide whether the one due instant that there is has come.

    While a run is under way there is none: it counts from that run once it has ended.
    """
    if policies.max_runs is not None and past.runs >= policies.max_runs:
        return Decision(through=past.through, finished=True)
    if past.under_way:
        return Decision(through=past.through)
    first, last = rule.bounds
    interval = policies.on_failure.interval(_own(rule, policies, past), past.failures)
    natural = max(_natural(key, rule, policies, past, interval), first)
    due = natural if past.through is None else max(natural, past.through + 1)
    skips: tuple[Skip, ...] = ()
    through = past.through
    if past.hold is not None:
        if past.hold.until is None:
            return Decision(through=past.through)
        if due < past.hold.until:
            if not past.hold.open(now):  # it has passed, and swallowed the instant
                skips, through = (Skip(past.hold.reason, due, due, 1),), due
            due = past.hold.until
    included = _included(policies, due, interval)
    if included > last:
        return Decision(skips=skips, through=through, finished=True)
    if included > now:
        return Decision(skips=skips, through=through, next=included, wake=included)
    if included > due:
        count = (included - due) // interval
        skips = (*skips, Skip("excluded", due, included - interval, count))
    overdue = spread_offset(key, min(micros(policies.spread), now - natural))
    firing = Firing(due=included, at=now + overdue, late=now - natural > ON_TIME)
    spent = policies.max_runs is not None and past.runs + 1 >= policies.max_runs
    return Decision(fire=(firing,), skips=skips, through=included, finished=spent)


def _own(rule: Every, policies: Policies, past: Past) -> int:
    """Return the interval as it is when nothing fails: the user's, or what it adapts to."""
    own = micros(rule.interval)
    return own if policies.adaptive is None else policies.adaptive.interval(own, past.average)


def _natural(key: str, rule: Every, policies: Policies, past: Past, interval: int) -> Instant:
    """Return the instant that the rule names by itself: an interval after its anchor; at once if it never ran."""
    if past.asked is not None:
        return min(past.asked, rule.bounds[1])
    anchor = _anchor(rule, past)
    if anchor is None:
        return past.since + spread_offset(key, micros(policies.spread))
    return anchor + interval + jitter_offset(key, anchor, micros(policies.jitter))


def _anchor(rule: Every, past: Past) -> Instant | None:
    """Return what the interval counts from. Where the last run did not succeed, a success long ago is no anchor."""
    if rule.since == "start":
        return past.started
    if rule.since == "success" and past.ended in (None, "succeeded"):
        return past.succeeded
    return past.finished


def _included(policies: Policies, due: Instant, interval: int) -> Instant:
    """Return the first of the instants from `due` on, an interval apart, that is not excluded."""
    for _ in range(_MOST_STEPS if policies.exclude else 0):
        if not excluded(policies.exclude, due):
            break
        due += interval
    return due
