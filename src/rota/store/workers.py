"""Workers and their leases, and the sweep that takes back what a dead one held."""

import builtins
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rota.db.database import Database, Operation
from rota.store.runs import RunStore
from rota.times.moments import moment


@dataclass(frozen=True, slots=True)
class NewWorker:
    """A worker that says it is there."""

    id: str
    host: str
    pid: int
    queues: tuple[str, ...]
    slots: int


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A worker as others see it."""

    id: str
    host: str
    pid: int
    queues: tuple[str, ...]
    slots: int
    left: int
    """How many microseconds its lease still holds; negative when it has ended."""
    started_at: datetime
    draining: bool
    """Whether it takes no new work, and ends when what it runs has ended."""
    running: int
    """How many runs it holds: what it runs, and what it took ahead."""


class WorkerStore:
    """The workers in a database."""

    def __init__(self, database: Database, runs: RunStore) -> None:
        self._db = database
        self._runs = runs

    def enter(self, worker: NewWorker, lease: int) -> Operation[None]:
        """Say that a worker is there."""
        yield self._db.query(
            "workers.insert",
            id=worker.id,
            host=worker.host,
            pid=worker.pid,
            queues=json.dumps(worker.queues),
            slots=worker.slots,
            lease=lease,
        )

    def renew(self, worker: str, lease: int) -> Operation["Renewal"]:
        """Lengthen a worker's lease; tells whether it still had one, and what it is to stop."""
        rows = yield self._db.query("workers.renew", id=worker, lease=lease)
        cancel = yield from self._runs.to_cancel(worker)
        return Renewal(bool(rows), bool(rows and rows[0]["draining"]), tuple(cancel))

    def take_on(self, worker: str, queues: tuple[str, ...]) -> Operation[None]:
        """Say that a worker works these queues now."""
        yield self._db.query("workers.take_on", id=worker, queues=json.dumps(queues))

    def list(self) -> Operation["builtins.list[WorkerRecord]"]:
        """Return the workers, oldest first."""
        rows = yield self._db.query("workers.list")
        return [
            WorkerRecord(
                id=row["id"],
                host=row["host"],
                pid=row["pid"],
                queues=tuple(json.loads(row["queues"])),
                slots=row["slots"],
                left=row["left_over"],
                started_at=moment(row["started_at"]),
                draining=bool(row["draining"]),
                running=row["running"],
            )
            for row in rows
        ]

    def drain(self, worker: str) -> Operation[bool]:
        """Say that a worker takes no new work: nothing is let in for its sake. False if there is none.

        It hears so when it renews its lease next.
        """
        return bool((yield self._db.query("workers.drain", id=worker)))

    def leave(self, worker: str) -> Operation[None]:
        """Say that a worker has gone of its own will; what it still held goes back at once."""
        yield from self._runs.lose(worker, counts=False)
        yield self._db.query("workers.remove", id=worker)

    def sweep(self, ended: "Judge | None" = None) -> Operation[dict[str, int]]:
        """Take back what workers held whose lease has ended; returns how many runs of each queue are ready again.

        `ended` judges which leases have; else the store's own clock does, which somebody may set.
        """
        leases = yield self._db.query("workers.leases")
        known = [(row["id"], row["lease"], row["lease"] - row["by_clock"], row["left_over"]) for row in leases]
        judged = (ended or _by_the_stores_clock)(known)
        gone = []
        for worker, lease in judged:  # who has renewed since, or is just doing so, is alive
            gone += [row[0] for row in (yield self._db.query("workers.unrenewed", id=worker, lease=lease))]
        gone += [row[0] for row in (yield self._db.query("runs.orphans"))]
        ready: dict[str, int] = {}
        for worker in gone:
            yield self._db.query("troubles.silent", id=worker)
            for run in (yield from self._runs.lose(worker)):
                if run["state"] == "ready":
                    ready[run["queue"]] = ready.get(run["queue"], 0) + 1
            yield self._db.query("workers.remove", id=worker)
        return ready


Leases = Sequence[tuple[str, int, int, int]]
"""Of each worker until when its lease is, what time it is now, and how many microseconds are left of it."""
Judge = Callable[[Leases], Iterable[tuple[str, int]]]
"""Returns the leases that have ended: whose, and until when they were."""


def _by_the_stores_clock(leases: Leases) -> Iterable[tuple[str, int]]:
    return [(worker, lease) for worker, lease, _, left in leases if left < 0]


@dataclass(frozen=True, slots=True)
class Renewal:
    """What a worker hears when it renews its lease."""

    held: bool
    draining: bool
    cancel: tuple[tuple[int, int, str], ...]
