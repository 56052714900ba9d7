"""celery beat: its own schedule file, messages to Redis, a worker for them where tasks are to run."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.engine.contestant import Contestant, note_due, speak
from celery import Celery as App
from celery.beat import Service
from celery.signals import worker_ready

HOUR = timedelta(hours=1)


class Celery(Contestant):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.folder = Path(os.environ["ROTA_BENCH_FOLDER"])
        self.ready = self.folder / "ready"
        self.app = App("bench", broker=url)
        self.app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)

        @self.app.task(name="due")
        def due(when: float) -> None:
            note_due(when)

    async def fill(self, dues: dict[str, float]) -> None:
        """Its schedules stand in its configuration."""
        (self.folder / "schedules.json").write_text(json.dumps(dues))

    def entries(self) -> dict[str, dict[str, Any]]:
        dues = json.loads((self.folder / "schedules.json").read_text())
        return {
            key: {
                "task": "due",
                "schedule": HOUR,
                "args": (due,),
                "last_run_at": datetime.fromtimestamp(due, UTC) - HOUR,
            }
            for key, due in dues.items()
        }

    async def work(self) -> None:
        worker_ready.connect(lambda **_: self.ready.touch(), weak=False)
        self.app.worker_main(
            ["worker", "--pool", "solo", "--loglevel", "ERROR", "--without-gossip", "--without-mingle"]
        )

    async def fire(self, url: str, begun: Callable[[], None]) -> None:  # noqa: ARG002 (as all contestants)
        self.app.conf.beat_schedule = self.entries()
        service = Service(self.app, schedule_filename=str(self.folder / "beat"))
        service.scheduler  # noqa: B018 (reads the schedules)
        begun()
        await asyncio.to_thread(service.start)

    async def live(self, url: str, begun: Callable[[], None]) -> None:
        await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.engine.contestants.celery", "work", url)
        while not self.ready.exists():  # noqa: ASYNC110 (another process makes it)
            await asyncio.sleep(0.01)
        await self.fire(url, begun)


if __name__ == "__main__":
    speak(Celery)
