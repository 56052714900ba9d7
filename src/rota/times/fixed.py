"""The decision for fixed series: cron, calendars, lists of moments, and intervals counted from an origin."""

from collections.abc import Iterator
from dataclasses import replace

from rota.times.decision import Decision, Firing, Past, Reason, Skip
from rota.times.exclusion import Span, excluded, newest, next_included, spans
from rota.times.moments import SECOND, Instant, micros
from rota.times.overlap import Room, room
from rota.times.policies import Policies
from rota.times.rule import Rule
from rota.times.series import Listed, Series, Union
from rota.times.spread import jitter_offset, spread_offset

ON_TIME = 60 * SECOND
"""What is at most this late is on time. Later is catching up; with `missed="none"` and no grace it is missed."""

Found = list[tuple[Reason, Span | None]]
_NO_ROOM = Room(0)


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
        ahead = _ahead(series, policies, max(answered, *(end for _, end in swallowed)), offset)
        if ahead is not None:
            return Decision(through=past.through, next=ahead[0], wake=ahead[1])
        if series.next(answered) is not None:  # what the hold swallows has no answer yet
            return Decision(through=past.through, wake=past.hold.until)
        return Decision(through=past.through, finished=True)

    start, found = answered, Found()
    for reason, end in swallowed:
        last = min(end, until)
        if start < last:
            found.append((reason, spans(series, (), start, last)[0]))
            start = last
    due, out = spans(series, policies.exclude, start, until)
    going, space, spent = _let_in(series, policies, past, due, start, until, found)
    if spent:  # nothing after the last run is due any more
        out = spans(series, policies.exclude, start, going[-1])[1]
    found.append(("excluded", out))
    skips = [Skip(reason, span.first, span.last, span.count) for reason, span in found if span]
    through = going[-1] if spent else series.previous(until + 1)
    if past.failures and (going or (asked is not None and asked <= until)):
        # from now on it backs off from what fires now, and no longer to what was asked for
        swallowed = list(_swallowed(rule, policies, replace(past, due=going[-1] if going else past.due), None, offset))
    ahead = None if spent else _ahead(series, policies, max(until, answered, *(e for _, e in swallowed)), offset)
    jitter = micros(policies.jitter)
    return Decision(
        fire=tuple(
            Firing(
                due=each,
                at=max(now, each + offset + jitter_offset(key, each, jitter)),
                queued=number >= space.start,
                late=until - each > ON_TIME,
            )
            for number, each in enumerate(going)
        ),
        skips=tuple(sorted(skips, key=lambda skip: skip.first)),
        through=past.through if through is None or through <= answered else through,
        next=None if ahead is None else ahead[0],
        wake=None if ahead is None else ahead[1],
        cancel=bool(going) and space.cancel,
        finished=ahead is None,
    )


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


def _let_in(
    series: Series, policies: Policies, past: Past, due: Span | None, start: Instant, until: Instant, found: Found
) -> tuple[list[Instant], Room, bool]:
    """Decide which of the instants that are left become runs, under `missed`, `grace`, `max_runs` and `overlap`.

    Adds to what was found why the others do not. Returns too what room there is, and whether these are the last.
    """
    if due is None:
        return [], _NO_ROOM, False
    chosen = _chosen(series, policies, due, start, until)
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
    return going, space, spent


def _chosen(series: Series, policies: Policies, due: Span, start: Instant, until: Instant) -> list[Instant]:
    """Return the instants that `missed` and `grace` let fire, in order."""
    grace = None if policies.grace is None else micros(policies.grace)
    if policies.missed == "all":
        oldest = start if grace is None else max(start, until - grace - 1)
        return newest(series, policies.exclude, oldest, until, policies.max_missed)
    if policies.missed == "none" and grace is None:
        grace = ON_TIME
    return [due.last] if grace is None or until - due.last <= grace else []


def _ahead(series: Series, policies: Policies, after: Instant, offset: int) -> tuple[Instant | None, Instant] | None:
    """Return what is next, if that is known, and when to look again; None where nothing will ever be."""
    following = next_included(series, policies.exclude, after)
    if following is None:
        return None
    # excluded for as far as was looked: look again then
    return None if excluded(policies.exclude, following) else following, following + offset
