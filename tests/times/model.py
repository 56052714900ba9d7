"""A second opinion on what becomes of due instants: docs/reference/due.md, row by row, over a plain list.

The model lists every instant of a short range by asking the rule for the next one, and gives each instant its answer by
going down the table. Nothing is counted, merged or jumped over: it is slow, and shares no line with the decision.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import Any

from rota.times import (
    AnyOf,
    At,
    Calendar,
    Cron,
    Decision,
    Every,
    Firing,
    Past,
    Policies,
    Rule,
    Skip,
    jitter_offset,
    spread_offset,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
SECOND = 1_000_000
MINUTE = 60 * SECOND
LOOK = 100  # how many instants ahead the model looks for the next one


@dataclass
class Verdict:
    """What the model says."""

    fire: list[Firing] = field(default_factory=list)
    skipped: dict[Any, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Each skipped instant, under its reason."""
    through: int | None = None
    next: int | None = None
    wake: int | None = None
    cancel: bool = False
    finished: bool = False
    looked: int = 0
    """How far the model looked for the next instant, and whether it gave up there."""
    gave_up: bool = False

    def forget_after(self, last: int) -> None:
        """The last run that the rule may make has been made: no instant after it is due any more."""
        for reason, dues in self.skipped.items():
            self.skipped[reason] = [due for due in dues if due <= last]
        self.through, self.finished = last, True

    def skips(self) -> dict[str, Skip]:
        """The rows that these skips make: one for each reason."""
        return {why: Skip(why, min(each), max(each), len(each)) for why, each in self.skipped.items() if each}


def rows(decision: Decision) -> dict[str, Skip]:
    """The skips of a decision by their reason."""
    assert len({skip.reason for skip in decision.skips}) == len(decision.skips), "a reason has two rows"
    return {skip.reason: skip for skip in decision.skips}


def moment(instant: int) -> datetime:
    return EPOCH + instant * MICROSECOND


def instant(shown: datetime) -> int:
    return (shown - EPOCH) // MICROSECOND


def length(duration: timedelta) -> int:
    return duration // MICROSECOND


def bounds(rule: Rule) -> tuple[int, int]:
    """The rule's own start and end; where it has none, the ends of time."""
    start, end = getattr(rule, "start", None), getattr(rule, "end", None)
    return (0 if start is None else instant(start)), (1 << 62 if end is None else instant(end))


def inside(rule: Rule, wanted: int) -> int:
    """A moment moved to the rule's bounds, where it lies outside of them."""
    start, end = bounds(rule)
    return max(start, min(wanted, end))


def instants(rule: Rule, after: int) -> Iterator[int]:
    """Every instant of a fixed series after this one, step by step."""
    found = rule.next(moment(after))
    while found is not None:
        yield instant(found)
        found = rule.next(found)


# Exclusion: whole minutes, whole seconds, or exactly the moments.


def excluded(policies: Policies, due: int) -> bool:
    return any(names(rule, due) for rule in policies.exclude)


def names(rule: Rule, due: int, within: tuple[int, int] = (0, 1 << 62)) -> bool:
    """Whether an exclude rule names the minute, the second or the moment that an instant lies in."""
    if isinstance(rule, AnyOf):
        outer, own = within, bounds(rule)
        both = max(outer[0], own[0]), min(outer[1], own[1])
        return any(names(part, due, both) for part in rule.rules)
    reach = stands_for(rule)
    for found in instants(rule, due - reach):
        if found > due:
            return False
        if within[0] <= found <= within[1]:
            return True
    return False


def stands_for(rule: Rule) -> int:
    """How long an instant of an exclude rule stands for."""
    if isinstance(rule, At):
        return 1
    if isinstance(rule, Cron):
        return MINUTE if rule.expr.startswith("@") or len(rule.expr.split()) == 5 else SECOND
    if isinstance(rule, Calendar):
        return SECOND if any(time.count(":") == 2 for time in rule.at) else MINUTE
    return SECOND


# A fixed series.


