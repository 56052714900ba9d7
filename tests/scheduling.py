"""A store with schedules for tests: what fires, what runs and what is skipped, on a clock that the test turns."""

from datetime import datetime, timedelta
from typing import Any

from tests.stores import SECOND, START, Clock, ask, worker

from rota.app import Rota
from rota.db.database import Database
from rota.model import Outcome, RunError
from rota.schedule import Schedule
from rota.schedules import Schedules
from rota.store.runs import Claimed, RunStore, Settled
from rota.store.schedule_reads import FiringState, ScheduleState
from rota.store.schedule_rows import Fired
from rota.store.schedules import ScheduleStore
from rota.store.workers import WorkerStore
from rota.times.intervals import Every
from rota.times.moments import moment
from rota.times.rule import Rule

tasks = Rota("sqlite://")


@tasks.task
def work(number: int = 0) -> int:
    return number


@tasks.task(queue="mail", priority="high", on_lost="fail")
def other(number: int = 0) -> int:
    return number


MINUTELY = Every("1m")


def at(seconds: float) -> datetime:
    """The moment so many seconds after the start; the start is a whole minute."""
    return moment(START + round(seconds * SECOND))


def seconds(when: datetime | None) -> float | None:
    return None if when is None else (when - at(0)) / timedelta(seconds=1)


def made(key: str = "s", rule: Rule = MINUTELY, **more: Any) -> Schedule:
    return Schedule(key, more.pop("call", work.call()), rule, **more)


class Bench:
    """What a test does to the schedules of a store. Times are in seconds since the start."""

    def __init__(self, db: Database, clock: Clock, name: str = "tests") -> None:
        self.db = db
        self.clock = clock
        self.knocks: list[str] = []
        self.facade = Schedules(db, name, self.knocks.append)
        self.store = ScheduleStore(db)
        self.runs = RunStore(db)
        self.workers = WorkerStore(db, self.runs)

    async def put(self, key: str = "s", rule: Rule = MINUTELY, **more: Any) -> ScheduleState:
        return await self.facade.put(made(key, rule, **more))

    async def get(self, key: str = "s") -> ScheduleState:
        return await self.facade.get(key)

    async def fire(self, most: int = 100) -> Fired:
        return await self.db.write(lambda: self.store.fire(most))

    async def go(self, second: float) -> Fired:
        """Go to this second, and fire what is due."""
        self.clock.now = START + round(second * SECOND)
        return await self.fire()

    async def admit(self) -> None:
        await self.db.write(lambda: self.runs.admit(1_000))

    async def claim(self, name: str = "w") -> list[Claimed]:
        await self.admit()
        return await self.db.write(lambda: self.runs.claim(name, "default", 100, lost_least=0, lost_most=99))

    async def end(self, run: Claimed, outcome: Outcome = "succeeded", name: str = "w", **more: Any) -> set[int]:
        if outcome == "failed" and "error" not in more:
            more["error"] = RunError("Broken", "it broke")
        settled = Settled(run.id, run.attempt, outcome, schedule=run.schedule, limited=run.limited, **more)
        return await self.db.write(lambda: self.runs.settle(name, [settled]))

    async def work(self, outcome: Outcome = "succeeded", **more: Any) -> list[int]:
        """Claim all that is ready, and end it."""
        found = await self.claim()
        for each in found:
            await self.end(each, outcome, **more)
        return [each.id for each in found]

    async def die(self) -> None:
        """Lose the worker's lease."""
        await self.db.write(lambda: self.runs.lose("w"))

    async def enter(self, name: str = "w") -> None:
        await self.db.write(lambda: self.workers.enter(worker(name), 30 * SECOND))

    async def rows(self, key: str = "s") -> list[Any]:
        return await ask(self.db, "SELECT * FROM rota_runs WHERE schedule = :key ORDER BY id", key=key)

    async def ran(self, key: str = "s") -> list[tuple[float, str]]:
        """Return (due, state) of the runs."""
        return [((row["nominal"] - START) / SECOND, row["state"]) for row in await self.rows(key)]

    async def skipped(self, key: str = "s") -> list[tuple[str, float, float, int]]:
        """Return (reason, first, last, count) of the skips."""
        rows = await ask(self.db, "SELECT * FROM rota_skips WHERE schedule = :key ORDER BY first, id", key=key)
        return [(r["reason"], (r["first"] - START) / SECOND, (r["last"] - START) / SECOND, r["count"]) for r in rows]

    async def next(self, key: str = "s") -> float | None:
        return seconds((await self.get(key)).next_due)

    async def why(self, second: float, key: str = "s") -> tuple[str, FiringState | None]:
        found = await self.facade.why(key, at=at(second))
        return found.text, found.firing
