"""An event loop by virtual time: what runs on it is the same each time.

Time stands still while anything can be done, and jumps to the next timer when nothing can. So loops that sleep for
seconds, leases and time limits are as they are, and an hour costs nothing.
"""

import asyncio
import selectors
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LONGEST_REAL_SECONDS = 60.0
"""How long a server may take to answer before the test fails."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps."""

    def __init__(self) -> None:
        self._elapsed = 0.0
        self._outside = 0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self._elapsed

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Let time stand still: something of the real world is waited for."""
        self._outside += 1
        try:
            yield
        finally:
            self._outside -= 1

    def jump(self, seconds: float) -> None:
        self._elapsed += seconds

    @property
    def stands(self) -> bool:
        return self._outside > 0


class _Jumping(selectors.DefaultSelector):
    """Waits for nothing but the real world."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        if self._loop.stands:
            found = super().select(_LONGEST_REAL_SECONDS)
            assert found, "a server does not answer"
            return found
        found = super().select(0)
        if not found:
            assert timeout is not None, "everybody sleeps for ever"
            self._loop.jump(timeout)
        return found
