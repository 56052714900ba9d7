"""Spreading: a key's place is the same for ever and everywhere, and all places together are even."""

import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.times import distribute, jitter_offset, spread_offset

SECOND = 1_000_000
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
MOMENT = 1_800_000_000 * SECOND

WINDOWS = st.integers(1, 100 * 366 * 24 * HOUR)
KEYS = [f"feed-{number}" for number in range(10_000)]
ANY_KEY = st.text("aZ09_-.:é", max_size=200)

IN_ANOTHER_PROCESS = """
from rota.times import jitter_offset, spread_offset
print([spread_offset(key, 3_600_000_000) for key in ("a", "feed-42", "weekly-report")])
print([jitter_offset(key, 1_800_000_000_000_000, 60_000_000) for key in ("a", "feed-42", "weekly-report")])
"""


@pytest.mark.parametrize(
    ("key", "in_a_minute", "in_an_hour"),
    [
        ("a", 15_227_616, 913_656_998),
        ("feed-42", 352_178, 21_130_717),
        ("x:y", 55_732_147, 3_343_928_865),
        ("weekly-report", 56_525_813, 3_391_548_802),
        ("é", 47_602_613, 2_856_156_824),
    ],
)
def test_a_keys_place_never_changes(key: str, in_a_minute: int, in_an_hour: int) -> None:
    assert spread_offset(key, MINUTE) == in_a_minute
    assert spread_offset(key, HOUR) == in_an_hour


@pytest.mark.parametrize(
    ("key", "place"),
    [("a", 49_198_074), ("feed-42", 5_800_024), ("x:y", 19_077_776), ("weekly-report", 49_975_951), ("é", 33_965_940)],
)
def test_a_firings_place_never_changes(key: str, place: int) -> None:
    assert jitter_offset(key, MOMENT, MINUTE) == place


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_another_process_finds_the_same_places(seed: str) -> None:
    source = Path(rota.__file__).parent.parent
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(source)}
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert printed == "[913656998, 21130717, 3391548802]\n[49198074, 5800024, 49975951]\n"


@given(ANY_KEY, WINDOWS)
def test_a_keys_place_lies_inside_the_window(key: str, window: int) -> None:
    assert 0 <= spread_offset(key, window) < window


@given(ANY_KEY, st.integers(0, 2**53), WINDOWS)
def test_a_firings_place_lies_inside_the_window(key: str, due: int, window: int) -> None:
    assert 0 <= jitter_offset(key, due, window) < window


@pytest.mark.parametrize("window", [0, 1])
def test_an_empty_window_has_one_place(window: int) -> None:
    assert {spread_offset(key, window) for key in KEYS[:100]} == {0}
    assert {jitter_offset(key, MOMENT, window) for key in KEYS[:100]} == {0}


@given(ANY_KEY, WINDOWS)
def test_a_wider_window_moves_a_key_in_proportion(key: str, window: int) -> None:
    assert abs(spread_offset(key, 2 * window) - 2 * spread_offset(key, window)) <= 2


def unevenness(places: list[int], window: int, parts: int = 100) -> float:
    """Pearson's chi-squared over equal parts of the window."""
    counts = Counter(place * parts // window for place in places)
    expected = len(places) / parts
    return sum((counts[part] - expected) ** 2 / expected for part in range(parts))


def test_ten_thousand_keys_fill_the_window_evenly() -> None:
    # 99 degrees of freedom: chance passes 149 once in a thousand; the keys never change, and neither does this number
    assert unevenness([spread_offset(key, HOUR) for key in KEYS], HOUR) < 149


def test_ten_thousand_firings_of_one_key_fill_the_window_evenly() -> None:
    places = [jitter_offset("feed-42", MOMENT + number * HOUR, HOUR) for number in range(10_000)]
    assert unevenness(places, HOUR) < 149


def test_nearly_every_key_has_a_place_of_its_own() -> None:
    assert len({spread_offset(key, HOUR) for key in KEYS}) > 9_950


def test_jitter_differs_between_the_firings_of_a_key() -> None:
    places = [jitter_offset("feed-42", MOMENT + number * HOUR, MINUTE) for number in range(100)]
    assert len(set(places)) == 100


def test_jitter_differs_between_keys_that_fire_together() -> None:
    assert len({jitter_offset(key, MOMENT, HOUR) for key in KEYS[:100]}) == 100


def test_jitter_is_not_the_spread_again() -> None:
    assert all(jitter_offset(key, MOMENT, HOUR) != spread_offset(key, HOUR) for key in KEYS[:100])


def test_an_hour_is_divided_among_twelve_every_five_minutes() -> None:
    assert distribute(12, HOUR) == [number * 5 * MINUTE for number in range(12)]


def test_what_does_not_divide_is_off_by_a_microsecond_at_most() -> None:
    assert distribute(7, HOUR) == [0, 514285714, 1028571428, 1542857142, 2057142857, 2571428571, 3085714285]


@given(st.integers(1, 500), WINDOWS)
def test_a_window_is_divided_evenly_from_its_start(count: int, window: int) -> None:
    places = distribute(count, window)
    assert (len(places), places[0]) == (count, 0)
    assert places[-1] < window
    steps = {later - earlier for earlier, later in pairwise([*places, window])}
    assert max(steps) - min(steps) <= 1


def test_nobody_needs_no_place() -> None:
    assert distribute(0, HOUR) == []


def test_in_no_window_all_stand_at_its_start() -> None:
    assert distribute(3, 0) == [0, 0, 0]
