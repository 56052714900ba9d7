"""Policies are plain values: checked when they are made, equal when their parts are, and never in the user's way."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.times import Adaptive, At, Cron, Every, OnFailure, Policies

MINUTE = 60_000_000
HOUR, DAY = 60 * MINUTE, 24 * 60 * MINUTE


def refusal(error: type[rota.Invalid], maker: Any, **values: Any) -> rota.Invalid:
    with pytest.raises(error) as caught:
        maker(**values)
    assert isinstance(caught.value, ValueError)
    assert str(caught.value).startswith(f"{caught.value.field}: ")
    assert str(caught.value).endswith(caught.value.allowed)
    return caught.value


# On failure.

CHECKER = OnFailure(double_from=3, cap="24h", pause_after=10, alert_after=3)


@pytest.mark.parametrize(
    ("failures", "minutes"),
    [(0, 15), (1, 15), (2, 15), (3, 30), (4, 60), (5, 120), (6, 240), (7, 480), (8, 960), (9, 1440), (10, 1440)],
)
def test_from_the_third_failure_on_fifteen_minutes_double_up_to_a_day(failures: int, minutes: int) -> None:
    assert CHECKER.interval(15 * MINUTE, failures) == minutes * MINUTE


def test_ever_so_many_failures_stay_at_the_cap() -> None:
    assert CHECKER.interval(15 * MINUTE, 1_000_000) == DAY


@pytest.mark.parametrize("failures", [0, 1, 3, 4, 10, 1000])
def test_an_own_interval_of_three_days_is_not_shortened_by_the_cap(failures: int) -> None:
    assert CHECKER.interval(3 * DAY, failures) == 3 * DAY


def test_an_interval_whose_double_passes_the_cap_ends_at_the_cap() -> None:
    assert CHECKER.interval(20 * HOUR, 3) == DAY


def test_the_cap_itself_is_not_doubled() -> None:
    assert CHECKER.interval(DAY, 3) == DAY


def test_without_a_policy_failures_change_nothing() -> None:
    assert [OnFailure().interval(MINUTE, failures) for failures in (0, 3, 100)] == [MINUTE] * 3


def test_doubling_may_begin_with_the_first_failure() -> None:
    assert [OnFailure(double_from=1).interval(HOUR, n) for n in (0, 1, 2)] == [HOUR, 2 * HOUR, 4 * HOUR]


@given(st.integers(1_000_000, 400 * DAY), st.integers(0, 200), st.integers(1, 20), st.integers(1, 400 * DAY))
def test_failures_never_shorten_an_interval_nor_pass_the_cap(own: int, failures: int, first: int, cap: int) -> None:
    policy = OnFailure(double_from=first, cap=timedelta(microseconds=cap))
    found = policy.interval(own, failures)
    assert own <= found <= max(own, cap)
    assert found <= policy.interval(own, failures + 1)
    assert found == own or failures >= first


def test_the_tenth_failure_pauses() -> None:
    assert [CHECKER.pauses(failures) for failures in (0, 1, 9, 10, 11)] == [False, False, False, True, True]


def test_the_third_failure_alerts() -> None:
    assert [CHECKER.alerts(failures) for failures in (0, 2, 3)] == [False, False, True]


def test_by_itself_no_failure_pauses_or_alerts() -> None:
    assert not any(OnFailure().pauses(failures) or OnFailure().alerts(failures) for failures in (1, 10, 1000))


@pytest.mark.parametrize("field", ["double_from", "pause_after", "alert_after"])
@pytest.mark.parametrize("value", [0, -1, 1.0, "3", True, 1_000_001])
def test_a_number_of_failures_is_a_whole_number_from_one_on(field: str, value: object) -> None:
    refused = refusal(rota.InvalidPolicy, OnFailure, **{field: value})
    assert (refused.field, refused.value) == (field, value)
    assert refused.allowed == "use a whole number from 1 to 1,000,000"


@pytest.mark.parametrize("value", ["soon", 0, -5, "", None, "1000000d"])
def test_a_cap_is_a_length_of_time(value: object) -> None:
    refused = refusal(rota.InvalidDuration, OnFailure, cap=value)
    assert (refused.field, refused.value) == ("cap", value)


def test_a_cap_may_be_written_in_any_way_that_a_duration_may() -> None:
    assert OnFailure(cap="24h") == OnFailure(cap=86_400) == OnFailure(cap=timedelta(days=1)) == OnFailure(cap="P1D")


# Adapting.


@pytest.mark.parametrize(
    ("average", "minutes"),
    [(None, 60), (0.0, 120), (0.99, 120), (1.0, 60), (5.0, 60), (10.0, 60), (10.01, 30), (500.0, 30)],
)
def test_many_new_items_halve_an_interval_and_few_double_it(average: float | None, minutes: int) -> None:
    assert Adaptive().interval(HOUR, average) == minutes * MINUTE


@pytest.mark.parametrize(("own", "adapted"), [(20, 15), (29, 15), (30, 15), (32, 16), (15, 15)])
def test_halving_stops_at_the_floor(own: int, adapted: int) -> None:
    assert Adaptive().interval(own * MINUTE, 11) == adapted * MINUTE


@pytest.mark.parametrize(("own", "adapted"), [(11, 22), (12, 24), (13, 24), (23, 24), (24, 24)])
def test_doubling_stops_at_the_ceiling(own: int, adapted: int) -> None:
    assert Adaptive().interval(own * HOUR, 0) == adapted * HOUR


@pytest.mark.parametrize("average", [None, 0.0, 5.0, 11.0])
def test_the_floor_never_lengthens_a_users_ten_minutes(average: float | None) -> None:
    assert Adaptive().interval(10 * MINUTE, average) == (20 * MINUTE if average == 0 else 10 * MINUTE)


@pytest.mark.parametrize("average", [None, 0.0, 5.0])
def test_the_ceiling_never_shortens_a_users_seven_days(average: float | None) -> None:
    assert Adaptive().interval(7 * DAY, average) == 7 * DAY


def test_many_new_items_halve_seven_days_all_the_same() -> None:
    assert Adaptive().interval(7 * DAY, 11) == 84 * HOUR


def test_the_bounds_and_marks_can_be_chosen() -> None:
    own = Adaptive(busy=2, quiet=0.5, floor="1m", ceiling="1h")
    assert [own.interval(50 * MINUTE, average) for average in (2.1, 2, 0.5, 0.4)] == [
        25 * MINUTE,
        50 * MINUTE,
        50 * MINUTE,
        60 * MINUTE,
    ]


@given(st.integers(1_000_000, 400 * DAY), st.none() | st.floats(0, 1000))
def test_adapting_goes_towards_the_work_and_stays_between_half_and_double(own: int, average: float | None) -> None:
    found = Adaptive().interval(own, average)
    assert own // 2 <= found <= own * 2
    if average is None or 1 <= average <= 10:
        assert found == own
    else:
        assert (found <= own) if average > 10 else (found >= own)


@pytest.mark.parametrize("field", ["busy", "quiet"])
@pytest.mark.parametrize("value", [-1, -0.1, float("nan"), float("inf"), "10", True, None])
def test_a_mark_is_a_number_that_is_not_negative(field: str, value: object) -> None:
    refused = refusal(rota.InvalidPolicy, Adaptive, **{field: value})
    assert refused.field == field
    assert refused.value is value
    assert refused.allowed == "use a number that is not negative"


def test_quiet_is_not_more_than_busy() -> None:
    refused = refusal(rota.InvalidPolicy, Adaptive, busy=2, quiet=3)
    assert (refused.field, refused.value) == ("quiet", 3)
    assert refused.allowed == "use at most busy, 2"


def test_the_ceiling_is_not_below_the_floor() -> None:
    refused = refusal(rota.InvalidPolicy, Adaptive, floor="2h", ceiling="1h")
    assert (refused.field, refused.value) == ("ceiling", "1h")


@pytest.mark.parametrize("field", ["floor", "ceiling"])
@pytest.mark.parametrize("value", ["soon", 0, -5, None])
def test_a_bound_is_a_length_of_time(field: str, value: object) -> None:
    refused = refusal(rota.InvalidDuration, Adaptive, **{field: value})
    assert (refused.field, refused.value) == (field, value)


# All together.


def test_what_nobody_chose_is_the_default() -> None:
    plain = Policies()
    assert (plain.overlap, plain.max_running) == ("skip", 1)
    assert (plain.missed, plain.max_missed, plain.grace) == ("latest", 100, None)
    assert (plain.spread, plain.jitter) == (timedelta(0), timedelta(0))
    assert (plain.exclude, plain.max_runs) == ((), None)
    assert (plain.on_failure, plain.adaptive) == (OnFailure(), None)


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("overlap", "both", "use skip, queue_one, queue_all, cancel_running or allow"),
        ("overlap", None, "use skip, queue_one, queue_all, cancel_running or allow"),
        ("missed", "some", "use latest, all or none"),
        ("missed", None, "use latest, all or none"),
        ("max_running", 0, "use a whole number from 1 to 1,000"),
        ("max_running", 1_001, "use a whole number from 1 to 1,000"),
        ("max_running", True, "use a whole number from 1 to 1,000"),
        ("max_missed", 0, "use a whole number from 1 to 10,000"),
        ("max_missed", 10_001, "use a whole number from 1 to 10,000"),
        ("max_missed", 2.5, "use a whole number from 1 to 10,000"),
        ("max_runs", 0, "use a whole number from 1 to 1,000,000,000"),
        ("max_runs", "5", "use a whole number from 1 to 1,000,000,000"),
        ("on_failure", "pause", "use OnFailure(…)"),
        ("on_failure", 3, "use OnFailure(…)"),
        ("adaptive", True, "use Adaptive(…)"),
    ],
)
def test_a_policy_that_does_not_exist_is_refused_by_name(field: str, value: object, allowed: str) -> None:
    refused = refusal(rota.InvalidPolicy, Policies, **{field: value})
    assert (refused.field, refused.value, refused.allowed) == (field, value, allowed)


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "queue_all", "cancel_running"])
def test_several_at_once_need_overlap_to_be_allowed(overlap: str) -> None:
    refused = refusal(rota.InvalidPolicy, Policies, overlap=overlap, max_running=2)
    assert (refused.field, refused.value, refused.allowed) == ("max_running", 2, "use overlap='allow' with it")
    assert Policies(overlap="allow", max_running=2).max_running == 2


@pytest.mark.parametrize("field", ["grace", "spread", "jitter"])
@pytest.mark.parametrize("value", ["soon", -1, "-5m", [], True, float("nan")])
def test_a_length_is_a_duration_that_is_not_negative(field: str, value: object) -> None:
    refused = refusal(rota.InvalidDuration, Policies, **{field: value})
    assert refused.field == field
    assert refused.value is value


@pytest.mark.parametrize("field", ["spread", "jitter"])
def test_a_spread_is_nothing_or_a_length_but_never_none(field: str) -> None:
    assert refusal(rota.InvalidDuration, Policies, **{field: None}).field == field


@pytest.mark.parametrize("value", ["* * * * *", 5, None])
def test_only_rules_exclude(value: object) -> None:
    refused = refusal(rota.InvalidRule, Policies, exclude=[value])
    assert (refused.field, refused.value) == ("exclude", value)
    assert refused.allowed == "use Cron, Every, At, Calendar or AnyOf"


@pytest.mark.parametrize("since", ["success", "finish", "start"])
def test_an_interval_without_instants_of_its_own_excludes_nothing(since: Any) -> None:
    anchored = Every("1h", since=since)
    refused = refusal(rota.InvalidRule, Policies, exclude=[anchored])
    assert (refused.field, refused.value) == ("exclude", anchored)


def test_a_hundred_rules_may_exclude_and_no_more() -> None:
    assert len(Policies(exclude=[Cron("0 0 * * *")] * 100).exclude) == 100
    assert refusal(rota.InvalidPolicy, Policies, exclude=[Cron("0 0 * * *")] * 101).field == "exclude"


def test_one_rule_excludes_without_a_list_around_it() -> None:
    holiday = Cron("* * 25 12 *")
    assert Policies(exclude=holiday) == Policies(exclude=[holiday])


def test_a_refusal_is_one_line_that_names_field_value_and_what_is_allowed() -> None:
    message = str(refusal(rota.InvalidPolicy, Policies, missed="some\nlines"))
    assert message == r"missed: 'some\nlines' is not allowed; use latest, all or none"


EQUAL_PAIRS = [
    (OnFailure(double_from=3), OnFailure(double_from=3, cap=86_400)),
    (Adaptive(), Adaptive(busy=10.0, floor=900)),
    (Policies(), Policies(grace=None, exclude=())),
    (Policies(grace="5m", spread=60), Policies(grace=timedelta(minutes=5), spread="1m")),
    (Policies(exclude=[At("2026-12-25T00:00Z")]), Policies(exclude=(At("2026-12-25T01:00+01:00"),))),
    (Policies(on_failure=OnFailure(pause_after=10)), Policies(on_failure=OnFailure(pause_after=10))),
]


@pytest.mark.parametrize(("one", "other"), EQUAL_PAIRS)
def test_equal_policies_are_one_value(one: object, other: object) -> None:
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"overlap": "queue_all"},
        {"overlap": "allow", "max_running": 2},
        {"missed": "all"},
        {"max_missed": 5},
        {"grace": "0s"},
        {"spread": "1s"},
        {"jitter": "1s"},
        {"exclude": [Cron("* * * * *")]},
        {"max_runs": 1},
        {"on_failure": OnFailure(double_from=3)},
        {"adaptive": Adaptive()},
    ],
)
def test_each_policy_makes_a_difference(values: dict[str, Any]) -> None:
    assert Policies(**values) != Policies()


@pytest.mark.parametrize("value", [Policies(), OnFailure(), Adaptive()])
def test_a_policy_cannot_be_changed_once_made(value: object) -> None:
    field = next(iter(vars(value)))
    with pytest.raises(AttributeError):
        setattr(value, field, 1)
