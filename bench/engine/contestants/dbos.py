"""dbos: workflows without steps on one queue, enqueued by its client."""

import asyncio

from bench.engine.contestant import Contestant, note_sent, speak
from dbos import DBOS, DBOSClient, DBOSConfig, EnqueueOptions
from sqlalchemy import create_engine

QUEUE = "bench"
POLLING_SECONDS = 0.01
CONCURRENCY = 1_000


@DBOS.workflow(name="nothing")
def nothing() -> None: ...


@DBOS.workflow(name="sent")
def sent(when: float) -> None:
    note_sent(when)


class Dbos(Contestant):
    batch = 200

    def config(self) -> DBOSConfig:
        return {
            "name": "bench",
            "system_database_url": self.url,
            "log_level": "ERROR",
            "application_version": "1",
        }

    def launch(self) -> None:
        DBOS(config=self.config())
        DBOS.launch()
        DBOS.register_queue(QUEUE, worker_concurrency=CONCURRENCY, polling_interval_sec=POLLING_SECONDS)

    async def open(self) -> None:
        await asyncio.to_thread(make, self)
        self.client = DBOSClient(system_database_url=self.url)
        self.engine = create_engine(self.url.replace("postgresql:", "postgresql+psycopg:", 1))

    def options(self, name: str) -> EnqueueOptions:
        return {"workflow_name": name, "queue_name": QUEUE, "app_version": "1"}

    async def enqueue(self, sent: float | None) -> None:
        if sent is None:
            self.client.enqueue(self.options("nothing"))
        else:
            self.client.enqueue(self.options("sent"), sent)

    async def enqueue_many(self, count: int) -> None:
        """It has no call for many: they share a transaction."""
        with self.engine.begin() as connection:
            for _ in range(count):
                self.client.enqueue_in_transaction(connection, self.options("nothing"))

    async def work(self) -> None:
        await asyncio.to_thread(self.launch)
        await asyncio.Event().wait()


def make(contestant: Dbos) -> None:
    """Make the tables and the queue, as an application does when it starts."""
    contestant.launch()
    DBOS.destroy()


if __name__ == "__main__":
    speak(Dbos)
