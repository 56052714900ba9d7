"""What holds for every cron schedule in every zone at every moment, looked for mostly where clocks change."""

import string
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.times import oracle
from tests.times.oracle import Gap, Repeat

import rota

FAMILIAR_ZONES = [
    *("UTC", "Europe/Berlin", "America/New_York", "Europe/Dublin", "Europe/Lisbon", "Asia/Kolkata", "Asia/Kathmandu"),
    *("Australia/Lord_Howe", "Australia/Adelaide", "Pacific/Chatham", "Pacific/Apia", "Pacific/Kiritimati"),
    *("Africa/Cairo", "Africa/Casablanca", "Africa/Monrovia", "Asia/Gaza", "Asia/Beirut", "Asia/Tehran"),
    *("America/Sao_Paulo", "America/St_Johns", "America/Havana", "America/Caracas", "America/Scoresbysund"),
    *("Antarctica/Troll", "Antarctica/Casey", "Antarctica/Vostok", "Asia/Pyongyang", "Asia/Kuala_Lumpur"),
]
OTHER_ZONES = sorted(name for name in available_timezones() if "/" in name)
CHANGES_OF_NOTE = {
    "Pacific/Apia": 2011,
    "Pacific/Kiritimati": 1994,
    "Africa/Monrovia": 1972,
    "Antarctica/Vostok": 1994,
    "Antarctica/Casey": 2020,
    "America/St_Johns": 1988,
    "America/Caracas": 2016,
    "Asia/Pyongyang": 2018,
    "Asia/Kathmandu": 1985,
    "Asia/Kuala_Lumpur": 1981,
}


FOREVER = datetime(9999, 1, 1, tzinfo=UTC)


def laws(examples: int) -> settings:
    """So many examples, however slow the machine."""
    slow = [HealthCheck.too_slow]
    return settings(max_examples=examples, deadline=None, print_blob=True, suppress_health_check=slow)


# Expressions.


def items(low: int, high: int, often: list[int]) -> st.SearchStrategy[str]:
    """One item of a list: a number, a range or a step, near the values that matter."""
    number = st.sampled_from(often) | st.integers(low, high)
    step = st.integers(1, high + 2).map("/{}".format)
    ends = st.tuples(number, number).map(sorted)
    spans = ends.map(lambda pair: "{}-{}".format(*pair))
    return st.one_of(
        number.map(str),
        number.map(str),
        spans,
        st.tuples(number.map(str) | spans, step).map("".join),
    )


def fields(
    low: int, high: int, often: list[int], special: st.SearchStrategy[str] | None = None
) -> st.SearchStrategy[str]:
    item = items(low, high, often)
    if special is not None:
        item |= special
    lists = st.lists(item, min_size=1, max_size=3).map(",".join)
    stars = st.integers(1, high + 2).map("*/{}".format)
    return st.just("*") | lists | lists | stars


MINUTES = fields(0, 59, [0, 1, 15, 30, 45, 59])
HOURS = fields(0, 23, [0, 1, 2, 3, 23])
SECONDS = fields(0, 59, [0, 30, 59])
DAYS = st.just("*") | fields(1, 31, [1, 28, 29, 30, 31], st.sampled_from(["L", "LW"]))
MONTHS = st.just("*") | fields(1, 12, [2, 3, 4, 10, 11], st.sampled_from(["FEB", "MAR-APR", "oct", "Sep-Nov/2"]))
SPECIAL_WEEKDAYS = st.sampled_from(["SUN", "sat", "MON-FRI", "Fri", "5L", "0L", "SUN#1", "SUN#2", "0#5", "SAT#4", "7L"])
WEEKDAYS = st.just("*") | fields(0, 7, [0, 7, 6, 1], SPECIAL_WEEKDAYS)

