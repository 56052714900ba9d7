"""Storing much in batches: one is being stored while the next is made."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from rota import clock

T = TypeVar("T")
R = TypeVar("R")

_BREATH_SECONDS = 0.0005
"""How long to make items before the event loop gets in: what is being stored goes on."""


async def in_batches(
    items: Iterable[T], most: int, store: Callable[[list[T]], Coroutine[Any, Any, R]], *, beside: bool
) -> list[R]:
    """Store the items, so many at a time and in order, and return what came of each batch.

    Where making an item fails, what came before is stored. `beside` is for who may be asked while he stores.
    """
    found: list[R] = []
    batch: list[T] = []
    storing: Awaitable[R] | None = None
    breathed = clock.monotonic()
    try:
        for item in items:
            batch.append(item)
            if len(batch) == most:
                if storing is not None:
                    before, storing = storing, None
                    found.append(await before)
                if beside:
                    storing = asyncio.create_task(store(batch))
                else:
                    found.append(await store(batch))
                batch = []
            elif storing is not None and clock.monotonic() > breathed + _BREATH_SECONDS:
                await asyncio.sleep(0)
                breathed = clock.monotonic()
    finally:  # also where an item is refused, or the caller's own code fails
        if storing is not None:
            found.append(await storing)
    if batch:
        found.append(await store(batch))
    return found
