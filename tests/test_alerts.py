"""Alerts: each trouble is told once, and once when it is over, whatever dies and however many look."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.scheduling import Bench, at, made
from tests.stores import SECOND, START, Clock, ask
from typer.testing import CliRunner

import rota
from rota import notify
from rota.alerts import Alerts, Watch, by_notify
from rota.app import Rota
from rota.cli import app as cli
from rota.db.database import Database
from rota.doctor import examine
from rota.errors import Invalid, NotifyFailed, StoreUnavailable
from rota.store.troubles import is_overdue
from rota.times import Cron, Every, OnFailure
from rota.times.policies import Policies
from rota.times.rule import Rule


class Ear:
    """Hears what is told, unless it is told not to."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.texts: list[str] = []
        self.ids: list[str] = []
        self.deaf = False

    async def __call__(self, title: str, text: str, *, id: str) -> None:  # noqa: A002
        self.ids.append(id)
        if self.deaf:
            raise StoreUnavailable("token=canary")
        self.heard.append(title.removeprefix("Rota news: "))
        self.texts.append(text)


@pytest.fixture
def bench(db: Database, clock: Clock) -> Bench:
    return Bench(db, clock)


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
def alerts(db: Database, ear: Ear) -> Alerts:
    return Alerts(db, "news", Watch(ear, 3))


async def fail(bench: Bench, times: int, start: int = 1) -> None:
    """Let the schedule `s` run and fail, minute after minute."""
    for number in range(start, start + times):
        await bench.go(60 * number)
        await bench.work("failed")


async def watched(bench: Bench) -> None:
    """Have the schedule that looks for troubles in the store."""
    app = rota.Rota("sqlite://")
    app.watch()
    await bench.facade.put(made("rota.alerts", Every("1m"), call=app.declared[0].call))


FAILED = "schedule s failed 3 times in a row"


async def test_a_schedule_that_fails_is_told_once_and_once_when_it_is_over(
    bench: Bench, alerts: Alerts, ear: Ear
) -> None:
    await bench.put()
    await fail(bench, 2)
    assert await alerts.check() == 0
    await fail(bench, 1, start=3)
    assert await alerts.check() == 1
    await fail(bench, 4, start=4)
    for _ in range(3):
        assert await alerts.check() == 0
    assert ear.heard == [FAILED]
    await bench.go(60 * 8)
    await bench.work("succeeded")
    await alerts.check()
    await alerts.check()
    assert ear.heard == [FAILED, "over: schedule s failed more than 3 times in a row"]
    (found,) = await alerts.list(over=True)
    assert (found.subject, found.kind, found.told, found.over is None) == ("schedule s", "failing", True, False)
    assert await alerts.list() == []


async def test_a_schedule_says_itself_after_how_many_failures(bench: Bench, alerts: Alerts, ear: Ear) -> None:
    await bench.put(on_failure=OnFailure(alert_after=1))
    await fail(bench, 1)
    await alerts.check()
    assert ear.heard == ["schedule s failed 1 times in a row"]


async def test_a_schedule_that_pauses_itself_stays_one_trouble_until_it_goes_on(
    bench: Bench, alerts: Alerts, ear: Ear
) -> None:
    await bench.put(on_failure=OnFailure(pause_after=4))
    await fail(bench, 3)
    await alerts.check()
    await fail(bench, 1, start=4)
    await alerts.check()
    assert [each.said for each in await alerts.list()] == ["schedule s paused itself: it failed 4 times in a row"]
    await bench.facade.resume("s")
    await alerts.check()
    assert ear.heard == [FAILED, "over: schedule s paused itself: it failed 4 times in a row"]


async def test_a_parked_schedule_is_told(bench: Bench, alerts: Alerts, ear: Ear) -> None:
    await bench.put()
    await ask(bench.db, "UPDATE rota_schedules SET state = 'parked', hold_note = 'password=canary', wake = NULL")
    await alerts.check()
    assert ear.heard == ["schedule s is parked: password=…"]


async def test_a_schedule_that_is_not_fired_is_overdue_and_then_over(bench: Bench, alerts: Alerts, ear: Ear) -> None:
    await bench.put()
    bench.clock.advance(170)
    await alerts.check()
    assert ear.heard == []
    bench.clock.advance(30)
    await alerts.check()
    await bench.fire()
    await alerts.check()
    assert ear.heard == ["schedule s had no success for twice its interval"]
    await bench.work()
    await alerts.check()
    assert ear.heard[1:] == ["over: schedule s had no success for twice its interval"]


async def test_a_run_that_never_ends_makes_its_schedule_overdue(bench: Bench, alerts: Alerts, ear: Ear) -> None:
    await bench.put()
    await bench.go(60)
    (run,) = await bench.claim()
    for second in (120, 180, 240):
        await bench.go(second)
    await alerts.check()
    assert ear.heard == ["schedule s had no success for twice its interval"]
    await bench.end(run)
    await alerts.check()
    assert len(ear.heard) == 2


