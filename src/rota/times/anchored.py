"""The decision for anchored intervals: counted from the last run's success, finish or start."""

from dataclasses import replace

from rota.times.decision import Decision, Firing, Past, Skip
from rota.times.exclusion import first_free
from rota.times.fixed import ON_TIME
from rota.times.intervals import Every
from rota.times.moments import DAY, Instant, micros
from rota.times.policies import Policies
from rota.times.spread import jitter_offset, spread_offset

_MOST_STEPS = 100
_FAR = 365 * DAY


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
    wanted = natural if past.through is None else max(natural, past.through + 1)
    if wanted > last:
        return Decision(through=past.through, finished=True)
    if past.hold is None:
        return _decide(key, policies, past, now, natural, wanted, interval, last)
    if past.hold.until is None:
        return Decision(through=past.through)
    if past.hold.open(now):
        due, sure = _included(policies, max(wanted, past.hold.until), interval)
        ahead = due if sure and due <= last else None  # the hold may still be lifted before the rule's end
        return Decision(through=past.through, next=ahead, wake=ahead or past.hold.until)
    if wanted >= past.hold.until:
        return _decide(key, policies, past, now, natural, wanted, interval, last)
    # what the hold swallowed is answered, and nothing was due before its end
    swallowed = Skip(past.hold.reason, wanted, wanted, 1)
    resumed = replace(past, through=past.hold.until - 1)
    decision = _decide(key, policies, resumed, now, natural, past.hold.until, interval, last)
    return replace(decision, skips=(swallowed, *decision.skips))


def _decide(
    key: str,
    policies: Policies,
    past: Past,
    now: Instant,
    natural: Instant,
    wanted: Instant,
    interval: int,
    last: Instant,
) -> Decision:
    """Fire what is wanted if it has come; where it is excluded, an interval later."""
    due, sure = _included(policies, wanted, interval)
    if due > last:
        return Decision(through=past.through, finished=True)
    if not sure:  # excluded for as far as it was looked: look again from there
        return Decision(through=past.through, wake=max(due, now + interval))
    if due > now:
        return Decision(through=past.through, next=due, wake=due)
    moved = (due - wanted) // interval
    late = now - (due if moved else natural)
    firing = Firing(due=due, at=now + spread_offset(key, min(micros(policies.spread), late)), late=late > ON_TIME)
    return Decision(
        fire=(firing,),
        skips=(Skip("excluded", wanted, due - interval, moved),) if moved else (),
        through=due,
        finished=policies.max_runs is not None and past.runs + 1 >= policies.max_runs,
    )


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
    if rule.since == "success" and past.finished is not None and past.succeeded is not None:
        return max(past.finished, past.succeeded)  # a success that was set by hand since
    return past.finished


def _included(policies: Policies, due: Instant, interval: int) -> tuple[Instant, bool]:
    """Return the first instant from `due` on, by whole intervals, that is not excluded; False where none was found."""
    found = due
    for _ in range(_MOST_STEPS if policies.exclude else 0):
        free = first_free(policies.exclude, found)
        if free == found:
            return found, True
        if free - found >= _FAR:
            return free, False
        found = due - (due - free) // interval * interval  # the next whole number of intervals
    return found, not policies.exclude
