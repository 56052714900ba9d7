"""Hours: how many runs ended in each hour and how, for charts that reach further back than single runs are kept.

A full hour is summed up once, by whoever sweeps, and then stands. Runs are removed only after that.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from rota.db.database import Database, Operation
from rota.times.moments import DAY, HOUR, SECOND, Instant, moment

KEPT = 400 * DAY
"""How long hours are kept: a year can be laid beside the one before."""
_LATE_COMMIT = 120 * SECOND
"""How long after an hour's end it is full: what ended in it may be committed a little later."""
_COLUMNS = ("hour", "task", "queue", "state", "runs", "busy", "longest", "waited")


@dataclass(frozen=True, slots=True)
class Hour:
    """The runs of a task and a queue that ended in one hour in one way."""

    hour: datetime
    """When the hour began."""
    task: str
    queue: str
    state: Literal["succeeded", "failed", "cancelled"]
    runs: int
    busy: timedelta
    """How long their last attempts took, all together."""
    longest: timedelta
    waited: timedelta
    """How long after they were due their last attempts began, all together."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A stretch of time that is summed up: an hour with what ended in it, or nothing up to a moment."""

    before: Instant
    to: Instant
    rows: tuple[tuple[Any, ...], ...] = ()


class Hours:
    """The hours in a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def next(self) -> Operation[Sum | None]:
        """Sum up the oldest full hour that is not yet; None where all are. It only reads."""
        (row,) = yield self._db.query("hours.through")
        before: Instant = row["through"]
        full = (row["now"] - _LATE_COMMIT) // HOUR * HOUR
        if before > full + HOUR:  # the clock was set back: what ends now is to be counted too
            return Sum(before, full)
        (row,) = yield self._db.query("hours.first", after=before, until=full)
        if row["first"] is None:
            return Sum(before, full) if before < full else None
        hour: Instant = row["first"] // HOUR * HOUR
        rows = yield self._db.query("hours.list", first=hour, until=hour + HOUR, task=None, queue=None)
        return Sum(before, hour + HOUR, tuple(tuple(row[name] for name in _COLUMNS) for row in rows))

    def put(self, found: Sum) -> Operation[bool]:
        """Write down what was summed up, unless somebody else did; tells whether it was."""
        if not (yield self._db.query("hours.move", before=found.before, to=found.to)):
            return False
        if found.rows:
            yield self._db.many("hours.put", _COLUMNS, found.rows)
        yield self._db.query("hours.old", keep=KEPT)
        return True

    def list(
        self, first: Instant, until: Instant, *, task: str | None = None, queue: str | None = None
    ) -> Operation[Any]:
        """Return the hours that began from `first` on, before `until`, also the one that is not full."""
        rows = yield self._db.query("hours.list", first=first, until=until, task=task, queue=queue)
        return [
            Hour(
                moment(row["hour"]),
                row["task"],
                row["queue"],
                row["state"],
                row["runs"],
                *(timedelta(microseconds=row[name]) for name in ("busy", "longest", "waited")),
            )
            for row in rows
        ]