async def test_a_schedule_that_was_paused_is_not_overdue_when_it_goes_on(
    bench: Bench, alerts: Alerts, ear: Ear
) -> None:
    await bench.put("s")
    await bench.put("until")
    await bench.facade.pause("s")
    await bench.facade.pause("until", until=at(3_600))
    await bench.go(3_601)
    await bench.facade.resume("s")
    await bench.go(3_661)
    await bench.work("cancelled")
    await alerts.check()
    assert ear.heard == []
    await bench.go(3_601 + 200)
    await bench.work("cancelled")
    await alerts.check()
    assert len(ear.heard) == 1


async def test_while_all_is_paused_nothing_becomes_overdue(bench: Bench, alerts: Alerts, ear: Ear) -> None:
    await bench.put()
    await bench.facade.pause_all(paused=True, note=None, by=None)
    bench.clock.advance(3_600)
    await alerts.check()
    await bench.facade.pause_all(paused=False, note=None, by=None)
    await alerts.check()
    assert ear.heard == []


def micro(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


@pytest.mark.parametrize(
    ("rule", "policies", "since", "overdue_after"),
    [
        (Every("1h", since="success"), Policies(), "2027-03-01T10:00", "2027-03-01T12:01"),
        (Cron("0 * * * *"), Policies(), "2027-03-01T10:00", "2027-03-01T12:01"),
        (Cron("0 9 * * MON-FRI"), Policies(), "2027-03-05T09:01", "2027-03-09T09:01"),
        (Every("1h"), Policies(exclude=Cron("* * * * SAT,SUN")), "2027-03-05T23:00", "2027-03-08T01:01"),
        (Every("1h"), Policies(spread="30m"), "2027-03-01T10:00", "2027-03-01T12:31"),
    ],
)
def test_overdue_is_what_had_no_success_for_twice_its_interval_as_its_rule_counts(
    rule: Rule, policies: Policies, since: str, overdue_after: str
) -> None:
    row = {"created_at": 0, "succeeded": micro(since), "average": None, "rule": str(rule)}
    end = micro(overdue_after)
    assert [is_overdue(row, policies, now, None) for now in (end, end + 1)] == [False, True]


async def test_a_rule_that_ends_is_never_overdue(bench: Bench, alerts: Alerts, ear: Ear) -> None:
    await bench.put("once", rota.At([datetime.fromtimestamp(START / SECOND + 60, UTC)]))
    bench.clock.advance(86_400)
    await alerts.check()
    assert ear.heard == []


async def test_a_worker_that_went_silent_is_told_until_another_takes_its_place(
    bench: Bench, alerts: Alerts, ear: Ear
) -> None:
    await watched(bench)
    await bench.enter("first")
    bench.clock.advance(20)
    await bench.enter("second")
    bench.clock.advance(20)
    await bench.db.write(bench.workers.sweep)
    await alerts.check()
    assert ear.heard == ["worker first went silent"]
    await bench.enter("third")
    await alerts.check()
    await alerts.check()
    assert ear.heard[1:] == ["over: worker first went silent"]


async def test_a_silent_worker_that_nobody_swept_is_told_too_and_forgotten_after_a_day(
    bench: Bench, alerts: Alerts, ear: Ear
) -> None:
    await watched(bench)
    await bench.enter()
    bench.clock.advance(31)
    await alerts.check()
    await bench.db.write(bench.workers.sweep)
    bench.clock.advance(86_401)
    await ask(bench.db, "DELETE FROM rota_schedules")
    await alerts.check()
    assert ear.heard == ["worker w went silent", "over: worker w went silent"]


async def test_where_nobody_watches_a_lost_worker_leaves_nothing_behind(bench: Bench, alerts: Alerts) -> None:
    await bench.enter()
    bench.clock.advance(31)
    await bench.db.write(bench.workers.sweep)
    assert await alerts.list(over=True) == []


async def test_what_could_not_be_told_is_tried_again_with_the_same_id(
    bench: Bench, alerts: Alerts, ear: Ear, caplog: pytest.LogCaptureFixture
) -> None:
    await bench.put()
    await fail(bench, 3)
    ear.deaf = True
    assert await alerts.check() == 0
    assert [each.told for each in await alerts.list()] == [False]
    ear.deaf = False
    assert await alerts.check() == 1
    assert ear.heard == [FAILED]
    assert len(set(ear.ids)) == 1
    assert "canary" not in caplog.text


async def test_of_many_that_look_at_once_one_tells(bench: Bench, db: Database, ear: Ear) -> None:
    await bench.put()
    await fail(bench, 3)
    several = [Alerts(db, "news", Watch(ear, 3)) for _ in range(8)]
    assert sum(await asyncio.gather(*(each.check() for each in several))) == 1
    assert ear.heard == [FAILED]


async def test_what_a_process_was_telling_when_it_died_is_told_by_another_later(
    bench: Bench, alerts: Alerts, ear: Ear
) -> None:
    await bench.put()
    await fail(bench, 3)
    await bench.db.write(lambda: alerts._store.look(3))
    assert len(await bench.db.write(alerts._store.claim)) == 1  # and dies
    bench.clock.advance(10)
    assert await alerts.check() == 0
    bench.clock.advance(300)
    assert await alerts.check() == 1
    assert ear.heard == [FAILED]


async def test_a_trouble_that_is_over_before_anybody_heard_is_told_to_nobody(
    bench: Bench, alerts: Alerts, ear: Ear
) -> None:
    await bench.put()
    await fail(bench, 3)
    ear.deaf = True
    await alerts.check()
    ear.deaf = False
    await bench.go(240)
    await bench.work()
    assert await alerts.check() == 0
    assert ear.heard == []


async def test_a_trouble_that_comes_back_before_its_end_was_told_never_ended(
    bench: Bench, alerts: Alerts, ear: Ear
) -> None:
    await bench.put(on_failure=OnFailure(alert_after=1))
    await fail(bench, 1)
    await alerts.check()
    ear.deaf = True
    await bench.go(120)
    await bench.work()
    await alerts.check()
    await fail(bench, 1, start=3)
    ear.deaf = False
    await alerts.check()
    assert len(ear.heard) == 1
    assert len(await alerts.list()) == 1


async def test_many_troubles_are_one_message(bench: Bench, alerts: Alerts, ear: Ear) -> None:
    await bench.facade.put_many([made(f"s{number:02}") for number in range(60)])
    bench.clock.advance(3_600)
    assert await alerts.check() == 2
    assert ear.heard[0].startswith("50 messages, the first: schedule s00 had")
    assert sum(len([line for line in text.splitlines() if line.startswith("schedule")]) for text in ear.texts) == 60


async def test_a_watch_is_a_schedule_of_the_app_and_outlives_restarts(app: Rota) -> None:
    told = asyncio.Event()

    async def tell(title: str, text: str, *, id: str) -> None:  # noqa: A002
        assert (title, "schedule broken" in text, bool(id)) == ("Rota rota: schedule broken is parked", True, True)
        told.set()

    @app.task
    async def work() -> None: ...

    await app.schedules.put(rota.Schedule("broken", work.call(), Every("1h")))
    await ask(app.database, "UPDATE rota_schedules SET state = 'parked', task = 'gone' WHERE key = 'broken'")
    app.watch(tell, every="1s")
    async with app.running():
        await told.wait()
    assert (await app.schedules.get("rota.alerts")).declared
    with pytest.raises(Invalid, match="failures"):
        app.watch(tell, failures=0)


async def test_where_targets_are_named_an_app_watches_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Rota("sqlite://").declared == []
    monkeypatch.setenv("ROTA_NOTIFY", "ntfys://example.org/topic")
    assert [each.key for each in Rota("sqlite://").declared] == ["rota.alerts"]


async def test_who_was_told_is_not_told_again_where_others_were_not(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    async def send(title: str, text: str, *, to: Any = None, id: str) -> None:  # noqa: A002
        told.append(to)
        if to is None:
            raise NotifyFailed(["b: away"], ["b"], 2)

    monkeypatch.setattr(notify, "send", send)
    monkeypatch.setattr("rota.alerts._AGAIN_SECONDS", (0,))
    await by_notify("t", "x", id="1")
    assert told == [None, ["b"]]

    async def none(title: str, text: str, *, to: Any = None, id: str) -> None:  # noqa: A002
        raise NotifyFailed(["a: away"], ["a"], 1)

    monkeypatch.setattr(notify, "send", none)
    with pytest.raises(NotifyFailed):
        await by_notify("t", "x", id="1")


async def test_the_doctor_names_what_is_overdue(bench: Bench, alerts: Alerts) -> None:
    await bench.put()
    await bench.go(60)
    await bench.claim()
    await bench.go(240)
    await alerts.check()
    app = Rota("sqlite://")
    app.move(bench.db)
    said = [each.line() for each in await examine(app)]
    assert any(each.startswith("schedule s had no success for twice its interval, since 2027-") for each in said)


def test_the_command_shows_them(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/rota.db"

    async def make() -> None:
        async with Rota(url) as app:
            for subject, over in (("worker w", "NULL"), ("schedule s", "120000000")):
                row = f"('{subject}', 60000000, 'silent', '{subject} \x1b', {over}, 1, NULL, 1, 1)"
                await ask(app.database, f"INSERT INTO rota_troubles VALUES {row}")

    asyncio.run(make())
    shown = CliRunner().invoke(cli, ["alerts", "--store", url]).output.splitlines()
    assert shown == [
        "since             over  kind    told  what",
        "1970-01-01 00:01        silent  yes   worker w \\x1b",
    ]
    both = json.loads(CliRunner().invoke(cli, ["alerts", "--store", url, "--over", "--json"]).output)
    assert [(each["subject"], each["over"], each["told"]) for each in both] == [
        ("schedule s", "1970-01-01T00:02:00+00:00", False),
        ("worker w", None, True),
    ]