five_fields = st.tuples(MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS).map(" ".join).filter(oracle.comes)
six_fields = st.tuples(SECONDS, five_fields).map(" ".join)
every_day = st.tuples(MINUTES, HOURS).map(lambda pair: " ".join([*pair, "*", "*", "*"]))
every_day_with_seconds = st.tuples(SECONDS, every_day).map(" ".join)
expressions = five_fields | five_fields | six_fields


# Zones, and moments near a change of their clocks.


class Case(NamedTuple):
    expr: str
    zone: str
    moment: datetime
    gap: Gap
    repeat: Repeat

    @property
    def rule(self) -> rota.Cron:
        return rota.Cron(self.expr, tz=self.zone, gap=self.gap, repeat=self.repeat)


zones = st.sampled_from(FAMILIAR_ZONES) | st.sampled_from(FAMILIAR_ZONES) | st.sampled_from(OTHER_ZONES)
gaps: st.SearchStrategy[Gap] = st.sampled_from(["after", "after", "skip"])
repeats: st.SearchStrategy[Repeat] = st.sampled_from(["first", "first", "second", "both"])
distances = st.one_of(
    st.sampled_from([0, 1, -1, 60, -60, 1800, -1800, 3600, -3600, 7200, -7200, 86400, -86400]).map(float),
    st.integers(-4 * 3600, 4 * 3600).map(float),
    st.floats(-12 * 3600, 12 * 3600),
)


@st.composite
def moments(draw: st.DrawFn, zone: str) -> datetime:
    """A moment near a change of the zone's clock, where it has one in the year; asked for in any other zone."""
    note = [CHANGES_OF_NOTE[zone]] if zone in CHANGES_OF_NOTE else []
    year = draw(st.sampled_from([*note, 2025]) | st.integers(1971, 2040) | st.integers(1971, 2198))
    changes = oracle.changes(zone, year)
    if changes:
        moment = draw(st.sampled_from(changes)).at + timedelta(seconds=draw(distances))
    else:
        moment = datetime(year, 1, 1, tzinfo=UTC) + timedelta(seconds=draw(st.integers(0, 365 * 86400)))
    return moment.astimezone(ZoneInfo(draw(st.sampled_from([zone, zone, "UTC", "Asia/Kolkata"]))))


@st.composite
def cases(draw: st.DrawFn, exprs: st.SearchStrategy[str] = expressions) -> Case:
    zone = draw(zones)
    return Case(draw(exprs), zone, draw(moments(zone)), draw(gaps), draw(repeats))


@st.composite
def aimed_cases(draw: st.DrawFn) -> Case:
    """A schedule at the very edges of a change: the last minutes before it and the first ones after."""
    zone = draw(zones)
    year = draw(st.just(CHANGES_OF_NOTE.get(zone, 2025)) | st.integers(1971, 2100))
    if not oracle.changes(zone, year):
        zone, year = draw(st.sampled_from(sorted(CHANGES_OF_NOTE.items())))
    change = draw(st.sampled_from(oracle.changes(zone, year)))
    edges = [change.at + offset for offset in (change.before, change.after)]
    walls = st.builds(
        lambda edge, minutes: edge + timedelta(minutes=minutes), st.sampled_from(edges), st.integers(-2, 1)
    )
    chosen = draw(st.lists(walls, min_size=1, max_size=3))
    minute, hour = (",".join(str(getattr(wall, part)) for wall in chosen) for part in ("minute", "hour"))
    day = draw(st.sampled_from(["* * *", f"{chosen[0].day} {chosen[0].month} *", f"* * {chosen[0].isoweekday()}"]))
    second = draw(st.sampled_from(["", "", "0 ", "59 ", "*/30 "]))
    moment = change.at + timedelta(seconds=draw(st.integers(-7200, 7200)))
    return Case(f"{second}{minute} {hour} {day}", zone, moment, draw(gaps), draw(repeats))


def utc(found: datetime | None) -> datetime | None:
    return None if found is None else found.astimezone(UTC)


