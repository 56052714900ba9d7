"""pgqueuer: asyncpg and uvloop, as its own command runs it; tables of its default, durable kind."""

import asyncpg
import uvloop
from bench.engine.contestant import Contestant, note_sent, speak
from pgqueuer import AsyncpgDriver, AsyncpgPoolDriver, Job, PgQueuer, Queries

BATCH = 1_000
"""How many to take at once: the best of 50, 100, 200, 500 and 1,000."""


class Pgqueuer(Contestant):
    batch = 5_000

    async def open(self) -> None:
        self.queries = Queries(AsyncpgDriver(await asyncpg.connect(self.url)))
        await self.queries.install()

    async def enqueue(self, sent: float | None) -> None:
        if sent is None:
            await self.queries.enqueue("nothing", None)
        else:
            await self.queries.enqueue("sent", repr(sent).encode())

    async def enqueue_many(self, count: int) -> None:
        await self.queries.enqueue(["nothing"] * count, [None] * count, [0] * count)

    async def work(self) -> None:
        async with asyncpg.create_pool(self.url, min_size=2) as pool:
            queuer = PgQueuer(AsyncpgPoolDriver(pool))

            @queuer.entrypoint("nothing")
            async def nothing(job: Job) -> None: ...

            @queuer.entrypoint("sent")
            async def sent(job: Job) -> None:
                note_sent(float(job.payload or b""))

            await queuer.run(batch_size=BATCH)


if __name__ == "__main__":
    speak(Pgqueuer, uvloop.run)
