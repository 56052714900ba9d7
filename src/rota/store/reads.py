"""Lists and counts, for people."""

from dataclasses import dataclass
from typing import Any

from rota.db.database import Database, Operation
from rota.model import Run, RunState
from rota.times.moments import SECOND

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

    def runs(
        self, *, state: str | None, task: str | None, queue: str | None, before: int | None, most: int
    ) -> Operation[list[Run[Any]]]:
        """Return runs, newest first."""
        start = _NEWEST if before is None else before
        rows = yield self._db.query("reads.runs", state=state, task=task, queue=queue, before=start, most=most)
        return [Run.read(row) for row in rows]

    def queues(self) -> Operation[list[QueueState]]:
        """Return how many runs are under way, by queue and state."""
        rows = yield self._db.query("reads.states")
        return [QueueState(row["queue"], row["state"], row["number"], -row["oldest"], row["due"]) for row in rows]

    def statistics(
        self, period: int, *, task: str | None, schedule: str | None, queue: str | None
    ) -> Operation[Statistics]:
        """Sum up what ended in the last so many microseconds."""
        (row,) = yield self._db.query("reads.statistics", period=period, task=task, schedule=schedule, queue=queue)
        return Statistics.read(row)
