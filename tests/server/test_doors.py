"""The doors: what no request gets through with, and what every answer says."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI, WebSocket
from starlette.responses import Response
from tests.server.serving import by_header, client, listening, served

import rota
from rota.server.auth import Operator, Reader
from rota.server.web import web


@pytest.fixture
def app() -> rota.Rota:
    return rota.Rota("sqlite://", name="shop")


async def echo(body: dict[str, Any], _: Operator) -> Response:
    return Response(json.dumps(body), media_type="application/json")


async def fail(_: Reader) -> None:
    raise RuntimeError("canary in " + __file__)


def api_of(app: rota.Rota) -> FastAPI:
    return served(app, ("POST", "/echo", echo), ("GET", "/fail", fail))


ANSWERS = [
    ("GET", "/healthz", 200),
    ("GET", "/docs", 200),
    ("GET", "/docs/docs.js", 200),
    ("GET", "/openapi.json", 200),
    ("GET", "/none", 404),
    ("POST", "/healthz", 405),
    ("GET", "/api/tokens?x=%00", 422),
    ("POST", "/api/tokens", 422),
    ("GET", "/api/fail", 500),
    ("GET", "/api/tokens", 503),
]


@pytest.mark.parametrize(("method", "path", "status"), ANSWERS)
async def test_every_answer_has_the_headers_that_close_a_browser(
    app: rota.Rota, method: str, path: str, status: int
) -> None:
    async with listening(api_of(app)) as ann:
        answer = await ann.request(method, path, headers={"Origin": "https://evil.example", "Authorization": "x"})
    assert answer.status_code == status
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert "strict-transport-security" not in answer.headers
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
    assert "canary" not in answer.text
    assert __file__ not in answer.text


async def test_behind_tls_a_browser_is_told_to_stay_there(app: rota.Rota) -> None:
    async with client(api_of(app)) as ann:
        answer = await ann.get("https://test/healthz")
    assert "max-age" in answer.headers["strict-transport-security"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
async def test_no_other_place_may_read_answers(app: rota.Rota, origin: str) -> None:
    wanted = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    async with client(api_of(app)) as ann:
        answers = [await ann.options("/api/echo", headers=wanted), await ann.get("/healthz", headers=wanted)]
    assert not [name for each in answers for name in each.headers if name.startswith("access-control")]


async def test_a_large_body_is_refused_however_it_comes(app: rota.Rota) -> None:
    async def drops(number: int) -> AsyncIterator[bytes]:
        yield b'{"a": "'
        for _ in range(number):
            yield b"x" * 10_000
        yield b'"}'

    kind = {"Content-Type": "application/json"}
    async with listening(api_of(app)) as ann:
        assert (await ann.post("/api/echo", json={"a": "x" * 900_000})).status_code == 200
        assert (await ann.post("/api/echo", json={"a": "x" * 1_000_000})).status_code == 413
        assert (await ann.post("/api/echo", content=drops(90), headers=kind)).status_code == 200
        assert (await ann.post("/api/echo", content=drops(101), headers=kind)).status_code == 413
        with contextlib.suppress(httpx2.TransportError):  # who does not stop sending is hung up on
            assert (await ann.post("/api/echo", content=drops(10**9), headers=kind)).status_code == 413
        assert (await ann.get("/healthz")).status_code == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"a": [[1], "[[[[", "\\"[["]}', 200),
        (b'{"a": ' + b"[" * 63 + b"]" * 63 + b"}", 200),
        (b'{"a": ' + b"[" * 64 + b"]" * 64 + b"}", 422),
        (b'{"a": ' + b"[" * 400_000, 422),
        (b'{"a": NaN}', 422),
        (b'{"a": -Infinity}', 422),
        (b'{"a": 1e400}', 422),
        (b'{"a": -1e400}', 422),
        (b'{"a": ' + b"9" * 5_000 + b"}", 422),
        (b'{"a": "\\ud800"}', 422),
        (b'{"\\udfff": 1}', 422),
        (b'{"a": "\\ud83d\\ude00"}', 200),
        (b'{"a": "\xff"}', 422),
        (b'{"a": ', 422),
        (b"", 422),
        (b"[]", 422),
    ],
)
async def test_json_that_readers_read_differently_is_refused(app: rota.Rota, body: bytes, status: int) -> None:
    async with client(api_of(app)) as ann:
        answer = await ann.post("/api/echo", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    assert status == 200 or answer.json()["errors"]


async def test_json_under_another_name_is_no_json(app: rota.Rota) -> None:
    async with client(api_of(app)) as ann:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/x-python-serialize"):
            answer = await ann.post("/api/echo", content=b'{"a": 1}', headers={"Content-Type": kind})
            assert answer.status_code == 422, kind


@pytest.mark.parametrize(
    "path", ["/..%2fetc/passwd", "/docs/..%2f..%2fweb.py", "/docs/%5c..", "/a%00b", "/docs/docs.js%00"]
)
async def test_no_path_leads_elsewhere(app: rota.Rota, path: str) -> None:
    async with listening(api_of(app)) as ann:
        assert (await ann.get(path)).status_code == 404


async def test_a_cookie_opens_nothing(app: rota.Rota) -> None:
    api = web(app)
    async with app, client(api, None) as stranger:
        token = (await app.tokens.create("ann", "admin")).token
        for cookie in (f"token={token}", f"Authorization=Bearer {token}", f"session={token}"):
            answer = await stranger.post("/api/tokens", json={"name": "x"}, headers={"Cookie": cookie})
            assert answer.status_code == 401
            assert (await stranger.get(f"/api/tokens?token={token}&access_token={token}")).status_code == 401
    assert "set-cookie" not in answer.headers


async def test_a_caller_who_asks_too_often_is_told_when_to_come_back_and_nobody_else_is(
    app: rota.Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_REQUESTS_PER_MINUTE", "60")
    api = api_of(app)
    async with client(api) as ann, client(api, "bob:read") as bob:
        found = [await ann.get("/openapi.json") for _ in range(20)]
        assert (await bob.get("/openapi.json")).status_code == 200
        assert (await ann.get("/healthz")).status_code == 200
    assert [each.status_code for each in found[:10]] == [200] * 10
    assert found[-1].status_code == 429
    assert found[-1].headers["retry-after"] == "1"


@pytest.mark.parametrize("given", ["-1", "x", "1.5", "9" * 10])
def test_a_pace_that_is_no_number_is_refused(app: rota.Rota, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("ROTA_REQUESTS_PER_MINUTE", given)
    with pytest.raises(rota.Invalid, match="use a whole number"):
        web(app)


async def test_no_answer_is_left_out_of_the_description(app: rota.Rota) -> None:
    async with client(web(app, auth=by_header)) as ann:
        description = (await ann.get("/openapi.json")).json()
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            answers = operation["responses"]
            assert path in ("/healthz", "/readyz") or {"401", "403", "422", "429", "500", "503"} <= set(answers)
            for status, answer in answers.items():
                kinds = set(answer.get("content", {}))
                assert int(status) < 400 or kinds == {"application/problem+json"}, (path, method, status)
            assert operation["operationId"].isidentifier()


async def test_the_description_names_tokens_only_where_they_are_asked_for(app: rota.Rota) -> None:
    assert web(app).openapi()["components"]["securitySchemes"]
    own = json.dumps(web(app, auth=by_header).openapi())
    assert "securitySchemes" not in own
    assert '"security"' not in own


async def test_the_page_of_the_api_brings_all_that_it_needs(app: rota.Rota) -> None:
    async with client(web(app), None) as stranger:
        page = await stranger.get("/docs")
        script = await stranger.get("/docs/docs.js")
        assert (await stranger.get("/docs/docs.css")).headers["content-type"].startswith("text/css")
    assert page.headers["content-type"].startswith("text/html")
    assert "://" not in page.text + script.text
    assert "innerHTML" not in script.text
    assert "<script>" not in page.text
    assert "style=" not in page.text


async def test_a_caller_who_hangs_up_leaves_nothing_behind(app: rota.Rota) -> None:
    async with listening(api_of(app)) as ann:
        address = ann.base_url
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"POST /api/echo HTTP/1.1\r\nHost: x\r\nx-caller: ann:admin\r\nContent-Length: 100\r\n\r\n{")
        await writer.drain()
        writer.close()
        del reader
        assert (await ann.get("/healthz")).status_code == 200


async def test_no_websocket_gets_in(app: rota.Rota) -> None:
    api = api_of(app)

    @api.websocket("/api/socket")
    async def talk(_: WebSocket) -> None: ...

    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    scope = {"type": "websocket", "scheme": "ws", "path": "/api/socket", "headers": [(b"x-caller", b"ann:admin")]}
    await api(scope, asyncio.Event().wait, send)
    assert said == [{"type": "websocket.close", "code": 1008}]
