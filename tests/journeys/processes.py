"""The processes of a journey: workers and clients that a test starts, stops, kills and looks after."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.journeys.ledger import Books
from tests.servers import ROOT

from rota import clock

LEASE = 2.0
HURRIED_LEASE = 1.0
"""The shortest that Rota allows."""


async def eventually(holds: Callable[[], Awaitable[Any] | Any], seconds: float = 30.0, what: str = "") -> Any:
    """Wait until something holds, and return it; a store that is away is asked again."""
    until = clock.monotonic() + seconds
    while True:
        found = holds()
        if isinstance(found, Awaitable):
            found = await found
        if found:
            return found
        assert clock.monotonic() < until, f"did not come within {seconds:g} s: {what or holds}"
        await asyncio.sleep(0.02)


@dataclass(eq=False)
class Process:
    """A process of Rota's, or of somebody who uses it."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def gone(self) -> bool:
        return self.popen.poll() is not None

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it as the kernel would: it has no say, and nothing is tidied up."""
        self.popen.kill()
        self.popen.wait()

    async def exit_code(self, seconds: float = 30.0) -> int:
        """Wait for it to end."""
        await eventually(lambda: self.gone, seconds, f"the end of {self.name}")
        return int(self.popen.returncode)

    def said(self, words: str) -> bool:
        """Tell whether its log has these words."""
        return words in self.log.read_text()


class Crew:
    """The processes that share a store; none of them survives the test.

    In a hurry they sweep more often than they would: most of a short journey would be waiting for that.
    """

    def __init__(self, store: str, folder: Path, *, hurry: bool = True) -> None:
        self.store = store
        self.lease = HURRIED_LEASE if hurry else LEASE
        self._more = {"ROTA_JOURNEY_SWEEP": "0.5"} if hurry else {}
        self.books = Books(folder)
        self.processes: list[Process] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.processes:
            each.kill()

    def worker(self, *, lease: float = 0.0, slots: int = 5, store: str | None = None, **more: str) -> Process:
        """Start a worker; `more` is added to its environment."""
        options = ("--lease", f"{lease or self.lease}s", "--slots", str(slots))
        return self.python("worker", "-m", "rota", "worker", "tests.journeys.work:app", *options, store=store, **more)

    def client(self, seed: int, *words: str, store: str | None = None) -> Process:
        """Start a client that enqueues until it is stopped."""
        return self.python("client", "-m", "tests.journeys.client", str(seed), *words, store=store)

    def scheduler(self, **more: str) -> Process:
        """Start a scheduler; `more` is added to its environment."""
        return self.python("scheduler", "-m", "rota", "scheduler", "tests.journeys.work:app", **more)

    def planner(self, seed: int) -> Process:
        """Start a client that changes schedules until it is stopped."""
        return self.python("planner", "-m", "tests.journeys.planner", str(seed))

    def python(self, kind: str, *words: str, store: str | None = None, **more: str) -> Process:
        name = f"{kind}-{len(self.processes)}"
        log = self.books.folder / f"{name}.log"
        own = {"ROTA_STORE": store or self.store, "ROTA_JOURNEY": str(self.books.folder), **self._more, **more}
        with log.open("wb") as output:
            popen = subprocess.Popen(
                [sys.executable, *words],
                cwd=ROOT,
                env=os.environ | own,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
            )
        process = Process(name, popen, log)
        self.processes.append(process)
        return process

    async def working(self, *workers: Process) -> None:
        """Wait until these workers have said that they are there."""
        for each in workers:
            await eventually(lambda each=each: each.said("working ") or each.gone, what=f"the start of {each.name}")
            assert not each.gone, each.log.read_text()
