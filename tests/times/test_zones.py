"""Zones as Rota cuts them into stretches of constant offset, held against the bytes that the zones are stored in."""

import io
import re
import struct
import zoneinfo
from bisect import bisect_right
from calendar import monthrange, timegm
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rota
from rota.times import zones
from rota.times.zones import Stretch, Zone, zone

DAY = 86_400
FIRST = 0
LAST = timegm((2100, 1, 1, 0, 0, 0))
MACHINE_OWN = {"localtime", "posixrules"}
KEYS = sorted(zoneinfo.available_timezones() - MACHINE_OWN)
SAMPLED = (2038, 2060, 2087, 2099)
SOME = (
    "America/New_York",
    "Pacific/Apia",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Asia/Gaza",
    "Europe/Dublin",
    "UTC",
)


class Change(NamedTuple):
    """At this second of UTC the offset becomes another one."""

    at: int
    before: int
    after: int


class Data(NamedTuple):
    """What a zone's file says about the seconds from 1970 to 2099."""

    first_offset: int
    changes: tuple[Change, ...]

    def offset(self, second: int) -> int:
        at = bisect_right(self.changes, second, key=lambda change: change.at)
        return self.changes[at - 1].after if at else self.first_offset

    def between(self, start: int, end: int) -> list[Change]:
        return [change for change in self.changes if start <= change.at < end]


def stored(key: str) -> bytes:
    """The file of a zone, from where `zoneinfo` takes it."""
    for folder in zoneinfo.TZPATH:
        path = Path(folder, key)
        if path.is_file():
            return path.read_bytes()
    return resources.files("tzdata").joinpath("zoneinfo", *key.split("/")).read_bytes()


@cache
def data(raw: bytes) -> Data:
    """Read a TZif file, RFC 8536: its second block, and the rule in its footer for the time after."""
    assert raw[:4] == b"TZif"
    assert raw[4:5] >= b"2"
    start = 44 + block_size(raw, 0, 4)
    counts = struct.unpack(">6l", raw[start + 20 : start + 44])
    times, types = counts[3], counts[4]
    moments = struct.unpack_from(f">{times}q", raw, start + 44)
    kinds = struct.unpack_from(f">{times}B", raw, start + 44 + 8 * times)
    offsets = [entry[0] for entry in struct.iter_unpack(">lBB", raw[start + 44 + 9 * times :][: 6 * types])]
    seconds = list(zip(moments, (offsets[kind] for kind in kinds), strict=True))
    footer = raw[start + 44 + block_size(raw, start, 8) :].strip(b"\n").decode()
    last = moments[-1] if moments else FIRST - DAY
    seconds += [found for found in footer_changes(footer, last) if found[0] > last]
    return as_data(offsets[0], seconds)


def block_size(raw: bytes, start: int, width: int) -> int:
    universal, standard, leaps, times, types, letters = struct.unpack(">6l", raw[start + 20 : start + 44])
    return times * (width + 1) + types * 6 + letters + leaps * (width + 4) + standard + universal


def as_data(offset: int, seconds: list[tuple[int, int]]) -> Data:
    """Keep the moments from 1970 on at which the offset really changes: many only change the zone's abbreviation."""
    changes = []
    first_offset = offset
    for at, after in seconds:
        if at < FIRST:
            first_offset = after
        elif after != offset:
            changes.append(Change(at, offset, after))
        offset = after
    return Data(first_offset, tuple(changes))


FOOTER = re.compile(
    r"(?:[A-Za-z]+|<[^>]+>)([-+\d:]+)"
    r"(?:(?:[A-Za-z]+|<[^>]+>)([-+\d:]+)?,M(\d+)\.(\d)\.(\d)(?:/([-+\d:]+))?,M(\d+)\.(\d)\.(\d)(?:/([-+\d:]+))?)?"
)


