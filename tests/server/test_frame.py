"""The frame: who gets in, and what an error looks like."""

from typing import Any

import pytest
from fastapi import APIRouter
from tests.server.serving import client, served

import rota
from rota.server import cursor
from rota.server.auth import Admin, Operator, Reader
from rota.server.cursor import Secret
from rota.server.here import Here
from rota.server.problems import Refused


@pytest.fixture
def app() -> rota.Rota:
    return rota.Rota("sqlite://", name="shop")


async def name(here: Here, caller: Reader) -> str:
    return f"{caller.name} at {here.name}"


async def operate(_: Operator) -> str:
    return "done"


async def administer(_: Admin) -> str:
    return "done"


@pytest.mark.parametrize("path", ["/api/name", "/api/none", "/openapi.json", "//healthz", "/HEALTHZ", "/healthz/", "/"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "DELETE", "TRACE"])
async def test_nobody_gets_in_unknown(app: rota.Rota, path: str, method: str) -> None:
    async with client(served(app, ("GET", "/name", name)), None) as stranger:
        answer = await stranger.request(method, path)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_route_knows_its_rota_and_its_caller(app: rota.Rota) -> None:
    async with client(served(app, ("GET", "/name", name))) as ann:
        assert (await ann.get("/api/name")).json() == "ann at shop"


@pytest.mark.parametrize(
    ("role", "reads", "operates", "administers"),
    [("read", 200, 403, 403), ("operate", 200, 200, 403), ("admin", 200, 200, 200)],
)
async def test_a_role_may_do_what_lower_ones_may(
    app: rota.Rota, role: str, reads: int, operates: int, administers: int
) -> None:
    api = served(app, ("GET", "/read", name), ("GET", "/operate", operate), ("GET", "/admin", administer))
    async with client(api, f"ann:{role}") as ann:
        found = [(await ann.get(f"/api/{each}")).status_code for each in ("read", "operate", "admin")]
    assert found == [reads, operates, administers]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (rota.InvalidRule("rule", "x", "use cron", "is no rule"), 422),
        (rota.OutdatedVersion(3, 4), 412),
        (rota.UnknownSchedule("k"), 404),
        (rota.UnknownRun(3), 404),
        (rota.UnknownTask("t"), 404),
        (rota.UnknownLimit("k"), 404),
        (rota.UnknownWorker("w"), 404),
        (rota.ScheduleExists("k"), 409),
        (rota.LockHeld("k"), 409),
        (rota.StoreUnavailable("postgresql://me:canary@host"), 503),
        (rota.TimedOut("x"), 504),
        (rota.NoCurrentRun(), 500),
        (RuntimeError("canary"), 500),
        (Refused(418, "tea"), 418),
    ],
)
async def test_an_error_is_a_problem_of_its_status(app: rota.Rota, error: Exception, status: int) -> None:
    async def fail(_: Reader) -> None:
        raise error

    async with client(served(app, ("GET", "/fail", fail))) as ann:
        answer = await ann.get("/api/fail")
    assert answer.status_code == answer.json()["status"] == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert "canary" not in answer.text
    assert ("retry-after" in answer.headers) == (status == 503)
    assert ("id" in answer.json()) == (status == 500)


async def test_what_is_not_allowed_is_told_by_field(app: rota.Rota) -> None:
    async def fail(_: Reader) -> None:
        raise rota.InvalidRule("rule", "x", "use cron", "is no rule")

    async def take(_: Reader, limit: cursor.Limit = 50) -> int:
        return limit

    async with client(served(app, ("GET", "/fail", fail), ("GET", "/take", take))) as ann:
        assert (await ann.get("/api/fail")).json()["errors"] == [
            {"field": "rule", "message": "is no rule", "allowed": "use cron"}
        ]
        answer = await ann.get("/api/take", params={"limit": 10**9})
    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["errors"]] == ["limit"]
    assert answer.json()["errors"][0]["allowed"] == "le 200"


async def test_a_cursor_reads_back_and_another_is_refused(app: rota.Rota) -> None:
    async def turn(_: Reader, secret: Secret, given: str | None = None) -> Any:
        return cursor.encode(secret, ["a", 7, None]) if given is None else cursor.decode(secret, given)

    async with app, client(served(app, ("GET", "/turn", turn))) as ann:
        made = (await ann.get("/api/turn")).json()
        assert (await ann.get("/api/turn", params={"given": made})).json() == ["a", 7, None]
        for other in (
            made[:-1],
            made[1:],
            f"A{made[1:]}" if made[0] != "A" else f"B{made[1:]}",
            "",
            "é",
            "%00",
            "a" * 9,
        ):
            assert (await ann.get("/api/turn", params={"given": other})).status_code == 400, other


async def test_routes_of_an_application_need_a_role_though_they_name_none(app: rota.Rota) -> None:
    router = APIRouter(prefix="/feeds")

    @router.get("")
    async def look() -> str:
        return "looked"

    @router.post("")
    async def change() -> str:
        return "changed"

    app.include(rota.Application("feeds", routes=router), rota.Application("plain"))
    api = served(app)
    for caller, looks, changes in (("ann:read", 200, 403), ("ann:operate", 200, 200), (None, 401, 401)):
        async with client(api, caller) as somebody:
            found = [await somebody.get("/api/feeds"), await somebody.post("/api/feeds")]
        assert [each.status_code for each in found] == [looks, changes], caller
