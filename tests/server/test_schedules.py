"""`/api/schedules`: made, changed by two at once, paused, run, removed, and looked at, on each store."""

import asyncio
from typing import Any

import pytest
from tests.server.nouns import Client, ann, made, paged, problem

from rota import clock
from rota.app import Rota
from rota.server.routers import in_time
from rota.times import Cron

__all__ = ["ann"]

RULES: list[tuple[Any, str]] = [
    ("0 9 * * MON", "Cron('0 9 * * MON')"),
    ("Every('15m', since='success')", "Every('15m', since='success')"),
    ({"cron": "0 9 * * MON", "tz": "Europe/Berlin"}, "Cron('0 9 * * MON', tz='Europe/Berlin')"),
    ({"every": 900, "since": "finish"}, "Every('15m', since='finish')"),
    ({"kind": "at", "at": "2100-01-01T00:00:00Z"}, "At('2100-01-01T00:00:00Z')"),
    (
        {"unit": "month", "every": 2, "on": ["last weekday"], "at": ["10:00"]},
        "Calendar('month', every=2, on='last weekday', at='10:00')",
    ),
    ({"any": ["@daily", {"every": "7h"}]}, "AnyOf(Cron('@daily'), Every('7h'))"),
]


@pytest.mark.parametrize(("rule", "text"), RULES)
async def test_every_kind_of_rule_is_made_told_and_taken_back_as_told(ann: Client, rule: Any, text: str) -> None:
    found = await made(ann, rule=rule)
    assert found["rule_text"] == text
    again = await ann.put("/api/schedules/t", json={"task": "refresh", "rule": found["rule"]})
    assert again.json()["rule_text"] == text


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ("61 * * * *", "minute: '61' is not allowed"),
        ("0 0 30 2 *", "day of month"),
        ({"every": 0.001}, "is too short"),
        ({"at": "9999-01-01T00:00:00Z"}, "out of range"),
        ({"at": "2030-01-01T00:00:00"}, "timezone"),
        ({"cron": "@daily", "tz": "Mars"}, "'Mars'"),
        ({"cron": "@daily", "colour": "red"}, "colour"),
        ({"colour": "red"}, "an object with one of: cron, every, at, unit"),
        ({"any": []}, "at least 1"),
        (7, "a rule is text"),
    ],
)
async def test_a_rule_that_is_none_is_refused_with_the_reason(ann: Client, rule: Any, wrong: str) -> None:
    answer = await ann.post("/api/schedules", json={"key": "s", "task": "refresh", "rule": rule})
    status, said = problem(answer)
    assert status == 422
    assert wrong in said


