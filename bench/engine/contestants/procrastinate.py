"""procrastinate: psycopg 3 with its C code, one worker with many asynchronous jobs at once."""

import procrastinate
from bench.engine.contestant import Contestant, note_sent, speak

CONCURRENCY = 20


class Procrastinate(Contestant):
    batch = 5_000

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))

        @self.app.task(name="nothing")
        async def nothing() -> None: ...

        @self.app.task(name="sent")
        async def sent(when: float) -> None:
            note_sent(when)

        self.nothing, self.sent = nothing, sent

    async def open(self) -> None:
        await self.app.open_async()
        await self.app.schema_manager.apply_schema_async()

    async def enqueue(self, sent: float | None) -> None:
        await (self.nothing.defer_async() if sent is None else self.sent.defer_async(when=sent))

    async def enqueue_many(self, count: int) -> None:
        await self.nothing.batch_defer_async(*[{}] * count)

    async def work(self) -> None:
        async with self.app.open_async():
            await self.app.run_worker_async(concurrency=CONCURRENCY)


if __name__ == "__main__":
    speak(Procrastinate)
