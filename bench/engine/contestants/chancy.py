"""chancy: the executor for asynchronous jobs, a queue that is polled as soon as a job ends."""

import logging

from bench.engine.contestant import Contestant, note_sent, speak
from chancy import Chancy as App
from chancy import Job, Queue, Worker, job

CONCURRENCY = 500


@job()
async def nothing() -> None: ...


@job()
async def sent(*, when: float) -> None:
    note_sent(when)


class Chancy(Contestant):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.app = App(url, log=logging.getLogger("chancy"))

    async def open(self) -> None:
        await self.app.pool.open()
        await self.app.migrate()
        queue = Queue(
            "default",
            concurrency=CONCURRENCY,
            executor=App.Executor.Async,
            polling_interval=1,
            eager_polling=True,
        )
        await self.app.declare(queue, upsert=True)

    async def enqueue(self, sent_at: float | None) -> None:
        await self.app.push(nothing.job if sent_at is None else sent.job.with_kwargs(when=sent_at))

    async def enqueue_many(self, count: int) -> None:
        jobs: list[Job] = [nothing.job] * count
        async for _ in self.app.push_many(jobs, batch_size=count):
            pass

    async def work(self) -> None:
        async with self.app, Worker(self.app) as worker:
            await worker.wait_for_shutdown()


if __name__ == "__main__":
    speak(Chancy)
