"""`app.schedules.spread` and `rota schedules spread`: what runs next is even over a window, on either store."""

import asyncio
import sys
from collections import Counter
from datetime import datetime, timedelta

import pytest

import rota
from rota import cli
from rota.testing import enqueued, travel

START = datetime.fromisoformat("2027-01-01T00:00:00+00:00")
HOUR = timedelta(hours=1)
ANCHORED = rota.Every("6h", since="finish")


def schedules(app: rota.Rota, count: int, rule: rota.Rule = ANCHORED, tag: str = "feeds") -> list[rota.Schedule]:
    task = app.tasks.get("work") if "work" in app.tasks else app.task(name="work")(work)
    return [rota.Schedule(f"{tag}-{n:04}", task.call(), rule, tags=[tag]) for n in range(count)]


async def work() -> None: ...


async def nexts(app: rota.Rota, tag: str = "feeds") -> dict[str, datetime | None]:
    """Return when each is due next; what is under way has no next."""
    return {each.key: each.next_due for each in await app.schedules.list(tag=tag, limit=1_000)}


def fullest(places: list[datetime], buckets: int) -> int:
    """Return how many places the fullest of so many equal parts of the hour has."""
    return max(Counter((each - START) * buckets // HOUR for each in places).values())


@pytest.mark.parametrize("count", [1, 2, 7, 60, 250])
async def test_no_part_of_the_window_has_more_than_its_share(app: rota.Rota, count: int) -> None:
    async with travel(app, START):
        await app.schedules.put_many(schedules(app, count))
        assert await app.schedules.spread(tag="feeds", window="1h") == count
        places = [each for each in (await nexts(app)).values() if each is not None]
    assert len(places) == count
    assert (min(places), max(places) < START + HOUR) == (START, True)
    for buckets in (1, 2, 3, 4, 6, 12, 60, 3_600):  # whose bounds are whole microseconds
        assert fullest(places, buckets) <= -(-count // buckets), buckets


async def test_what_is_spread_runs_at_its_place_and_once(app: rota.Rota) -> None:
    async with travel(app, START) as time:
        await app.schedules.put_many(schedules(app, 12))
        await app.schedules.spread(tag="feeds", window="1h")
        assert (await time.advance("2h")).succeeded == 12
        started = [run.started_at for run in await enqueued(app, "work")]
    assert started == [START + n * timedelta(minutes=5) for n in range(12)]


async def test_after_that_run_the_interval_counts_again(app: rota.Rota) -> None:
    async with travel(app, START) as time:
        await app.schedules.put_many(schedules(app, 2))
        await app.schedules.spread(tag="feeds", window="1h")
        await time.advance("1h")
        assert list((await nexts(app)).values()) == [START + 6 * HOUR, START + 6.5 * HOUR]


async def test_they_keep_their_order(app: rota.Rota) -> None:
    async with travel(app, START) as time:
        for hours, key in ((3, "a"), (1, "b"), (2, "c")):
            task = app.tasks.get("work") if "work" in app.tasks else app.task(name="work")(work)
            rule = rota.Every(hours * HOUR, since="finish")
            await app.schedules.put(rota.Schedule(key, task.call(), rule, tags=["feeds"]))
        await time.advance("1m")
        await app.schedules.spread(tag="feeds", window="30m")
        found = await nexts(app)
        assert sorted(found, key=lambda key: str(found[key])) == ["b", "c", "a"]


async def test_only_those_are_moved_that_can_be_and_no_place_is_kept_for_the_others(app: rota.Rota) -> None:
    async with travel(app, START, durations={"feeds-0000": "2h", "feeds-0001": "2h"}) as time:
        await app.schedules.put_many(schedules(app, 6))
        await app.schedules.put_many(schedules(app, 1, rota.Cron("0 9 * * *"), tag="cron"))
        await app.schedules.change(prefix="cron", tags=["feeds", "cron"])
        await app.schedules.put_many(schedules(app, 1, tag="others"))
        await time.advance("1m")  # two are under way now
        await app.schedules.pause("feeds-0005")
        before = await nexts(app) | await nexts(app, "others")
        assert await app.schedules.spread(tag="feeds", window="1h") == 3
        after = await nexts(app) | await nexts(app, "others")
    moved = {key: place for key, place in after.items() if place != before[key]}
    minute = START + timedelta(minutes=1)
    assert moved == {f"feeds-{2 + n:04}": minute + n * timedelta(minutes=20) for n in range(3)}


async def test_a_prefix_chooses_too_and_who_and_why_are_kept(app: rota.Rota) -> None:
    async with travel(app, START):
        await app.schedules.put_many(schedules(app, 2))
        assert await app.schedules.spread(prefix="feeds-0001", window="1h", by="ann", note="busy mornings") == 1
        assert await app.schedules.spread(prefix="nobody") == 0
    newest = (await app.schedules.revisions("feeds-0001"))[0]
    assert (newest.what, newest.by, newest.note) == ("spread", "ann", "busy mornings")
    assert [each.what for each in await app.schedules.revisions("feeds-0000")] == ["made"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "does not say which"),
        ({"tag": "a", "prefix": "b"}, "does not say which"),
        ({"tag": "a", "window": 0}, "window: 0 is too short"),
        ({"tag": "a", "window": "wide"}, "window: 'wide' is not a duration"),
        ({"tag": "no tag"}, "tags: 'no tag'"),
        ({"prefix": "no prefix"}, "key: 'no prefix'"),
    ],
)
async def test_what_makes_no_sense_is_refused(app: rota.Rota, options: dict[str, str], problem: str) -> None:
    with pytest.raises(rota.Invalid, match=problem):
        await app.schedules.spread(**options)


def test_the_command_says_how_many_and_refuses_in_one_line(
    store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def made() -> None:
        async with rota.Rota(store) as app:
            await app.schedules.put_many(schedules(app, 3))

    async def places() -> list[datetime | None]:
        async with rota.Rota(store) as app:
            return list((await nexts(app)).values())

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rota", "schedules", "spread", *words, "--store", store])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    asyncio.run(made())
    assert run("--tag", "feeds", "--window", "30m") == (0, "3 schedules are spread over 30m\n", "")
    first, second, third = [each for each in asyncio.run(places()) if each is not None]
    assert (second - first, third - second) == (timedelta(minutes=10), timedelta(minutes=10))
    assert run("--prefix", "none") == (0, "0 schedules are spread over 1h\n", "")
    code, out, err = run("--tag", "feeds", "--window", "wide")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert run("--tag", "a", "--prefix", "b")[0] == 2
