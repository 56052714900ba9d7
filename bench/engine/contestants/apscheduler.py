"""APScheduler 3 with its SQLAlchemy store: a background scheduler, ten threads, nothing dropped for being late."""

import asyncio
import pickle  # it is how APScheduler keeps its jobs
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from apscheduler.job import Job
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger
from bench.engine.contestant import Contestant, note_due, speak, synchronous
from sqlalchemy import Engine, create_engine, event

TASK = "bench.engine.contestants.apscheduler:due"


def due(when: float) -> None:
    note_due(when)


class Apscheduler(Contestant):
    batch = 100

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.store = SQLAlchemyJobStore(engine=engine_on(url))
        self.scheduler = BackgroundScheduler(
            jobstores={"default": self.store},
            job_defaults={"misfire_grace_time": None, "coalesce": True},
            timezone=UTC,
        )

    async def open(self) -> None:
        self.scheduler.start(paused=True)

    def options(self, key: str, due: float) -> dict[str, Any]:
        first = datetime.fromtimestamp(due, UTC)
        return {
            "id": key,
            "func": TASK,
            "args": (due,),
            "trigger": IntervalTrigger(hours=1, start_date=first, timezone=UTC),
            "next_run_time": first,
        }

    async def put(self, key: str, due: float) -> None:
        self.scheduler.add_job(**self.options(key, due))

    async def put_many(self, dues: dict[str, float]) -> None:
        """It has no call for many."""
        for key, due in dues.items():
            await self.put(key, due)

    async def fill(self, dues: dict[str, float]) -> None:
        """Write the rows that `add_job` would."""
        rest = {
            "executor": "default",
            "kwargs": {},
            "misfire_grace_time": None,
            "coalesce": True,
            "max_instances": 1,
        }
        rows = []
        for key, due in dues.items():
            job = Job(self.scheduler, name=key, **self.options(key, due), **rest)
            state = pickle.dumps(job.__getstate__(), self.store.pickle_protocol)
            rows.append({"id": key, "next_run_time": due, "job_state": state})
        with self.store.engine.begin() as connection:
            for first in range(0, len(rows), 10_000):
                connection.execute(self.store.jobs_t.insert(), rows[first : first + 10_000])

    async def fire(self, url: str, begun: Callable[[], None]) -> None:  # noqa: ARG002 (as all contestants)
        self.scheduler.start()
        begun()
        await asyncio.Event().wait()

    live = fire


def engine_on(url: str) -> Engine:
    """Return an engine; SQLite's with a write-ahead log and as durable as Rota's, unless its own way is wanted."""
    if url.startswith("postgresql:"):
        return create_engine(url.replace("postgresql:", "postgresql+psycopg:", 1))
    engine = create_engine(url.partition("?")[0])

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: object) -> None:
        if synchronous():
            connection.execute("pragma journal_mode = wal")
            connection.execute(f"pragma synchronous = {synchronous()}")

    return engine


if __name__ == "__main__":
    speak(Apscheduler)
