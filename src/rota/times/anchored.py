"""The decision for anchored intervals: counted from the last run's success, finish or start."""

from dataclasses import replace

from rota.times.decision import Decision, Firing, Past, Skip
from rota.times.exclusion import excluded, first_free
from rota.times.fixed import ON_TIME
from rota.times.intervals import Every
from rota.times.moments import Instant, micros
from rota.times.policies import Policies
from rota.times.spread import jitter_offset, spread_offset


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
        return _decide(key, policies, past, now, natural, wanted, last)
    if past.hold.until is None:
        return Decision(through=past.through)
    if past.hold.open(now):
        due = first_free(policies.exclude, max(wanted, past.hold.until))
        # the hold may still be lifted before the rule's end
        ahead = due if due <= last and not excluded(policies.exclude, due) else None
        return Decision(through=past.through, next=ahead, wake=ahead or past.hold.until)
    if wanted >= past.hold.until:
        return _decide(key, policies, past, now, natural, wanted, last)
    # what the hold swallowed is answered, and nothing was due before its end
    swallowed = Skip(past.hold.reason, wanted, wanted, 1)
    resumed = replace(past, through=past.hold.until - 1)
    decision = _decide(key, policies, resumed, now, natural, past.hold.until, last)
    return replace(decision, skips=(swallowed, *decision.skips))


def _decide(
    key: str, policies: Policies, past: Past, now: Instant, natural: Instant, wanted: Instant, last: Instant
) -> Decision:
    """Fire what is wanted if it has come; where it is excluded, at the first moment that is not."""
    due = first_free(policies.exclude, wanted)
    if due > last:
        return Decision(through=past.through, finished=True)
    if excluded(policies.exclude, due):  # excluded for as far as was looked: look again then
        return Decision(through=past.through, wake=due)
    if due > now:
        return Decision(through=past.through, next=due, wake=due)
    moved = due > wanted
    spread = spread_offset(key, min(micros(policies.spread), now - natural))
    jittered = due + jitter_offset(key, due, micros(policies.jitter))
    firing = Firing(due=due, at=max(now + spread, jittered), late=now - (due if moved else natural) > ON_TIME)
    return Decision(
        fire=(firing,),
        skips=(Skip("excluded", wanted, wanted, 1),) if moved else (),
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
    return anchor + interval


def _anchor(rule: Every, past: Past) -> Instant | None:
    """Return what the interval counts from. Where the last run did not succeed, a success long ago is no anchor."""
    if rule.since == "start":
        return past.started
    if rule.since == "success" and past.ended in (None, "succeeded"):
        return past.succeeded
    if rule.since == "success" and past.finished is not None and past.succeeded is not None:
        return max(past.finished, past.succeeded)  # a success that was set by hand since
    return past.finished
