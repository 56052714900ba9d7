"""The only place that reads the time; beside the machine's clock, one that goes when it is told to."""

import time
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now() -> datetime:
    """Return the machine's time, in UTC."""
    return datetime.now(UTC)


def micros() -> int:
    """Return the machine's time in microseconds since the epoch."""
    return time.time_ns() // 1000


def monotonic() -> float:
    """Return seconds that only go forward, for distances and leases."""
    return time.monotonic()


class Clock:
    """What a store and those who work on it live by: the machine's clock."""

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return now()

    def monotonic(self) -> float:
        """Return seconds that only go forward."""
        return monotonic()


class VirtualClock(Clock):
    """A clock that stands still until it is set, and never goes back."""

    def __init__(self, at: int) -> None:
        self.at = at
        """Microseconds since the epoch."""

    def micros(self) -> int:
        """Return its time in microseconds since the epoch."""
        return self.at

    def set(self, at: int) -> None:
        """Let it be this late; what lies behind is ignored."""
        self.at = max(self.at, at)

    def now(self) -> datetime:
        """Return its time, in UTC."""
        return _EPOCH + timedelta(microseconds=self.at)

    def monotonic(self) -> float:
        """Return its seconds since the epoch."""
        return self.at / 1_000_000


REAL = Clock()
