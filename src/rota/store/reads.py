"""Lists and counts, for people."""

from dataclasses import dataclass
from typing import Any

from rota.db.database import Database, Operation
from rota.model import Run, RunState
from rota.times.moments import SECOND, Instant

_NEWEST = 2**62


@dataclass(frozen=True, slots=True)
class QueueState:
    """How many runs of a queue are in a state, and how long the oldest has been due (in microseconds)."""

    queue: str
    state: RunState
    number: int
    oldest: int
    due: int = 0
    """How many of them are due."""


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are wanted: those that are as all of it says; what is None does not matter."""

    state: str | None = None
    task: str | None = None
    queue: str | None = None
    schedule: str | None = None
    worker: str | None = None
    since: Instant | None = None
    """Made at this instant or later."""
    until: Instant | None = None
    """Made before this instant."""
    text: str | None = None
    """It is in the task's name, the schedule's key, the unique key or the error, in large or in small letters."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """How the runs went that ended in a rolling window; zeros where there are none."""

    total: int
    """How many succeeded or failed; a cancelled one is neither."""
    successful: int
    failed: int
    success_rate: float
    """In percent."""
    average_duration_ms: float
    """Of those that succeeded."""
    checks_per_minute: float
    """Over the minutes since the oldest of them ended, at least 1."""

    @classmethod
    def read(cls, row: Any) -> "Statistics":
        """Make the record from what the store counted."""
        total, successful = row["total"], row["successful"]
        return cls(
            total,
            successful,
            total - successful,
            success_rate=100 * successful / total if total else 0.0,
            average_duration_ms=row["busy"] / successful / 1_000 if successful else 0.0,
            checks_per_minute=total / max(1.0, row["oldest"] / (60 * SECOND)) if total else 0.0,
        )


class Reads:
    """What people ask a store."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def runs(self, wanted: RunFilter, *, before: int | None, most: int) -> Operation[list[Run[Any]]]:
        """Return runs, newest first."""
        # Those of a schedule have an index of their own, which one text for both cases would not use.
        name = "reads.runs" if wanted.schedule is None else "reads.runs_of"
        own = {} if wanted.schedule is None else {"schedule": wanted.schedule}
        rows = yield self._db.query(
            name,
            state=wanted.state,
            task=wanted.task,
            queue=wanted.queue,
            worker=wanted.worker,
            since=wanted.since,
            until=wanted.until,
            text=None if wanted.text is None else holding(wanted.text),
            before=_NEWEST if before is None else before,
            most=most,
            **own,
        )
        return [Run.read(row) for row in rows]

    def queues(self) -> Operation[list[QueueState]]:
        """Return how many runs are under way, by queue and state."""
        rows = yield self._db.query("reads.states")
        return [QueueState(row["queue"], row["state"], row["number"], -row["oldest"], row["due"]) for row in rows]

    def pulse(self) -> Operation[tuple[int | None, int | None]]:
        """Return what is another as soon as a run was made or has ended."""
        (row,) = yield self._db.query("reads.pulse")
        return row["newest"], row["ended"]

    def statistics(
        self, period: int, *, task: str | None, schedule: str | None, queue: str | None
    ) -> Operation[Statistics]:
        """Sum up what ended in the last so many microseconds."""
        (row,) = yield self._db.query("reads.statistics", period=period, task=task, schedule=schedule, queue=queue)
        return Statistics.read(row)


def holding(text: str) -> str:
    """Return what LIKE, with ! before a sign that stands for itself, finds this text by wherever it stands."""
    for sign in "!%_":
        text = text.replace(sign, f"!{sign}")
    return f"%{text}%"
