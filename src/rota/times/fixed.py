"""The decision for fixed series: cron, calendars, lists of moments, and intervals counted from an origin."""

from collections.abc import Iterator
from dataclasses import replace

from rota.times.decision import Decision, Firing, Past, Reason, Skip
from rota.times.exclusion import Span, excluded, newest, next_included, spans
from rota.times.moments import SECOND, Instant, micros
from rota.times.overlap import room
from rota.times.policies import Policies
from rota.times.rule import Rule
from rota.times.series import Listed, Series, Union
from rota.times.spread import jitter_offset, spread_offset

ON_TIME = 60 * SECOND
"""What is at most this late is on time. Later is catching up; with `missed="none"` and no grace it is missed."""

Found = list[tuple[Reason, Span | None]]


def decide_fixed(key: str, rule: Rule, policies: Policies, past: Past, now: Instant) -> Decision:
    """Decide about every due instant up to now that has no answer yet.

    In this order: a hold and backing off swallow what came under them, exclusions are taken out, and the rest is fired,
    merged or missed. All is reckoned in due instants: with a spread, each comes later by the key's own offset.
    """
    if policies.max_runs is not None and past.runs >= policies.max_runs:
        return Decision(through=past.through, finished=True)
    offset = spread_offset(key, micros(policies.spread))
    until = now - offset
    answered = past.since if past.through is None else max(past.since, past.through)
    asked = _asked(rule, past, answered)
    series = rule.series if asked is None else Union((rule.series, Listed([asked])))
    swallowed = list(_swallowed(rule, policies, past, asked, offset))
    if past.hold is not None and past.hold.open(now):
        if past.hold.until is None:
            return Decision(through=past.through)
        ahead = max(answered, *(end for _, end in swallowed))
        decision = _ahead(Decision(through=past.through), series, policies, ahead, offset)
        if decision.finished and series.next(answered) is not None:  # what the hold swallows has no answer yet
            return replace(decision, finished=False, wake=past.hold.until)
        return decision

    start, found = answered, Found()
    for reason, end in swallowed:
        last = min(end, until)
        if start < last:
            found.append((reason, spans(series, (), start, last)[0]))
            start = last
    due, out = spans(series, policies.exclude, start, until)
    decision = _fire(key, series, policies, past, due, start, until)
    if decision.finished and decision.through is not None:  # nothing after the last run is due any more
        out = spans(series, policies.exclude, start, decision.through)[1]
    found.append(("excluded", out))
    skips = (*(Skip(reason, span.first, span.last, span.count) for reason, span in found if span), *decision.skips)
    through = decision.through if decision.finished else series.previous(until + 1)
    decision = replace(
        decision,
        fire=tuple(replace(each, at=max(now, each.at + offset)) for each in decision.fire),
        skips=tuple(sorted(skips, key=lambda skip: skip.first)),
        through=past.through if through is None or through <= answered else through,
    )
    if decision.finished:
        return decision
    if decision.fire and past.failures:  # from now on it backs off from what fires now
        swallowed = list(_swallowed(rule, policies, replace(past, due=decision.fire[-1].due), None, offset))
    return _ahead(decision, series, policies, max(until, answered, *(end for _, end in swallowed)), offset)


def _asked(rule: Rule, past: Past, answered: Instant) -> Instant | None:
    """Return the instant that the last run asked for, inside the rule's bounds, while it has no answer."""
    if past.asked is None:
        return None
    first, last = rule.bounds
    asked = min(max(past.asked, first), last)
    return asked if asked > answered else None


def _swallowed(
    rule: Rule, policies: Policies, past: Past, asked: Instant | None, offset: int
) -> Iterator[tuple[Reason, Instant]]:
    """Yield what keeps instants from firing, each with the last instant that it swallows."""
    if past.hold is not None and past.hold.until is not None:
        yield past.hold.reason, past.hold.until - offset - 1
    if asked is not None:
        yield "backing off", asked - 1
    elif past.due is not None and past.failures:
        following = rule.series.next(past.due)
        own = 0 if following is None else following - past.due
        slowed = policies.on_failure.interval(own, past.failures)
        if slowed > own:
            yield "backing off", past.due + slowed - 1


def _fire(
    key: str, series: Series, policies: Policies, past: Past, due: Span | None, start: Instant, until: Instant
) -> Decision:
    """Decide which of the instants that are left become runs, under `missed`, `grace`, `max_runs` and `overlap`."""
    if due is None:
        return Decision()
    chosen = _chosen(series, policies, due, start, until)
    found: Found = []
    if len(chosen) < due.count:
        before = newest(series, policies.exclude, start, chosen[0] - 1, 1)[0] if chosen else due.last
        reason: Reason = "merged" if chosen and policies.missed == "latest" else "missed"
        found.append((reason, Span(due.first, before, due.count - len(chosen))))
    space = room(policies, past.under_way, len(chosen))
    let_in = chosen[: space.start + space.queue]
    left = len(let_in) if policies.max_runs is None else policies.max_runs - past.runs
    going = let_in[:left]
    spent = policies.max_runs is not None and len(going) == left
    shut_out = chosen[len(let_in) :]
    if shut_out and not spent:
        found.append(("overlap", Span(shut_out[0], shut_out[-1], len(shut_out))))
    fired = tuple(
        Firing(
            due=each,
            at=each + jitter_offset(key, each, micros(policies.jitter)),
            queued=number >= space.start,
            late=until - each > ON_TIME,
        )
        for number, each in enumerate(going)
    )
    return Decision(
        fire=fired,
        skips=tuple(Skip(reason, span.first, span.last, span.count) for reason, span in found if span),
        through=going[-1] if going else None,
        cancel=space.cancel,
        finished=spent,
    )


def _chosen(series: Series, policies: Policies, due: Span, start: Instant, until: Instant) -> list[Instant]:
    """Return the instants that `missed` and `grace` let fire, in order."""
    grace = None if policies.grace is None else micros(policies.grace)
    if policies.missed == "all":
        oldest = start if grace is None else max(start, until - grace - 1)
        return newest(series, policies.exclude, oldest, until, policies.max_missed)
    if policies.missed == "none" and grace is None:
        grace = ON_TIME
    return [due.last] if grace is None or until - due.last <= grace else []


def _ahead(decision: Decision, series: Series, policies: Policies, after: Instant, offset: int) -> Decision:
    """Add what is next."""
    following = next_included(series, policies.exclude, after)
    if following is None:
        return replace(decision, finished=True)
    if excluded(policies.exclude, following):  # excluded for as far as was looked: look again then
        return replace(decision, wake=following + offset)
    return replace(decision, next=following, wake=following + offset)
