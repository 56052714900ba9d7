"""Laws of the decision, over random rules, policies, pasts and moments: it says what a plain model says."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from hypothesis import event, given, settings
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

LAW = settings(deadline=None, max_examples=80)
MODEL = settings(LAW, max_examples=350)

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
SHADES = ("*/3 * * * *", "* */2 * * *", "*/2 * * * * *", "* 2 * * *", "0 * * * *", "* * * * SUN")
DAYS = (("day", ()), ("week", ("mon", "thu")), ("month", ("1", "last")))
TIMES = (("09:00",), ("01:30", "02:30"), ("02:30:15",), ("00:00:30", "23:59:59"))


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


class Place(NamedTuple):
    """A moment on any ground: at, or a little off, a place where something may be due."""

    number: int
    halves: int
    micros: int

    def on(self, ground: Ground) -> int:
        return ground.base + self.number * ground.unit + self.halves * ground.unit // 2 + self.micros


# A recipe makes a rule from the ground, or from the base alone; so each strategy is built once.
Recipe = Callable[[int], tuple[Rule, int]]
Choices = st.SearchStrategy[Any]


def places(low: int, high: int) -> st.SearchStrategy[Place]:
    near = (0, 0, 0, 0, 0, 0, 1, -1, SECOND, 30 * SECOND, MINUTE, MINUTE + 1, 250_000)
    return st.builds(Place, st.integers(low, high), st.sampled_from((0, 0, 0, 1)), st.sampled_from(near))


EARLY, EARLIER, ANY, LATER = places(-4, 6), places(-8, 0), places(-4, 30), places(8, 30)
BOUNDS = st.tuples(st.sampled_from((0, 0, 0, 0, 1, 2, 3)), EARLY, LATER)


def limits(ground: Ground, bounds: tuple[int, Place, Place]) -> dict[str, Any]:
    chosen, *ends = bounds
    first, last = sorted(end.on(ground) for end in ends)
    return {**({"start": moment(first)} if chosen & 1 else {}), **({"end": moment(last)} if chosen & 2 else {})}


def crons(
    kind: tuple[str, int],
    zone: str,
    gap: Literal["after", "skip"],
    repeat: Literal["first", "second", "both"],
    bounds: Any,
) -> Recipe:
    expr, unit = kind
    return lambda base: (Cron(expr, zone, gap=gap, repeat=repeat, **limits(Ground(base, unit), bounds)), unit)


def calendars(days: Any, at: tuple[str, ...], every: int, zone: str, bounds: Any) -> Recipe:
    unit, on = days
    return lambda base: (
        Calendar(unit, every=every, on=on, at=at, tz=zone, **limits(Ground(base, DAY), bounds)),
        DAY,
    )


def intervals(unit: int, shift: int | None, bounds: Any) -> Recipe:
    def made(base: int) -> tuple[Rule, int]:
        origin: dict[str, Any] = {} if shift is None else {"origin": moment(base - shift)}
        return Every(timedelta(microseconds=unit), **origin, **limits(Ground(base, unit), bounds)), unit

    return made


def lists(unit: int, given: list[Place], whole: bool, bounds: Any) -> Recipe:
    def made(base: int) -> tuple[Rule, int]:
        ground = Ground(base, unit)
        found = [place.on(ground) // SECOND * SECOND if whole else place.on(ground) for place in given]
        return At([moment(each) for each in found], **limits(ground, bounds)), unit

    return made


def unions(recipes: list[Recipe], bounds: Any) -> Recipe:
    def made(base: int) -> tuple[Rule, int]:
        parts = [recipe(base) for recipe in recipes]
        unit = min(unit for _, unit in parts)
        return AnyOf(*(rule for rule, _ in parts), **limits(Ground(base, unit), bounds)), unit

    return made


ZONE = st.sampled_from(ZONES)
REPEAT = st.sampled_from(("first", "second", "both"))
CRON = st.builds(crons, st.sampled_from(CRONS), ZONE, st.sampled_from(("after", "skip")), REPEAT, BOUNDS)
CALENDAR = st.builds(calendars, st.sampled_from(DAYS), st.sampled_from(TIMES), st.integers(1, 2), ZONE, BOUNDS)
WHOLE = st.sampled_from((SECOND, 7 * SECOND, 90 * SECOND, HOUR, 36 * HOUR))
INTERVAL = st.builds(intervals, WHOLE, st.sampled_from((None, 0, 13 * SECOND)), BOUNDS)
UNIT = st.sampled_from((SECOND, MINUTE, HOUR, DAY))
LIST = st.builds(lists, UNIT, st.lists(places(0, 20), min_size=1, max_size=12), st.booleans(), BOUNDS)
UNION = st.builds(unions, st.lists(st.one_of(CRON, CALENDAR, INTERVAL, LIST), min_size=1, max_size=3), BOUNDS)
SERIES = st.one_of(CRON, CRON, CALENDAR, INTERVAL, LIST, UNION)
SHADE = st.builds(crons, st.tuples(st.sampled_from(SHADES), UNIT), ZONE, st.just("after"), REPEAT, BOUNDS)
EXCLUDED = st.lists(st.one_of(LIST, LIST, SHADE, CRON, CALENDAR, INTERVAL, UNION), max_size=2)

SOME_UNITS = st.sampled_from((0, 1, 2, 6))
SOME_TIME = st.sampled_from(("0s", "30s", "60s")) | SOME_UNITS
OVERLAPS: Choices = st.tuples(
    st.sampled_from(("skip", "queue_one", "queue_all", "cancel_running", "allow")), st.integers(1, 4)
)
CATCHING_UP: Choices = st.tuples(st.sampled_from(("latest", "all", "none")), st.sampled_from((1, 2, 5, 100)))
FAILING: Choices = st.tuples(st.none() | st.integers(1, 3), st.sampled_from(("24h", 1, 6, 60)))
RUNS_LEFT = st.sampled_from((None, None, None, None, None, None, 0, 1, 1, 2, 4))
KEYS = st.sampled_from(("a", "feed-42", "x:y"))
REASONS = st.sampled_from((None, None, None, "paused", "parked"))
HOLD: Choices = st.tuples(REASONS, st.sampled_from((True, True, True, True, False)), EARLY | EARLY | ANY)
ENDED = st.sampled_from(("succeeded", "failed", "cancelled"))
UNDER_WAY = st.sampled_from((0, 0, 0, 1, 2, 3))


def of(ground: Ground, given: Any) -> Any:
    """A length that is given as text, or in halves of the unit."""
    return given if not isinstance(given, int) else timedelta(microseconds=given * ground.unit // 2)


@st.composite
def many_policies(draw: st.DrawFn, ground: Ground, runs: int) -> Policies:
    (overlap, most), (missed, max_missed), (double_from, cap) = draw(OVERLAPS), draw(CATCHING_UP), draw(FAILING)
    left = draw(RUNS_LEFT)
    return Policies(
        overlap=overlap,
        max_running=most if overlap == "allow" else 1,
        missed=missed,
        max_missed=max_missed,
        grace=of(ground, draw(st.none() | st.none() | SOME_TIME)),
        spread=of(ground, draw(SOME_TIME)),
        jitter=of(ground, draw(SOME_TIME)),
        exclude=[recipe(ground.base)[0] for recipe in draw(EXCLUDED)],
        max_runs=None if left is None else max(1, runs + left),
        on_failure=OnFailure(double_from=double_from, cap=of(ground, cap)),
        adaptive=draw(st.none() | st.just(Adaptive(floor=of(ground, 1), ceiling=of(ground, 3)))),
    )


def hold_on(ground: Ground, given: tuple[Literal["paused", "parked"] | None, bool, Place]) -> Hold | None:
    reason, known, until = given
    return None if reason is None else Hold(reason, until.on(ground) if known else None)


def base_of(text: str) -> int:
    return instant(datetime.fromisoformat(text))


@st.composite
def fixed_cases(draw: st.DrawFn) -> Case:
    base = base_of(draw(st.sampled_from(BASES)))
    rule, unit = draw(SERIES)(base)
    ground = Ground(base, unit)
    ran: dict[str, Any] = {}
    through = draw(st.none() | EARLY)
    if draw(st.booleans()):
        due, ended = draw(EARLIER), draw(ENDED)
        through = max(due, through or due, key=lambda place: place.on(ground))
        ran = {"due": due.on(ground), "ended": ended, "runs": draw(st.integers(1, 5))}
        ran |= {"failures": 0 if ended == "succeeded" else draw(st.integers(1, 6))}
        ran |= {"asked": asked.on(ground) if (asked := draw(st.none() | st.none() | ANY)) else None}
    past = Past(
        since=draw(EARLY).on(ground),
        through=through and through.on(ground),
        under_way=draw(UNDER_WAY),
        hold=hold_on(ground, draw(HOLD)),
        **ran,
    )
    key, policies = draw(KEYS), draw(many_policies(ground, past.runs))
    now = draw(LATER | LATER | ANY).on(ground) + draw(st.sampled_from((0, 1))) * spread_offset(
        key, length(policies.spread)
    )
    return Case(key, rule, policies, past, now)


@st.composite
def anchored_cases(draw: st.DrawFn) -> Case:
    base = base_of(draw(st.sampled_from(BASES)))
    ground = Ground(base, draw(st.sampled_from((SECOND, 90 * SECOND, 15 * MINUTE, HOUR, HOUR + 1, DAY))))
    bounds = limits(ground, draw(BOUNDS))
    rule = Every(
        timedelta(microseconds=ground.unit), since=draw(st.sampled_from(("success", "finish", "start"))), **bounds
    )
    ran: dict[str, Any] = {"through": place.on(ground) if (place := draw(st.none() | EARLIER)) else None}
    if draw(st.sampled_from((False, True, True, True))):
        due, through, ended = draw(EARLIER).on(ground), draw(EARLIER).on(ground), draw(ENDED)
        started, finished = sorted((draw(EARLY).on(ground), draw(EARLY).on(ground)))
        ran = {"due": due, "through": max(due, through), "started": started, "finished": finished, "ended": ended}
        ran |= {"runs": draw(st.integers(1, 5)), "succeeded": finished if ended == "succeeded" else None}
        ran |= {"failures": 0 if ended == "succeeded" else draw(st.integers(1, 6))}
        ran |= {"asked": asked.on(ground) if (asked := draw(st.none() | st.none() | ANY)) else None}
    past = Past(
        since=draw(EARLY).on(ground),
        under_way=draw(st.sampled_from((0, 0, 0, 0, 0, 1, 2))),
        average=draw(st.sampled_from((None, 0.0, 1.0, 5.0, 10.0, 11.0))),
        hold=hold_on(ground, draw(HOLD)),
        **ran,
    )
    policies = Policies(**{**vars(draw(many_policies(ground, past.runs))), "jitter": 0})
    return Case(draw(KEYS), rule, policies, past, draw(LATER | ANY).on(ground))


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


@MODEL
@given(fixed_cases())
def test_a_fixed_series_is_decided_as_the_table_says(case: Case) -> None:
    decision = case.ask()
    event(", ".join([*(skip.reason for skip in decision.skips), *("fires" for _ in decision.fire[:1])]))
    agree(decision, verdict_of(*case))


@MODEL
@given(anchored_cases())
def test_an_anchored_interval_is_decided_as_the_table_says(case: Case) -> None:
    decision = case.ask()
    event(", ".join([*(skip.reason for skip in decision.skips), *("fires" for _ in decision.fire[:1])]))
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
