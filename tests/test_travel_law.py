"""Two tellings of one story: what `simulate` says would come is what the engine does by virtual time."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

import rota

START = datetime(2027, 3, 27, tzinfo=UTC)
Outage = tuple[timedelta, timedelta]
Told = list[tuple[str, datetime, str | None, datetime | None, int]]

minutes = st.integers(1, 100).map(lambda each: timedelta(minutes=each))
rules = st.one_of(
    st.sampled_from(["* * * * *", "*/5 * * * *", "7,8,40 * * * *", "0 */2 * * *", "30 1-3 * * *"]).map(
        lambda text: rota.Cron(text, tz="Europe/Berlin")
    ),
    st.tuples(minutes, st.sampled_from(["due", "success", "finish", "start"])).map(
        lambda each: rota.Every(each[0], since=each[1])
    ),
)
policies = st.fixed_dictionaries(
    {
        "missed": st.sampled_from(["latest", "all", "none"]),
        "max_missed": st.integers(1, 5),
        "grace": st.none() | minutes,
        "spread": st.sampled_from(["0s", "90s", "1h"]),
        "jitter": st.sampled_from(["0s", "0s", "3m"]),
        "max_runs": st.none() | st.integers(1, 8),
        "exclude": st.sampled_from([(), (rota.Cron("*/3 * * * *"),), (rota.Cron("* 2 * * *"),)]),
    }
)
overlaps = st.one_of(
    st.sampled_from(["skip", "queue_one", "queue_all", "cancel_running"]).map(lambda each: {"overlap": each}),
    st.integers(1, 3).map(lambda each: {"overlap": "allow", "max_running": each}),
)
lengths = st.sampled_from(["0s", "0s", "20s", "60s", "7m", "100m", "5h"])
outages = st.lists(st.tuples(minutes, minutes), max_size=2)


async def lived(schedule: rota.Schedule, app: rota.Rota, hours: int, down: Sequence[Outage], takes: str) -> Told:
    end = START + timedelta(hours=hours)
    app.declare(schedule)
    async with rota.testing.travel(app, start=START, durations={schedule.key: takes}) as time:
        for before, length in down:
            await time.advance(before)
            await time.down(length)
        if time.now < end:
            await time.travel_to(end)
        found: list[rota.FiringState] = []
        while page := await app.schedules.firings(schedule.key, before=found[-1].due if found else None, limit=1000):
            found += page
        return sorted(((schedule.key, each.due, each.reason, each.finished_at, each.count) for each in found), key=repr)


@settings(max_examples=25)
@given(rules, policies, overlaps, lengths, outages, st.integers(1, 8))
def test_what_is_simulated_is_what_happens(
    rule: rota.Rule, policy: dict[str, object], overlap: dict[str, object], takes: str, down: list[Outage], hours: int
) -> None:
    app = rota.Rota("sqlite://")

    @app.task
    async def work() -> None: ...

    schedule = rota.Schedule("one", work.call(), rule, **policy, **overlap)  # type: ignore[arg-type]
    at, spans = START, []
    for before, length in down:
        spans.append((at + before, at + before + length))
        at += before + length
    end = max(at, START + timedelta(hours=hours))
    said = rota.simulate(schedule, START, end, outages=spans, durations={"one": takes})
    told: Told = [(each.key, each.due, each.reason, each.ended, each.count) for each in said]
    assert asyncio.run(lived(schedule, app, hours, down, takes)) == sorted(told, key=repr)