async def test_a_rule_that_takes_too_long_to_say_what_is_next_is_refused(
    ann: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow:
        seconds = 0.0

        def monotonic(self) -> float:
            self.seconds += 0.03
            return self.seconds

    monkeypatch.setattr(in_time, "clock", Slow())
    body = {"task": "refresh", "rule": "@daily"}
    for answer in (
        await ann.post("/api/schedules", json={"key": "s", **body}),
        await ann.put("/api/schedules/s", json=body),
        await ann.post("/api/preview", json={"rule": "@daily"}),
    ):
        status, said = problem(answer)
        assert (status, "takes more than 50 ms" in said) == (422, True)


def test_what_is_next_is_found_in_time_for_the_hardest_rules() -> None:
    exclude = tuple(Cron(f"* * {day} * *") for day in range(1, 29))
    assert in_time.ahead(Cron("30 2 29 2 MON#5"), exclude, int(clock.now().timestamp()) * 1_000_000)


@pytest.mark.parametrize("name", ["os.system", "builtins:eval", "__import__", "refrеsh", "refresh "])
async def test_only_registered_tasks_have_schedules(ann: Client, name: str) -> None:
    answer = await ann.post("/api/schedules", json={"key": "s", "task": name, "rule": "@daily"})
    assert problem(answer)[0] == 422
    assert (await ann.get("/api/schedules/s")).status_code == 404


async def test_making_a_schedule_twice_is_a_conflict_and_changes_nothing(ann: Client) -> None:
    first = await made(ann, description="mine")
    answer = await ann.post("/api/schedules", json={"key": "s", "task": "refresh", "rule": "@daily"})
    assert problem(answer) == (409, "there is a schedule 's' already")
    assert (await ann.get("/api/schedules/s")).json() == first


async def test_asking_again_with_the_same_key_makes_it_once(ann: Client) -> None:
    body = {"key": "s", "task": "refresh", "rule": "@daily"}
    answers = [await ann.post("/api/schedules", json=body, headers={"Idempotency-Key": "once"}) for _ in range(2)]
    assert [each.status_code for each in answers] == [201, 201]
    assert answers[0].text == answers[1].text
    assert (answers[0].headers["etag"], answers[0].headers["location"]) == ('"1"', "/api/schedules/s")


async def test_what_a_schedule_is_told_with_is_what_it_has(ann: Client) -> None:
    found = await made(
        ann,
        arguments={"feed_id": 42},
        overlap="allow",
        max_running=3,
        missed="all",
        grace="5m",
        spread=60,
        exclude=["* * 24 12 *"],
        retry={"attempts": 5, "first": "2s"},
        on_failure={"double_from": 3, "pause_after": 10},
        adaptive={},
        limits=["host:example.org"],
        tags=["feeds"],
        priority="low",
    )
    assert (found["arguments"], found["overlap"], found["max_running"]) == ({"feed_id": 42}, "allow", 3)
    assert (found["grace"], found["spread"], found["queue"], found["priority"]) == (300, 60, "feeds", 25)
    assert found["exclude"][0]["cron"] == "* * 24 12 *"
    assert found["retry"] == {"attempts": 5, "first": 2, "factor": 2, "cap": 3600, "jitter": 0.1}
    assert found["on_failure"]["pause_after"] == 10
    assert found["adaptive"] == {"busy": 10, "quiet": 1, "floor": 900, "ceiling": 86400}
    assert (found["state"], found["enabled"], found["run_count"]) == ("active", True, 0)
    assert found["next_run"] >= found["next_due"]


async def test_of_two_who_edit_the_second_is_refused_and_overwrites_nothing(ann: Client) -> None:
    await made(ann)
    tag = (await ann.get("/api/schedules/s")).headers["etag"]
    match = {"If-Match": tag}
    mine = await ann.patch("/api/schedules/s", json={"description": "mine"}, headers=match)
    assert (mine.status_code, mine.headers["etag"]) == (200, '"2"')
    for late in (
        await ann.patch("/api/schedules/s", json={"description": "yours"}, headers=match),
        await ann.put("/api/schedules/s", json={"task": "refresh", "rule": "@daily"}, headers=match),
        await ann.delete("/api/schedules/s", headers=match),
    ):
        assert problem(late) == (412, "version: 1 is not the newest; it is 2 by now")
    assert (await ann.get("/api/schedules/s")).json()["description"] == "mine"
    assert (await ann.delete("/api/schedules/s", headers={"If-Match": '"2"'})).status_code == 204


async def test_two_who_edit_at_the_same_time_do_not_both_win(ann: Client) -> None:
    await made(ann)
    answers = await asyncio.gather(
        *(ann.patch("/api/schedules/s", json={"description": f"by {n}"}, headers={"If-Match": '"1"'}) for n in range(5))
    )
    assert sorted(each.status_code for each in answers) == [200, 412, 412, 412, 412]


@pytest.mark.parametrize(("match", "status"), [('"1"', 412), ("*", 412), ("W/nonsense", 422), ('"1", "2"', 422)])
async def test_a_match_of_what_is_not_there_makes_nothing(ann: Client, match: str, status: int) -> None:
    answer = await ann.put("/api/schedules/s", json={"task": "refresh", "rule": "@daily"}, headers={"If-Match": match})
    assert problem(answer)[0] == status
    assert (await ann.get("/api/schedules/s")).status_code == 404


async def test_a_patch_keeps_what_it_does_not_name_and_a_put_does_not(ann: Client) -> None:
    before = await made(
        ann,
        arguments={"feed_id": 7},
        tags=["x"],
        on_failure={"double_from": 3, "pause_after": 9},
        retry={"attempts": 4},
        queue="slow",
    )
    changed = (
        await ann.patch(
            "/api/schedules/s", json={"on_failure": {"pause_after": None}, "retry": {"cap": "2h"}, "note": "why not"}
        )
    ).json()
    assert changed["on_failure"] == before["on_failure"] | {"pause_after": None}
    assert changed["retry"] == before["retry"] | {"cap": 7200}
    kept = ("arguments", "tags", "queue", "rule", "next_due")
    assert {name: changed[name] for name in kept} == {name: before[name] for name in kept}
    own = (await ann.patch("/api/schedules/s", json={"queue": None, "retry": None})).json()
    assert (own["queue"], own["retry"]) == ("feeds", None)
    other = (await ann.patch("/api/schedules/s", json={"arguments": {"feed_id": 8}})).json()
    assert other["arguments"] == {"feed_id": 8}
    whole = (await ann.put("/api/schedules/s", json={"task": "refresh", "rule": {"every": "1h"}})).json()
    assert (whole["tags"], whole["arguments"], whole["on_failure"]["double_from"]) == ([], {}, None)
    (_, note, *_) = (await ann.get("/api/schedules/s/revisions")).json()["items"][::-1]
    assert (note["by"], note["note"], sorted(note["changes"])) == ("ann", "why not", ["policies", "retry"])


async def test_an_unknown_name_in_a_patch_is_refused_and_nothing_is_changed(ann: Client) -> None:
    await made(ann)
    status, said = problem(await ann.patch("/api/schedules/s", json={"description": "new", "overlapp": "skip"}))
    assert (status, "overlapp" in said) == (422, True)
    assert (await ann.get("/api/schedules/s")).json()["version"] == 1


async def test_secrets_are_masked_and_a_mask_is_not_taken_for_one(ann: Client, app: Rota) -> None:
    found = await made(ann, arguments={"feed_id": 1, "password": "hunter2"})
    assert found["arguments"] == {"feed_id": 1, "password": "***"}
    await ann.post("/api/schedules/s/trigger")
    await ann.patch("/api/schedules/s", json={"arguments": {"password": "hunter3"}})
    for path in ("", "/s", "/s/revisions"):
        assert "hunter" not in (await ann.get(f"/api/schedules{path}")).text
    assert "hunter" not in (await ann.get("/api/runs")).text
    for wrong in (
        await ann.patch("/api/schedules/s", json={"arguments": found["arguments"]}),
        await ann.post("/api/runs", json={"task": "refresh", "arguments": found["arguments"]}),
    ):
        assert problem(wrong)[0] == 422
    assert '"password":"hunter3"' in (await app.schedules.get("s")).args


async def test_schedules_are_listed_in_pages_and_by_what_people_look_for(ann: Client) -> None:
    for number in range(5):
        await made(ann, f"feed-{number}", tags=["odd" if number % 2 else "even"], description=f"Number {number}")
    await ann.post("/api/schedules/feed-3/pause")

    async def keys(**query: Any) -> list[str]:
        return await paged(ann, "/api/schedules", lambda each: each["key"], **query)

    assert await keys() == [f"feed-{number}" for number in range(5)]
    assert await keys(tag="odd") == ["feed-1", "feed-3"]
    assert await keys(state="paused") == ["feed-3"]
    assert await keys(prefix="feed-4") == ["feed-4"]
    assert await keys(text="NUMBER 2") == ["feed-2"]
    assert await keys(task="refresh", queue="feeds", state="active", tag="odd") == ["feed-1"]
    assert await keys(queue="other") == await keys(text="%") == await keys(text="' OR 1=1 --") == []


async def test_a_cursor_is_of_its_own_list_and_whole(ann: Client) -> None:
    for key in ("a", "b"):
        await made(ann, key)
    cursor = (await ann.get("/api/schedules", params={"limit": 1})).json()["next"]
    assert problem(await ann.get("/api/runs", params={"cursor": cursor}))[0] == 400
    assert problem(await ann.get("/api/schedules", params={"cursor": cursor[:-1]}))[0] == 400
    for limit in (0, 201, 10**9):
        assert problem(await ann.get("/api/schedules", params={"limit": limit}))[0] == 422


async def test_pause_resume_trigger_backfill_and_their_history(ann: Client) -> None:
    await made(ann, rule={"every": "1h"})
    held = (await ann.post("/api/schedules/s/pause", json={"note": "moving"})).json()
    assert (held["state"], held["held"]["by"], held["held"]["note"]) == ("paused", "ann", "moving")
    assert (await ann.post("/api/schedules/s/resume")).json()["state"] == "active"
    run = (await ann.post("/api/schedules/s/trigger")).json()
    assert (run["blocker"], run["count"]) == (None, 1)
    blocked = problem(await ann.post("/api/schedules/s/trigger"))
    assert blocked == (409, f"no run: its overlap policy lets none in while run {run['run']} is under way")
    past = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T03:00:00Z"}
    assert problem(await ann.post("/api/schedules/s/backfill", json=past))[0] == 409
    await ann.patch("/api/schedules/s", json={"overlap": "queue_all"})
    assert (await ann.post("/api/schedules/s/backfill", json=past)).json()["count"] == 3
    ahead = {"start": "2100-01-01T00:00:00Z", "end": "2100-01-01T03:00:00Z"}
    assert problem(await ann.post("/api/schedules/s/backfill", json=ahead))[0] == 422
    far = {"start": "1970-01-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"}
    assert problem(await ann.post("/api/schedules/s/backfill", json=far))[0] == 422
    whats = await paged(ann, "/api/schedules/s/revisions", lambda each: each["what"])
    assert whats[::-1] == ["made", "paused", "resumed", "triggered", "changed", "back-filled"]
    kinds = await paged(ann, "/api/schedules/s/firings", lambda each: each["trigger_type"])
    assert sorted(kinds) == ["backfill", "backfill", "backfill", "manual"]
    dues = [each["due"] for each in (await ann.get("/api/schedules/s/upcoming", params={"limit": 3})).json()["items"]]
    assert (len(dues), dues) == (3, sorted(dues))
    why = (await ann.get("/api/schedules/s/why", params={"at": "2026-01-01T01:00:00Z"})).json()
    assert why["text"].endswith("stands for it: waiting")
    assert (await ann.get("/api/schedules/s/why")).json()["text"].startswith("it is due next at")


async def test_triggering_again_with_the_same_key_runs_once(ann: Client) -> None:
    await made(ann, overlap="queue_all")
    first, second = [
        (await ann.post("/api/schedules/s/trigger", headers={"Idempotency-Key": "k"})).json() for _ in range(2)
    ]
    assert first == second
    assert len((await ann.get("/api/runs")).json()["items"]) == 1


async def test_many_are_told_by_tag_or_prefix(ann: Client) -> None:
    for key in ("feed-1", "feed-2", "mail"):
        await made(ann, key, tags=["x"] if key != "feed-2" else [])
    assert (await ann.post("/api/schedules/pause", json={"prefix": "feed-"})).json() == {"count": 2}
    assert (await ann.post("/api/schedules/resume", json={"tag": "x"})).json() == {"count": 1}
    await ann.post("/api/schedules/mail/trigger")
    told = (await ann.post("/api/schedules/trigger", json={"tag": "x"})).json()
    assert [(each["key"], each["ok"]) for each in told["results"]] == [("feed-1", True), ("mail", False)]
    assert "while run" in told["results"][1]["problem"]["detail"]
    for wrong in ({}, {"tag": "x", "prefix": "feed"}, {"prefix": ""}):
        assert problem(await ann.post("/api/schedules/remove", json=wrong))[0] == 422
    assert (await ann.post("/api/schedules/remove", json={"prefix": "feed"})).json() == {"count": 2}


async def test_of_many_operations_each_is_answered_for_itself(ann: Client) -> None:
    await made(ann, "a")
    operations = [
        {"op": "put", "key": "b", "schedule": {"task": "refresh", "rule": "@daily"}},
        {"op": "put", "key": "a", "create": True, "schedule": {"task": "refresh", "rule": "@daily"}},
        {"op": "change", "key": "a", "version": 1, "change": {"description": "new"}},
        {"op": "change", "key": "a", "version": 1, "change": {"description": "newer"}},
        {"op": "pause", "key": "a", "note": "all of them"},
        {"op": "resume", "key": "a"},
        {"op": "trigger", "key": "b"},
        {"op": "remove", "key": "c"},
        {"op": "put", "key": "d", "schedule": {"task": "os.system", "rule": "@daily"}},
        {"op": "remove", "key": "b"},
    ]
    told = (await ann.post("/api/schedules/bulk", json={"operations": operations})).json()
    statuses = [each["problem"]["status"] if each["problem"] else 200 for each in told["results"]]
    assert statuses == [200, 409, 200, 412, 200, 200, 200, 404, 422, 200]
    assert (told["done"], told["failed"]) == (6, 4)
    assert (await ann.get("/api/schedules/a")).json()["description"] == "new"
    assert problem(await ann.post("/api/schedules/bulk", json={"operations": operations * 101}))[0] == 422


async def test_keys_that_are_words_of_the_api_are_keys(ann: Client) -> None:
    await made(ann, "bulk")
    assert (await ann.get("/api/schedules/bulk")).json()["key"] == "bulk"
    assert (await ann.delete("/api/schedules/bulk")).status_code == 204