@dataclass(frozen=True)
class Fixed:
    """The first table of the page, for one question."""

    key: str
    rule: Rule
    policies: Policies
    past: Past
    now: int

    @property
    def offset(self) -> int:
        """How much later than itself each instant comes."""
        return spread_offset(self.key, length(self.policies.spread))

    @property
    def answered(self) -> int:
        return max(self.past.since, self.past.through or 0)

    @property
    def asked(self) -> int | None:
        """The moment that the last run asked for, while it has no answer."""
        if self.past.asked is None or inside(self.rule, self.past.asked) <= self.answered:
            return None
        return inside(self.rule, self.past.asked)

    def verdict(self) -> Verdict:
        verdict, hold = Verdict(through=self.past.through), self.past.hold
        if reached(self.policies, self.past.runs):
            verdict.finished = True
        elif hold is not None and hold.until is None:
            pass
        elif hold is not None and hold.until is not None and self.now < hold.until:
            self.look_ahead(verdict, max(self.answered, hold.until - self.offset - 1))
            if verdict.finished and next(self.instants(self.answered), None) is not None:
                verdict.finished, verdict.wake = False, hold.until  # what the hold swallows has no answer yet
        else:
            self.answer(verdict)
        return verdict

    def instants(self, after: int) -> Iterator[int]:
        """The rule's instants, and the one that the last run asked for."""
        asked = self.asked
        if asked is not None and asked <= after:
            asked = None
        for due in instants(self.rule, after):
            if asked is not None and asked <= due:
                if asked < due:
                    yield asked
                asked = None
            yield due
        if asked is not None:
            yield asked

    def come(self) -> list[int]:
        """Every instant that needs an answer now."""
        return list(takewhile(lambda due: due + self.offset <= self.now, self.instants(self.answered)))

    def answer(self, verdict: Verdict) -> None:
        """Go down the table for every instant that has come."""
        dues = self.come()
        verdict.through = dues[-1] if dues else self.past.through
        left = []
        for due in dues:
            reason = self.set_aside(due)
            if reason is None:
                left.append(due)
            else:
                verdict.skipped[reason].append(due)
        for due, queued in self.meet_overlap(verdict, self.catch_up(verdict, left)):
            if not reached(self.policies, self.past.runs + len(verdict.fire)):
                verdict.fire.append(self.firing(due, queued=queued))
        if reached(self.policies, self.past.runs + len(verdict.fire)):
            verdict.forget_after(verdict.fire[-1].due)
        else:
            after, fired = self, verdict.fire
            if fired or (self.asked is not None and self.asked + self.offset <= self.now):
                # what fires now is what a failing schedule waits from, and what was asked for is answered
                after = replace(
                    self, past=replace(self.past, due=fired[-1].due if fired else self.past.due, asked=None)
                )
            after.look_ahead(verdict, max(self.answered, self.now - self.offset))

    def firing(self, due: int, *, queued: bool) -> Firing:
        comes = due + self.offset
        starts = max(self.now, comes + jitter_offset(self.key, due, length(self.policies.jitter)))
        return Firing(due=due, at=starts, queued=queued, late=self.now - comes > MINUTE)

    def set_aside(self, due: int) -> str | None:
        """The rows that take an instant out before anything is caught up."""
        hold = self.past.hold
        if hold is not None and hold.until is not None and due + self.offset < hold.until <= self.now:
            return hold.reason
        if due < (self.slowed() if self.asked is None else self.asked):
            return "backing off"
        return "excluded" if excluded(self.policies, due) else None

    def slowed(self) -> int:
        """Until when a failing schedule waits: its last due, and the doubled way from there to the instant after it."""
        following = None if self.past.due is None else self.rule.next(moment(self.past.due))
        if self.past.due is None or following is None:
            return 0
        own = instant(following) - self.past.due
        longer = self.policies.on_failure.interval(own, self.past.failures)
        return self.past.due + longer if longer > own else 0

    def catch_up(self, verdict: Verdict, dues: list[int]) -> list[int]:
        """The rows about what was missed."""
        missed, fires = self.policies.missed, []
        for place, due in enumerate(dues, 1):
            newest = len(dues) - place < (self.policies.max_missed if missed == "all" else 1)
            if newest and self.in_grace(due):
                fires.append(due)
            elif missed == "latest" and self.in_grace(dues[-1]):
                verdict.skipped["merged"].append(due)
            else:
                verdict.skipped["missed"].append(due)
        return fires

    def in_grace(self, due: int) -> bool:
        late = self.now - self.offset - due
        if self.policies.grace is None:
            return self.policies.missed != "none" or late <= MINUTE
        return late <= length(self.policies.grace)

    def meet_overlap(self, verdict: Verdict, dues: list[int]) -> list[tuple[int, bool]]:
        """The table of overlap: who starts, who is queued, who is skipped."""
        runs = []
        for place, due in enumerate(dues):
            what = overlapping(self.policies, self.past.under_way, place)
            if what is None:
                verdict.skipped["overlap"].append(due)
            else:
                runs.append((due, what == "queued"))
        verdict.cancel = self.policies.overlap == "cancel_running" and self.past.under_way > 0 and bool(runs)
        return runs

    def look_ahead(self, verdict: Verdict, after: int) -> None:
        """The first instant ahead that is neither excluded nor backed off."""
        for due in islice(self.instants(after), LOOK):
            if self.set_aside(due) is None:
                verdict.next, verdict.wake = due, due + self.offset
                return
            verdict.looked = due
        verdict.finished = next(self.instants(max(after, verdict.looked)), None) is None
        verdict.gave_up = not verdict.finished


