"""Waiting for a file to be written, by whatever process: the kernel tells, so waiting costs nothing.

Only Linux has this; elsewhere there is no watch, and whoever waits looks now and then.
"""

import asyncio
import contextlib
import ctypes
import os
import sys
from typing import Self

_MODIFIED = 0x2  # IN_MODIFY


class Watch:
    """Tells when a file was written to."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._written = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, self._heard)

    @classmethod
    def on(cls, path: str) -> Self | None:
        """Watch a file; None where the kernel cannot."""
        if sys.platform != "linux":
            return None
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:  # too many watches, say
            return None
        if libc.inotify_add_watch(descriptor, os.fsencode(path), _MODIFIED) < 0:
            os.close(descriptor)
            return None
        return cls(descriptor)

    async def written(self, seconds: float) -> bool:
        """Wait until the file is written to, at most this long; what was written since the last time counts."""
        try:
            async with asyncio.timeout(seconds):
                await self._written.wait()
        except TimeoutError:
            return False
        self._written.clear()
        return True

    def close(self) -> None:
        """Watch no more."""
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _heard(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._descriptor, 65_536)
        self._written.set()
