"""No secret leaves `rota serve`: by no answer, line of the log, metric, message or row of the database."""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import httpx2
import pytest
from tests.http.servers import Server, serving
from tests.server.serving import Served
from tests.servers import ROOT, psql

SIGNING = base64.b64encode(b"canary-signing-secret-of-24-bytes").decode()
TOKEN, SHOP, WORD = "canary-token-0123456789", "canary-shop-secret", "canary-dsn-word"
ARGUMENT, BEARER = "canary-argument", "canary-bearer"
SETTINGS = (TOKEN, SHOP, WORD, SIGNING, "canary-hook")
SECRETS = (*SETTINGS, ARGUMENT, BEARER)


@pytest.fixture
def role(postgres_url: str) -> Iterator[str]:
    """Somebody at the database with a password of his own; he goes after what he made."""
    name = f"rota_test_{uuid4().hex}"
    psql(postgres_url, f"CREATE ROLE {name} LOGIN SUPERUSER PASSWORD '{WORD}'")
    yield name
    psql(postgres_url, f"DROP ROLE {name}")


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, role: str) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/rota.db"
    found = urlsplit(request.getfixturevalue("postgres_database"))
    return found._replace(netloc=f"{role}:{WORD}@{found.hostname}:{found.port}").geturl()


@dataclass
class Scene:
    """A server with canaries, somebody who asks it, and who is told of troubles."""

    served: Served
    ann: httpx2.AsyncClient
    hook: Server
    heard: list[str]

    async def ask(self, method: str, path: str, status: int = 200, **more: Any) -> Any:
        answer = await self.ann.request(method, path, **more)
        assert answer.status_code == status, (method, path, answer.text)
        self.heard.append(f"{method} {path} {answer.headers} {answer.text}")
        return answer.json() if "json" in answer.headers.get("content-type", "") else answer.text

    async def ended(self, run: int) -> dict[str, Any]:
        """Wait for the end of a run; the test's own time limit is the bound."""
        while True:
            found: dict[str, Any] = await self.ask("GET", f"/api/runs/{run}")
            if found["state"] in ("succeeded", "failed"):
                return found
            await asyncio.sleep(0.02)


@pytest.fixture
async def scene(store: str, tmp_path: Path) -> AsyncIterator[Scene]:
    async with serving() as hook:
        env = {
            "ROTA_STORE": store,
            "ROTA_TOKEN": TOKEN,
            "ROTA_SECRET_SHOP": SHOP,
            "ROTA_WEBHOOK_SECRET": f"whsec_{SIGNING}",
            "ROTA_NOTIFY": f"{hook.url}/canary-hook",
            "ROTA_ALLOW_NETWORKS": "127.0.0.0/8",
        }
        with Served("tests.server.leaky:app", cwd=tmp_path, **env) as served:
            known = {"Authorization": f"Bearer {TOKEN}"}
            async with httpx2.AsyncClient(base_url=served.address(), headers=known, timeout=60) as ann:
                yield Scene(served, ann, hook, [])


async def told_of_a_failure(scene: Scene) -> int:
    """Let a schedule with secret arguments fail, and somebody be told; returns the run."""
    arguments = {"password": ARGUMENT, "headers": {"Authorization": f"Bearer {BEARER}"}}
    schedule = {"task": "leaky.fail", "arguments": arguments, "rule": "@yearly", "on_failure": {"alert_after": 1}}
    await scene.ask("POST", "/api/schedules", 201, json={"key": "leak", **schedule})
    await scene.ask("PATCH", "/api/schedules/leak", json={"arguments": {**arguments, "password": f"{ARGUMENT}-2"}})
    run = (await scene.ask("POST", "/api/schedules/leak/trigger", 201))["run"]
    assert (await scene.ended(run))["error"]["kind"] == "ValueError"
    look = (await scene.ask("POST", "/api/schedules/rota.alerts/trigger", 201))["run"]
    assert (await scene.ended(look))["result"] == 1
    return int(run)


