"""huey on SQLite: one consumer, worker threads, its default polling."""

from typing import Any

from bench.engine.contestant import Contestant, note_sent, speak, synchronous
from huey import Huey as App
from huey.storage import SqliteStorage

WORKERS = 1


class Storage(SqliteStorage):
    """Its storage, which by itself knows `full` and, with `fsync=False`, `off`."""

    def _create_connection(self) -> Any:
        connection = super()._create_connection()
        if synchronous():
            connection.execute(f"pragma synchronous = {synchronous()}")
        return connection


class Huey(Contestant):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        path, _, _ = url.removeprefix("sqlite:///").partition("?")
        self.huey = App(filename=path, storage_class=Storage)

        @self.huey.task(name="nothing")
        def nothing() -> None: ...

        @self.huey.task(name="sent")
        def sent(when: float) -> None:
            note_sent(when)

        self.nothing, self.sent = nothing, sent

    async def enqueue(self, sent: float | None) -> None:
        if sent is None:
            self.nothing()
        else:
            self.sent(sent)

    async def enqueue_many(self, count: int) -> None:
        """It has no call for many."""
        for _ in range(count):
            self.nothing()

    async def work(self) -> None:
        self.huey.create_consumer(workers=WORKERS).run()


if __name__ == "__main__":
    speak(Huey)
