"""Loops that do not end by a mistake of ours."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

_log = logging.getLogger("rota.engine")
_AGAIN_SECONDS = 1.0


async def for_ever(loop: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a loop; where it ends by a mistake of ours, say so and begin it again."""
    while True:
        try:
            await loop()
        except Exception:  # noqa: BLE001 (it is logged whole)
            _log.exception("a loop of the engine failed; it begins again")
        await asyncio.sleep(_AGAIN_SECONDS)
