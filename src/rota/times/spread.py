"""Spreading work over time: the same on every machine and in every version of Python."""

from hashlib import blake2b

from rota.times.moments import Instant


def spread_offset(key: str, window: int) -> int:
    """Return where in the window this key stands, always the same: `0 <= offset < window` (0 for an empty window)."""
    return _share(key) * window >> 64 if window else 0


def jitter_offset(key: str, due: Instant, window: int) -> int:
    """Return where in the window this one firing of the key falls: unlike for every firing, alike on every machine."""
    return _share(f"{key}@{due}") * window >> 64 if window else 0


def distribute(count: int, window: int) -> list[int]:
    """Return `count` offsets that divide the window evenly, from 0 on."""
    return [number * window // count for number in range(count)]


def _share(text: str) -> int:
    """Return a number below 2**64, evenly spread over texts."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
