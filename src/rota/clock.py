"""The only place that reads the time."""

from datetime import UTC, datetime


def now() -> datetime:
    """Return the machine's time, in UTC."""
    return datetime.now(UTC)