def utcs(found: list[datetime]) -> list[datetime]:
    """In UTC, where comparing is safe: two times of one zone compare by the clock on the wall."""
    return [t.astimezone(UTC) for t in found]


# The laws.


@laws(120)
@given(cases())
def test_answers_come_after_the_question_and_in_order(case: Case) -> None:
    found = utcs(case.rule.upcoming(case.moment, 6))
    assert all(earlier < later for earlier, later in pairwise([case.moment.astimezone(UTC), *found]))


@laws(120)
@given(cases())
def test_answers_are_times_that_the_zones_clock_shows(case: Case) -> None:
    for found in case.rule.upcoming(case.moment, 6):
        there_and_back = found.astimezone(UTC).astimezone(ZoneInfo(case.zone))
        assert found.isoformat() == there_and_back.isoformat()
        assert found.fold == there_and_back.fold
        assert found.microsecond == 0


@laws(100)
@given(cases())
def test_upcoming_is_next_again_and_again(case: Case) -> None:
    rule = case.rule
    answers: list[datetime] = []
    while len(answers) < 5 and (found := rule.next([case.moment, *answers][-1])) is not None:
        answers.append(found)
    assert utcs(rule.upcoming(case.moment, 5)) == utcs(answers)


@laws(100)
@given(cases())
def test_instants_are_upcoming_without_an_end(case: Case) -> None:
    rule = case.rule
    upcoming = rule.upcoming(case.moment, 5)
    assert utcs(list(islice(rule.instants(case.moment), 5))) == utcs(upcoming)
    if upcoming:
        assert utcs(list(rule.instants(case.moment, upcoming[-1]))) == utcs(upcoming)


@laws(120)
@given(cases())
def test_previous_undoes_next(case: Case) -> None:
    rule, asked = case.rule, case.moment.astimezone(UTC)
    found = rule.upcoming(case.moment, 6)
    for earlier, later in pairwise(found):
        assert utc(rule.previous(later)) == utc(earlier)
    if found:
        before = utc(rule.previous(found[0]))
        assert before is None or before <= asked
        assert before == utc(rule.previous(asked + timedelta(microseconds=1)))


@laws(120)
@given(cases())
def test_next_undoes_previous(case: Case) -> None:
    rule, asked = case.rule, case.moment.astimezone(UTC)
    for _ in range(5):
        before = utc(rule.previous(asked))
        if before is None:
            break
        assert before < asked
        after = utc(rule.next(before))
        assert after is None or after >= asked
        assert utc(rule.next(before - timedelta(microseconds=1))) == before
        asked = before


@laws(100)
@given(cases(), st.integers(1, 40))
def test_a_count_is_the_length_of_the_list(case: Case, size: int) -> None:
    rule = case.rule
    found = rule.upcoming(case.moment, size)
    assert rule.count(case.moment, case.moment) == 0
    if found:
        assert rule.count(case.moment, found[-1]) == len(found)
        assert rule.count(case.moment, found[-1].astimezone(UTC) - timedelta(microseconds=1)) == len(found) - 1


@laws(60)
@given(cases(every_day | every_day_with_seconds), st.integers(0, 90 * 86400))
def test_counts_add_up(case: Case, seconds: int) -> None:
    first = case.moment.astimezone(UTC)
    middle, last = first + timedelta(seconds=seconds), first + timedelta(days=90)
    rule = case.rule
    assert rule.count(first, middle) + rule.count(middle, last) == rule.count(first, last)


@laws(60)
@given(cases())
def test_the_zone_of_the_question_does_not_matter(case: Case) -> None:
    rule = case.rule
    answers = {rule.next(case.moment.astimezone(ZoneInfo(zone))) for zone in ("UTC", case.zone, "Asia/Tokyo")}
    assert len({answer and answer.isoformat() for answer in answers}) == 1


# Beside the oracle and beside cronsim.


