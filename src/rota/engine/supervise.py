"""Loops: how they sleep, and how they outlive an outage or a mistake of ours."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from rota.engine.bell import Bell
from rota.errors import StoreUnavailable

_log = logging.getLogger("rota.engine")
_AGAIN_SECONDS = 1.0


async def again_and_again(once: Callable[[], Coroutine[Any, Any, float]], bell: Bell) -> None:
    """Do a round, then sleep for as long as it said, or until the bell rings; while the store is away, a while."""
    while True:
        try:
            wait = await once()
        except StoreUnavailable:
            wait = _AGAIN_SECONDS
        if wait > 0:
            await bell.wait(wait)
        else:
            await asyncio.sleep(0)


async def for_ever(loop: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a loop; where it ends by a mistake of ours, say so and begin it again."""
    while True:
        try:
            await loop()
        except Exception:  # noqa: BLE001 (it is logged whole)
            _log.exception("a loop of the engine failed; it begins again")
        await asyncio.sleep(_AGAIN_SECONDS)
