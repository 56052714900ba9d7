"""When a cron schedule fires, written out by hand: every rule at real changes of real clocks.

Times are what the clock on the wall shows, with its offset from UTC. A row gives a schedule, a window and every firing
in it; the window leaves out its start and holds its end. The oracle reads the same rows, so that neither can drift.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from tests.times import oracle
from tests.times.oracle import Gap, Repeat

import rota

TICK = timedelta(microseconds=1)


class Row(NamedTuple):
    zone: str
    expr: str
    after: str
    until: str
    firings: str
    gap: Gap = "after"
    repeat: Repeat = "first"

    @property
    def rule(self) -> rota.Cron:
        return rota.Cron(self.expr, tz=self.zone, gap=self.gap, repeat=self.repeat)

    @property
    def window(self) -> tuple[datetime, datetime]:
        return moment(self.after), moment(self.until)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def shown(answer: datetime | None) -> str | None:
    return None if answer is None else answer.isoformat(timespec="seconds" if answer.second else "minutes")


def backwards(rule: rota.Rule, after: datetime, until: datetime) -> Iterator[datetime]:
    """Every firing of the window, the last one first."""
    found = rule.previous(until + TICK)
    while found is not None and found.astimezone(UTC) > after:
        yield found
        found = rule.previous(found)


# A fixed time that does not exist: once, at the first instant after the gap.
FIXED_IN_A_GAP = {
    "Berlin, the days around": Row(
        "Europe/Berlin",
        "30 2 * * *",
        "2025-03-29T00:00+01:00",
        "2025-04-01T00:00+02:00",
        "2025-03-29T02:30+01:00 2025-03-30T03:00+02:00 2025-03-31T02:30+02:00",
    ),
    "Berlin, the first lost minute": Row(
        "Europe/Berlin", "0 2 * * *", "2025-03-30T00:00+01:00", "2025-03-31T00:00+02:00", "2025-03-30T03:00+02:00"
    ),
    "Berlin, the last lost minute": Row(
        "Europe/Berlin", "59 2 * * *", "2025-03-30T00:00+01:00", "2025-03-31T00:00+02:00", "2025-03-30T03:00+02:00"
    ),
    "Berlin, the last minute before": Row(
        "Europe/Berlin", "59 1 * * *", "2025-03-30T00:00+01:00", "2025-03-31T00:00+02:00", "2025-03-30T01:59+01:00"
    ),
    "Berlin, the first minute after": Row(
        "Europe/Berlin", "0 3 * * *", "2025-03-30T00:00+01:00", "2025-03-31T00:00+02:00", "2025-03-30T03:00+02:00"
    ),
    "Berlin, four lost times are one firing": Row(
        "Europe/Berlin",
        "0,15,30,45 2 * * *",
        "2025-03-30T00:00+01:00",
        "2025-03-31T00:00+02:00",
        "2025-03-30T03:00+02:00",
    ),
    "Berlin, sixty lost times are one firing": Row(
        "Europe/Berlin", "0-59 2 * * *", "2025-03-30T00:00+01:00", "2025-03-31T00:00+02:00", "2025-03-30T03:00+02:00"
    ),
    "Berlin, a lost time joins the one at the gap's end": Row(
        "Europe/Berlin", "0 2,3 * * *", "2025-03-30T00:00+01:00", "2025-03-31T00:00+02:00", "2025-03-30T03:00+02:00"
    ),
    "Berlin, a lost time beside real ones": Row(
        "Europe/Berlin",
        "30 1-4 * * *",
        "2025-03-30T00:00+01:00",
        "2025-03-31T00:00+02:00",
        "2025-03-30T01:30+01:00 2025-03-30T03:00+02:00 2025-03-30T03:30+02:00 2025-03-30T04:30+02:00",
    ),
    "Berlin, a step that starts at a number is fixed": Row(
        "Europe/Berlin",
        "15 0/2 * * *",
        "2025-03-30T00:00+01:00",
        "2025-03-30T05:00+02:00",
        "2025-03-30T00:15+01:00 2025-03-30T03:00+02:00 2025-03-30T04:15+02:00",
    ),
    "Berlin, the lost day of week counts": Row(
        "Europe/Berlin",
        "30 2 * * SUN",
        "2025-03-29T00:00+01:00",
        "2025-04-06T12:00+02:00",
        "2025-03-30T03:00+02:00 2025-04-06T02:30+02:00",
    ),
    "Berlin, another day of week is not moved": Row(
        "Europe/Berlin", "30 2 * * MON", "2025-03-29T00:00+01:00", "2025-04-06T12:00+02:00", "2025-03-31T02:30+02:00"
    ),
    "Berlin, a lost time with seconds": Row(
        "Europe/Berlin",
        "15 30 2 * * *",
        "2025-03-29T00:00+01:00",
        "2025-04-01T00:00+02:00",
        "2025-03-29T02:30:15+01:00 2025-03-30T03:00+02:00 2025-03-31T02:30:15+02:00",
    ),
    "Berlin, every second of a lost minute is one firing": Row(
        "Europe/Berlin", "* 30 2 * * *", "2025-03-30T00:00+01:00", "2025-03-31T00:00+02:00", "2025-03-30T03:00+02:00"
    ),
    "Berlin 1980": Row(
        "Europe/Berlin", "30 2 * * *", "1980-04-06T00:00+01:00", "1980-04-07T00:00+02:00", "1980-04-06T03:00+02:00"
    ),
    "Berlin 2099": Row(
        "Europe/Berlin", "30 2 * * *", "2099-03-29T00:00+01:00", "2099-03-30T00:00+02:00", "2099-03-29T03:00+02:00"
    ),
    "New York": Row(
        "America/New_York",
        "30 2 * * *",
        "2025-03-08T00:00-05:00",
        "2025-03-11T00:00-04:00",
        "2025-03-08T02:30-05:00 2025-03-09T03:00-04:00 2025-03-10T02:30-04:00",
    ),
    "New York 1970": Row(
        "America/New_York", "30 2 * * *", "1970-04-26T00:00-05:00", "1970-04-27T00:00-04:00", "1970-04-26T03:00-04:00"
    ),
    "New York 2099": Row(
        "America/New_York", "30 2 * * *", "2099-03-08T00:00-05:00", "2099-03-09T00:00-04:00", "2099-03-08T03:00-04:00"
    ),
    "Lord Howe, half an hour": Row(
        "Australia/Lord_Howe",
        "15 2 * * *",
        "2024-10-05T00:00+10:30",
        "2024-10-08T00:00+11:00",
        "2024-10-05T02:15+10:30 2024-10-06T02:30+11:00 2024-10-07T02:15+11:00",
    ),
    "Lord Howe, joined with the gap's end": Row(
        "Australia/Lord_Howe",
        "0,15,30,45 2 * * *",
        "2024-10-06T00:00+10:30",
        "2024-10-07T00:00+11:00",
        "2024-10-06T02:30+11:00 2024-10-06T02:45+11:00",
    ),
    "Apia, the day that never was": Row(
        "Pacific/Apia",
        "0 9 * * *",
        "2011-12-29T00:00-10:00",
        "2012-01-01T00:00+14:00",
        "2011-12-29T09:00-10:00 2011-12-31T00:00+14:00 2011-12-31T09:00+14:00",
    ),
    "Apia, only the day that never was": Row(
        "Pacific/Apia", "0 9 30 12 *", "2011-12-28T00:00-10:00", "2012-01-03T00:00+14:00", "2011-12-31T00:00+14:00"
    ),
    "Apia, the lost midnight joins the next": Row(
        "Pacific/Apia",
        "@daily",
        "2011-12-28T12:00-10:00",
        "2012-01-01T00:00+14:00",
        "2011-12-29T00:00-10:00 2011-12-31T00:00+14:00 2012-01-01T00:00+14:00",
    ),
    "Apia, the lost Friday": Row(
        "Pacific/Apia",
        "0 9 * * FRI",
        "2011-12-22T00:00-10:00",
        "2012-01-07T00:00+14:00",
        "2011-12-23T09:00-10:00 2011-12-31T00:00+14:00 2012-01-06T09:00+14:00",
    ),
    "Apia, the Saturday after": Row(
        "Pacific/Apia",
        "0 9 * * SAT",
        "2011-12-22T00:00-10:00",
        "2012-01-07T00:00+14:00",
        "2011-12-24T09:00-10:00 2011-12-31T09:00+14:00",
    ),
    "Apia, four lost times of the lost day": Row(
        "Pacific/Apia",
        "0 0,6,12,18 * * *",
        "2011-12-29T00:00-10:00",
        "2011-12-31T20:00+14:00",
        "2011-12-29T06:00-10:00 2011-12-29T12:00-10:00 2011-12-29T18:00-10:00 2011-12-31T00:00+14:00 "
        "2011-12-31T06:00+14:00 2011-12-31T12:00+14:00 2011-12-31T18:00+14:00",
    ),
    "Apia, its last summer": Row(
        "Pacific/Apia", "30 3 * * *", "2020-09-27T00:00+13:00", "2020-09-28T00:00+14:00", "2020-09-27T04:00+14:00"
    ),
    "Kiritimati, the lost last day of the year": Row(
        "Pacific/Kiritimati",
        "0 12 L * *",
        "1994-12-15T00:00-10:00",
        "1995-01-31T23:00+14:00",
        "1995-01-01T00:00+14:00 1995-01-31T12:00+14:00",
    ),
    "Kiritimati, the last weekday was there": Row(
        "Pacific/Kiritimati",
        "0 12 LW * *",
        "1994-12-15T00:00-10:00",
        "1995-01-15T00:00+14:00",
        "1994-12-30T12:00-10:00",
    ),
    "Kwajalein, the lost Saturday": Row(
        "Pacific/Kwajalein",
        "30 10 * * SAT",
        "1993-08-15T00:00-12:00",
        "1993-08-29T00:00+12:00",
        "1993-08-22T00:00+12:00 1993-08-28T10:30+12:00",
    ),
    "Chatham, a gap across the hour": Row(
        "Pacific/Chatham",
        "0 3 * * *",
        "2024-09-28T00:00+12:45",
        "2024-10-01T00:00+13:45",
        "2024-09-28T03:00+12:45 2024-09-29T03:45+13:45 2024-09-30T03:00+13:45",
    ),
    "Chatham, both hours of the gap": Row(
        "Pacific/Chatham",
        "30,45,50 2,3 * * *",
        "2024-09-29T00:00+12:45",
        "2024-09-30T00:00+13:45",
        "2024-09-29T02:30+12:45 2024-09-29T03:45+13:45 2024-09-29T03:50+13:45",
    ),
    "Cairo, a lost midnight": Row(
        "Africa/Cairo",
        "@midnight",
        "2023-04-27T00:00+02:00",
        "2023-04-29T00:00+03:00",
        "2023-04-28T01:00+03:00 2023-04-29T00:00+03:00",
    ),
    "Cairo, the second summer of 2014": Row(
        "Africa/Cairo", "30 0 1 8 *", "2014-07-31T00:00+02:00", "2014-08-02T00:00+03:00", "2014-08-01T01:00+03:00"
    ),
    "Gaza, at two": Row(
        "Asia/Gaza", "30 2 * * *", "2023-04-29T00:00+02:00", "2023-04-30T00:00+03:00", "2023-04-29T03:00+03:00"
    ),
    "Gaza, at midnight": Row(
        "Asia/Gaza", "0 0 * * *", "2022-03-26T12:00+02:00", "2022-03-27T12:00+03:00", "2022-03-27T01:00+03:00"
    ),
    "Sao Paulo, a lost midnight": Row(
        "America/Sao_Paulo",
        "0 0 * * *",
        "2018-11-03T00:00-03:00",
        "2018-11-05T00:00-02:00",
        "2018-11-04T01:00-02:00 2018-11-05T00:00-02:00",
    ),
    "Sao Paulo, one minute earlier": Row(
        "America/Sao_Paulo",
        "59 23 * * *",
        "2018-11-03T00:00-03:00",
        "2018-11-05T00:00-02:00",
        "2018-11-03T23:59-03:00 2018-11-04T23:59-02:00",
    ),
    "Kathmandu, the quarter hour of 1986": Row(
        "Asia/Kathmandu", "@yearly", "1985-12-31T00:00+05:30", "1986-01-02T00:00+05:45", "1986-01-01T00:15+05:45"
    ),
    "Kathmandu, joined with the gap's end": Row(
        "Asia/Kathmandu",
        "0-20/5 0 * * *",
        "1985-12-31T12:00+05:30",
        "1986-01-01T12:00+05:45",
        "1986-01-01T00:15+05:45 1986-01-01T00:20+05:45",
    ),
    "Adelaide": Row(
        "Australia/Adelaide", "15 2 * * *", "2024-10-06T00:00+09:30", "2024-10-07T00:00+10:30", "2024-10-06T03:00+10:30"
    ),
    "St John's, a gap from 00:01 to 01:01": Row(
        "America/St_Johns",
        "30 0 * * *",
        "2010-03-13T00:00-03:30",
        "2010-03-16T00:00-02:30",
        "2010-03-13T00:30-03:30 2010-03-14T01:01-02:30 2010-03-15T00:30-02:30",
    ),
    "St John's, midnight was there": Row(
        "America/St_Johns",
        "0 0 * * *",
        "2010-03-13T12:00-03:30",
        "2010-03-15T12:00-02:30",
        "2010-03-14T00:00-03:30 2010-03-15T00:00-02:30",
    ),
    "St John's, one o'clock was not": Row(
        "America/St_Johns",
        "0 0,1 * * *",
        "2010-03-13T12:00-03:30",
        "2010-03-14T12:00-02:30",
        "2010-03-14T00:00-03:30 2010-03-14T01:01-02:30",
    ),
    "St John's, the double summer time of 1988": Row(
        "America/St_Johns", "30 0,1 * * *", "1988-04-02T12:00-03:30", "1988-04-03T12:00-01:30", "1988-04-03T02:01-01:30"
    ),
    "Casablanca, after Ramadan": Row(
        "Africa/Casablanca",
        "30 2 * * *",
        "2023-04-22T00:00+00:00",
        "2023-04-25T00:00+01:00",
        "2023-04-22T02:30+00:00 2023-04-23T03:00+01:00 2023-04-24T02:30+01:00",
    ),
    "Dublin": Row(
        "Europe/Dublin", "30 1 * * *", "2024-03-31T00:00+00:00", "2024-04-01T00:00+01:00", "2024-03-31T02:00+01:00"
    ),
    "Dublin 1972": Row(
        "Europe/Dublin", "30 2 * * *", "1972-03-19T00:00+00:00", "1972-03-20T00:00+01:00", "1972-03-19T03:00+01:00"
    ),
    "Tehran, its last summer": Row(
        "Asia/Tehran", "0 0 * * *", "2022-03-21T12:00+03:30", "2022-03-22T12:00+04:30", "2022-03-22T01:00+04:30"
    ),
    "Havana, a lost midnight": Row(
        "America/Havana",
        "0,30 0 * * *",
        "2024-03-09T12:00-05:00",
        "2024-03-11T12:00-04:00",
        "2024-03-10T01:00-04:00 2024-03-11T00:00-04:00 2024-03-11T00:30-04:00",
    ),
    "Pyongyang, the end of a day": Row(
        "Asia/Pyongyang",
        "45 23 * * FRI",
        "2018-05-04T00:00+08:30",
        "2018-05-11T23:50+09:00",
        "2018-05-05T00:00+09:00 2018-05-11T23:45+09:00",
    ),
    "Pyongyang, joined with midnight": Row(
        "Asia/Pyongyang",
        "0,45 0,23 * * *",
        "2018-05-04T12:00+08:30",
        "2018-05-05T12:00+09:00",
        "2018-05-04T23:00+08:30 2018-05-05T00:00+09:00 2018-05-05T00:45+09:00",
    ),
    "Beirut": Row(
        "Asia/Beirut", "0 0 26 3 *", "2023-03-25T12:00+02:00", "2023-03-27T12:00+03:00", "2023-03-26T01:00+03:00"
    ),
    "Troll, two hours": Row(
        "Antarctica/Troll", "30 1,2 * * *", "2024-03-31T00:00+00:00", "2024-04-01T00:00+02:00", "2024-03-31T03:00+02:00"
    ),
    "Lisbon, from Greenwich": Row(
        "Europe/Lisbon", "30 1 * * *", "1992-03-29T00:00+00:00", "1992-03-30T00:00+01:00", "1992-03-29T02:00+01:00"
    ),
    "Lisbon, on Berlin's time": Row(
        "Europe/Lisbon",
        "30 1,2 * * *",
        "1993-03-28T00:00+01:00",
        "1993-03-29T00:00+02:00",
        "1993-03-28T01:30+01:00 1993-03-28T03:00+02:00",
    ),
    "Caracas, half an hour of 2016": Row(
        "America/Caracas",
        "15,30,45 2 * * *",
        "2016-05-01T00:00-04:30",
        "2016-05-02T00:00-04:00",
        "2016-05-01T02:15-04:30 2016-05-01T03:00-04:00",
    ),
    "Kuala Lumpur, the end of 1981": Row(
        "Asia/Kuala_Lumpur",
        "45 23 31 12 *",
        "1981-12-31T00:00+07:30",
        "1982-01-02T00:00+08:00",
        "1982-01-01T00:00+08:00",
    ),
    "Monrovia, offsets with seconds": Row(
        "Africa/Monrovia",
        "0,30,44,45 0 * * *",
        "1972-01-06T00:00-00:44:30",
        "1972-01-08T00:00+00:00",
        "1972-01-06T00:30-00:44:30 1972-01-06T00:44-00:44:30 1972-01-06T00:45-00:44:30 "
        "1972-01-07T00:44:30+00:00 1972-01-07T00:45+00:00 1972-01-08T00:00+00:00",
    ),
    "Casey, three hours": Row(
        "Antarctica/Casey",
        "0 0-3 * * *",
        "2020-10-03T12:00+08:00",
        "2020-10-04T12:00+11:00",
        "2020-10-04T00:00+08:00 2020-10-04T03:01+11:00",
    ),
    "Vostok, seven hours": Row(
        "Antarctica/Vostok",
        "0 0,3,6,8 * * *",
        "1994-10-31T12:00+00:00",
        "1994-11-01T12:00+07:00",
        "1994-11-01T07:00+07:00 1994-11-01T08:00+07:00",
    ),
    "Simferopol, two hours of 2014": Row(
        "Europe/Simferopol",
        "0 2,3,4 * * *",
        "2014-03-30T00:00+02:00",
        "2014-03-30T12:00+04:00",
        "2014-03-30T04:00+04:00",
    ),
}

# gap="skip": a fixed time that does not exist is lost.
SKIPPED = {
    "Berlin": Row(
        "Europe/Berlin",
        "30 2 * * *",
        "2025-03-29T00:00+01:00",
        "2025-04-01T00:00+02:00",
        "2025-03-29T02:30+01:00 2025-03-31T02:30+02:00",
        gap="skip",
    ),
    "Berlin, the real ones stay": Row(
        "Europe/Berlin",
        "0,30 1-3 * * *",
        "2025-03-30T00:00+01:00",
        "2025-03-31T00:00+02:00",
        "2025-03-30T01:00+01:00 2025-03-30T01:30+01:00 2025-03-30T03:00+02:00 2025-03-30T03:30+02:00",
        gap="skip",
    ),
    "Lord Howe": Row(
        "Australia/Lord_Howe",
        "15,45 2 * * *",
        "2024-10-06T00:00+10:30",
        "2024-10-07T00:00+11:00",
        "2024-10-06T02:45+11:00",
        gap="skip",
    ),
    "Apia": Row(
        "Pacific/Apia",
        "0 6 * * *",
        "2011-12-29T00:00-10:00",
        "2012-01-01T00:00+14:00",
        "2011-12-29T06:00-10:00 2011-12-31T06:00+14:00",
        gap="skip",
    ),
    "Apia, midnight of the day after is its own": Row(
        "Pacific/Apia",
        "0 0 * * *",
        "2011-12-29T00:00-10:00",
        "2011-12-31T12:00+14:00",
        "2011-12-31T00:00+14:00",
        gap="skip",
    ),
    "Kathmandu": Row("Asia/Kathmandu", "0 0 1 1 *", "1985-12-31T00:00+05:30", "1986-01-02T00:00+05:45", "", gap="skip"),
    "Pyongyang": Row(
        "Asia/Pyongyang", "45 23 4 5 *", "2018-05-04T00:00+08:30", "2018-05-06T00:00+09:00", "", gap="skip"
    ),
    "Monrovia": Row(
        "Africa/Monrovia",
        "44,45 0 * * *",
        "1972-01-06T12:00-00:44:30",
        "1972-01-07T12:00+00:00",
        "1972-01-07T00:45+00:00",
        gap="skip",
    ),
    "Berlin, with seconds": Row(
        "Europe/Berlin", "15 30 2 * * *", "2025-03-30T00:00+01:00", "2025-03-31T00:00+02:00", "", gap="skip"
    ),
}

# A fixed time that comes twice: the first copy.
FIXED_AND_REPEATED = {
    "Berlin, the days around": Row(
        "Europe/Berlin",
        "30 2 * * *",
        "2025-10-25T00:00+02:00",
        "2025-10-28T00:00+01:00",
        "2025-10-25T02:30+02:00 2025-10-26T02:30+02:00 2025-10-27T02:30+01:00",
    ),
    "Berlin, the edges": Row(
        "Europe/Berlin",
        "0,59 1-3 * * *",
        "2025-10-26T00:00+02:00",
        "2025-10-27T00:00+01:00",
        "2025-10-26T01:00+02:00 2025-10-26T01:59+02:00 2025-10-26T02:00+02:00 2025-10-26T02:59+02:00 "
        "2025-10-26T03:00+01:00 2025-10-26T03:59+01:00",
    ),
    "Berlin, with seconds": Row(
        "Europe/Berlin",
        "*/30 30 2 * * *",
        "2025-10-26T00:00+02:00",
        "2025-10-27T00:00+01:00",
        "2025-10-26T02:30+02:00 2025-10-26T02:30:30+02:00",
    ),
    "Berlin 2099": Row(
        "Europe/Berlin", "30 2 * * *", "2099-10-25T00:00+02:00", "2099-10-26T00:00+01:00", "2099-10-25T02:30+02:00"
    ),
    "New York": Row(
        "America/New_York",
        "30 1 * * *",
        "2025-11-01T00:00-04:00",
        "2025-11-04T00:00-05:00",
        "2025-11-01T01:30-04:00 2025-11-02T01:30-04:00 2025-11-03T01:30-05:00",
    ),
    "New York 1970": Row(
        "America/New_York", "30 1 * * *", "1970-10-25T00:00-04:00", "1970-10-26T00:00-05:00", "1970-10-25T01:30-04:00"
    ),
    "New York 2099": Row(
        "America/New_York", "30 1 * * *", "2099-11-01T00:00-04:00", "2099-11-02T00:00-05:00", "2099-11-01T01:30-04:00"
    ),
    "Lord Howe, half an hour": Row(
        "Australia/Lord_Howe",
        "0,15,30,45 1,2 * * *",
        "2024-04-07T00:00+11:00",
        "2024-04-07T02:20+10:30",
        "2024-04-07T01:00+11:00 2024-04-07T01:15+11:00 2024-04-07T01:30+11:00 2024-04-07T01:45+11:00 "
        "2024-04-07T02:00+10:30 2024-04-07T02:15+10:30",
    ),
    "Apia, on its old side": Row(
        "Pacific/Apia", "30 3 * * *", "2011-04-02T00:00-10:00", "2011-04-03T00:00-11:00", "2011-04-02T03:30-10:00"
    ),
    "Apia, on its new side": Row(
        "Pacific/Apia", "30 3 * * *", "2021-04-04T00:00+14:00", "2021-04-05T00:00+13:00", "2021-04-04T03:30+14:00"
    ),
    "Chatham": Row(
        "Pacific/Chatham",
        "0,30,45 2,3 * * *",
        "2024-04-07T00:00+13:45",
        "2024-04-08T00:00+12:45",
        "2024-04-07T02:00+13:45 2024-04-07T02:30+13:45 2024-04-07T02:45+13:45 2024-04-07T03:00+13:45 "
        "2024-04-07T03:30+13:45 2024-04-07T03:45+12:45",
    ),
    "Cairo, the hour before midnight": Row(
        "Africa/Cairo", "30 23 * * THU", "2023-10-26T00:00+03:00", "2023-10-27T12:00+02:00", "2023-10-26T23:30+03:00"
    ),
    "Cairo, midnight comes once": Row(
        "Africa/Cairo", "@daily", "2023-10-26T12:00+03:00", "2023-10-27T12:00+02:00", "2023-10-27T00:00+02:00"
    ),
    "Gaza": Row(
        "Asia/Gaza", "30 1 * * *", "2022-10-29T00:00+03:00", "2022-10-30T00:00+02:00", "2022-10-29T01:30+03:00"
    ),
    "Sao Paulo": Row(
        "America/Sao_Paulo",
        "30 23 * * *",
        "2018-02-17T00:00-02:00",
        "2018-02-19T00:00-03:00",
        "2018-02-17T23:30-02:00 2018-02-18T23:30-03:00",
    ),
    "Adelaide": Row(
        "Australia/Adelaide", "15 2 * * *", "2024-04-07T00:00+10:30", "2024-04-08T00:00+09:30", "2024-04-07T02:15+10:30"
    ),
    "St John's, midnight comes twice": Row(
        "America/St_Johns",
        "@daily",
        "2010-11-05T12:00-02:30",
        "2010-11-08T12:00-03:30",
        "2010-11-06T00:00-02:30 2010-11-07T00:00-02:30 2010-11-08T00:00-03:30",
    ),
    "St John's, the end of double summer time": Row(
        "America/St_Johns",
        "0 22,23 * * *",
        "1988-10-29T12:00-01:30",
        "1988-10-30T12:00-03:30",
        "1988-10-29T22:00-01:30 1988-10-29T23:00-01:30",
    ),
    "Casablanca, before Ramadan": Row(
        "Africa/Casablanca",
        "30 2 * * *",
        "2023-03-18T00:00+01:00",
        "2023-03-21T00:00+00:00",
        "2023-03-18T02:30+01:00 2023-03-19T02:30+01:00 2023-03-20T02:30+00:00",
    ),
    "Dublin": Row(
        "Europe/Dublin", "30 1 * * *", "2024-10-27T00:00+01:00", "2024-10-28T00:00+00:00", "2024-10-27T01:30+01:00"
    ),
    "Tehran": Row(
        "Asia/Tehran", "30 23 * * *", "2022-09-21T00:00+04:30", "2022-09-22T12:00+03:30", "2022-09-21T23:30+04:30"
    ),
    "Havana, midnight comes twice": Row(
        "America/Havana",
        "@midnight",
        "2024-11-02T12:00-04:00",
        "2024-11-04T12:00-05:00",
        "2024-11-03T00:00-04:00 2024-11-04T00:00-05:00",
    ),
    "Pyongyang, half an hour of 2015": Row(
        "Asia/Pyongyang",
        "15,45 23 * * *",
        "2015-08-14T12:00+09:00",
        "2015-08-15T12:00+08:30",
        "2015-08-14T23:15+09:00 2015-08-14T23:45+09:00",
    ),
    "Beirut": Row(
        "Asia/Beirut", "30 23 28 10 *", "2023-10-28T00:00+03:00", "2023-10-30T00:00+02:00", "2023-10-28T23:30+03:00"
    ),
    "Troll, two hours": Row(
        "Antarctica/Troll",
        "30 1,2,3 * * *",
        "2024-10-27T00:00+02:00",
        "2024-10-28T00:00+00:00",
        "2024-10-27T01:30+02:00 2024-10-27T02:30+02:00 2024-10-27T03:30+00:00",
    ),
    "Lisbon, back to Greenwich": Row(
        "Europe/Lisbon", "30 1 * * *", "1996-10-27T00:00+01:00", "1996-10-28T00:00+00:00", "1996-10-27T01:30+01:00"
    ),
    "Caracas, half an hour of 2007": Row(
        "America/Caracas",
        "15,45 2 * * *",
        "2007-12-09T00:00-04:00",
        "2007-12-10T00:00-04:30",
        "2007-12-09T02:15-04:00 2007-12-09T02:45-04:00",
    ),
    "Casey, midnight inside three hours": Row(
        "Antarctica/Casey",
        "0 0 * * *",
        "2010-03-04T12:00+11:00",
        "2010-03-06T12:00+08:00",
        "2010-03-05T00:00+11:00 2010-03-06T00:00+08:00",
    ),
    "Vostok, seven hours": Row(
        "Antarctica/Vostok",
        "0 17,20,23 * * *",
        "1994-01-31T12:00+07:00",
        "1994-02-01T12:00+00:00",
        "1994-01-31T17:00+07:00 1994-01-31T20:00+07:00 1994-01-31T23:00+07:00",
    ),
}

# repeat="second" and repeat="both", for fixed times only.
OTHER_COPIES = {
    "Berlin, second": Row(
        "Europe/Berlin",
        "30 2 * * *",
        "2025-10-25T00:00+02:00",
        "2025-10-28T00:00+01:00",
        "2025-10-25T02:30+02:00 2025-10-26T02:30+01:00 2025-10-27T02:30+01:00",
        repeat="second",
    ),
    "Berlin, both": Row(
        "Europe/Berlin",
        "0,30 2,3 * * *",
        "2025-10-26T00:00+02:00",
        "2025-10-27T00:00+01:00",
        "2025-10-26T02:00+02:00 2025-10-26T02:30+02:00 2025-10-26T02:00+01:00 2025-10-26T02:30+01:00 "
        "2025-10-26T03:00+01:00 2025-10-26T03:30+01:00",
        repeat="both",
    ),
    "Berlin, second, the edges": Row(
        "Europe/Berlin",
        "0,59 1-3 * * *",
        "2025-10-26T00:00+02:00",
        "2025-10-27T00:00+01:00",
        "2025-10-26T01:00+02:00 2025-10-26T01:59+02:00 2025-10-26T02:00+01:00 2025-10-26T02:59+01:00 "
        "2025-10-26T03:00+01:00 2025-10-26T03:59+01:00",
        repeat="second",
    ),
    "Berlin, both, with seconds": Row(
        "Europe/Berlin",
        "10,50 30 2 * * *",
        "2025-10-26T00:00+02:00",
        "2025-10-27T00:00+01:00",
        "2025-10-26T02:30:10+02:00 2025-10-26T02:30:50+02:00 2025-10-26T02:30:10+01:00 2025-10-26T02:30:50+01:00",
        repeat="both",
    ),
    "Berlin, second, does not touch the gap": Row(
        "Europe/Berlin",
        "30 2 * * *",
        "2025-03-30T00:00+01:00",
        "2025-03-31T00:00+02:00",
        "2025-03-30T03:00+02:00",
        repeat="second",
    ),
    "New York, second": Row(
        "America/New_York",
        "30 1 * * *",
        "2025-11-02T00:00-04:00",
        "2025-11-03T00:00-05:00",
        "2025-11-02T01:30-05:00",
        repeat="second",
    ),
    "New York 2099, both": Row(
        "America/New_York",
        "30 1 * * *",
        "2099-11-01T00:00-04:00",
        "2099-11-02T00:00-05:00",
        "2099-11-01T01:30-04:00 2099-11-01T01:30-05:00",
        repeat="both",
    ),
    "Lord Howe, second": Row(
        "Australia/Lord_Howe",
        "15,45 1 * * *",
        "2024-04-07T00:00+11:00",
        "2024-04-08T00:00+10:30",
        "2024-04-07T01:15+11:00 2024-04-07T01:45+10:30",
        repeat="second",
    ),
    "Chatham, both": Row(
        "Pacific/Chatham",
        "0 3 * * *",
        "2024-04-07T00:00+13:45",
        "2024-04-08T00:00+12:45",
        "2024-04-07T03:00+13:45 2024-04-07T03:00+12:45",
        repeat="both",
    ),
    "St John's, the second midnight": Row(
        "America/St_Johns",
        "@daily",
        "2010-11-05T12:00-02:30",
        "2010-11-08T12:00-03:30",
        "2010-11-06T00:00-02:30 2010-11-07T00:00-03:30 2010-11-08T00:00-03:30",
        repeat="second",
    ),
    "St John's, both copies on two days": Row(
        "America/St_Johns",
        "0,30 0,23 * * *",
        "2010-11-06T22:00-02:30",
        "2010-11-07T12:00-03:30",
        "2010-11-06T23:00-02:30 2010-11-06T23:30-02:30 2010-11-07T00:00-02:30 2010-11-06T23:30-03:30 "
        "2010-11-07T00:00-03:30 2010-11-07T00:30-03:30",
        repeat="both",
    ),
    "Havana, the second midnight": Row(
        "America/Havana",
        "@daily",
        "2024-11-02T12:00-04:00",
        "2024-11-03T12:00-05:00",
        "2024-11-03T00:00-05:00",
        repeat="second",
    ),
    "Sao Paulo, both": Row(
        "America/Sao_Paulo",
        "30 23 17 2 *",
        "2018-02-17T00:00-02:00",
        "2018-02-19T00:00-03:00",
        "2018-02-17T23:30-02:00 2018-02-17T23:30-03:00",
        repeat="both",
    ),
    "Casablanca, second": Row(
        "Africa/Casablanca",
        "30 2 * * *",
        "2023-03-19T00:00+01:00",
        "2023-03-20T00:00+00:00",
        "2023-03-19T02:30+00:00",
        repeat="second",
    ),
    "Troll, second": Row(
        "Antarctica/Troll",
        "30 1,2 * * *",
        "2024-10-27T00:00+02:00",
        "2024-10-28T00:00+00:00",
        "2024-10-27T01:30+00:00 2024-10-27T02:30+00:00",
        repeat="second",
    ),
    "Vostok, both": Row(
        "Antarctica/Vostok",
        "0 17,23 * * *",
        "1994-01-31T12:00+07:00",
        "1994-02-01T12:00+00:00",
        "1994-01-31T17:00+07:00 1994-01-31T23:00+07:00 1994-01-31T17:00+00:00 1994-01-31T23:00+00:00",
        repeat="both",
    ),
    "Berlin, skip and both together": Row(
        "Europe/Berlin",
        "30 2 * * SUN",
        "2025-10-19T00:00+02:00",
        "2025-10-27T00:00+01:00",
        "2025-10-19T02:30+02:00 2025-10-26T02:30+02:00 2025-10-26T02:30+01:00",
        gap="skip",
        repeat="both",
    ),
}

# A minute or an hour that starts with a star: times that do not exist are lost.
WILDCARD_IN_A_GAP = {
    "Berlin, nothing in the lost hour": Row(
        "Europe/Berlin",
        "*/15 2 * * *",
        "2025-03-29T02:10+01:00",
        "2025-03-31T02:20+02:00",
        "2025-03-29T02:15+01:00 2025-03-29T02:30+01:00 2025-03-29T02:45+01:00 2025-03-31T02:00+02:00 "
        "2025-03-31T02:15+02:00",
    ),
    "Berlin, every minute of the lost hour": Row(
        "Europe/Berlin", "* 2 * * *", "2025-03-30T00:00+01:00", "2025-03-31T00:00+02:00", ""
    ),
    "Berlin, every second of the lost hour": Row(
        "Europe/Berlin", "* * 2 * * *", "2025-03-30T00:00+01:00", "2025-03-31T00:00+02:00", ""
    ),
    "Berlin, a star among the minutes": Row(
        "Europe/Berlin", "*,30 2 * * *", "2025-03-30T00:00+01:00", "2025-03-31T00:00+02:00", ""
    ),
    "Berlin, once an hour": Row(
        "Europe/Berlin",
        "30 * * * *",
        "2025-03-30T00:00+01:00",
        "2025-03-30T05:00+02:00",
        "2025-03-30T00:30+01:00 2025-03-30T01:30+01:00 2025-03-30T03:30+02:00 2025-03-30T04:30+02:00",
    ),
    "Berlin, hourly": Row(
        "Europe/Berlin",
        "@hourly",
        "2025-03-30T00:00+01:00",
        "2025-03-30T04:00+02:00",
        "2025-03-30T01:00+01:00 2025-03-30T03:00+02:00 2025-03-30T04:00+02:00",
    ),
    "Berlin, every second hour": Row(
        "Europe/Berlin",
        "0 */2 * * *",
        "2025-03-29T23:00+01:00",
        "2025-03-30T06:00+02:00",
        "2025-03-30T00:00+01:00 2025-03-30T04:00+02:00 2025-03-30T06:00+02:00",
    ),
    "Berlin, the gap's end is its own": Row(
        "Europe/Berlin",
        "*/20 2,3 * * *",
        "2025-03-30T00:00+01:00",
        "2025-03-31T00:00+02:00",
        "2025-03-30T03:00+02:00 2025-03-30T03:20+02:00 2025-03-30T03:40+02:00",
    ),
    "Berlin, seconds with an hourly minute": Row(
        "Europe/Berlin",
        "30 59 */1 * * *",
        "2025-03-30T00:00+01:00",
        "2025-03-30T04:00+02:00",
        "2025-03-30T00:59:30+01:00 2025-03-30T01:59:30+01:00 2025-03-30T03:59:30+02:00",
    ),
    "New York 1970": Row(
        "America/New_York",
        "*/30 * * * *",
        "1970-04-26T01:00-05:00",
        "1970-04-26T03:30-04:00",
        "1970-04-26T01:30-05:00 1970-04-26T03:00-04:00 1970-04-26T03:30-04:00",
    ),
    "Lord Howe, every third hour": Row(
        "Australia/Lord_Howe",
        "0 */3 * * *",
        "2024-10-05T21:00+10:30",
        "2024-10-06T06:00+11:00",
        "2024-10-06T00:00+10:30 2024-10-06T03:00+11:00 2024-10-06T06:00+11:00",
    ),
    "Lord Howe, the lost half of an hour": Row(
        "Australia/Lord_Howe",
        "*/15 2 * * *",
        "2024-10-06T00:00+10:30",
        "2024-10-07T00:00+11:00",
        "2024-10-06T02:30+11:00 2024-10-06T02:45+11:00",
    ),
    "Apia, every sixth hour": Row(
        "Pacific/Apia",
        "0 */6 * * *",
        "2011-12-29T12:00-10:00",
        "2011-12-31T06:00+14:00",
        "2011-12-29T18:00-10:00 2011-12-31T00:00+14:00 2011-12-31T06:00+14:00",
    ),
    "Apia, hours of the lost day": Row(
        "Pacific/Apia", "30 */6 30 12 *", "2011-12-28T00:00-10:00", "2012-01-03T00:00+14:00", ""
    ),
    "Chatham": Row(
        "Pacific/Chatham",
        "*/15 2,3 * * *",
        "2024-09-29T00:00+12:45",
        "2024-09-30T00:00+13:45",
        "2024-09-29T02:00+12:45 2024-09-29T02:15+12:45 2024-09-29T02:30+12:45 2024-09-29T03:45+13:45",
    ),
    "Cairo": Row(
        "Africa/Cairo",
        "0 * * * *",
        "2023-04-27T22:00+02:00",
        "2023-04-28T02:00+03:00",
        "2023-04-27T23:00+02:00 2023-04-28T01:00+03:00 2023-04-28T02:00+03:00",
    ),
    "Sao Paulo, the lost hour": Row(
        "America/Sao_Paulo", "*/10 0 * * *", "2018-11-03T12:00-03:00", "2018-11-04T12:00-02:00", ""
    ),
    "Kathmandu": Row(
        "Asia/Kathmandu",
        "*/5 * * * *",
        "1985-12-31T23:50+05:30",
        "1986-01-01T00:20+05:45",
        "1985-12-31T23:55+05:30 1986-01-01T00:15+05:45 1986-01-01T00:20+05:45",
    ),
    "St John's, one o'clock is lost by a minute": Row(
        "America/St_Johns",
        "@hourly",
        "2010-03-13T23:00-03:30",
        "2010-03-14T03:00-02:30",
        "2010-03-14T00:00-03:30 2010-03-14T02:00-02:30 2010-03-14T03:00-02:30",
    ),
    "Casablanca": Row("Africa/Casablanca", "*/15 2 * * *", "2023-04-23T00:00+00:00", "2023-04-24T00:00+01:00", ""),
    "Pyongyang": Row(
        "Asia/Pyongyang",
        "*/15 * * * *",
        "2018-05-04T23:00+08:30",
        "2018-05-05T00:15+09:00",
        "2018-05-04T23:15+08:30 2018-05-05T00:00+09:00 2018-05-05T00:15+09:00",
    ),
    "Troll": Row(
        "Antarctica/Troll",
        "0 * * * *",
        "2024-03-30T23:00+00:00",
        "2024-03-31T04:00+02:00",
        "2024-03-31T00:00+00:00 2024-03-31T03:00+02:00 2024-03-31T04:00+02:00",
    ),
    "Monrovia, offsets with seconds": Row(
        "Africa/Monrovia",
        "*/15 * * * *",
        "1972-01-06T23:30-00:44:30",
        "1972-01-07T01:00+00:00",
        "1972-01-06T23:45-00:44:30 1972-01-07T00:45+00:00 1972-01-07T01:00+00:00",
    ),
}

# A minute or an hour that starts with a star: both copies of a repeated time.
WILDCARD_REPEATED = {
    "Berlin, the repeated hour": Row(
        "Europe/Berlin",
        "*/30 2 * * *",
        "2025-10-26T00:00+02:00",
        "2025-10-27T00:00+01:00",
        "2025-10-26T02:00+02:00 2025-10-26T02:30+02:00 2025-10-26T02:00+01:00 2025-10-26T02:30+01:00",
    ),
    "Berlin, hourly": Row(
        "Europe/Berlin",
        "0 * * * *",
        "2025-10-26T00:00+02:00",
        "2025-10-26T03:00+01:00",
        "2025-10-26T01:00+02:00 2025-10-26T02:00+02:00 2025-10-26T02:00+01:00 2025-10-26T03:00+01:00",
    ),
    "Berlin, every second hour": Row(
        "Europe/Berlin",
        "30 */2 * * *",
        "2025-10-26T00:00+02:00",
        "2025-10-26T05:00+01:00",
        "2025-10-26T00:30+02:00 2025-10-26T02:30+02:00 2025-10-26T02:30+01:00 2025-10-26T04:30+01:00",
    ),
    "Berlin, with seconds": Row(
        "Europe/Berlin",
        "15 30 */2 * * *",
        "2025-10-26T01:00+02:00",
        "2025-10-26T04:00+01:00",
        "2025-10-26T02:30:15+02:00 2025-10-26T02:30:15+01:00",
    ),
    "Berlin, repeat does not touch a wildcard": Row(
        "Europe/Berlin",
        "0 * * * *",
        "2025-10-26T01:00+02:00",
        "2025-10-26T03:00+01:00",
        "2025-10-26T02:00+02:00 2025-10-26T02:00+01:00 2025-10-26T03:00+01:00",
        repeat="second",
    ),
    "New York 2099": Row(
        "America/New_York",
        "*/30 1 * * *",
        "2099-11-01T00:00-04:00",
        "2099-11-02T00:00-05:00",
        "2099-11-01T01:00-04:00 2099-11-01T01:30-04:00 2099-11-01T01:00-05:00 2099-11-01T01:30-05:00",
    ),
    "Lord Howe, every quarter": Row(
        "Australia/Lord_Howe",
        "*/15 * * * *",
        "2024-04-07T01:15+11:00",
        "2024-04-07T02:00+10:30",
        "2024-04-07T01:30+11:00 2024-04-07T01:45+11:00 2024-04-07T01:30+10:30 2024-04-07T01:45+10:30 "
        "2024-04-07T02:00+10:30",
    ),
    "Lord Howe, hourly is ninety minutes once": Row(
        "Australia/Lord_Howe",
        "0 * * * *",
        "2024-04-07T00:00+11:00",
        "2024-04-07T03:00+10:30",
        "2024-04-07T01:00+11:00 2024-04-07T02:00+10:30 2024-04-07T03:00+10:30",
    ),
    "Lord Howe, every third hour": Row(
        "Australia/Lord_Howe",
        "0 */3 * * *",
        "2024-04-06T21:00+11:00",
        "2024-04-07T06:00+10:30",
        "2024-04-07T00:00+11:00 2024-04-07T03:00+10:30 2024-04-07T06:00+10:30",
    ),
    "Chatham, quarters of a split hour": Row(
        "Pacific/Chatham",
        "*/15 3 * * *",
        "2024-04-07T00:00+13:45",
        "2024-04-08T00:00+12:45",
        "2024-04-07T03:00+13:45 2024-04-07T03:15+13:45 2024-04-07T03:30+13:45 2024-04-07T03:00+12:45 "
        "2024-04-07T03:15+12:45 2024-04-07T03:30+12:45 2024-04-07T03:45+12:45",
    ),
    "St John's, midnight twice and eleven once": Row(
        "America/St_Johns",
        "@hourly",
        "2010-11-06T22:00-02:30",
        "2010-11-07T01:00-03:30",
        "2010-11-06T23:00-02:30 2010-11-07T00:00-02:30 2010-11-07T00:00-03:30 2010-11-07T01:00-03:30",
    ),
    "Havana": Row(
        "America/Havana",
        "0 */12 * * *",
        "2024-11-02T12:00-04:00",
        "2024-11-03T12:00-05:00",
        "2024-11-03T00:00-04:00 2024-11-03T00:00-05:00 2024-11-03T12:00-05:00",
    ),
    "Tehran": Row(
        "Asia/Tehran",
        "*/30 23 * * *",
        "2022-09-21T00:00+04:30",
        "2022-09-22T00:00+03:30",
        "2022-09-21T23:00+04:30 2022-09-21T23:30+04:30 2022-09-21T23:00+03:30 2022-09-21T23:30+03:30",
    ),
    "Pyongyang": Row(
        "Asia/Pyongyang",
        "*/20 23 * * *",
        "2015-08-14T12:00+09:00",
        "2015-08-15T12:00+08:30",
        "2015-08-14T23:00+09:00 2015-08-14T23:20+09:00 2015-08-14T23:40+09:00 2015-08-14T23:40+08:30",
    ),
    "Casablanca": Row(
        "Africa/Casablanca",
        "*/30 2 * * *",
        "2023-03-19T00:00+01:00",
        "2023-03-20T00:00+00:00",
        "2023-03-19T02:00+01:00 2023-03-19T02:30+01:00 2023-03-19T02:00+00:00 2023-03-19T02:30+00:00",
    ),
    "Troll, two hours twice": Row(
        "Antarctica/Troll",
        "0 * * * *",
        "2024-10-27T00:00+02:00",
        "2024-10-27T03:00+00:00",
        "2024-10-27T01:00+02:00 2024-10-27T02:00+02:00 2024-10-27T01:00+00:00 2024-10-27T02:00+00:00 "
        "2024-10-27T03:00+00:00",
    ),
    "Caracas": Row(
        "America/Caracas",
        "*/20 2 * * *",
        "2007-12-09T00:00-04:00",
        "2007-12-10T00:00-04:30",
        "2007-12-09T02:00-04:00 2007-12-09T02:20-04:00 2007-12-09T02:40-04:00 2007-12-09T02:40-04:30",
    ),
}

# No change of the clock: also where there used to be one, and where only the zone's name changed.
UNDISTURBED = {
    "Kolkata": Row(
        "Asia/Kolkata",
        "30 2 * * *",
        "2025-03-29T12:00+05:30",
        "2025-03-31T12:00+05:30",
        "2025-03-30T02:30+05:30 2025-03-31T02:30+05:30",
    ),
    "Kathmandu": Row(
        "Asia/Kathmandu",
        "45 23 * * *",
        "2025-03-29T12:00+05:45",
        "2025-03-31T12:00+05:45",
        "2025-03-29T23:45+05:45 2025-03-30T23:45+05:45",
    ),
    "Apia has no summer time any more": Row(
        "Pacific/Apia",
        "30 3 * * *",
        "2021-09-24T12:00+13:00",
        "2021-09-27T12:00+13:00",
        "2021-09-25T03:30+13:00 2021-09-26T03:30+13:00 2021-09-27T03:30+13:00",
    ),
    "Sao Paulo has no summer time any more": Row(
        "America/Sao_Paulo",
        "0 0 * * *",
        "2019-11-02T12:00-03:00",
        "2019-11-04T12:00-03:00",
        "2019-11-03T00:00-03:00 2019-11-04T00:00-03:00",
    ),
    "Tehran has no summer time any more": Row(
        "Asia/Tehran",
        "0 0 * * *",
        "2023-03-21T12:00+03:30",
        "2023-03-23T12:00+03:30",
        "2023-03-22T00:00+03:30 2023-03-23T00:00+03:30",
    ),
    "Lisbon took Berlin's time without touching a clock": Row(
        "Europe/Lisbon",
        "30 1 * * *",
        "1992-09-26T12:00+01:00",
        "1992-09-28T12:00+01:00",
        "1992-09-27T01:30+01:00 1992-09-28T01:30+01:00",
    ),
    "Scoresbysund changed zone and summer time at once": Row(
        "America/Scoresbysund",
        "30 0 * * *",
        "2024-03-30T12:00-01:00",
        "2024-04-01T12:00-01:00",
        "2024-03-31T00:30-01:00 2024-04-01T00:30-01:00",
    ),
    "Berlin had no summer time in 1970": Row(
        "Europe/Berlin", "30 2 29 3 *", "1970-03-28T12:00+01:00", "1970-03-30T12:00+01:00", "1970-03-29T02:30+01:00"
    ),
    "Kuala Lumpur before 1982": Row(
        "Asia/Kuala_Lumpur",
        "0 */12 * * *",
        "1970-06-01T00:00+07:30",
        "1970-06-02T00:00+07:30",
        "1970-06-01T12:00+07:30 1970-06-02T00:00+07:30",
    ),
    "UTC 2099": Row(
        "UTC",
        "59 23 * * *",
        "2099-12-30T00:00+00:00",
        "2100-01-01T00:00+00:00",
        "2099-12-30T23:59+00:00 2099-12-31T23:59+00:00",
    ),
}

TABLES = {
    "gap": FIXED_IN_A_GAP,
    "skip": SKIPPED,
    "repeated": FIXED_AND_REPEATED,
    "copies": OTHER_COPIES,
    "wild gap": WILDCARD_IN_A_GAP,
    "wild repeated": WILDCARD_REPEATED,
    "calm": UNDISTURBED,
}
each_row = pytest.mark.parametrize(
    "row", [pytest.param(row, id=f"{table}-{name}") for table, rows in TABLES.items() for name, row in rows.items()]
)


@each_row
def test_forwards(row: Row) -> None:
    assert [shown(t) for t in row.rule.instants(*row.window)] == row.firings.split()


@each_row
def test_backwards(row: Row) -> None:
    assert [shown(t) for t in backwards(row.rule, *row.window)] == row.firings.split()[::-1]


@each_row
def test_counted(row: Row) -> None:
    assert row.rule.count(*row.window) == len(row.firings.split())


@each_row
def test_the_oracle_agrees(row: Row) -> None:
    found = oracle.instants(row.expr, row.zone, *row.window, row.gap, row.repeat)
    assert [shown(t.astimezone(ZoneInfo(row.zone))) for t in found] == row.firings.split()


class Question(NamedTuple):
    zone: str
    expr: str
    asked: str
    next: str | None
    previous: str | None
    gap: Gap = "after"
    repeat: Repeat = "first"


QUESTIONS = {
    # From inside a repeated time, and at its edges.
    "the second copy, after the first fired": Question(
        "America/New_York", "30 1 * * *", "2025-11-02T01:10-05:00", "2025-11-03T01:30-05:00", "2025-11-02T01:30-04:00"
    ),
    "the first copy, before it fires": Question(
        "America/New_York", "30 1 * * *", "2025-11-02T01:10-04:00", "2025-11-02T01:30-04:00", "2025-11-01T01:30-04:00"
    ),
    "the first copy, after it fired": Question(
        "America/New_York", "30 1 * * *", "2025-11-02T01:40-04:00", "2025-11-03T01:30-05:00", "2025-11-02T01:30-04:00"
    ),
    "the first copy, when the second fires": Question(
        "America/New_York",
        "30 1 * * *",
        "2025-11-02T01:40-04:00",
        "2025-11-02T01:30-05:00",
        "2025-11-01T01:30-04:00",
        repeat="second",
    ),
    "the second copy, before it fires": Question(
        "America/New_York",
        "30 1 * * *",
        "2025-11-02T01:10-05:00",
        "2025-11-02T01:30-05:00",
        "2025-11-01T01:30-04:00",
        repeat="second",
    ),
    "the second copy, after it fired": Question(
        "America/New_York",
        "30 1 * * *",
        "2025-11-02T01:40-05:00",
        "2025-11-03T01:30-05:00",
        "2025-11-02T01:30-05:00",
        repeat="second",
    ),
    "between both copies": Question(
        "America/New_York",
        "30 1 * * *",
        "2025-11-02T01:59-04:00",
        "2025-11-02T01:30-05:00",
        "2025-11-02T01:30-04:00",
        repeat="both",
    ),
    "the instant the clock goes back": Question(
        "America/New_York", "0 1 * * *", "2025-11-02T01:00-05:00", "2025-11-03T01:00-05:00", "2025-11-02T01:00-04:00"
    ),
    "the instant the clock goes back, and it fires": Question(
        "America/New_York",
        "0 1 * * *",
        "2025-11-02T01:00-05:00",
        "2025-11-03T01:00-05:00",
        "2025-11-02T01:00-04:00",
        repeat="both",
    ),
    "the second copy of a wildcard": Question(
        "America/New_York", "*/30 1 * * *", "2025-11-02T01:10-05:00", "2025-11-02T01:30-05:00", "2025-11-02T01:00-05:00"
    ),
    "the second copy of a quarter in Chatham": Question(
        "Pacific/Chatham", "*/15 3 * * *", "2024-04-07T03:30+13:45", "2024-04-07T03:00+12:45", "2024-04-07T03:15+13:45"
    ),
    "the repeated half hour in Lord Howe": Question(
        "Australia/Lord_Howe",
        "0 */3 * * *",
        "2024-04-07T01:45+10:30",
        "2024-04-07T03:00+10:30",
        "2024-04-07T00:00+11:00",
    ),
    "the lost half hour in Lord Howe": Question(
        "Australia/Lord_Howe",
        "0 */3 * * *",
        "2024-10-06T02:30+11:00",
        "2024-10-06T03:00+11:00",
        "2024-10-06T00:00+10:30",
    ),
    # At the edges of a gap.
    "a second before the gap": Question(
        "Europe/Berlin", "30 2 * * *", "2025-03-30T01:59:59+01:00", "2025-03-30T03:00+02:00", "2025-03-29T02:30+01:00"
    ),
    "the gap's end itself": Question(
        "Europe/Berlin", "30 2 * * *", "2025-03-30T03:00+02:00", "2025-03-31T02:30+02:00", "2025-03-29T02:30+01:00"
    ),
    "a microsecond after the gap's end": Question(
        "Europe/Berlin",
        "30 2 * * *",
        "2025-03-30T03:00:00.000001+02:00",
        "2025-03-31T02:30+02:00",
        "2025-03-30T03:00+02:00",
    ),
    "a microsecond before the gap's end": Question(
        "Europe/Berlin",
        "30 2 * * *",
        "2025-03-30T01:59:59.999999+01:00",
        "2025-03-30T03:00+02:00",
        "2025-03-29T02:30+01:00",
    ),
    "the time that does not exist, by the old offset": Question(
        "Europe/Berlin", "30 2 * * *", "2025-03-30T02:30+01:00", "2025-03-31T02:30+02:00", "2025-03-30T03:00+02:00"
    ),
    "the time that does not exist, by the new offset": Question(
        "Europe/Berlin", "30 2 * * *", "2025-03-30T02:30+02:00", "2025-03-30T03:00+02:00", "2025-03-29T02:30+01:00"
    ),
    "the gap's end, skipped": Question(
        "Europe/Berlin",
        "30 2 * * *",
        "2025-03-30T03:00+02:00",
        "2025-03-31T02:30+02:00",
        "2025-03-29T02:30+01:00",
        gap="skip",
    ),
    "a wildcard over the gap": Question(
        "Europe/Berlin", "*/15 2 * * *", "2025-03-30T03:00+02:00", "2025-03-31T02:00+02:00", "2025-03-29T02:45+01:00"
    ),
    "Apia, before the lost day": Question(
        "Pacific/Apia", "0 9 30 12 *", "2011-12-29T12:00-10:00", "2011-12-31T00:00+14:00", "2010-12-30T09:00-10:00"
    ),
    "Apia, after the lost day": Question(
        "Pacific/Apia", "0 9 30 12 *", "2011-12-31T00:00:01+14:00", "2012-12-30T09:00+14:00", "2011-12-31T00:00+14:00"
    ),
    "Apia, the lost day skipped": Question(
        "Pacific/Apia",
        "0 9 30 12 *",
        "2011-12-29T12:00-10:00",
        "2012-12-30T09:00+14:00",
        "2010-12-30T09:00-10:00",
        gap="skip",
    ),
    "Apia, a star on the lost day": Question(
        "Pacific/Apia", "0 */6 30 12 *", "2011-12-31T00:00+14:00", "2012-12-30T00:00+14:00", "2010-12-30T18:00-10:00"
    ),
    # Schedules that come seldom.
    "29 February over 1900's sister": Question(
        "UTC", "0 0 29 2 *", "2100-01-01T00:00+00:00", "2104-02-29T00:00+00:00", "2096-02-29T00:00+00:00"
    ),
    "29 February in Berlin": Question(
        "Europe/Berlin", "30 2 29 2 *", "2024-02-29T02:30+01:00", "2028-02-29T02:30+01:00", "2020-02-29T02:30+01:00"
    ),
    "29 February or a Monday in February": Question(
        "Europe/Berlin", "30 2 29 2 1", "2024-02-27T00:00+01:00", "2024-02-29T02:30+01:00", "2024-02-26T02:30+01:00"
    ),
    "a fifth Monday in February": Question(
        "UTC", "0 0 * 2 MON#5", "2072-03-01T00:00+00:00", "2112-02-29T00:00+00:00", "2072-02-29T00:00+00:00"
    ),
    "a fifth Monday in February, with seconds": Question(
        "Pacific/Chatham",
        "7 30 2 * 2 MON#5",
        "2016-03-01T00:00+13:45",
        "2044-02-29T02:30:07+13:45",
        "2016-02-29T02:30:07+13:45",
    ),
    "Friday the thirteenth, without a rule for it": Question(
        "UTC", "0 0 13 * FRI", "2024-01-12T00:00+00:00", "2024-01-13T00:00+00:00", "2024-01-05T00:00+00:00"
    ),
    # The ends of time.
    "the first instant of 1970 has nothing before it": Question(
        "UTC", "* * * * *", "1970-01-01T00:00+00:00", "1970-01-01T00:01+00:00", None
    ),
    "the first instant of 1970 fires": Question(
        "UTC", "@yearly", "1970-01-01T00:00:01+00:00", "1971-01-01T00:00+00:00", "1970-01-01T00:00+00:00"
    ),
    "the last instants of 2199": Question(
        "UTC", "* * * * *", "2199-12-31T23:59:59+00:00", None, "2199-12-31T23:59+00:00"
    ),
    "the last minute of 2199": Question("UTC", "* * * * *", "2199-12-31T23:59+00:00", None, "2199-12-31T23:58+00:00"),
    "the last day of 2199, east of Greenwich": Question(
        "Asia/Tokyo", "0 0 2 1 *", "2199-06-01T00:00+09:00", None, "2199-01-02T00:00+09:00"
    ),
    "the first day of 1970, east of Greenwich": Question(
        "Asia/Tokyo", "@daily", "1970-01-01T23:00+09:00", "1970-01-02T00:00+09:00", None
    ),
    "the first day of 1970, west of Greenwich": Question(
        "America/New_York", "@daily", "1970-01-01T00:00-05:00", "1970-01-02T00:00-05:00", None
    ),
    "the last year": Question("UTC", "@yearly", "2199-06-01T00:00+00:00", None, "2199-01-01T00:00+00:00"),
    "the last summer time": Question(
        "America/New_York", "30 2 * * *", "2199-03-10T03:00-04:00", "2199-03-11T02:30-04:00", "2199-03-09T02:30-05:00"
    ),
}
each_question = pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)


@each_question
def test_next(ask: Question) -> None:
    rule = rota.Cron(ask.expr, tz=ask.zone, gap=ask.gap, repeat=ask.repeat)
    assert shown(rule.next(moment(ask.asked))) == ask.next


@each_question
def test_previous(ask: Question) -> None:
    rule = rota.Cron(ask.expr, tz=ask.zone, gap=ask.gap, repeat=ask.repeat)
    assert shown(rule.previous(moment(ask.asked))) == ask.previous


@pytest.mark.parametrize(
    ("fold", "expected"),
    [(0, "2025-03-31T02:30+02:00"), (1, "2025-03-30T03:00+02:00")],
    ids=["the old offset", "the new offset"],
)
def test_a_question_at_a_time_that_does_not_exist_goes_by_its_fold(fold: int, expected: str) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    asked = datetime(2025, 3, 30, 2, 30, tzinfo=berlin, fold=fold)
    assert shown(rota.Cron("30 2 * * *", tz="Europe/Berlin").next(asked)) == expected


@pytest.mark.parametrize(
    ("fold", "expected"),
    [(0, "2025-10-26T02:30+02:00"), (1, "2025-10-27T02:30+01:00")],
    ids=["the first copy", "the second copy"],
)
def test_a_question_at_a_repeated_time_goes_by_its_fold(fold: int, expected: str) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    asked = datetime(2025, 10, 26, 2, 10, tzinfo=berlin, fold=fold)
    assert shown(rota.Cron("30 2 * * *", tz="Europe/Berlin").next(asked)) == expected


# Which days a schedule means: midnights of January 2024, which began on a Monday.
DAYS = {
    "0 0 * * *": range(1, 32),
    "0 0 13 * *": [13],
    "0 0 * * FRI": [5, 12, 19, 26],
    "0 0 13 * FRI": [5, 12, 13, 19, 26],
    "0 0 1,15 * FRI": [1, 5, 12, 15, 19, 26],
    "0 0 */2 * MON": [1, 15, 29],
    "0 0 1-7 * */7": [7],
    "0 0 */10 * */2": [11, 21],
    "0 0 *,13 * FRI": [5, 12, 19, 26],
    "0 0 13,* * FRI": range(1, 32),
    "0 0 13 * *,FRI": [13],
    "0 0 1-31 * 1": range(1, 32),
    "0 0 L * MON": [1, 8, 15, 22, 29, 31],
    "0 0 L * */3": [31],
    "0 0 * * 0": [7, 14, 21, 28],
    "0 0 * * 7": [7, 14, 21, 28],
    "0 0 * * sun": [7, 14, 21, 28],
    "0 0 * * 5-7": [5, 6, 7, 12, 13, 14, 19, 20, 21, 26, 27, 28],
    "0 0 * * SUN-TUE": [1, 2, 7, 8, 9, 14, 15, 16, 21, 22, 23, 28, 29, 30],
    "0 0 * * */2": [2, 4, 6, 7, 9, 11, 13, 14, 16, 18, 20, 21, 23, 25, 27, 28, 30],
    "0 0 * * 1/2": [1, 3, 5, 7, 8, 10, 12, 14, 15, 17, 19, 21, 22, 24, 26, 28, 29, 31],
    "0 0 * * 3-3/2": [3, 10, 17, 24, 31],
    "0 0 */10 * *": [1, 11, 21, 31],
    "0 0 10/10 * *": [10, 20, 30],
    "0 0 1-20/7 * *": [1, 8, 15],
    "0 0 5-5/2 * *": [5],
    "0 0 30,31 * *": [30, 31],
    "0 0 L * *": [31],
    "0 0 LW * *": [31],
    "0 0 15,L * *": [15, 31],
    "0 0 * * 5L": [26],
    "0 0 * * 0L": [28],
    "0 0 * * 7L": [28],
    "0 0 * * MON#2": [8],
    "0 0 * * 1#1,3#5": [1, 31],
    "0 0 * * MON#5,TUE#5,WED#5,THU#5": [29, 30, 31],
    "0 0 10 * MON#2": [8, 10],
    "0 0 * * 7#1": [7],
    "0 0 * jan *": range(1, 32),
    "0 0 * FEB-DEC *": [],
    "0 0 31 */6 *": [31],
    "0 0 31 2/2 *": [],
}


def midnights(found: list[datetime]) -> list[int]:
    assert all(t.isoformat().endswith("T00:00:00+00:00") for t in found)
    return [t.day for t in found]


JANUARY = moment("2023-12-31T23:59+00:00"), moment("2024-01-31T23:59+00:00")


@pytest.mark.parametrize(("expr", "days"), DAYS.items())
def test_the_days_of_a_month(expr: str, days: list[int]) -> None:
    assert midnights(list(rota.Cron(expr).instants(*JANUARY))) == list(days)


@pytest.mark.parametrize(("expr", "days"), DAYS.items())
def test_the_oracle_knows_the_days_of_a_month(expr: str, days: list[int]) -> None:
    assert midnights(oracle.instants(expr, "UTC", *JANUARY)) == list(days)


# Which minutes of an hour a field means.
MINUTES = {
    "*": range(60),
    "0": [0],
    "00": [0],
    "59": [59],
    "*/15": [0, 15, 30, 45],
    "*/25": [0, 25, 50],
    "*/59": [0, 59],
    "*/60": [0],
    "5/10": [5, 15, 25, 35, 45, 55],
    "59/1": [59],
    "58/1": [58, 59],
    "5-5": [5],
    "5-5/2": [5],
    "5-6/2": [5],
    "5-5/2,7-7/9": [5, 7],
    "10-20/5": [10, 15, 20],
    "10-19/5": [10, 15],
    "10-20/5,40": [10, 15, 20, 40],
    "40,10-20/5,10": [10, 15, 20, 40],
    "*/30,10": [0, 10, 30],
    "50/5,0": [0, 50, 55],
    "0-59/20": [0, 20, 40],
}
ONE_HOUR = moment("2024-01-01T07:59+00:00"), moment("2024-01-01T08:59:59+00:00")


@pytest.mark.parametrize(("text", "minutes"), MINUTES.items())
def test_the_minutes_of_an_hour(text: str, minutes: list[int]) -> None:
    found = rota.Cron(f"{text} * * * *").instants(*ONE_HOUR)
    assert [t.strftime("%H:%M:%S") for t in found] == [f"08:{minute:02}:00" for minute in minutes]


@pytest.mark.parametrize(("text", "seconds"), MINUTES.items())
def test_the_seconds_of_a_minute(text: str, seconds: list[int]) -> None:
    found = rota.Cron(f"{text} 8 8 * * *").instants(*ONE_HOUR)
    assert [t.strftime("%H:%M:%S") for t in found] == [f"08:08:{second:02}" for second in seconds]


NICKNAMES = {
    "@hourly": "2024-05-15T11:00+00:00",
    "@daily": "2024-05-16T00:00+00:00",
    "@midnight": "2024-05-16T00:00+00:00",
    "@weekly": "2024-05-19T00:00+00:00",
    "@monthly": "2024-06-01T00:00+00:00",
    "@yearly": "2025-01-01T00:00+00:00",
    "@annually": "2025-01-01T00:00+00:00",
}


@pytest.mark.parametrize(("name", "expected"), NICKNAMES.items())
def test_a_nickname(name: str, expected: str) -> None:
    assert shown(rota.Cron(name).next(moment("2024-05-15T10:30+00:00"))) == expected


# How often a schedule fires in a year, by its zone's own calendar: 2025 has 365 days.
YEARS = {
    "Berlin, once a day": (Row("Europe/Berlin", "30 2 * * *", "", "", ""), "+01:00", 365),
    "Berlin, skipped": (Row("Europe/Berlin", "30 2 * * *", "", "", "", gap="skip"), "+01:00", 364),
    "Berlin, second": (Row("Europe/Berlin", "30 2 * * *", "", "", "", repeat="second"), "+01:00", 365),
    "Berlin, both": (Row("Europe/Berlin", "30 2 * * *", "", "", "", repeat="both"), "+01:00", 366),
    "Berlin, wild": (Row("Europe/Berlin", "30 */2 * * *", "", "", ""), "+01:00", 365 * 12),
    "Berlin, every minute": (Row("Europe/Berlin", "* * * * *", "", "", ""), "+01:00", 365 * 24 * 60),
    "Berlin, every second": (Row("Europe/Berlin", "* * * * * *", "", "", ""), "+01:00", 365 * 24 * 60 * 60),
    "New York, both": (Row("America/New_York", "30 1 * * *", "", "", "", repeat="both"), "-05:00", 366),
    "Chatham, quarters from three": (Row("Pacific/Chatham", "*/15 3 * * *", "", "", ""), "+13:45", 365 * 4 - 3 + 3),
    "Lord Howe, every third hour": (Row("Australia/Lord_Howe", "0 */3 * * *", "", "", ""), "+11:00", 365 * 8),
    "Havana, once a day": (Row("America/Havana", "@daily", "", "", ""), "-05:00", 365),
}


@pytest.mark.parametrize(("row", "offset", "expected"), YEARS.values(), ids=YEARS)
def test_the_firings_of_a_year(row: Row, offset: str, expected: int) -> None:
    first, last = moment(f"2025-01-01T00:00{offset}"), moment(f"2026-01-01T00:00{offset}")
    assert row.rule.count(first - TICK, last - TICK) == expected


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Apia", "Africa/Casablanca"])
def test_every_minute_of_all_time_is_counted_at_once(zone: str) -> None:
    first, last = moment("1970-01-01T00:00+00:00"), moment("2199-12-31T23:59:59+00:00")
    minutes = (last - first) // timedelta(minutes=1)
    assert rota.Cron("* * * * *", tz=zone).count(first, last) == minutes


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_a_walk_to_the_end_of_time_ends(zone: str) -> None:
    asked = moment("2199-12-31T21:30+00:00")
    found = [t.astimezone(UTC) for t in rota.Cron("@hourly", tz=zone).instants(asked)]
    assert [shown(t) for t in found] == ["2199-12-31T22:00+00:00", "2199-12-31T23:00+00:00"]


def test_start_and_end_belong_to_the_rule() -> None:
    first, last = moment("2025-01-03T00:00+00:00"), moment("2025-01-05T00:00+00:00")
    rule = rota.Cron("0 */12 * * *", start=first, end=last)
    around = moment("2025-01-01T00:00+00:00"), moment("2025-02-01T00:00+00:00")
    expected = [first + n * timedelta(hours=12) for n in range(5)]
    assert list(rule.instants(around[0])) == expected
    assert rule.upcoming(around[0], 9) == expected
    assert rule.count(*around) == 5
    assert (rule.next(last), rule.previous(first)) == (None, None)
    assert rule.previous(around[1]) == last
