"""A bell that loops wait for."""

import asyncio


class Bell:
    """Rings wake whoever waits; a ring that nobody waited for is heard by the next one who does."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Wake whoever waits."""
        self._event.set()

    async def wait(self, seconds: float | None) -> bool:
        """Wait for a ring, at most this long; tells whether there was one."""
        if not self._event.is_set():
            try:
                async with asyncio.timeout(seconds):
                    await self._event.wait()
            except TimeoutError:
                return False
        self._event.clear()
        return True