async def test_no_secret_is_in_an_answer_a_message_a_metric_or_a_line_of_the_log(scene: Scene) -> None:
    run = await told_of_a_failure(scene)
    enqueued = {"task": "leaky.fail", "arguments": {"password": ARGUMENT, "headers": {"Authorization": BEARER}}}
    for _ in range(2):  # the second is answered from what is kept
        await scene.ask("POST", "/api/runs", 201, json=enqueued, headers={"Idempotency-Key": "once"})
    description = await scene.ask("GET", "/openapi.json")
    for path, methods in description["paths"].items():
        if "get" in methods and "{" not in path and path not in ("/api/stream", "/api/leaky/boom"):
            await scene.ask("GET", path)
    for path in (f"/api/runs/{run}/log", "/api/schedules/leak", "/api/schedules/leak/revisions"):
        await scene.ask("GET", path)
    (trouble,) = (await scene.ask("GET", "/api/alerts"))["items"]
    assert trouble["said"] == "schedule leak failed 1 times in a row"
    assert len((await scene.ask("GET", f"/api/runs/{run}/log"))["items"]) == 1
    failed = await scene.ask("GET", "/api/leaky/boom", 500)
    assert failed == {
        "type": "about:blank",
        "title": "Internal Server Error",
        "status": 500,
        "id": failed["id"],
        "errors": [],
        "detail": "the server failed; its log says more under this id",
    }
    wrong = {"task": "leaky.fail", "arguments": {"password": [ARGUMENT]}}
    assert ARGUMENT not in json.dumps(await scene.ask("POST", "/api/runs", 422, json=wrong))
    await garbage(scene)
    cmdline = read(Path(f"/proc/{scene.served.popen.pid}/cmdline"))
    scene.served.popen.terminate()
    code, rest = scene.served.ended()
    assert code == 0
    lines = [json.loads(line) for line in rest.splitlines() if not line.startswith("  ")]
    said = {each["msg"] for each in lines}
    assert "Invalid HTTP request received." in said
    assert any(failed["id"] in each["msg"] and "RuntimeError" in each["exception"] for each in lines)
    assert [char for char in rest if not char.isprintable() and char != "\n"] == []
    (asked,) = scene.hook.asked
    assert json.loads(asked.body)["data"]["title"] == "Rota leaky: schedule leak failed 1 times in a row"
    everything = {
        "answers": "\n".join(scene.heard),
        "log": "".join(scene.served.said) + rest,
        "command line": cmdline,
        "message": asked.body.decode(),
    }
    found = [(where, each) for where, text in everything.items() for each in SECRETS if each in text]
    assert found == []
    for path in (str(ROOT), "site-packages", "SELECT"):
        assert path not in json.dumps(failed)


async def garbage(scene: Scene) -> None:
    """Say what is no HTTP, with a token in it."""
    place = scene.ann.base_url
    reader, writer = await asyncio.open_connection(place.host, place.port)
    writer.write(f"canary {TOKEN}\r\n\r\n".encode())
    assert b"400" in await reader.read()
    writer.close()


async def test_no_setting_that_is_secret_gets_into_the_database(scene: Scene, store: str, tmp_path: Path) -> None:
    await told_of_a_failure(scene)
    made = (await scene.ask("POST", "/api/tokens", 201, json={"name": "bob"}))["token"]
    await scene.ask("GET", "/api/runs", headers={"Authorization": f"Bearer {made}"})
    scene.served.popen.terminate()
    assert scene.served.ended()[0] == 0
    kept = await contents(store, tmp_path)
    assert "leaky.fail" in kept
    assert [each for each in (*SETTINGS, made) if each in kept] == []


def read(path: Path) -> str:
    return path.read_bytes().decode("latin-1")


def files(folder: Path) -> str:
    """Return what the files of a store hold; nobody else may read them."""
    found = sorted(folder.glob("rota.db*"))
    assert [oct(each.stat().st_mode & 0o777) for each in found] == ["0o600"] * len(found)
    return "\n".join(map(read, found))


async def contents(store: str, folder: Path) -> str:
    """Return all that a store holds."""
    if store.startswith("sqlite"):
        return files(folder)
    async with connected(store) as connection:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE tablename LIKE 'rota\\_%'")
        rows = [await connection.fetch(f"SELECT t::text AS row FROM {name} AS t") for (name,) in tables]
    return "\n".join(row["row"] for table in rows for row in table)


@asynccontextmanager
async def connected(store: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(store)
    yield connection
    await connection.close()


async def test_the_token_of_a_first_start_is_said_once_and_in_no_line_of_the_log(store: str, tmp_path: Path) -> None:
    with Served(cwd=tmp_path, ROTA_STORE=store) as served:
        address = served.address()
        token = served.token()
        served.until("log in with it")
        answer = httpx2.get(f"{address}/api/none?token={token}", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 404
        served.popen.terminate()
        assert token not in served.ended()[1]
    assert WORD not in "".join(served.said)
    assert re.search(r"its state is in \S+", served.said[0])
