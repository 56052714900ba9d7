"""A client that makes, changes, pauses, resumes and removes schedules until it is told to stop.

`python -m tests.journeys.planner SEED`. Each plan has a name of its own among the task's arguments; once it is accepted
it is written down. Half of what it does, it does when a second ends: then schedules are due.
"""

import asyncio
import random
import signal
import sys
from datetime import timedelta

from tests.journeys import work
from tests.journeys.client import opened
from tests.journeys.ledger import note
from tests.journeys.plans import ANCHORED, FIXED

import rota
from rota import clock

KEYS = [f"fixed-{n}" for n in range(12)] + [f"anchored-{n}" for n in range(4)]

AT_ONCE = 4


class Planner:
    """Somebody who cannot decide."""

    def __init__(self, app: rota.Rota, seed: int) -> None:
        self._schedules = app.schedules
        self._chance = random.Random(seed)
        self._name = f"{seed}"
        self._made = 0

    def _call(self) -> tuple[str, rota.Call[int]]:
        self._made += 1
        plan = f"{self._name}-{self._made}"
        return plan, work.planned.call(plan, round(self._chance.choice([0.0, 0.3, 1.5]), 1))

    def _rule(self, key: str) -> rota.Rule:
        return self._chance.choice([*(FIXED if key.startswith("fixed") else ANCHORED)])

    async def _put(self, key: str) -> None:
        plan, call = self._call()
        policies = {
            "missed": self._chance.choice(["latest", "all", "none"]),
            "overlap": self._chance.choice(["skip", "queue_one", "queue_all"]),
        }
        await self._schedules.put(rota.Schedule(key, call, self._rule(key), **policies))  # type: ignore[arg-type]
        note(work.BOOKS.plans, key, plan)

    async def _change(self, key: str) -> None:
        plan, call = self._call()
        rule = {"rule": self._rule(key)} if self._chance.random() < 0.5 else {}
        await self._schedules.change(key, call=call, **rule)
        note(work.BOOKS.plans, key, plan)

    async def _once(self) -> None:
        """Do something to a schedule."""
        key = self._chance.choice(KEYS)
        what = self._chance.random()
        try:
            if what < 0.25:
                await self._put(key)
            elif what < 0.55:
                await self._change(key)
            elif what < 0.65:
                await self._schedules.pause(key)
            elif what < 0.70:
                await self._schedules.pause(key, until=clock.now() + timedelta(seconds=self._chance.uniform(0.2, 2)))
            elif what < 0.94:
                await self._schedules.resume(key)
            else:
                await self._schedules.remove(key)
        except (rota.UnknownSchedule, rota.StoreUnavailable):  # another one removed it, or nothing was promised
            await asyncio.sleep(0.1)

    async def some(self) -> None:
        """Do one thing after a while, or several at once when a second ends."""
        if self._chance.random() < 0.5:
            await asyncio.sleep(self._chance.uniform(0.0, 0.2))
            await self._once()
            return
        left = (1_000_000 - clock.micros() % 1_000_000) / 1_000_000
        await asyncio.sleep(max(0.0, left + self._chance.uniform(-0.01, 0.002)))
        await asyncio.gather(*(self._once() for _ in range(AT_ONCE)))


async def main(seed: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await opened(work.app)
    planner = Planner(work.app, seed)
    while not stop.is_set():
        await planner.some()
    await work.app.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
