"""Lists and counts, for people."""

from dataclasses import dataclass
from typing import Any

from rota.db.database import Database, Operation
from rota.model import Run, RunState

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

    def pulse(self) -> Operation[tuple[int | None, int | None]]:
        """Return what is another as soon as a run was made or has ended."""
        (row,) = yield self._db.query("reads.pulse")
        return row["newest"], row["ended"]
