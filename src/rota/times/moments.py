"""Points in time: aware datetimes for people, whole microseconds since the epoch (UTC) inside."""

from datetime import UTC, date, datetime, timedelta, tzinfo

from rota.errors import InvalidMoment

Instant = int
"""A point in time: microseconds since 1970-01-01T00:00Z."""

SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST: Instant = 0
LATEST: Instant = (date(2200, 1, 1) - date(1970, 1, 1)).days * DAY - 1
"""Rota answers about the years 1970 to 2199; what lies outside is refused, so that no number is unbounded."""

_ISO = "use ISO 8601 with an offset, such as 2027-01-31T09:00+01:00"
_ALLOWED = "use a datetime with a time zone, in the years 1970 to 2199"


def instant(moment: datetime | str, field: str = "moment") -> Instant:
    """Turn an aware datetime, or its ISO 8601 text, into an instant."""
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment.strip())
        except ValueError:
            raise InvalidMoment(field, moment, _ISO, "is not a moment") from None
    if not isinstance(moment, datetime):
        raise InvalidMoment(field, moment, _ALLOWED, "is not a moment")
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidMoment(field, moment.isoformat(), _ALLOWED, "has no time zone")
    since = moment - EPOCH
    found = (since.days * 86_400 + since.seconds) * SECOND + since.microseconds
    if not EARLIEST <= found <= LATEST:
        raise InvalidMoment(field, moment.isoformat(), _ALLOWED, "is out of range")
    return found


def moment(found: Instant, zone: tzinfo = UTC) -> datetime:
    """Turn an instant into an aware datetime of that zone."""
    seconds, micros = divmod(found, SECOND)
    shown = datetime.fromtimestamp(seconds, zone)
    return shown.replace(microsecond=micros) if micros else shown


def optional_instant(moment: datetime | str | None, field: str) -> Instant | None:
    """Turn a bound that may be absent into an instant."""
    return None if moment is None else instant(moment, field)


def iso(found: Instant) -> str:
    """Write an instant as ISO 8601 in UTC; `instant` reads it back."""
    return moment(found).isoformat().replace("+00:00", "Z")


def micros(length: timedelta) -> int:
    """Count the microseconds of a timedelta."""
    return (length.days * 86_400 + length.seconds) * SECOND + length.microseconds
