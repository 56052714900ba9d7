"""Threads for plain functions. They are daemons: one that never ends does not keep its process from ending."""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

Done = Callable[[Any, BaseException | None], None]
"""Is told what a function returned, or what it raised."""


class Threads:
    """As many threads as functions run at once, kept for the next ones."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[tuple[Callable[[], Any], Done] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0
        self._idle = 0

    @property
    def busy(self) -> int:
        """How many functions have begun and not ended."""
        return self._started - self._idle

    def run(self, work: Callable[[], Any], done: Done) -> None:
        """Run a function in a thread; `done` is called in that thread when it has ended."""
        with self._lock:
            idle = self._idle > 0
            if idle:
                self._idle -= 1
            else:
                self._started += 1
        if not idle:
            name = f"{self._name}-{self._started}"
            try:
                threading.Thread(target=self._serve, name=name, daemon=True).start()
            except RuntimeError:  # the system has none left
                with self._lock:
                    self._started -= 1
                raise
        self._work.put((work, done))

    def close(self) -> None:
        """Let the threads go, each when its function has ended."""
        for _ in range(self._started):
            self._work.put(None)

    def _serve(self) -> None:
        while (job := self._work.get()) is not None:
            work, done = job
            try:
                value, error = work(), None
            except BaseException as raised:  # noqa: BLE001 (whoever waits for it hears of it)
                value, error = None, raised
            with self._lock:
                self._idle += 1  # before it is told: what is begun on that news finds a thread
            done(value, error)
            del job, work, done, value, error  # nothing is kept alive while the thread waits
