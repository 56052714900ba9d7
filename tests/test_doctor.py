"""`rota doctor` finds what is wrong with schedules, and says what to do: on either store."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import rota
from rota import cli
from rota.clock import VirtualClock
from rota.doctor import Finding, examine
from rota.testing import travel
from rota.times.moments import SECOND, instant

START = "2027-01-01T00:00Z"
MINUTELY = rota.Every("1m")
WELL = [
    "the store answers, and its tables are up to date",
    "workers alive: 0; no queue is behind, no schedule is overdue",
]


def bad(found: list[Finding]) -> list[Finding]:
    return [each for each in found if not each.ok]


async def lines(app: rota.Rota) -> list[str]:
    return [each.line() for each in bad(await examine(app))]


def elsewhere() -> rota.Call[None]:
    """Return the call of a task that the app under test does not know."""

    @rota.Rota("sqlite://").task(name="gone")
    def gone(n: int) -> None: ...

    return gone.call(1)


def at(app: rota.Rota) -> VirtualClock:
    """Let the store of an app live by a clock that the test turns."""
    clock = VirtualClock(instant(START))
    app.database.live_by(clock)
    return clock


async def test_where_nothing_is_wrong_it_says_so(app: rota.Rota) -> None:
    await app.schedules.put(rota.Schedule("s", elsewhere(), MINUTELY))
    assert [each.what for each in await examine(app)] == WELL


async def test_a_minute_after_it_was_due_a_schedule_is_overdue_and_no_scheduler_is_alive(app: rota.Rota) -> None:
    clock = at(app)
    for key in ("a", "b"):
        await app.schedules.put(rota.Schedule(key, elsewhere(), MINUTELY))
    clock.set(clock.at + 119 * SECOND)  # due for 59 s
    assert await lines(app) == []
    clock.set(clock.at + 1 * SECOND)
    assert await lines(app) == [
        "2 schedules overdue, the oldest for 1 min: no scheduler fires them; start one: rota scheduler MODULE:APP"
    ]


async def test_everything_paused_is_said_with_who_and_why_and_then_nothing_is_overdue(app: rota.Rota) -> None:
    clock = at(app)
    await app.schedules.put(rota.Schedule("a", elsewhere(), MINUTELY))
    await app.pause(by="ann", note="moving")
    clock.set(clock.at + 3_600 * SECOND)
    assert await lines(app) == ["all schedules are paused by ann: moving: let them go on: rota schedules resume --all"]
    await app.resume()
    assert "let them go on" not in "".join(await lines(app))


async def test_an_unknown_task_is_tried_ten_times_in_twenty_minutes_before_its_schedule_is_parked(
    app: rota.Rota,
) -> None:
    await app.schedules.put(rota.Schedule("a", elsewhere(), rota.Every("1h", since="finish")))
    async with travel(app, START) as time:
        assert (await time.advance("18m")).retry == 9
        assert (await app.schedules.get("a")).held is None
        assert (await time.advance("5m")).failed == 1
        assert (await app.schedules.get("a")).state == "parked"
    assert (await app.runs.get(1)).attempt == 10


async def test_arguments_that_are_not_taken_park_a_schedule_at_the_first_try(app: rota.Rota) -> None:
    await app.schedules.put(rota.Schedule("a", elsewhere(), rota.Every("1h", since="finish")))

    @app.task(name="gone")
    def gone(n: int, more: int) -> None: ...

    async with travel(app, START) as time:
        await time.advance("1s")
    assert ((await app.schedules.get("a")).state, (await app.runs.get(1)).attempt) == ("parked", 1)


async def test_what_the_doctor_says_about_a_parked_schedule_repairs_it(app: rota.Rota) -> None:
    await app.schedules.put(rota.Schedule("a", elsewhere(), rota.Every("1h", since="finish")))
    async with travel(app, START) as time:
        await time.advance("30m")
        assert await lines(app) == [
            (
                'schedule a is parked: run 1 could not be called: UnknownTask, task gone with {"n":1}: '
                "bring the task back and restart a scheduler of its app; or name another and go on: "
                "rota schedules change a --task NAME --args JSON --app MODULE:APP; rota schedules resume a"
            )
        ]

        @app.task(name="here")
        def here() -> None: ...

        await app.schedules.change("a", call=here.call())
        await app.schedules.resume("a")
        assert await lines(app) == []
        assert (await time.advance("2h")).succeeded >= 1


async def test_a_parked_schedule_goes_on_when_its_task_is_back_and_a_scheduler_restarts(app: rota.Rota) -> None:
    await app.schedules.put(rota.Schedule("a", elsewhere(), rota.Every("1h", since="finish")))
    async with travel(app, START) as time:
        await time.advance("30m")

        @app.task(name="gone")
        def gone(n: int) -> None: ...

        await app.put_declared()
        assert await lines(app) == []
        assert (await time.advance("2h")).succeeded >= 1


async def test_three_failures_in_a_row_are_said_with_the_last_error(app: rota.Rota) -> None:
    @app.task(name="work")
    def work() -> None: ...

    async with travel(app, START) as time:
        await app.schedules.put(rota.Schedule("a", work.call(), MINUTELY))
        time.fail(work, times=4, error=ValueError("no\nsecond line"))
        await time.advance("2m")
        assert await lines(app) == []
        await time.advance("2m")
        assert await lines(app) == [
            "schedule a failed 4 times in a row, the last time with ValueError: no: see why: rota schedules firings a"
        ]
        await time.advance("1m")
        assert await lines(app) == []


async def test_a_schedule_that_paused_itself_after_failures_is_said(app: rota.Rota) -> None:
    @app.task(name="work")
    def work() -> None: ...

    policy = rota.OnFailure(pause_after=2)
    await app.schedules.put(rota.Schedule("a", work.call(), MINUTELY, on_failure=policy))
    await app.schedules.put(rota.Schedule("b", work.call(), MINUTELY))
    async with travel(app, START) as time:
        for key in ("a", "b"):
            time.fail(key, times=5)
        await time.advance("2m")
        await app.schedules.pause("b", by="ann")  # she knows
        assert await lines(app) == [
            (
                "schedule a paused itself: it failed 2 times in a row: see why: rota schedules firings a; "
                "then let it go on: rota schedules resume a"
            )
        ]
        await app.schedules.resume("a")
        assert await lines(app) == []


async def test_of_many_ten_are_named_and_the_others_counted(app: rota.Rota) -> None:
    @app.task(name="work")
    def work() -> None: ...

    await app.schedules.put_many(rota.Schedule(f"s{n:02}", work.call(), MINUTELY) for n in range(12))
    async with travel(app, START) as time:
        time.fail(work, times=1_000)
        await time.advance("3m")
        said = await lines(app)
    assert [line.split()[1] for line in said[:10]] == [f"s{n:02}" for n in range(10)]
    assert said[10:] == ["2 more schedules failing: see them: rota schedules list --state active"]


async def test_a_queue_with_ready_runs_and_no_worker_is_said(app: rota.Rota) -> None:
    @app.task(queue="mail")
    def work() -> None: ...

    await work.enqueue()
    assert await lines(app) == [
        "queue mail has 1 ready run and no worker: start one: rota worker MODULE:APP --queue mail"
    ]


def test_the_command_shows_findings_as_lines_or_json_and_exits_with_1(
    store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["rota", *words, "--store", store])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        return int(stopped.value.code or 0), capsys.readouterr().out

    run("migrate")
    assert run("doctor") == (0, "".join(f"ok  {line}\n" for line in WELL))
    run("schedules", "pause", "--all", "--by", "ann")
    code, out = run("doctor")
    assert (code, out.splitlines()[1]) == (
        1,
        "BAD all schedules are paused by ann: let them go on: rota schedules resume --all",
    )
    code, out = run("doctor", "--json")
    found: list[dict[str, Any]] = json.loads(out)
    assert (code, found[0]["ok"]) == (1, True)
    assert found[1] == {
        "ok": False,
        "what": "all schedules are paused by ann",
        "advice": "let them go on: rota schedules resume --all",
    }


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["rota", "doctor", "--store", f"sqlite:///{tmp_path}/none.db"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 1
    assert list(tmp_path.iterdir()) == []
