"""`/api/queues`, `/api/workers`, `/api/limits`, `/api/task-types`, `/api/scheduler`, `/api/preview`, on each store."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.server.nouns import Client, ann, made, paged, problem
from tests.stores import until

import rota
from rota import clock
from rota.app import Rota
from rota.tasks import named_call

__all__ = ["ann"]

BROKEN = '{"feed_id": "none", "password": "hunter22"}'


async def test_queues_tell_what_is_in_them_and_who_works_them(ann: Client, app: Rota) -> None:
    for body in ({}, {"delay": "1h"}, {"queue": "slow"}):
        await ann.post("/api/runs", json={"task": "refresh"} | body)
    async with app.running(scheduler=False, queues=["idle"], slots=3) as worker:
        await until(lambda: worker is not None and worker.id)
        found = (await ann.get("/api/queues")).json()["items"]
    feeds, idle, slow = found
    assert [feeds["name"], idle["name"], slow["name"]] == ["feeds", "idle", "slow"]
    assert (feeds["waiting"], feeds["ready"], feeds["due"], feeds["workers"]) == (1, 1, 1, 0)
    assert (idle["workers"], idle["slots"], idle["ready"]) == (1, 3, 0)
    assert await paged(ann, "/api/queues", lambda each: each["name"]) == ["feeds", "slow"]


async def test_a_worker_is_drained_over_http_and_ends_when_its_runs_have(ann: Client, app: Rota) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.task(name="long")
    async def long() -> str:
        begun.set()
        await go_on.wait()
        return "done"

    run = await long.enqueue()
    worker = app.worker(lease="1s")
    work = asyncio.ensure_future(worker.run())
    await begun.wait()
    (before,) = (await ann.get("/api/workers")).json()["items"]
    assert (before["id"], before["draining"], before["running"], before["alive"]) == (worker.id, False, 1, True)
    told = await ann.post(f"/api/workers/{worker.id}/drain")
    assert (told.status_code, told.json()["draining"]) == (202, True)
    await until(lambda: worker._stopping)
    another = await long.enqueue()
    assert (await ann.get(f"/api/workers/{worker.id}")).json()["running"] == 1
    go_on.set()
    await work
    assert (await app.runs.get(run.id)).state == "succeeded"
    assert (await app.runs.get(another.id)).state == "ready"
    assert (await ann.get("/api/workers")).json()["items"] == []
    assert problem(await ann.post(f"/api/workers/{worker.id}/drain"))[0] == 404
    assert problem(await ann.get(f"/api/workers/{worker.id}"))[0] == 404


async def test_limits_are_put_listed_and_removed(ann: Client) -> None:
    put = await ann.put("/api/limits/host:*", json={"at_once": 1, "gap": "1s", "keys_at_once": 3})
    assert put.json() == {"key": "host:*", "at_once": 1, "gap": 1, "keys_at_once": 3, "busy": 0, "waiting": 0}
    for key in ("host:a.example/b", "queue:feeds", "task:refresh"):
        assert (await ann.put(f"/api/limits/{key}", json={"at_once": 2})).status_code == 200
    keys = ["host:*", "host:a.example/b", "queue:feeds", "task:refresh"]
    assert await paged(ann, "/api/limits", lambda each: each["key"]) == keys
    assert (await ann.get("/api/limits/host:a.example/b")).json()["at_once"] == 2
    assert (await ann.delete("/api/limits/host:a.example/b")).status_code == 204
    for answer in (await ann.delete("/api/limits/host:a.example/b"), await ann.get("/api/limits/none")):
        assert problem(answer)[0] == 404
    for wrong in ({}, {"gap": "1s"}, {"at_once": 0}, {"at_once": 10**9}, {"at_once": 1, "gap": "soon"}):
        assert problem(await ann.put("/api/limits/x", json=wrong))[0] == 422
    assert problem(await ann.put("/api/limits/x", json={"keys_at_once": 1}))[0] == 422
    assert problem(await ann.put("/api/limits/a%20b", json={"at_once": 1}))[0] == 422


async def test_task_types_say_what_they_take(ann: Client, app: Rota) -> None:
    for number in range(3):
        app.task(name=f"other-{number}")(nothing())
    assert await paged(ann, "/api/task-types", lambda each: each["name"]) == [
        "other-0",
        "other-1",
        "other-2",
        "refresh",
        "rota.command",
        "rota.http",
    ]
    found = (await ann.get("/api/task-types/refresh")).json()
    assert (found["name"], found["description"]) == ("refresh", "Refresh a feed.")
    assert found["arguments"] == {
        "type": "object",
        "properties": {
            "feed_id": {"type": "integer", "default": 0},
            "password": {"type": "string", "default": ""},
        },
        "required": [],
        "additionalProperties": False,
    }
    assert found["result"] == {"type": "integer"}
    assert (found["options"]["queue"], found["options"]["priority"], found["options"]["timeout"]) == ("feeds", 75, 30)
    assert problem(await ann.get("/api/task-types/os.system"))[0] == 404


def nothing() -> Any:
    def nothing() -> None: ...

    return nothing


async def test_the_status_says_how_the_schedules_are(ann: Client, app: Rota) -> None:
    empty = (await ann.get("/api/scheduler/status")).json()
    numbers = {"total_jobs": 0, "active_checks": 0, "pending_jobs": 0, "concurrent_limit": 0}
    assert empty | {"running": True, "next_run": None, **numbers} == empty
    await made(ann, "a", rule="@daily")
    await made(ann, "b")
    await ann.post("/api/schedules/b/trigger")
    found = (await ann.get("/api/scheduler/status")).json()
    assert (found["total_jobs"], found["pending_jobs"], found["counts"]) == (2, 1, {"active": 2})
    assert found["next_run"] == (await ann.get("/api/schedules/b")).json()["next_due"]
    jobs = (await ann.get("/api/scheduler/jobs")).json()["items"]
    assert [(each["id"], each["name"], each["pending"]) for each in jobs] == [
        ("a", "refresh", False),
        ("b", "refresh", True),
    ]
    assert await paged(ann, "/api/scheduler/jobs", lambda each: each["id"]) == ["a", "b"]
    async with app.running(scheduler=False, queues=["none"], slots=4) as worker:
        await until(lambda: worker is not None and worker.id)
        assert (await ann.get("/api/scheduler/status")).json()["concurrent_limit"] == 4


async def test_everything_is_paused_and_resumed_durably(ann: Client, app: Rota) -> None:
    paused = (await ann.post("/api/scheduler/pause", json={"note": "moving"})).json()
    assert (paused["running"], paused["paused"]["by"], paused["paused"]["note"]) == (False, "ann", "moving")
    assert (await app.schedules.status()).paused is not None
    resumed = (await ann.post("/api/scheduler/resume")).json()
    assert (resumed["running"], resumed["paused"]) == (True, None)


async def test_a_tick_from_outside_fires_and_works_what_is_due(ann: Client) -> None:
    await made(ann, rule={"every": "1h", "since": "success"}, arguments={"feed_id": 5})
    told = (await ann.post("/api/scheduler/tick")).json()
    assert told == {"fired": 1, "outcomes": {"succeeded": 1}, "left": {}, "in_time": True, "ok": True}
    schedule = (await ann.get("/api/schedules/s")).json()
    assert (schedule["run_count"], schedule["last_outcome"], schedule["last_error"]) == (1, "succeeded", None)
    for name in ("last_run", "last_success", "next_run"):
        assert schedule[name] is not None
    for wrong in ({"timeout": "10m"}, {"timeout": 0}, {"slots": 0}, {"queues": []}):
        assert problem(await ann.post("/api/scheduler/tick", json=wrong))[0] == 422


# Preview


async def test_a_preview_says_what_a_rule_means(ann: Client) -> None:
    wanted = {
        "rule": {"cron": "30 2 * * *", "tz": "Europe/Berlin"},
        "after": "2027-03-26T12:00:00Z",
        "count": 3,
    }
    found = (await ann.post("/api/preview", json=wanted)).json()
    assert (found["words"], found["rule_text"]) == (
        "At 02:30, every day, Berlin time",
        "Cron('30 2 * * *', tz='Europe/Berlin')",
    )
    assert [each["words"] for each in found["instants"]] == [
        "Sat 27 Mar 2027 02:30 CET",
        "Sun 28 Mar 2027 03:00 CEST",
        "Mon 29 Mar 2027 02:30 CEST",
    ]
    assert found["clock_changes"][0]["note"] == "02:30 does not exist on Sun 28 Mar 2027; fires at 03:00"
    assert (found["edit"], len(found["busy"])) == (None, 60)
    both = (await ann.post("/api/preview", json={"rule": "0 9 13 * FRI"})).json()
    assert both["notes"] == ["day of month and day of week are both set: it fires when either matches"]


async def test_a_preview_of_an_edit_says_what_it_adds_drops_and_fires_now_and_changes_nothing(ann: Client) -> None:
    before = await made(ann, rule="0 9 * * MON", exclude=["* * 24 12 *"])
    found = (await ann.post("/api/preview", json={"key": "s", "rule": "0 9 * * MON,TUE"})).json()["edit"]
    assert (found["drops"], found["fires_now"], len(found["adds"]) > 10) == ([], False, True)
    fewer = (await ann.post("/api/preview", json={"key": "s", "rule": {"at": "2100-01-01T00:00:00Z"}})).json()["edit"]
    assert (fewer["adds"][-1:], fewer["drops"][0]) == ([], before["next_due"])
    now = (await ann.post("/api/preview", json={"key": "s", "rule": {"every": "1h", "since": "success"}})).json()
    assert (now["edit"]["fires_now"], now["instants"]) == (True, [])
    assert (await ann.get("/api/schedules/s")).json() == before
    assert problem(await ann.post("/api/preview", json={"key": "none", "rule": "@daily"}))[0] == 404


async def test_a_preview_shows_busy_minutes(ann: Client) -> None:
    soon = (clock.now() + timedelta(minutes=30)).replace(microsecond=0)
    for key in ("a", "b"):
        await made(ann, key, rule={"at": soon.isoformat()})
    busy = (await ann.post("/api/preview", json={"rule": "@daily"})).json()["busy"]
    minute = soon.replace(second=0).isoformat().replace("+00:00", "Z")
    assert [each for each in busy if each["count"]] == [{"at": minute, "count": 2}]


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": 101},
        {"count": 0},
        {"after": "9999-01-01T00:00:00Z"},
        {"until": "0001-01-01T00:00:00Z"},
        {"rule": "0 0 30 2 *"},
        {"exclude": ["@daily"] * 101},
        {"exclude": [{"every": "1h", "since": "start"}]},
    ],
)
async def test_a_preview_has_bounds(ann: Client, wrong: dict[str, Any]) -> None:
    assert problem(await ann.post("/api/preview", json={"rule": "@daily"} | wrong))[0] == 422


async def test_what_is_due_next_of_all_schedules_is_one_list(ann: Client) -> None:
    for key, every in (("hourly", "1h"), ("daily", "1d")):
        await made(ann, key, rule={"every": every})
    found = (await ann.get("/api/upcoming", params={"limit": 40})).json()["items"]
    dues = [each["due"] for each in found]
    assert (len(found), dues) == (40, sorted(dues))
    assert {each["key"] for each in found} == {"hourly", "daily"}


async def test_many_are_spread_by_tag(ann: Client) -> None:
    for key in "abc":
        await made(ann, key, rule={"every": "1h", "since": "success"}, tags=["x"])
    assert (await ann.post("/api/schedules/spread", json={"tag": "x", "window": "30m"})).json() == {"count": 3}
    assert (await ann.get("/api/schedules/a/revisions")).json()["items"][0]["by"] == "ann"
    for wrong in ({}, {"tag": "x", "prefix": "a"}, {"tag": "x", "window": "never"}):
        assert problem(await ann.post("/api/schedules/spread", json=wrong))[0] == 422


async def test_the_doctor_says_what_is_wrong_and_no_secret(ann: Client, app: Rota) -> None:
    await ann.post("/api/runs", json={"task": "refresh"})
    found = (await ann.get("/api/doctor")).json()
    assert [each["what"] for each in found if not each["ok"]] == ["queue feeds has 1 ready run and no worker"]
    gone = rota.Schedule("gone", named_call("refresh", BROKEN), rota.Every("1h", since="success"))
    await app.schedules.put(gone)
    await ann.post("/api/scheduler/tick", json={"queues": ["default"]})
    said = (await ann.get("/api/doctor")).text
    assert "schedule gone is parked" in said
    assert "hunter22" not in said


async def test_statistics_tell_how_the_runs_of_a_window_went(ann: Client, app: Rota) -> None:
    empty = (await ann.get("/api/statistics")).json()
    assert set(empty.values()) == {0}
    for feed in (1, 2, 3, -1):
        await ann.post("/api/runs", json={"task": "refresh", "arguments": {"feed_id": feed}})
    await app.tick(queues=["feeds"])
    found = (await ann.get("/api/statistics", params={"window": "15m", "task": "refresh"})).json()
    assert (found["total_checks"], found["successful_checks"], found["failed_checks"]) == (4, 3, 1)
    assert (found["success_rate"], found["checks_per_minute"]) == (75, 4)
    assert found["average_duration_ms"] > 0
    assert (await ann.get("/api/statistics", params={"queue": "none"})).json() == empty
    assert (await ann.get("/api/statistics", params={"schedule": "none"})).json() == empty
    for window in ("8d", "0s", "soon", str(10**12)):
        assert problem(await ann.get("/api/statistics", params={"window": window}))[0] == 422


async def test_troubles_are_listed_until_they_are_over(ann: Client, app: Rota) -> None:
    for key in ("c", "b", "a"):
        await made(ann, key, arguments={"feed_id": -1}, on_failure={"alert_after": 1})
        await ann.post(f"/api/schedules/{key}/trigger")
        await app.tick(queues=["feeds"])
        await app.alerts.check()

    async def found(**query: Any) -> list[tuple[str, str]]:
        return await paged(ann, "/api/alerts", lambda each: (each["subject"], each["kind"]), **query)

    assert await found() == [(f"schedule {key}", "failing") for key in ("a", "b", "c")]
    await ann.delete("/api/schedules/b")
    await app.alerts.check()
    assert [subject for subject, _ in await found()] == ["schedule a", "schedule c"]
    assert len(await found(over=True)) == 3
