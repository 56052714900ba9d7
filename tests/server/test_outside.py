"""From outside, over the real `rota serve` on each store: nobody gets where they may not, whatever they write."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2
import pytest
from tests.server.serving import Served
from tests.servers import psql

TOKEN = "0123456789abcdef"  # noqa: S105 (it opens nothing)
OPEN = {"/healthz", "/readyz"}
ASKING = {"/api/preview"}
"""What is asked by POST, and changes nothing."""
PAYLOADS = [
    "' OR 1=1 --",
    "'; SELECT pg_sleep(3600); --",
    "x' || pg_sleep(3600) || '",
    "1; DROP TABLE rota_runs",
    "\\' UNION SELECT hash FROM rota_tokens --",
    "%_!\x1b[2J😀",
]


@dataclass
class Outside:
    """A server, and those who know a token."""

    client: httpx2.Client
    callers: dict[str, dict[str, str]]
    paths: dict[str, dict[str, Any]]

    def ask(self, caller: str | None, method: str, path: str, **more: Any) -> httpx2.Response:
        headers = {} if caller is None else self.callers[caller]
        address = f"{self.client.base_url}".rstrip("/") + path  # as it is written, with all its slashes
        return self.client.request(method, address, headers={**headers, **more.pop("headers", {})}, **more)

    def operations(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for path, methods in self.paths.items():
            for method, operation in methods.items():
                yield method.upper(), path, operation

    def asked(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """Yield what can be looked at, and by which parameters."""
        for method, path, operation in self.operations():
            query = [each for each in operation.get("parameters", ()) if each["in"] == "query"]
            if method == "GET" and query:
                yield filled(path), query


def filled(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "1", path)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def outside(
    request: pytest.FixtureRequest, postgres_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outside]:
    folder, name = tmp_path_factory.mktemp("outside"), f"rota_test_{uuid4().hex}"
    psql(postgres_url, f"CREATE DATABASE {name}")
    stores = {
        "sqlite": f"sqlite:///{folder}/rota.db",
        "postgres": urlsplit(postgres_url)._replace(path=f"/{name}").geturl(),
    }
    with (
        started(stores[request.param], folder) as served,
        httpx2.Client(base_url=served.address(), timeout=60) as client,
    ):
        yield entered(client)
    psql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


def started(store: str, folder: Path) -> Served:
    return Served(cwd=folder, ROTA_STORE=store, ROTA_TOKEN=TOKEN, ROTA_REQUESTS_PER_MINUTE="0")


def entered(client: httpx2.Client) -> Outside:
    admin = {"Authorization": f"Bearer {TOKEN}"}
    callers = {"admin": admin}
    for role in ("read", "operate"):
        made = client.post("/api/tokens", json={"name": role, "role": role}, headers=admin)
        callers[role] = {"Authorization": f"Bearer {made.json()['token']}"}
    for key in ("1", "a", "b"):
        schedule = {"key": key, "task": "rota.http", "arguments": {"url": "https://example.org/"}, "rule": "@yearly"}
        assert client.post("/api/schedules", json=schedule, headers=admin).status_code == 201
        run = {"task": "rota.http", "arguments": {"url": "https://example.org/"}, "delay": "1d"}
        assert client.post("/api/runs", json=run, headers=admin).status_code == 201
        assert client.put(f"/api/limits/{key}", json={"at_once": 1}, headers=admin).status_code == 200
    return Outside(client, callers, client.get("/openapi.json", headers=admin).json()["paths"])


def test_nobody_gets_in_without_a_token_however_they_write_it(outside: Outside) -> None:
    seen = 0
    for method, path, _ in outside.operations():
        plain = filled(path)
        others = [("HEAD", plain), ("OPTIONS", plain), (method, f"{plain}/"), (method, f"/{plain}")]
        for verb, address in () if path in OPEN else ((method, plain), ("GET", plain.upper()), *others):
            assert outside.ask(None, verb, address).status_code == 401, (verb, address)
            seen += 1
    assert seen > 200


@pytest.mark.parametrize("role", ["read", "operate"])
def test_no_role_reaches_beyond_itself(outside: Outside, role: str) -> None:
    refused = 0
    for method, path, _ in outside.operations():
        unsafe = method != "GET" and path not in ASKING
        if path.startswith("/api/tokens") or (role == "read" and unsafe):
            answer = outside.ask(role, method, filled(path), json={})
            assert answer.status_code == 403, (method, path, answer.text)
            refused += 1
    assert refused >= (20 if role == "read" else 3)


def test_a_revoked_token_is_refused_at_once(outside: Outside) -> None:
    made = outside.ask("admin", "POST", "/api/tokens", json={"name": "gone"}).json()["token"]
    known = {"Authorization": f"Bearer {made}"}
    assert outside.ask(None, "GET", "/api/runs", headers=known).status_code == 200
    assert outside.ask("admin", "DELETE", "/api/tokens/gone").status_code == 204
    assert outside.ask(None, "GET", "/api/runs", headers=known).status_code == 401


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
def test_no_other_place_reads_an_answer_and_every_answer_closes_the_browser(outside: Outside, origin: str) -> None:
    wanted = {"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x"}
    for caller, method, path, status in (
        ("admin", "GET", "/api/runs", 200),
        ("admin", "GET", "/metrics", 200),
        ("admin", "OPTIONS", "/api/runs", 405),
        ("admin", "GET", "/none", 404),
        ("admin", "GET", "/api/runs?limit=0", 422),
        ("admin", "GET", "/api/runs?cursor=x", 400),
        ("read", "POST", "/api/runs", 403),
        (None, "OPTIONS", "/api/runs", 401),
        (None, "GET", "/healthz", 200),
        (None, "GET", "/docs", 200),
    ):
        answer = outside.ask(caller, method, path, headers=wanted)
        assert answer.status_code == status, (method, path)
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers
        assert "set-cookie" not in answer.headers


def test_no_filter_is_a_statement(outside: Outside) -> None:
    """A statement would sleep for an hour, which is longer than a test may take, or take something away."""
    before = numbers(outside)
    for path, query in outside.asked():
        for each in query:
            for payload in PAYLOADS:
                answer = outside.ask("admin", "GET", path, params={each["name"]: payload})
                assert answer.status_code in (200, 400, 404, 422), (path, each["name"], payload, answer.text)
    assert numbers(outside) == before


def numbers(outside: Outside) -> list[int]:
    paths = ("/api/runs", "/api/schedules", "/api/limits")
    return [len(outside.ask("admin", "GET", path).json()["items"]) for path in paths]


def test_no_number_is_too_large_for_the_door(outside: Outside) -> None:
    with_limit = 0
    for path, query in outside.asked():
        if "limit" in {each["name"] for each in query}:
            with_limit += 1
            for limit in ("0", "-1", "201", str(10**9), str(10**40), "1e3", "NaN"):
                answer = outside.ask("admin", "GET", path, params={"limit": limit})
                assert answer.status_code == 422, (path, limit)
    assert with_limit >= 10
    assert outside.ask("admin", "GET", "/api/statistics", params={"window": str(10**12)}).status_code == 422


def changed(cursor: str) -> list[str]:
    swap: Callable[[str], str] = lambda char: "A" if char != "A" else "B"  # noqa: E731
    flipped = [cursor[:n] + swap(cursor[n]) + cursor[n + 1 :] for n in range(0, len(cursor) - 1, 5)]
    return [*flipped, cursor[1:], cursor + "AAAA", "", "é", "a" * 2_000]


def test_no_cursor_but_a_true_one_is_read(outside: Outside) -> None:
    true = {
        path: outside.ask("admin", "GET", path, params={"limit": 1}).json()["next"]
        for path in ("/api/runs", "/api/schedules", "/api/limits", "/api/task-types", "/api/scheduler/jobs")
    }
    for path, cursor in true.items():
        assert outside.ask("admin", "GET", path, params={"cursor": cursor}).status_code == 200
        for each in changed(cursor):
            assert outside.ask("admin", "GET", path, params={"cursor": each}).status_code == 400, (path, each)
    for path, query in outside.asked():
        if "cursor" in {each["name"] for each in query} and path not in true:
            answer = outside.ask("admin", "GET", path, params={"cursor": true["/api/runs"]})
            assert answer.status_code in (400, 404), path