def assert_as_the_oracle(case: Case, hours: float) -> None:
    rule, asked = case.rule, case.moment.astimezone(UTC)
    first, last = asked - timedelta(hours=hours), asked + timedelta(hours=hours)
    expected = oracle.instants(case.expr, case.zone, first, last, case.gap, case.repeat)
    assert utcs(list(rule.instants(first, last))) == expected
    assert rule.count(first, last) == len(expected)
    later, earlier = [t for t in expected if t > asked], [t for t in expected if t < asked]
    if later:
        assert utc(rule.next(case.moment)) == later[0]
    if earlier:
        assert utc(rule.previous(case.moment)) == earlier[-1]


@laws(120)
@given(cases(every_day))
def test_the_oracle_agrees_near_changes(case: Case) -> None:
    assert_as_the_oracle(case, 14)


@laws(80)
@given(cases(six_fields | every_day_with_seconds))
def test_the_oracle_agrees_near_changes_with_seconds(case: Case) -> None:
    assert_as_the_oracle(case, 3)


@laws(150)
@given(aimed_cases())
def test_the_oracle_agrees_at_the_edges_of_changes(case: Case) -> None:
    assert_as_the_oracle(case, 8)


@laws(60)
@given(cases(five_fields))
def test_the_oracle_agrees_on_days_near_changes(case: Case) -> None:
    assert_as_the_oracle(case, 3 * 24)


def misread_by_cronsim(expr: str) -> bool:
    """Whether an item is a range of one value with a step, which cronsim reads as open."""
    ranges = [item.split("/")[0].split("-") for part in expr.split() for item in part.split(",") if "/" in item]
    return any(len(ends) == 2 and ends[0] == ends[1] for ends in ranges)


@laws(150)
@given(cases(five_fields | six_fields))
def test_cronsim_agrees_where_no_clock_changes(case: Case) -> None:
    assume(not misread_by_cronsim(case.expr))
    asked = case.moment.astimezone(ZoneInfo(case.zone)) + timedelta(days=40)
    found = next(CronSim(case.expr, asked), FOREVER)
    assume(found.year < 2200)
    assume(oracle.calm(case.zone, asked, min(found, asked + timedelta(days=400))))
    assert utc(case.rule.next(asked)) == found.astimezone(UTC)


@laws(60)
@given(five_fields, st.datetimes(datetime(1970, 1, 2), datetime(2140, 1, 1)))  # noqa: DTZ001
def test_cronsim_agrees_in_utc(expr: str, asked: datetime) -> None:
    assume(not misread_by_cronsim(expr))
    asked = asked.replace(tzinfo=UTC)
    rule = rota.Cron(expr)
    assert rule.upcoming(asked, 3) == list(islice(CronSim(expr, asked), 3))
    backwards = next(CronSim(expr, asked, reverse=True))
    assert rule.previous(asked) == (backwards if backwards >= datetime(1970, 1, 1, tzinfo=UTC) else None)


# Text.


@laws(80)
@given(cases())
def test_a_rule_survives_its_text(case: Case) -> None:
    rule = case.rule
    assert rota.Rule.parse(str(rule)) == rule
    again = eval(repr(rule), {"__builtins__": {}}, vars(rota))  # noqa: S307
    assert again == rule
    assert hash(again) == hash(rule)
    assert utcs(again.upcoming(case.moment, 2)) == utcs(rule.upcoming(case.moment, 2))


@laws(80)
@given(cases())
def test_words_are_plain_text(case: Case) -> None:
    words = case.rule.words()
    assert words.strip(string.whitespace) == words != ""
    assert words.isprintable()


@laws(40)
@given(cases())
def test_the_case_of_letters_does_not_matter(case: Case) -> None:
    upper, lower = (case._replace(expr=expr).rule for expr in (case.expr.upper(), case.expr.lower()))
    assert utcs(upper.upcoming(case.moment, 3)) == utcs(lower.upcoming(case.moment, 3))
