"""The only place that reads the time."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    """Return the machine's time, in UTC."""
    return datetime.now(UTC)


def micros() -> int:
    """Return the machine's time in microseconds since the epoch."""
    return time.time_ns() // 1000


def monotonic() -> float:
    """Return seconds that only go forward, for distances and leases."""
    return time.monotonic()
