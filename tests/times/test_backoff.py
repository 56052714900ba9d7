"""How long a failed run waits before it is tried again: longer each time, up to a cap, and not all at once."""

from dataclasses import FrozenInstanceError
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rota

SECOND = 1_000_000

lengths = st.timedeltas(timedelta(0), timedelta(days=3650))
factors = st.floats(1, 100)
jitters = st.floats(0, 1)
keys = st.text(st.characters(codec="utf-8"))


@st.composite
def retries(draw: st.DrawFn, jitter: st.SearchStrategy[float] = jitters) -> rota.Retry:
    first, cap = sorted([draw(lengths), draw(lengths)])
    return rota.Retry(draw(st.integers(1, 1000)), first=first, factor=draw(factors), cap=cap, jitter=draw(jitter))


def delays(retry: rota.Retry, key: str = "run-1") -> list[int | None]:
    return [retry.delay(attempt, key) for attempt in range(1, retry.attempts + 1)]


def test_each_wait_is_longer_by_the_factor_up_to_the_cap_and_after_the_last_attempt_there_is_none() -> None:
    retry = rota.Retry(attempts=6, first="1s", factor=3, cap="20s", jitter=0)
    assert delays(retry) == [1 * SECOND, 3 * SECOND, 9 * SECOND, 20 * SECOND, 20 * SECOND, None]


def test_a_run_is_tried_once_unless_somebody_says_otherwise() -> None:
    assert delays(rota.Retry()) == [None]


def test_a_run_that_had_more_attempts_than_it_has_now_is_not_tried_again() -> None:
    assert rota.Retry(attempts=3).delay(7, "run-1") is None


def test_a_factor_of_one_waits_the_same_each_time() -> None:
    assert delays(rota.Retry(4, first="7s", factor=1, jitter=0)) == [7 * SECOND] * 3 + [None]


def test_waiting_nothing_stays_nothing_however_often() -> None:
    retry = rota.Retry(1000, first=0, factor=100)
    assert {retry.delay(1, "a"), retry.delay(2, "a"), retry.delay(999, "a")} == {0}


def test_no_number_is_too_large() -> None:
    assert rota.Retry(1000, first="1s", factor=100, cap="1h", jitter=0).delay(999, "a") == 3600 * SECOND


@given(retries(jitter=st.just(0.0)))
def test_without_jitter_no_wait_is_shorter_than_the_one_before(retry: rota.Retry) -> None:
    *waits, last = delays(retry)
    assert last is None
    assert all(earlier <= later for earlier, later in pairwise(waits))


@given(retries(), st.integers(1, 999), keys)
def test_jitter_moves_a_wait_by_its_fraction_at_most_and_never_below_zero_or_over_the_cap(
    retry: rota.Retry, attempt: int, key: str
) -> None:
    assume(attempt < retry.attempts)
    steady = rota.Retry(retry.attempts, first=retry.first, factor=retry.factor, cap=retry.cap, jitter=0)
    wait, middle = retry.delay(attempt, key), steady.delay(attempt, key)
    assert wait is not None
    assert middle is not None
    assert 0 <= wait <= retry.cap / timedelta(microseconds=1)
    assert abs(wait - middle) <= middle * retry.jitter + 1


@pytest.mark.parametrize(("jitter", "low", "high"), [(0.1, 9, 11), (0.5, 5, 15), (1.0, 0, 20)])
def test_jitter_uses_its_whole_range(jitter: float, low: int, high: int) -> None:
    retry = rota.Retry(2, first="10s", jitter=jitter)
    waits = sorted(retry.delay(1, f"run-{number}") for number in range(1000))
    width = high - low
    assert low * SECOND <= waits[0] < (low + 0.02 * width) * SECOND
    assert (high - 0.02 * width) * SECOND < waits[-1] <= high * SECOND
    assert abs(waits[500] - 10 * SECOND) < 0.1 * width * SECOND


def test_runs_at_the_cap_do_not_come_back_together() -> None:
    retry = rota.Retry(9, first="1m", cap="1m", jitter=0.1)
    waits = {retry.delay(8, f"run-{number}") for number in range(100)}
    assert len(waits) == 100
    assert min(waits) >= 54 * SECOND
    assert max(waits) <= 60 * SECOND


def test_every_attempt_of_a_run_falls_elsewhere() -> None:
    retry = rota.Retry(20, first="10s", factor=1)
    assert len({retry.delay(attempt, "run-1") for attempt in range(1, 20)}) == 19


def test_a_wait_is_the_same_on_every_machine() -> None:
    assert rota.Retry(3).delay(1, "run-1") == 1_006_645


def test_a_retry_is_a_value() -> None:
    retry = rota.Retry(5, first="60s", factor=2, cap="1h")
    assert retry == rota.Retry(5, first=timedelta(minutes=1), factor=2.0, cap=3600)
    assert hash(retry) == hash(rota.Retry(5, first="1m", factor=2.0, cap="60m"))
    assert retry != rota.Retry(5, first="60s", factor=2, cap="1h", jitter=0)
    with pytest.raises(FrozenInstanceError):
        retry.attempts = 6  # type: ignore[misc]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"attempts": 0}, "attempts: 0 is not allowed; use a whole number from 1 to 1,000"),
        ({"attempts": 1001}, "attempts: 1001 is not allowed; use a whole number from 1 to 1,000"),
        ({"attempts": True}, "attempts: True is not allowed; use a whole number from 1 to 1,000"),
        ({"attempts": 2.0}, "attempts: 2.0 is not allowed; use a whole number from 1 to 1,000"),
        ({"factor": 0.9}, "factor: 0.9 is not allowed; use a number from 1 to 100"),
        ({"factor": 101}, "factor: 101 is not allowed; use a number from 1 to 100"),
        ({"factor": float("nan")}, "factor: nan is not allowed; use a number from 1 to 100"),
        ({"factor": "2"}, "factor: '2' is not allowed; use a number from 1 to 100"),
        ({"jitter": -0.1}, "jitter: -0.1 is not allowed; use a number from 0 to 1"),
        ({"jitter": 1.1}, "jitter: 1.1 is not allowed; use a number from 0 to 1"),
        ({"jitter": True}, "jitter: True is not allowed; use a number from 0 to 1"),
        ({"first": "-1s"}, "first: '-1s' is not a duration"),
        ({"cap": -1}, "cap: -1 is negative"),
        ({"first": "2h"}, "cap: '1h' is below first; use one that is not below first"),
    ],
)
def test_what_is_out_of_bounds_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(rota.Invalid) as refused:
        rota.Retry(**given)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("attempt", [0, -1, 1.0, True, None])
def test_attempts_count_from_one(attempt: object) -> None:
    with pytest.raises(rota.InvalidPolicy, match="attempt: "):
        rota.Retry(3).delay(attempt, "run-1")
