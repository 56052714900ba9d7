"""`app.runs.hours` and `rota runs hours`: what ended, by the hour."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

import rota
from rota.cli import app as cli
from rota.testing import travel

FIRST = datetime(2027, 3, 1, 10, tzinfo=UTC)


@pytest.fixture
async def worked(store: str) -> str:
    """A store in which one run succeeded in one hour, and one failed in the next."""
    app = rota.Rota(store)

    @app.task(name="good")
    def good() -> None: ...

    @app.task(name="bad", queue="mail")
    def bad() -> None:
        raise RuntimeError("it broke")

    async with travel(app, FIRST, store=store) as time:
        await good.enqueue()
        await time.advance("1h")
        await bad.enqueue()
        await time.advance("1m")
        assert [each.task for each in await app.runs.hours()] == ["good", "bad"]
    return store


async def test_hours_are_asked_for_by_time_task_and_queue(worked: str) -> None:
    async with rota.Rota(worked) as app:
        found = await app.runs.hours(FIRST, FIRST + timedelta(hours=2))
        assert [(each.hour, each.task, each.queue, each.state, each.runs) for each in found] == [
            (FIRST, "good", "default", "succeeded", 1),
            (FIRST + timedelta(hours=1), "bad", "mail", "failed", 1),
        ]
        assert await app.runs.hours(FIRST, FIRST + timedelta(hours=1)) == found[:1]
        assert await app.runs.hours(FIRST + timedelta(minutes=59), task="good") == found[:1]  # whole hours
        assert await app.runs.hours(FIRST, queue="mail") == found[1:]
        with pytest.raises(rota.Invalid, match="task"):
            await app.runs.hours(task="a\0b")


async def test_the_command_shows_hours(worked: str) -> None:
    given = ["runs", "hours", "--store", worked, "--start", "2027-03-01T10:00Z"]
    shown = await asyncio.to_thread(CliRunner().invoke, cli, given)
    assert "2027-03-01 11:00 UTC" in shown.stdout
    assert "failed" in shown.stdout
    as_json = await asyncio.to_thread(CliRunner().invoke, cli, [*given, "--task", "good", "--json"])
    listed = json.loads(as_json.stdout)
    assert [(each["hour"], each["runs"], each["busy"]) for each in listed] == [(FIRST.isoformat(), 1, 0.0)]
