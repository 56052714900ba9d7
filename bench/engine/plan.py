"""Who takes part, what is measured, how much of it, and what is wanted of Rota."""

from dataclasses import dataclass, replace
from typing import Literal

from bench.engine.stores import StoreName, Synchronous


@dataclass(frozen=True)
class Queue:
    """A contestant with a queue."""

    name: str
    done: str
    """How its database says how many runs of a backlog have ended, committed."""
    drains: int
    """Roughly how many runs a second it ends: its backlog is to last as long as everybody's."""
    synced: int | None = None
    """The same where SQLite syncs each commit, if that is much less."""

    def backlog(self, seconds: float, synchronous: Synchronous) -> int:
        """Return how many runs it is to drain."""
        slow = self.synced if synchronous != "normal" else None
        return max(10, int((slow or self.drains) * seconds))


@dataclass(frozen=True)
class Scheduler:
    """A contestant with schedules."""

    name: str
    store: str
    fired: str
    """How its store says how many schedules, whose keys begin with a prefix, have fired."""
    fires: int
    """Roughly how many it fires a second: 10,000 at once are too many for a quick look at some."""
    starts: float = 1.0
    """Roughly how many seconds its processes take to start: schedules are due when they have."""
    adds: bool = True
    """Whether schedules can be added to it while it runs."""
    most: int = 1_000_000
    """With how many schedules to try it."""


QUEUES: dict[StoreName, tuple[Queue, ...]] = {
    "postgres": (
        Queue("rota", "SELECT count(*) FROM rota_runs WHERE state = 'succeeded'", 8_000),
        Queue("pgqueuer", "SELECT {backlog} - count(*) FROM pgqueuer", 15_000),
        Queue("procrastinate", "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'", 500),
        Queue("chancy", "SELECT count(*) FROM chancy_jobs WHERE state = 'succeeded'", 4_000),
        Queue("dbos", "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'", 500),
    ),
    "sqlite": (
        Queue("rota", "SELECT count(*) FROM rota_runs WHERE state = 'succeeded'", 12_000),
        Queue("huey", "SELECT {backlog} - count(*) FROM task", 10_000, synced=250),
    ),
}

_ROTA = "SELECT count(*) FROM rota_runs WHERE schedule LIKE '{prefix}-%'"
_APSCHEDULER = "SELECT count(*) FROM apscheduler_jobs WHERE next_run_time > {due} + 1800 AND id LIKE '{prefix}-%'"

SCHEDULERS: dict[StoreName, tuple[Scheduler, ...]] = {
    "postgres": (
        Scheduler("rota", "postgres", _ROTA, 10_000),
        Scheduler("apscheduler", "postgres", _APSCHEDULER, 300, most=100_000),
        Scheduler("celery", "redis", "LLEN celery", 1_000, starts=3.0, adds=False),
    ),
    "sqlite": (
        Scheduler("rota", "sqlite", _ROTA, 10_000),
        Scheduler("apscheduler", "sqlite", _APSCHEDULER, 600, most=100_000),
    ),
}


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    rounds: int = 5
    seconds: float = 2.0
    """How long to enqueue, and to add schedules."""
    drain: float = 4.0
    """Roughly how long the drain of a backlog is to take."""
    sent: int = 400
    """How many runs to send for the latency, one every 20 ms."""
    due_at_once: int = 10_000
    fire: float = 60.0
    """Roughly how many seconds it may take at most to fire them; who needs more gets fewer."""
    late: float = 10.0
    """For how long to fire 100 a second."""
    schedules: tuple[int, ...] = (1_000, 100_000, 1_000_000)
    """How many schedules exist while nothing is due."""
    idle: float = 35.0
    """How long to look at an idle scheduler: longer than any of its own intervals."""
    asked: int = 200
    """How often to take a lock, and to read and write state."""
    ticks: int = 20

    def scaled(self, scale: float) -> "Sizes":
        """Return sizes for a test of the benchmark itself."""
        return replace(
            self,
            seconds=self.seconds * scale,
            drain=self.drain * scale,
            sent=max(2, int(self.sent * scale)),
            due_at_once=max(2, int(self.due_at_once * scale)),
            late=self.late * scale,
            schedules=tuple(max(2, int(each * scale)) for each in self.schedules),
            idle=self.idle * scale,
            asked=max(2, int(self.asked * scale)),
            ticks=max(1, int(self.ticks * scale)),
        )


FULL = Sizes()
QUICK = Sizes(
    rounds=2,
    seconds=0.3,
    drain=0.6,
    sent=50,
    due_at_once=2_500,
    fire=1.0,
    late=1.0,
    schedules=(1_000, 10_000),
    idle=6.0,
    asked=40,
    ticks=5,
)

Better = Literal["more", "less"]


@dataclass(frozen=True)
class Measure:
    """One line of the table, for each store."""

    part: Literal["queue", "schedules", "many schedules", "state"]
    name: str
    unit: str
    better: Better


MEASURES = {
    each.name: each
    for each in (
        Measure("queue", "enqueue one by one", "/s", "more"),
        Measure("queue", "enqueue in bulk", "/s", "more"),
        Measure("queue", "drain", "/s", "more"),
        Measure("queue", "latency p50", "ms", "less"),
        Measure("queue", "latency p99", "ms", "less"),
        Measure("schedules", "add schedules one by one", "/s", "more"),
        Measure("schedules", "add schedules in bulk", "/s", "more"),
        Measure("schedules", "firings, all due at once", "/s", "more"),
        Measure("schedules", "lateness p50", "ms", "less"),
        Measure("schedules", "lateness p99", "ms", "less"),
        Measure("many schedules", "start-up", "ms", "less"),
        Measure("many schedules", "idle CPU", "ms/s", "less"),
        Measure("many schedules", "memory", "MiB", "less"),
        Measure("many schedules", "tick over 100", "ms", "less"),
        Measure("state", "lock and release", "ms", "less"),
        Measure("state", "read state", "ms", "less"),
        Measure("state", "write state", "ms", "less"),
    )
}


def names_of(part: str) -> set[str]:
    """Return the names of the measures of a part."""
    return {each.name for each in MEASURES.values() if each.part == part}


@dataclass(frozen=True)
class Target:
    """What is wanted of Rota: so many times as good as a peer, a limit, or a limit on how it grows with schedules."""

    times: float | None = None
    peer: str | None = None
    """The peer that counts; the best of them if left out."""
    limit: float | None = None
    growth: float | None = None


TARGETS: dict[tuple[str, StoreName], Target] = {
    ("enqueue one by one", "postgres"): Target(times=1.2),
    ("enqueue in bulk", "postgres"): Target(times=2),
    ("drain", "postgres"): Target(times=2),
    ("latency p50", "postgres"): Target(times=1),
    ("latency p99", "postgres"): Target(times=1),
    ("enqueue one by one", "sqlite"): Target(times=2),
    ("drain", "sqlite"): Target(times=5),
    ("latency p50", "sqlite"): Target(times=5),
}
for _store in ("postgres", "sqlite"):
    TARGETS |= {
        ("add schedules in bulk", _store): Target(times=20, peer="apscheduler"),
        ("firings, all due at once", _store): Target(times=20, peer="apscheduler"),
        ("lateness p99", _store): Target(times=1, peer="apscheduler"),
        ("tick over 100", _store): Target(limit=10, growth=1.5),
        ("idle CPU", _store): Target(growth=1.5),
        ("memory", _store): Target(growth=1.2),
    }
