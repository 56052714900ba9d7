"""What a store says when somebody measures it: a few indexed statements, the same answer for every instance."""

from dataclasses import dataclass

from rota.db.database import Database, Operation
from rota.store.reads import QueueState, Reads
from rota.times.moments import Instant

_LATE = 60_000_000


@dataclass(frozen=True, slots=True)
class Measured:
    """A store at one instant."""

    states: dict[str, int]
    """How many schedules are in which state."""
    last: dict[str, Instant]
    """When the last run of a schedule began: by its key."""
    next: dict[str, Instant]
    """When a schedule is due next: by its key, or by what stands for those beyond the first ones."""
    late: int
    """How many schedules should have been fired a minute ago."""
    queues: list[QueueState]
    waiting: dict[str, int]
    """How many runs wait for room under a limit, for a run of their schedule, or for a worker of their queue."""
    workers: dict[str, int]
    slots: int
    troubles: dict[str, int]
    """How many troubles are open, by kind."""


class Measures:
    """Measures a database."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._reads = Reads(database)

    def measure(self, most: int) -> Operation[Measured]:
        """Measure it, with so many single schedules."""
        counts = yield self._db.query("schedules.counts")
        states = {row["state"]: row["number"] for row in counts}
        rows = yield self._db.query("metrics.schedules", most=most)
        following = {row["key"]: row["next"] for row in rows if row["next"] is not None}
        if sum(states.values()) > len(rows):
            own = {row["key"] for row in rows}
            for row in (yield self._db.query("metrics.soonest", most=most + 1_000)):  # by wake: the first is the next
                if row["key"] not in own and row["next"] is not None:
                    following.setdefault(f"task {row['task']}", row["next"])
        (late,) = yield self._db.query("metrics.late", late=_LATE)
        queues = yield from self._reads.queues()
        waiting = yield self._db.query("metrics.waiting")
        troubles = yield self._db.query("metrics.troubles")
        (workers,) = yield self._db.query("metrics.workers")
        return Measured(
            states=states,
            last={row["key"]: row["started"] for row in rows if row["started"] is not None},
            next=following,
            late=late["number"],
            queues=queues,
            waiting={row["why"]: row["number"] for row in waiting},
            workers={state: workers[state] for state in ("alive", "draining", "silent")},
            slots=workers["slots"],
            troubles={row["kind"]: row["number"] for row in troubles},
        )
