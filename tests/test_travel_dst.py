"""Days of a clock change, lived through by virtual time on either store: what fires, against instants written by hand.

Each is written twice, in UTC and as the zone's clocks show it. Two tests meet here: that the engine fires the first,
and that `zoneinfo`, which shares no code with what decides, reads the first as the second.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

import rota
from rota.testing import travel

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Day:
    """A clock change: a daily rule whose time is skipped or repeated, three days of it, and the half hours around."""

    zone: str
    daily: str
    days: tuple[str, ...]
    half_hours: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.zone} {self.days[1][:7]}"


DAYS = [
    # The clocks go forward: a time that does not exist comes once, when the gap is over.
    Day(
        "America/New_York",
        "30 2 * * *",
        ("2027-03-13T07:30Z 02:30-05:00", "2027-03-14T07:00Z 03:00-04:00", "2027-03-15T06:30Z 02:30-04:00"),
        (
            *("2027-03-14T06:00Z 01:00-05:00", "2027-03-14T06:30Z 01:30-05:00"),
            *("2027-03-14T07:00Z 03:00-04:00", "2027-03-14T07:30Z 03:30-04:00"),
        ),
    ),
    Day(
        "Europe/Berlin",
        "30 2 * * *",
        ("2027-03-27T01:30Z 02:30+01:00", "2027-03-28T01:00Z 03:00+02:00", "2027-03-29T00:30Z 02:30+02:00"),
        (
            *("2027-03-28T00:00Z 01:00+01:00", "2027-03-28T00:30Z 01:30+01:00"),
            *("2027-03-28T01:00Z 03:00+02:00", "2027-03-28T01:30Z 03:30+02:00"),
        ),
    ),
    Day(  # by half an hour
        "Australia/Lord_Howe",
        "15 2 * * *",
        ("2027-10-01T15:45Z 02:15+10:30", "2027-10-02T15:30Z 02:30+11:00", "2027-10-03T15:15Z 02:15+11:00"),
        (
            *("2027-10-02T14:30Z 01:00+10:30", "2027-10-02T15:00Z 01:30+10:30"),
            *("2027-10-02T15:30Z 02:30+11:00", "2027-10-02T16:00Z 03:00+11:00"),
        ),
    ),
    Day(  # at midnight, which does not exist
        "America/Havana",
        "0 0 * * *",
        ("2027-03-13T05:00Z 00:00-05:00", "2027-03-14T05:00Z 01:00-04:00", "2027-03-15T04:00Z 00:00-04:00"),
        (
            *("2027-03-14T04:00Z 23:00-05:00", "2027-03-14T04:30Z 23:30-05:00"),
            *("2027-03-14T05:00Z 01:00-04:00", "2027-03-14T05:30Z 01:30-04:00"),
        ),
    ),
    Day(  # at a quarter to three, in the middle of the hour
        "Pacific/Chatham",
        "0 3 * * *",
        ("2027-09-24T14:15Z 03:00+12:45", "2027-09-25T14:00Z 03:45+13:45", "2027-09-26T13:15Z 03:00+13:45"),
        (
            *("2027-09-25T13:15Z 02:00+12:45", "2027-09-25T13:45Z 02:30+12:45"),
            *("2027-09-25T14:15Z 04:00+13:45", "2027-09-25T14:45Z 04:30+13:45"),
        ),
    ),
    # The clocks go back: a time that is shown twice comes once, the first time; what is half-hourly comes both times.
    Day(
        "America/New_York",
        "30 1 * * *",
        ("2027-11-06T05:30Z 01:30-04:00", "2027-11-07T05:30Z 01:30-04:00", "2027-11-08T06:30Z 01:30-05:00"),
        (
            *("2027-11-07T05:00Z 01:00-04:00", "2027-11-07T05:30Z 01:30-04:00"),
            *("2027-11-07T06:00Z 01:00-05:00", "2027-11-07T06:30Z 01:30-05:00", "2027-11-07T07:00Z 02:00-05:00"),
        ),
    ),
    Day(
        "Europe/Berlin",
        "30 2 * * *",
        ("2027-10-30T00:30Z 02:30+02:00", "2027-10-31T00:30Z 02:30+02:00", "2027-11-01T01:30Z 02:30+01:00"),
        (
            *("2027-10-31T00:00Z 02:00+02:00", "2027-10-31T00:30Z 02:30+02:00"),
            *("2027-10-31T01:00Z 02:00+01:00", "2027-10-31T01:30Z 02:30+01:00", "2027-10-31T02:00Z 03:00+01:00"),
        ),
    ),
    Day(
        "Australia/Lord_Howe",
        "45 1 * * *",
        ("2027-04-02T14:45Z 01:45+11:00", "2027-04-03T14:45Z 01:45+11:00", "2027-04-04T15:15Z 01:45+10:30"),
        (
            *("2027-04-03T14:00Z 01:00+11:00", "2027-04-03T14:30Z 01:30+11:00"),
            *("2027-04-03T15:00Z 01:30+10:30", "2027-04-03T15:30Z 02:00+10:30"),
        ),
    ),
    Day(
        "America/Havana",
        "0 0 * * *",
        ("2027-11-06T04:00Z 00:00-04:00", "2027-11-07T04:00Z 00:00-04:00", "2027-11-08T05:00Z 00:00-05:00"),
        (
            *("2027-11-07T04:00Z 00:00-04:00", "2027-11-07T04:30Z 00:30-04:00"),
            *("2027-11-07T05:00Z 00:00-05:00", "2027-11-07T05:30Z 00:30-05:00", "2027-11-07T06:00Z 01:00-05:00"),
        ),
    ),
    Day(
        "Pacific/Chatham",
        "0 3 * * *",
        ("2027-04-02T13:15Z 03:00+13:45", "2027-04-03T13:15Z 03:00+13:45", "2027-04-04T14:15Z 03:00+12:45"),
        (
            *("2027-04-03T13:15Z 03:00+13:45", "2027-04-03T13:45Z 03:30+13:45"),
            *("2027-04-03T14:15Z 03:00+12:45", "2027-04-03T14:45Z 03:30+12:45", "2027-04-03T15:15Z 04:00+12:45"),
        ),
    ),
]


def instants(written: tuple[str, ...]) -> list[datetime]:
    """Return the instants, by what is written in UTC."""
    return [datetime.fromisoformat(each.split()[0]) for each in written]


@pytest.mark.parametrize("day", DAYS, ids=str)
async def test_on_the_day_of_a_clock_change_the_engine_fires_what_is_written_here(app: rota.Rota, day: Day) -> None:
    seen: dict[str | None, list[datetime]] = {}

    @app.task
    async def work() -> None:
        me = rota.current_run()
        assert me.due is not None
        seen.setdefault(me.schedule, []).append(me.due)

    days, half_hours = instants(day.days), instants(day.half_hours)
    first, last = days[1].replace(minute=10) - 6 * HOUR, days[1].replace(minute=10) + 6 * HOUR
    around = {"start": half_hours[0], "end": half_hours[-1]}
    app.declare(rota.Schedule("daily", work.call(), rota.Cron(day.daily, tz=day.zone)))
    app.declare(rota.Schedule("half-hourly", work.call(), rota.Cron("*/30 * * * *", tz=day.zone, **around)))
    app.declare(rota.Schedule("hourly", work.call(), rota.Every("1h", start=first, end=last)))
    app.declare(rota.Schedule("anchored", work.call(), rota.Every("1h", since="finish", start=first, end=last)))
    async with travel(app, start=days[0] - timedelta(minutes=10)) as time:
        await time.travel_to(days[-1] + timedelta(minutes=5))

    assert seen["daily"] == days
    assert seen["half-hourly"] == half_hours
    # Hours are hours, whatever the clocks show: by the epoch, or from run to run.
    assert seen["hourly"] == [first.replace(minute=0) + n * HOUR for n in range(1, 13)]
    assert seen["anchored"] == [first + n * HOUR for n in range(13)]
    for key, found in seen.items():
        assert sorted(each.due for each in await app.schedules.firings(str(key), limit=1_000)) == found


@pytest.mark.parametrize("day", DAYS, ids=str)
def test_what_is_written_here_is_what_the_clocks_of_the_zone_show(day: Day) -> None:
    for written in (*day.days, *day.half_hours):
        utc, shown = written.split()
        local = datetime.fromisoformat(utc).astimezone(ZoneInfo(day.zone)).isoformat(timespec="minutes")
        assert local.partition("T")[2] == shown
        assert datetime.fromisoformat(utc).tzinfo == UTC
