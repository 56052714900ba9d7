"""Where a clock change touches a rule, said in a sentence for people."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from rota.times.moments import SECOND, Instant, instant, moment
from rota.times.rule import Rule
from rota.times.series import Bounded, Series, Union
from rota.times.wall import Seam, Wall
from rota.times.words import and_list, clock_words, day_words

_FEW = 3


@dataclass(frozen=True)
class ClockChange:
    """A clock change that swallows or repeats wall times that a rule names."""

    at: datetime
    """The first instant after the change, in the rule's zone."""
    kind: Literal["gap", "repeat"]
    note: str
    """What it means for the rule: `02:30 does not exist on Sun 28 Mar 2027; fires at 03:00`."""


def clock_changes(rule: Rule, after: datetime, until: datetime) -> list[ClockChange]:
    """Return the clock changes in `(after, until]` that touch the rule, in order."""
    found = {
        (seam.start, note): ClockChange(moment(seam.start * SECOND, wall.zone.tzinfo), seam.kind, note)
        for wall, seam in _seams(rule.series, instant(after, "after"), instant(until, "until"))
        for note in [_note(wall, seam)]
    }
    return [found[key] for key in sorted(found)]


def _seams(series: Series, after: Instant, until: Instant) -> Iterator[tuple[Wall, Seam]]:
    if isinstance(series, Bounded):
        yield from _seams(series.series, max(after, series.start - 1), min(until, series.end))
    elif isinstance(series, Union):
        for part in series.parts:
            yield from _seams(part, after, until)
    elif isinstance(series, Wall):
        yield from ((series, seam) for seam in series.seams(after, until))


def _note(wall: Wall, seam: Seam) -> str:
    day = day_words(_clock(seam.walls[0]))
    if wall.fixed and len(seam.walls) <= _FEW:
        times = and_list([clock_words(_clock(each)) for each in seam.walls])
        many = len(seam.walls) > 1
    else:
        times, many = f"{clock_words(_clock(seam.low))} to {clock_words(_clock(seam.high))}", False
    if seam.kind == "gap":
        end = (
            clock_words(_clock(seam.high))
            if _clock(seam.high).date() == _clock(seam.walls[0]).date()
            else _until(seam.high)
        )
        what = (
            f"fires {'once, ' if many else ''}at {end}"
            if wall.makes_up
            else "does not fire"
            if wall.fixed
            else "what was due in it is lost"
        )
        return f"{times} {'do' if many else 'does'} not exist on {day}; {what}"
    copy = (
        {"first": "at the first", "second": "at the second", "both": "at both"}[wall.repeat]
        if wall.fixed
        else "in both"
    )
    return f"{times} {'happen' if many else 'happens'} twice on {day}; fires {copy}"


def _until(wall: int) -> str:
    return f"{clock_words(_clock(wall))} on {day_words(_clock(wall))}"


def _clock(wall: int) -> datetime:
    """Return a wall time as a datetime to be formatted; its zone means nothing."""
    return datetime.fromtimestamp(wall, UTC)
