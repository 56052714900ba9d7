"""`/api/runs`, `/api/firings`: work that is made, found, cancelled and tried again over HTTP, on each store."""

import logging
from typing import Any

import pytest
from tests.server.nouns import Client, ann, made, paged, problem

from rota.app import Rota

__all__ = ["ann"]


async def enqueued(ann: Client, **more: Any) -> dict[str, Any]:
    answer = await ann.post("/api/runs", json={"task": "refresh"} | more)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_run_is_made_as_its_task_and_its_maker_say(ann: Client) -> None:
    plain = await enqueued(ann, arguments={"feed_id": 42})
    assert (plain["state"], plain["queue"], plain["priority"], plain["arguments"]) == (
        "ready",
        "feeds",
        75,
        {"feed_id": 42},
    )
    other = await enqueued(ann, delay="5m", priority=3, queue="slow", unique="feed-42", limits=["host:example.org"])
    assert (other["state"], other["queue"], other["priority"], other["limits"]) == (
        "waiting",
        "slow",
        3,
        ["host:example.org"],
    )
    again = await enqueued(ann, unique="feed-42")
    assert (again["id"], again["created"], other["created"]) == (other["id"], False, True)
    later = await enqueued(ann, at="2100-01-01T00:00:00Z")
    assert later["due"] == "2100-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"task": "os.system"}, "is not registered here"),
        ({"task": "refrsh"}, "is it refresh?"),
        ({"arguments": {"feed_id": "x"}}, "refresh(feed_id): 'x' does not fit int"),
        ({"arguments": {"colour": 1}}, "'colour' is not expected"),
        ({"arguments": [1]}, "dictionary"),
        ({"delay": "5m", "at": "2100-01-01T00:00:00Z"}, "use delay= or at=, not both"),
        ({"delay": -1}, "greater than or equal to 0"),
        ({"priority": 10**9}, "priority"),
        ({"unique_for": "1h"}, "has no key"),
        ({"unique": ""}, "at least 1"),
        ({"unique": "a\0b"}, "pattern"),
        ({"limits": ["a"] * 6}, "at most 5"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_what_is_wrong_is_refused_with_the_reason_and_nothing_is_made(
    ann: Client, body: dict[str, Any], wrong: str
) -> None:
    status, said = problem(await ann.post("/api/runs", json={"task": "refresh"} | body))
    assert status == 422
    assert wrong in said
    assert (await ann.get("/api/runs")).json()["items"] == []


async def test_asking_again_with_the_same_key_makes_one_run(ann: Client) -> None:
    sent = {"json": {"task": "refresh", "arguments": {"feed_id": 1}}, "headers": {"Idempotency-Key": "once"}}
    first, second = [await ann.post("/api/runs", **sent) for _ in range(2)]  # type: ignore[arg-type]
    assert first.json()["id"] == second.json()["id"]
    assert first.headers["location"] == f"/api/runs/{first.json()['id']}"
    assert len((await ann.get("/api/runs")).json()["items"]) == 1


async def test_runs_are_listed_in_pages_and_by_what_people_look_for(ann: Client, app: Rota) -> None:
    ids = [(await enqueued(ann, arguments={"feed_id": n}))["id"] for n in (0, -1, 2)]
    await made(ann)
    await ann.post("/api/schedules/s/trigger")
    assert (await ann.post("/api/scheduler/tick", json={"queues": ["feeds"]})).json()["outcomes"] == {
        "succeeded": 3,
        "failed": 1,
    }
    scheduled = (await ann.get("/api/runs", params={"schedule": "s"})).json()["items"][0]
    assert (scheduled["schedule_id"], scheduled["trigger_type"], scheduled["state"]) == ("s", "manual", "succeeded")
    assert scheduled["scheduled_at"] == scheduled["due"]

    async def found(**query: Any) -> list[int]:
        return await paged(ann, "/api/runs", lambda each: each["id"], **query)

    assert await found() == [scheduled["id"], *ids[::-1]]
    assert await found(state="failed") == await found(text="NO SUCH FEED") == [ids[1]]
    assert await found(task="refresh", queue="feeds", state="succeeded") == [scheduled["id"], ids[2], ids[0]]
    made_at = (await ann.get(f"/api/runs/{ids[1]}")).json()["created_at"]
    assert await found(until=made_at) == [ids[0]]
    assert await found(since=made_at, state="succeeded") == [scheduled["id"], ids[2]]
    assert await found(worker="nobody") == []
    for wrong in ({"state": "lost"}, {"since": "yesterday"}, {"since": "2026-01-01T00:00:00"}, {"text": "x" * 201}):
        assert problem(await ann.get("/api/runs", params=wrong))[0] == 422


async def test_a_run_is_shown_with_its_attempts_and_what_it_waits_for(ann: Client) -> None:
    run = await enqueued(ann, arguments={"feed_id": -1})
    await ann.post("/api/scheduler/tick", json={"queues": ["feeds"]})
    found = (await ann.get(f"/api/runs/{run['id']}")).json()
    assert (found["state"], found["error"]["kind"], found["attempt"]) == ("failed", "ValueError", 1)
    assert [(each["number"], each["outcome"]) for each in found["attempts"]] == [(1, "failed")]
    assert (found["result"], found["waits_for"]) == (None, None)
    assert problem(await ann.get("/api/runs/999"))[0] == 404
    assert problem(await ann.get(f"/api/runs/{2**63}"))[0] == 422


async def test_a_run_is_cancelled_and_tried_again(ann: Client) -> None:
    run = (await enqueued(ann))["id"]
    cancelled = (await ann.post(f"/api/runs/{run}/cancel", json={"note": "not today"})).json()
    assert (cancelled["state"], cancelled["cancelled"]) == ("cancelled", "not today")
    assert (await ann.post(f"/api/runs/{run}/cancel")).json()["state"] == "cancelled"
    assert (await ann.post(f"/api/runs/{run}/retry")).json()["state"] == "ready"
    assert problem(await ann.post(f"/api/runs/{run}/retry"))[0] == 409
    assert problem(await ann.post("/api/runs/999/retry"))[0] == 404
    assert problem(await ann.post("/api/runs/999/cancel"))[0] == 404


async def test_of_many_runs_each_is_answered_for_itself(ann: Client) -> None:
    first, second = [(await enqueued(ann))["id"] for _ in range(2)]
    operations = [
        {"op": "cancel", "id": first, "note": "both"},
        {"op": "retry", "id": second},
        {"op": "retry", "id": first},
        {"op": "cancel", "id": 999},
    ]
    told = (await ann.post("/api/runs/bulk", json={"operations": operations})).json()
    statuses = [each["problem"]["status"] if each["problem"] else 200 for each in told["results"]]
    assert (statuses, told["done"], told["failed"]) == ([200, 409, 200, 404], 2, 2)
    many = [{"op": "cancel", "id": first}] * 1_001
    assert problem(await ann.post("/api/runs/bulk", json={"operations": many}))[0] == 422


async def test_firings_of_all_schedules_are_one_list(ann: Client) -> None:
    for key in ("a", "b"):
        await made(ann, key, rule={"every": "1h", "since": "finish"})
        await ann.post(f"/api/schedules/{key}/trigger")
    await made(ann, "c", rule={"every": "1s"})
    await ann.post("/api/schedules/c/pause")

    async def found(**query: Any) -> list[tuple[str, str | None]]:
        return await paged(ann, "/api/firings", lambda each: (each["schedule_id"], each["reason"]), **query)

    assert await found() == await found(ran=True) == [("b", None), ("a", None)]
    assert await found(schedule="a") == [("a", None)]
    assert await found(ran=False) == await found(reason="overlap") == []
    assert problem(await ann.get("/api/firings", params={"reason": "bored"}))[0] == 422


async def test_hours_tell_how_runs_went(ann: Client, app: Rota) -> None:
    for each in (1, 2, -1):
        await enqueued(ann, arguments={"feed_id": each})
    await enqueued(ann, queue="slow")
    await ann.post("/api/scheduler/tick", json={"queues": ["feeds", "slow"]})
    hours = await paged(ann, "/api/runs/hours", lambda each: (each["queue"], each["state"], each["runs"]))
    assert hours == [("feeds", "failed", 1), ("feeds", "succeeded", 2), ("slow", "succeeded", 1)]
    assert (await ann.get("/api/runs/hours", params={"queue": "none"})).json()["items"] == []


async def test_a_list_goes_on_behind_what_is_named(ann: Client) -> None:
    runs = [(await enqueued(ann))["id"] for _ in range(3)]
    assert await paged(ann, "/api/runs", lambda each: each["id"], before=runs[2]) == [runs[1], runs[0]]
    for key in "abc":
        await made(ann, key, tags=["x"])
    assert await paged(ann, "/api/schedules", lambda each: each["key"], after="a") == ["b", "c"]
    assert await paged(ann, "/api/schedules", lambda each: each["key"], app="other") == []
    for note in ("one", "two"):
        await ann.post("/api/schedules/a/pause", json={"note": note})
    assert await paged(ann, "/api/schedules/a/revisions", lambda each: each["version"], before=3) == [2, 1]
    await ann.post("/api/schedules/b/trigger")
    (fired,) = (await ann.get("/api/schedules/b/firings")).json()["items"]
    assert (await ann.get("/api/schedules/b/firings", params={"before": fired["due"]})).json()["items"] == []
    later = fired["due"].replace("20", "21", 1)
    assert (await ann.get("/api/schedules/b/firings", params={"before": later})).json()["items"] == [fired]


async def test_what_a_failed_run_logged_is_shown_in_pages(ann: Client, app: Rota) -> None:
    @app.task(name="talk")
    async def talk() -> None:
        for number in range(5):
            logging.getLogger("news").warning("line %s password=canary", number)
        raise ValueError("no such feed")

    run = (await enqueued(ann, task="talk"))["id"]
    await app.tick()
    found = await paged(ann, f"/api/runs/{run}/log", lambda each: (each["attempt"], each["level"], each["message"]))
    assert found == [(1, "WARNING", f"line {number} password=…") for number in range(5)]
    assert (await ann.get(f"/api/runs/{(await enqueued(ann))['id']}/log")).json() == {"items": [], "next": None}
    assert problem(await ann.get("/api/runs/999/log"))[0] == 404