def reached(policies: Policies, runs: int) -> bool:
    return policies.max_runs is not None and runs >= policies.max_runs


def overlapping(policies: Policies, under_way: int, place: int) -> str | None:
    """What becomes of the run at this place of those that fire together."""
    if policies.overlap == "allow":
        if under_way >= policies.max_running:
            return None
        return "started" if under_way + place < policies.max_running else "queued"
    if under_way == 0:
        return "started" if place == 0 else "queued"
    if policies.overlap == "skip":
        return None
    if policies.overlap == "queue_one":
        return "queued" if under_way == 1 and place == 0 else None
    return "queued"


# An anchored interval.


def anchored(key: str, rule: Every, policies: Policies, past: Past, now: int) -> Verdict:
    """The second table of the page."""
    verdict, hold = Verdict(through=past.through), past.hold
    if reached(policies, past.runs):
        verdict.finished = True
        return verdict
    if past.under_way:
        return verdict
    interval, end = interval_now(rule, policies, past), bounds(rule)[1]
    natural = max(due_by_table(key, rule, policies, past, interval), bounds(rule)[0])
    would_be = max(natural, 0 if past.through is None else past.through + 1)
    until = 0 if hold is None or hold.until is None else hold.until
    if would_be > end or (hold is not None and hold.until is None):
        verdict.finished = would_be > end
        return verdict
    if hold is not None and would_be < until <= now:
        verdict.skipped[hold.reason].append(would_be)
        verdict.through = until - 1
    wanted = max(would_be, until)
    due, gave_up = free_from(policies, wanted)
    if gave_up:
        verdict.looked, verdict.gave_up = due, True
    elif due > end:
        verdict.finished, verdict.wake = (False, until) if now < until else (True, None)
    elif due > now:
        verdict.next = verdict.wake = due
    else:
        verdict.skipped["excluded"] += [wanted] if due > wanted else []
        late = now - (due if due > wanted else natural)
        starts = now + spread_offset(key, min(length(policies.spread), now - natural))
        verdict.fire.append(Firing(due=due, at=starts, late=late > MINUTE))
        verdict.through, verdict.finished = due, reached(policies, past.runs + 1)
    return verdict


def free_from(policies: Policies, due: int) -> tuple[int, bool]:
    """The first moment that is not excluded, from the end of one exclusion to the next; or where it gave up."""
    for _ in range(20 * LOOK):
        ends = [end for rule in policies.exclude for end in ends_over(rule, due)]
        if not ends:
            return due, False
        due = max(ends)
    return due, True


def ends_over(rule: Rule, due: int, within: tuple[int, int] = (0, 1 << 62)) -> list[int]:
    """When what an exclude rule names around this moment ends."""
    if isinstance(rule, AnyOf):
        own = bounds(rule)
        both = max(within[0], own[0]), min(within[1], own[1])
        return [end for part in rule.rules for end in ends_over(part, due, both)]
    reach = stands_for(rule)
    named = takewhile(lambda found: found <= due, instants(rule, due - reach))
    return [found + reach for found in named if within[0] <= found <= within[1]]


def interval_now(rule: Every, policies: Policies, past: Past) -> int:
    """The user's interval, adapted, then lengthened by failures."""
    own = length(rule.interval)
    if policies.adaptive is not None:
        own = policies.adaptive.interval(own, past.average)
    return policies.on_failure.interval(own, past.failures)


def due_by_table(key: str, rule: Every, policies: Policies, past: Past, interval: int) -> int:
    """The rows of the table, down to the last run's anchor."""
    if past.asked is not None:
        return inside(rule, past.asked)
    if past.ended is None or past.started is None or past.finished is None:
        return past.since + spread_offset(key, length(policies.spread))
    if rule.since == "start":
        return past.started + interval
    return past.finished + interval


def verdict_of(key: str, rule: Rule, policies: Policies, past: Past, now: int) -> Verdict:
    """What the page says about a schedule."""
    if isinstance(rule, Every) and rule.since != "due":
        return anchored(key, rule, policies, past, now)
    return Fixed(key, rule, policies, past, now).verdict()
