"""Rota, by its public API."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import monotonic, time

from bench.engine.contestant import Contestant, note_due, note_sent, speak

import rota

SLOTS = 10


async def nothing() -> None: ...


async def sent(when: float) -> None:
    note_sent(when)


async def due(when: float) -> None:
    note_due(when)


class Rota(Contestant):
    batch = 5_000

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.app = rota.Rota(url, name="bench")
        self.nothing, self.sent, self.due = map(self.app.task, (nothing, sent, due))

    async def open(self) -> None:
        await self.app.open()

    async def enqueue(self, sent: float | None) -> None:
        await (self.nothing.enqueue() if sent is None else self.sent.enqueue(sent))

    async def enqueue_many(self, count: int) -> None:
        await self.app.enqueue_many(self.nothing.call() for _ in range(count))

    async def work(self) -> None:
        async with self.app:
            await self.app.worker(slots=SLOTS).run()

    def schedule(self, key: str, due: float) -> rota.Schedule:
        """Hourly from then on; `At`, since an interval's origin is a whole second."""
        first = datetime.fromtimestamp(due, UTC)
        rule = (
            rota.Every("1h", origin=first, start=first)
            if due == int(due)
            else rota.At([first, first + timedelta(hours=1)])
        )
        return rota.Schedule(key, self.due.call(due), rule)

    async def put(self, key: str, due: float) -> None:
        await self.app.schedules.put(self.schedule(key, due))

    async def put_many(self, dues: dict[str, float]) -> None:
        await self.app.schedules.put_many(self.schedule(key, due) for key, due in dues.items())

    async def fire(self, url: str, begun: Callable[[], None]) -> None:  # noqa: ARG002 (as all contestants)
        async with self.app:
            scheduler = self.app.scheduler()
            begun()
            await scheduler.run()

    async def live(self, url: str, begun: Callable[[], None]) -> None:  # noqa: ARG002 (as all contestants)
        async with self.app.running(slots=SLOTS):
            begun()
            await asyncio.Event().wait()

    async def ask(self, measure: str, count: int) -> list[float]:
        ask = {"lock": self.lock, "read": self.read, "write": self.write, "tick": self.tick}[measure]
        taken = []
        for number in range(-max(1, count // 10), count):  # the first tenth warms up
            seconds = await ask(number)
            if number >= 0:
                taken.append(seconds)
        return taken

    async def lock(self, number: int) -> float:
        """Take a lock and give it back."""
        begun = monotonic()
        async with self.app.lock(f"lock-{number % 10}"):
            pass
        return monotonic() - begun

    async def read(self, number: int) -> float:
        begun = monotonic()
        await self.app.schedules.get(f"s-{abs(number) % 100}")
        return monotonic() - begun

    async def write(self, number: int) -> float:
        begun = monotonic()
        await self.app.schedules.change(f"s-{abs(number) % 100}", description=f"the {number}th")
        return monotonic() - begun

    async def tick(self, _: int) -> float:
        """Fire a hundred schedules that are due, among all that exist; again, where they were not there in time."""
        margin = 0.05
        while True:
            when = time() + margin
            await self.put_many({f"tick-{when}-{each}": when for each in range(100)})
            await asyncio.sleep(max(0.0, when - time()) + 0.01)
            firer = self.app.scheduler().firer
            begun = monotonic()
            await firer.run_once()
            taken = monotonic() - begun
            if firer.fired == 100:
                return taken
            margin *= 2


if __name__ == "__main__":
    speak(Rota)