def footer_changes(footer: str, last: int) -> Iterator[tuple[int, int]]:
    """Yield when a POSIX rule such as `CET-1CEST,M3.5.0,M10.5.0/3` changes the offset, and to what."""
    found = FOOTER.fullmatch(footer)
    assert found, footer
    standard = -clock(found[1])
    if not found[3]:
        yield last + 1, standard
        return
    summer = -clock(found[2]) if found[2] else standard + 3600
    seconds = []
    for year in range(1970 + last // (366 * DAY), 2101):
        begin = midnight(year, *map(int, found.group(3, 4, 5))) + clock(found[6] or "2")
        end = midnight(year, *map(int, found.group(7, 8, 9))) + clock(found[10] or "2")
        seconds += [(begin - standard, summer), (end - summer, standard)]
    yield from sorted(seconds)


def clock(text: str) -> int:
    """Read `2`, `-1`, `2:45` or `50`: hours that may be negative or more than a day."""
    hours, minutes, seconds = (*map(int, text.lstrip("+-").split(":")), 0, 0)[:3]
    return (-1 if text.startswith("-") else 1) * (hours * 3600 + minutes * 60 + seconds)


def midnight(year: int, month: int, week: int, weekday: int) -> int:
    """The week-th weekday (0 is Sunday) of a month, or its last one where the week is 5, at 00:00 on the wall."""
    days = [
        day for day in range(1, monthrange(year, month)[1] + 1) if date(year, month, day).isoweekday() % 7 == weekday
    ]
    return timegm((year, month, days[-1] if week == 5 else days[week - 1], 0, 0, 0))


def walk(cut: Zone, start: int, end: int) -> list[Stretch]:
    """Every stretch of a range; no second lies outside of its own."""
    found: list[Stretch] = []
    second = start
    while second < end:
        found.append(cut.stretch(second))
        assert found[-1].start <= second < found[-1].end, cut.key
        second = found[-1].end
    return found


def ranges(key: str) -> Iterator[tuple[int, int]]:
    """The years from 1970 to 2099; after 2037, where rules repeat themselves, a few of them for most zones."""
    settled = timegm((2038, 1, 1, 0, 0, 0))
    yield FIRST, LAST if key in SOME else settled
    for year in () if key in SOME else SAMPLED:
        yield timegm((year, 1, 1, 0, 0, 0)), timegm((year + 1, 1, 1, 0, 0, 0))


@cache
def different() -> list[str]:
    """One name for each zone: many names share their data."""
    return sorted({stored(key): key for key in sorted(KEYS, key=lambda key: ("/" in key, key))}.values())


def region(key: str) -> str:
    return key.partition("/")[0] if "/" in key else "no region"


@pytest.mark.parametrize("where", sorted(set(map(region, different()))))
def test_the_stretches_of_every_zone_are_those_of_its_data(where: str) -> None:
    for key in filter(lambda key: region(key) == where, different()):
        known = data(stored(key))
        for start, end in ranges(key):
            found = walk(zone(key), start, end)
            seams = {Change(each.start, each.before, each.offset) for each in found if each.start >= start}
            assert sorted(seam for seam in seams if seam.before != seam.after) == known.between(start, end), key
            for each in found:
                assert each.offset == known.offset(max(each.start, start)), (key, each)
                assert each.before == known.offset(each.start - 1) or each.start < FIRST, (key, each)
                assert each.after == known.offset(each.end), (key, each)


def test_the_data_hold_what_is_known_about_some_zones() -> None:
    assert data(stored("UTC")) == Data(0, ())
    assert Change(1325239200, -10 * 3600, 14 * 3600) in data(stored("Pacific/Apia")).changes
    assert Change(63593070, -2670, 0) in data(stored("Africa/Monrovia")).changes
    assert Change(timegm((2099, 3, 29, 1, 0, 0)), 3600, 7200) in data(stored("Europe/Berlin")).changes
    assert len(data(stored("America/New_York")).between(FIRST, LAST)) == 2 * 130
    assert sum(bool(data(stored(key)).changes) for key in KEYS) > 400


def new_year_changes() -> list[tuple[str, Change, int]]:
    """The changes within two days of a New Year, with the second in which that year begins."""
    found = []
    for key in KEYS:
        for change in data(stored(key)).changes:
            year = datetime.fromtimestamp(change.at + 15 * DAY, UTC).year
            begin = timegm((year, 1, 1, 0, 0, 0))
            if abs(change.at - begin) <= 2 * DAY and begin > FIRST + 3 * DAY:
                found.append((key, change, begin))
    return found


def test_a_change_near_new_year_is_whole_from_both_years() -> None:
    found = new_year_changes()
    assert {"Pacific/Apia", "Pacific/Kiritimati"} <= {key for key, _, _ in found}
    for key, change, begin in found:
        for entry in (begin - 2 * DAY - 1, begin - 1, begin, begin + 2 * DAY):
            cut = Zone(key)
            cut.stretch(entry)
            earlier, later = cut.stretch(change.at - 1), cut.stretch(change.at)
            assert (earlier.end, earlier.offset, earlier.after) == (change.at, change.before, change.after), key
            assert (later.start, later.before, later.offset) == (change.at, change.before, change.after), key
            shift = abs(change.after - change.before)
            others = {each.at for each in data(stored(key)).changes}
            assert change.at - earlier.start >= shift or earlier.start in others, key
            assert later.end - change.at >= shift or later.end in others, key


NEW_YEAR = timegm((2012, 1, 1, 0, 0, 0))
SECONDS = st.integers(FIRST + 3 * DAY, LAST - 1) | st.builds(
    lambda year, away: timegm((year, 1, 1, 0, 0, 0)) + away, st.integers(1971, 2099), st.integers(-4 * DAY, 4 * DAY)
)


@settings(deadline=None)
@given(key=st.sampled_from(SOME), seconds=st.lists(SECONDS, min_size=1, max_size=12))
@example(key="Pacific/Apia", seconds=[NEW_YEAR - 3 * DAY, NEW_YEAR, NEW_YEAR - 1, NEW_YEAR + 3 * DAY])
def test_whatever_was_asked_before_the_stretch_is_true(key: str, seconds: list[int]) -> None:
    busy, known = Zone(key), data(stored(key))
    for second in seconds:
        stretch = busy.stretch(second)
        assert stretch.start <= second < stretch.end
        assert stretch.offset == busy.offset(second) == known.offset(second)
        assert known.between(stretch.start + 1, stretch.end) == []
        assert stretch.before == known.offset(stretch.start - 1)
        assert stretch.after == known.offset(stretch.end)


def test_no_two_changes_lie_between_two_looks_at_the_clock() -> None:
    for key in KEYS:
        for one, other in pairwise(data(stored(key)).changes):
            assert other.at - one.at > zones._PROBE, (key, one, other)


@pytest.mark.parametrize("key", [key for key in KEYS if key.count("/") != 1])
def test_the_names_outside_the_usual_regions_are_zones_too(key: str) -> None:
    assert zone(key).key == key


def test_a_zone_may_be_given_as_a_zoneinfo() -> None:
    assert zone(zoneinfo.ZoneInfo("Europe/Berlin")) is zone("Europe/Berlin")
    assert zone(zoneinfo.ZoneInfo.no_cache("Europe/Berlin")) is zone("Europe/Berlin")


def test_a_zoneinfo_without_a_name_is_refused() -> None:
    nameless = zoneinfo.ZoneInfo.from_file(io.BytesIO(stored("Europe/Berlin")))
    with pytest.raises(rota.InvalidZone):
        zone(nameless)


MISTAKES = {
    "Europe/Berln": "Europe/Berlin",
    "europe/berlin": "Europe/Berlin",
    "Europe/Berlin ": "Europe/Berlin",
    "Europe//Berlin": "Europe/Berlin",
    "America/NewYork": "America/New_York",
    "America/New York": "America/New_York",
    "Asia/Calcuta": "Asia/Calcutta",
    "Pacific/Appia": "Pacific/Apia",
}
NO_ZONES = (
    *(
        "",
        " ",
        "Middle/Earth",
        "Berlin time",
        "+02:00",
        "UTC+2",
        "Z",
        "Europe",
        "Europe/",
        "/",
        "..",
        "../UTC",
        "./UTC",
    ),
    *(
        "/etc/localtime",
        "zone.tab",
        "tzdata.zi",
        "leapseconds",
        "__init__.py",
        "\0",
        "UTC\0",
        "\ud800",
        "é",
        "x" * 5000,
    ),
)
MACHINE_NAMES = ("localtime", "posixrules", "posix/Europe/Berlin", "right/Europe/Berlin", "right/UTC")


def refusal(key: object) -> rota.InvalidZone:
    with pytest.raises(rota.InvalidZone) as caught:
        zone(key, "tz")  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize(("given_name", "meant"), MISTAKES.items())
def test_a_mistyped_name_is_answered_with_the_one_that_was_meant(given_name: str, meant: str) -> None:
    assert refusal(given_name).allowed == f"did you mean {meant}?"


@pytest.mark.parametrize("key", NO_ZONES)
def test_an_unknown_name_is_refused(key: str) -> None:
    error = refusal(key)
    assert (error.field, error.value) == ("tz", key)
    assert offers_a_zone(error)


@pytest.mark.parametrize("key", MACHINE_NAMES)
def test_a_name_that_means_something_else_on_another_machine_is_refused(key: str) -> None:
    assert offers_a_zone(refusal(key))


@pytest.mark.parametrize("key", [None, 1, b"UTC", ["UTC"], UTC, timedelta(hours=1)])
def test_what_is_no_name_is_refused(key: object) -> None:
    assert offers_a_zone(refusal(key))


def offers_a_zone(error: rota.InvalidZone) -> bool:
    """What a refusal suggests is itself a zone."""
    suggested = re.search(r"(?:did you mean|such as) ([^ ?]+)", error.allowed)
    return suggested is not None and zone(suggested[1]).key == suggested[1]


def test_the_refusal_names_the_field_it_was_given_for() -> None:
    with pytest.raises(rota.InvalidZone, match=r"^zone: "):
        zone("Nowhere", "zone")
