"""The usual case of the decision for fixed series, which most schedules are in most of the time: a shortcut, no law."""

from rota.times.decision import Decision, Firing, Past
from rota.times.fixed import ON_TIME
from rota.times.moments import Instant
from rota.times.overlap import room
from rota.times.policies import Policies
from rota.times.rule import Rule


def decide_plain(rule: Rule, policies: Policies, past: Past, now: Instant) -> Decision | None:
    """Decide where at most one instant is due, there is room for it and nothing holds it; else return None."""
    if not policies.plain or past.hold is not None or past.asked is not None or past.failures:
        return None
    series = rule.series
    due = series.next(past.since if past.through is None else max(past.since, past.through))
    if due is None or due > now:
        return Decision(through=past.through, next=due, wake=due, finished=due is None)
    following = series.next(due)
    space = room(policies, past.under_way)
    if space.start + space.queue != 1 or (following is not None and following <= now):
        return None
    fire = Firing(due, now, queued=not space.start, late=now - due > ON_TIME)
    return Decision((fire,), (), due, following, following, space.cancel, following is None)
