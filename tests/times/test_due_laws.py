"""Laws of the decision, over random rules, policies, pasts and moments: it agrees with a plain model, and forgets none."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.times.model import Fixed, Verdict, excluded, instant, length, moment, rows, verdict_of

from rota.times import (
    Adaptive,
    AnyOf,
    At,
    Calendar,
    Cron,
    Decision,
    Every,
    Hold,
    OnFailure,
    Past,
    Policies,
    Rule,
    decide,
    spread_offset,
)

LAW = settings(
    deadline=None, max_examples=250, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata")
BASES = (
    "2026-07-01T00:00Z",
    "2026-03-29T00:00Z",  # Berlin loses an hour at 01:00 UTC
    "2026-10-25T00:00Z",  # and has one twice
    "2026-03-08T06:00Z",  # New York loses an hour at 07:00 UTC
    "2026-11-01T05:00Z",  # and has one twice
    "2026-04-04T14:00Z",  # Lord Howe has half an hour twice at 15:00 UTC
    "2026-10-03T15:00Z",  # and loses it at 15:30 UTC
)
CRONS = (
    ("* * * * * *", SECOND),
    ("*/20 * * * * *", 20 * SECOND),
    ("30 */2 * * * *", 2 * MINUTE),
    ("* * * * *", MINUTE),
    ("*/15 * * * *", 15 * MINUTE),
    ("0 * * * *", HOUR),
    ("0,30 1-3 * * *", HOUR),
    ("30 2 * * *", DAY),
    ("@daily", DAY),
    ("0 9 * * MON,THU", 3 * DAY),
)


class Case(NamedTuple):
    """One question to the decision."""

    key: str
    rule: Rule
    policies: Policies
    past: Past
    now: int

    def ask(self) -> Decision:
        return decide(*self)

    @property
    def offset(self) -> int:
        return spread_offset(self.key, length(self.policies.spread))

    @property
    def answered(self) -> int:
        return max(self.past.since, self.past.through or 0)


class Ground(NamedTuple):
    """Where and how densely a case plays."""

    base: int
    unit: int


@st.composite
def points(draw: st.DrawFn, ground: Ground, low: int = -4, high: int = 30) -> int:
    """A moment at, or a little off, a place where something may be due."""
    near = st.sampled_from((0, 0, 0, 0, 1, -1, SECOND, 30 * SECOND, MINUTE, MINUTE + 1, ground.unit // 2, HOUR // 2))
    return ground.base + draw(st.integers(low, high)) * ground.unit + draw(near)


@st.composite
def some_bounds(draw: st.DrawFn, ground: Ground) -> dict[str, datetime]:
    first, last = sorted((draw(points(ground, -4, 15)), draw(points(ground, 0, 30))))
    chosen = draw(st.sampled_from((0, 0, 0, 0, 1, 2, 3)))
    return {**({"start": moment(first)} if chosen & 1 else {}), **({"end": moment(last)} if chosen & 2 else {})}


@st.composite
def crons(draw: st.DrawFn, base: int) -> tuple[Rule, int]:
    expr, unit = draw(st.sampled_from(CRONS))
    gap, repeat = draw(st.sampled_from(("after", "skip"))), draw(st.sampled_from(("first", "second", "both")))
    limits = draw(some_bounds(Ground(base, unit)))
    return Cron(expr, draw(st.sampled_from(ZONES)), gap=gap, repeat=repeat, **limits), unit


@st.composite
def calendars(draw: st.DrawFn, base: int) -> tuple[Rule, int]:
    unit, on = draw(st.sampled_from((("day", ()), ("week", ("mon", "thu")), ("month", ("1", "last")))))
    at = draw(st.sampled_from((("09:00",), ("01:30", "02:30"), ("02:30:15",), ("00:00:30", "23:59:59"))))
    every, tz = draw(st.integers(1, 2)), draw(st.sampled_from(ZONES))
    return Calendar(unit, every=every, on=on, at=at, tz=tz, **draw(some_bounds(Ground(base, DAY)))), DAY


@st.composite
def intervals(draw: st.DrawFn, base: int, *, whole: bool = False) -> tuple[Rule, int]:
    micros = draw(st.sampled_from((SECOND, 7 * SECOND, 90 * SECOND, HOUR, 36 * HOUR)))
    micros += 0 if whole else draw(st.sampled_from((0, 0, 500_000, 1)))
    limits = draw(some_bounds(Ground(base, micros)))
    origin = moment(base - (0 if whole else draw(st.sampled_from((0, 1, 250_000)))))
    return Every(timedelta(microseconds=micros), **draw(st.sampled_from(({}, {"origin": origin}))), **limits), micros


@st.composite
def lists(draw: st.DrawFn, base: int) -> tuple[Rule, int]:
    unit = draw(st.sampled_from((SECOND, MINUTE, HOUR, DAY)))
    places = points(Ground(base, unit), 0, 20)
    if draw(st.booleans()):
        places = places.map(lambda place: place // SECOND * SECOND)
    moments = [moment(place) for place in draw(st.lists(places, min_size=1, max_size=12))]
    return At(moments, **draw(some_bounds(Ground(base, unit)))), unit


@st.composite
def unions(draw: st.DrawFn, base: int) -> tuple[Rule, int]:
    parts = st.one_of(crons(base), calendars(base), intervals(base, whole=True), lists(base))
    found = draw(st.lists(parts, min_size=1, max_size=3))
    unit = min(unit for _, unit in found)
    return AnyOf(*(rule for rule, _ in found), **draw(some_bounds(Ground(base, unit)))), unit


def series(base: int, *, whole: bool = False) -> st.SearchStrategy[tuple[Rule, int]]:
    return st.one_of(crons(base), calendars(base), intervals(base, whole=whole), lists(base), unions(base))


@st.composite
def exclusions(draw: st.DrawFn, ground: Ground, *, most: int = 2) -> list[Rule]:
    """Rules of every kind, at places where they take out something but seldom all."""
    near = lists(ground.base).map(lambda found: found[0])
    some = st.sampled_from(("*/3 * * * *", "* */2 * * *", "*/2 * * * * *", "* 2 * * *", "0 * * * *", "* * * * SUN"))
    wall = st.builds(Cron, some, st.sampled_from(ZONES), repeat=st.sampled_from(("first", "both")))
    any_kind = st.one_of(near, near, wall, series(ground.base, whole=True).map(lambda found: found[0]))
    return draw(st.lists(any_kind, max_size=most))


@st.composite
def many_policies(draw: st.DrawFn, ground: Ground, runs: int) -> Policies:
    overlap = draw(st.sampled_from(("skip", "queue_one", "queue_all", "cancel_running", "allow")))
    few = timedelta(microseconds=ground.unit)
    lengths = st.sampled_from((0, "30s", "60s", few, 3 * few))
    left = draw(st.none() | st.none() | st.integers(0, 4))
    return Policies(
        overlap=overlap,
        max_running=draw(st.integers(1, 4)) if overlap == "allow" else 1,
        missed=draw(st.sampled_from(("latest", "all", "none"))),
        max_missed=draw(st.sampled_from((1, 2, 5, 100))),
        grace=draw(st.none() | lengths),
        spread=draw(st.just(0) | lengths),
        jitter=draw(st.just(0) | lengths),
        exclude=draw(exclusions(ground)),
        max_runs=None if left is None else max(1, runs + left),
        on_failure=draw(failure_policies(few)),
        adaptive=draw(st.none() | st.builds(Adaptive, floor=st.just(few / 4), ceiling=st.just(few * 4))),
    )


@st.composite
def failure_policies(draw: st.DrawFn, few: timedelta) -> OnFailure:
    cap = draw(st.sampled_from(("24h", few / 2, 3 * few, 30 * few)))
    return OnFailure(double_from=draw(st.none() | st.integers(1, 3)), cap=cap)


@st.composite
def fixed_cases(draw: st.DrawFn) -> Case:
    base = instant(datetime.fromisoformat(draw(st.sampled_from(BASES))))
    rule, unit = draw(series(base))
    ground = Ground(base, unit)
    since, through = draw(points(ground, -4, 6)), draw(st.none() | points(ground, -4, 12))
    due = draw(st.none() | points(ground, -8, 10))
    ended = draw(st.sampled_from(("succeeded", "failed", "cancelled"))) if due is not None else None
    runs = draw(st.integers(1, 5)) if due is not None else 0
    past = Past(
        since=since,
        through=through if due is None else max(due, through or 0),
        due=due,
        runs=runs,
        under_way=draw(st.sampled_from((0, 0, 0, 1, 2, 3))),
        ended=ended,
        failures=draw(st.integers(1, 6)) if ended in ("failed", "cancelled") else 0,
        asked=draw(st.none() | st.none() | points(ground)) if ended is not None else None,
        hold=draw(holds(ground)),
    )
    key, policies = draw(st.sampled_from(("a", "feed-42", "x:y"))), draw(many_policies(ground, runs))
    now = draw(points(ground)) + draw(st.sampled_from((0, spread_offset(key, length(policies.spread)))))
    return Case(key, rule, policies, past, now)


def holds(ground: Ground) -> st.SearchStrategy[Hold | None]:
    reasons = st.sampled_from(("paused", "parked"))
    return st.none() | st.none() | st.builds(Hold, reasons, st.none() | points(ground) | points(ground, 0, 5))


@st.composite
def anchored_cases(draw: st.DrawFn) -> Case:
    base = instant(datetime.fromisoformat(draw(st.sampled_from(BASES))))
    unit = draw(st.sampled_from((SECOND, 90 * SECOND, 15 * MINUTE, HOUR, HOUR + 1, DAY)))
    ground = Ground(base, unit)
    since = draw(st.sampled_from(("success", "finish", "start")))
    rule = Every(timedelta(microseconds=unit), since=since, **draw(some_bounds(ground)))
    started, finished = sorted((draw(points(ground, -3, 3)), draw(points(ground, -3, 3))))
    ended = draw(st.sampled_from((None, "succeeded", "failed", "cancelled")))
    runs = draw(st.integers(0, 5))
    ran: dict[str, Any] = {"through": draw(st.none() | points(ground, -4, 0))}
    if ended is not None:
        due = draw(points(ground, -3, 0))
        ran = {"through": max(due, draw(points(ground, -4, 2))), "due": due, "started": started, "finished": finished}
        ran |= {"succeeded": finished} if ended == "succeeded" else {}
        ran |= {"failures": 0 if ended == "succeeded" else draw(st.integers(1, 6))}
        ran |= {"asked": draw(st.none() | st.none() | points(ground, -3, 12))}
    past = Past(
        since=draw(points(ground, -4, 4)),
        runs=runs,
        under_way=draw(st.sampled_from((0, 0, 0, 0, 1, 2))),
        ended=ended,
        average=draw(st.sampled_from((None, 0.0, 1.0, 5.0, 10.0, 11.0))),
        hold=draw(holds(ground)),
        **ran,
    )
    policies = draw(many_policies(ground, runs))
    policies = Policies(**{**vars(policies), "jitter": 0})
    return Case(draw(st.sampled_from(("a", "feed-42", "x:y"))), rule, policies, past, draw(points(ground)))


def agree(decision: Decision, verdict: Verdict) -> None:
    """Compare all that a decision says with the model."""
    assert list(decision.fire) == verdict.fire
    assert rows(decision) == verdict.skips()
    assert decision.through == verdict.through
    assert decision.cancel == verdict.cancel
    if verdict.gave_up:
        assert decision.next is None or decision.next > verdict.looked
    else:
        assert decision.finished == verdict.finished
        assert (decision.next, decision.wake) == (verdict.next, verdict.wake)


def after(case: Case, decision: Decision) -> Past:
    """The past once a decision has been carried out: its runs are under way, and a hold that ended is dealt with."""
    past, hold = case.past, case.past.hold
    ended = hold is not None and hold.until is not None and hold.until <= case.now
    past = replace(past, through=decision.through, hold=None if ended else hold)
    if not decision.fire:
        return past
    runs, under_way = past.runs + len(decision.fire), past.under_way + len(decision.fire)
    return replace(past, due=decision.fire[-1].due, runs=runs, under_way=under_way, asked=None)


def answers(decision: Decision) -> int:
    return len(decision.fire) + sum(skip.count for skip in decision.skips)


@LAW
@given(fixed_cases())
def test_a_fixed_series_is_decided_as_the_table_says(case: Case) -> None:
    decision = case.ask()
    event(f"{len(decision.fire) and 'fires'} {sorted({skip.reason for skip in decision.skips})}")
    agree(decision, verdict_of(*case))


@LAW
@given(anchored_cases())
def test_an_anchored_interval_is_decided_as_the_table_says(case: Case) -> None:
    decision = case.ask()
    event(f"{len(decision.fire) and 'fires'} {sorted({skip.reason for skip in decision.skips})}")
    agree(decision, verdict_of(*case))


@LAW
@given(fixed_cases())
def test_every_instant_up_to_through_has_exactly_one_answer(case: Case) -> None:
    decision = case.ask()
    dues = [due for due in Fixed(*case).come() if due <= (decision.through or 0)]
    assert answers(decision) == len(dues)
    assert {firing.due for firing in decision.fire} <= set(dues)
    assert {end for skip in decision.skips for end in (skip.first, skip.last)} <= set(dues)
    assert all(skip.first <= skip.last and (skip.first < skip.last) == (skip.count > 1) for skip in decision.skips)


@LAW
@given(fixed_cases())
def test_nothing_that_has_come_is_left_without_an_answer(case: Case) -> None:
    decision, hold = case.ask(), case.past.hold
    if not (decision.finished or (hold is not None and hold.open(case.now))):
        assert answers(decision) == len(Fixed(*case).come())


@LAW
@given(st.one_of(fixed_cases(), anchored_cases()))
def test_deciding_again_at_the_same_moment_brings_nothing_new(case: Case) -> None:
    decision = case.ask()
    again = case._replace(past=after(case, decision)).ask()
    assert (again.fire, again.skips) == ((), ())
    assert again.through == decision.through
    assert again.finished >= decision.finished


@LAW
@given(fixed_cases(), st.data())
def test_two_decisions_cover_what_one_covers(case: Case, data: st.DataObject) -> None:
    policies = Policies(**{**vars(case.policies), "max_runs": None})
    asked = None if case.past.asked is None or case.past.asked <= case.answered else case.past.asked
    case = case._replace(policies=policies, past=replace(case.past, asked=asked))
    earlier = case._replace(now=data.draw(st.integers(min(case.now, case.answered), case.now)))
    first, once = earlier.ask(), case.ask()
    second = case._replace(past=after(earlier, first)).ask()
    assert second.through == once.through
    assert answers(first) + answers(second) == answers(once)


@LAW
@given(st.one_of(fixed_cases(), anchored_cases()))
def test_what_is_next_lies_ahead(case: Case) -> None:
    decision = case.ask()
    fixed = not (isinstance(case.rule, Every) and case.rule.anchored)
    if decision.next is not None:
        assert decision.next > case.now - (case.offset if fixed else 0)
        assert decision.next > (decision.through or 0)
        assert decision.wake == decision.next + (case.offset if fixed else 0)


@LAW
@given(st.one_of(fixed_cases(), anchored_cases()))
def test_firings_are_in_order_and_never_answered_before(case: Case) -> None:
    dues = [firing.due for firing in case.ask().fire]
    assert dues == sorted(set(dues))
    assert all(due <= case.now and (case.past.through is None or due > case.past.through) for due in dues)
    assert all(firing.at >= case.now for firing in case.ask().fire)


@LAW
@given(st.one_of(fixed_cases(), anchored_cases()))
def test_an_excluded_instant_never_fires(case: Case) -> None:
    decision = case.ask()
    assert not any(excluded(case.policies, firing.due) for firing in decision.fire)


@LAW
@given(st.one_of(fixed_cases(), anchored_cases()))
def test_what_is_finished_has_no_next_and_stays_finished(case: Case) -> None:
    decision = case.ask()
    if decision.finished:
        assert (decision.next, decision.wake) == (None, None)
        later = case._replace(past=after(case, decision), now=case.now + 400 * DAY).ask()
        assert later.finished or later.next is None
        assert later.fire == ()


@LAW
@given(fixed_cases(), st.integers(1, 3))
def test_the_rule_never_makes_more_runs_than_it_may(case: Case, left: int) -> None:
    policies = Policies(**{**vars(case.policies), "max_runs": case.past.runs + left})
    decision = case._replace(policies=policies).ask()
    assert len(decision.fire) <= left
    assert decision.finished or len(decision.fire) < left
