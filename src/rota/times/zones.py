"""Time zones as stretches of constant offset, found through `zoneinfo` alone.

All of Rota's wall-clock arithmetic is done on these: inside one stretch, wall time and UTC differ by a constant.
"""

import difflib
import re
import zoneinfo
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from rota.errors import InvalidZone

_PROBE = 3 * 86_400
"""How far apart a year is probed for changes. No zone has had two within six days since 1970 (tested)."""

_MARGIN = 3 * 86_400
"""How far a year's stretches reach into its neighbours, so that no repeat or gap is cut in two by New Year."""

_ONE_SECOND = timedelta(seconds=1)


class Stretch(NamedTuple):
    """The seconds of UTC in `[start, end)`, in which wall time is UTC + `offset`.

    `before` and `after` are the offsets just before the start and from the end on. They equal `offset` where the
    stretch only ends because its year does (days later, so that a change near New Year is whole).
    """

    start: int
    end: int
    offset: int
    before: int
    after: int


class Zone:
    """One IANA time zone."""

    __slots__ = ("_last", "_years", "key", "tzinfo")

    def __init__(self, key: str) -> None:
        self.key = key
        self.tzinfo: tzinfo = UTC if key == "UTC" else zoneinfo.ZoneInfo(key)
        self._years: dict[int, list[Stretch]] = {}
        self._last = Stretch(0, 0, 0, 0, 0)

    def stretch(self, second: int) -> Stretch:
        """Return the stretch that this second of UTC lies in."""
        last = self._last
        if last.start <= second < last.end:
            return last
        if self.tzinfo is UTC:
            found = _ALL_OF_UTC
        else:
            year = datetime.fromtimestamp(second, UTC).year
            stretches = self._years.get(year)
            if stretches is None:
                stretches = self._years[year] = self._year(year)
            found = next(s for s in stretches if second < s.end)
        self._last = found
        return found

    def offset(self, second: int) -> int:
        """Return the offset from UTC, in seconds, at this second of UTC."""
        offset = datetime.fromtimestamp(second, self.tzinfo).utcoffset()
        assert offset is not None  # noqa: S101 (an aware datetime has one)
        return offset // _ONE_SECOND

    def _year(self, year: int) -> list[Stretch]:
        first = int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) - _MARGIN
        last = int(datetime(year + 1, 1, 1, tzinfo=UTC).timestamp()) + _MARGIN
        probes = [*range(first, last, _PROBE), last]
        offsets = [self.offset(probe) for probe in probes]
        edges = [first]
        for low, high, before, after in zip(probes, probes[1:], offsets, offsets[1:], strict=False):
            if before != after:
                edges.append(self._change(low, high))
        edges = [edge for edge in edges if edge < last] + [last]
        return [
            Stretch(start, end, self.offset(start), self.offset(start - 1), self.offset(end))
            for start, end in pairwise(edges)
        ]

    def _change(self, low: int, high: int) -> int:
        """Return the first second after `low` at which the offset is another one; it is at most `high`."""
        before = self.offset(low)
        while high - low > 1:
            middle = (low + high) // 2
            if self.offset(middle) == before:
                low = middle
            else:
                high = middle
        return high


_ALL_OF_UTC = Stretch(-(10**11), 10**11, 0, 0, 0)


def zone(key: str | zoneinfo.ZoneInfo, field: str = "tz") -> Zone:
    """Return the zone of this IANA name."""
    name = key.key if isinstance(key, zoneinfo.ZoneInfo) else key
    try:
        if not isinstance(name, str) or _MACHINE_OWN.fullmatch(name):
            raise zoneinfo.ZoneInfoNotFoundError
        return _zone(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        known = {each.lower(): each for each in zoneinfo.available_timezones() if not _MACHINE_OWN.fullmatch(each)}
        close = difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.7)
        hint = f"did you mean {known[close[0]]}?" if close else "use a name of the IANA database, such as Europe/Berlin"
        raise InvalidZone(field, name, hint, "is not a time zone") from None


_MACHINE_OWN = re.compile("localtime|posixrules|(posix|right)/.*")
"""Names that are not on every machine, or mean what it is set to: the same text must mean the same everywhere."""


@lru_cache(maxsize=1024)
def _zone(key: str) -> Zone:
    return Zone(key)
