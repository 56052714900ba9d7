"""The examples are complete programs, and do what they say."""

import asyncio
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from fastapi.testclient import TestClient
from tests.servers import ROOT, psql

import rota


@pytest.fixture
def on(store: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """An example, on this store."""
    monkeypatch.setenv("ROTA_STORE", store)
    monkeypatch.syspath_prepend(ROOT)
    sys.modules.pop(request.param, None)
    yield importlib.import_module(request.param)
    if store.startswith("postgres"):
        psql(store, "DROP TABLE IF EXISTS shop_orders")


@pytest.mark.parametrize("on", ["examples.fastapi_app"], indirect=True)
def test_an_order_by_fastapi_is_confirmed_and_one_that_fails_is_not(on: ModuleType) -> None:
    with TestClient(on.api) as web:
        placed = web.post("/orders", params={"item": "tea"}).json()
        assert web.get(f"/runs/{placed['run']}").json() == {"state": "succeeded", "result": "mailed: tea"}
        assert web.post("/orders", params={"item": "nothing"}).status_code == 422
        assert len(web.portal.call(on.app.runs.list)) == 1


@pytest.mark.parametrize("on", ["examples.flask_app"], indirect=True)
def test_an_order_by_flask_is_confirmed_and_one_that_fails_is_not(on: ModuleType) -> None:
    web = on.create().test_client()
    placed = web.post("/orders?item=tea").json
    assert web.get(f"/runs/{placed['run']}").json == {"state": "ready", "result": None}
    assert web.post("/orders?item=nothing").status_code == 422
    assert len(on.calls.runs.list()) == 1
    on.calls.close()
    assert asyncio.run(on.app.tick()).ok  # what `rota worker` would do
    assert web.get(f"/runs/{placed['run']}").json == {"state": "succeeded", "result": "mailed: tea"}
    on.calls.close()
    on.engine.dispose()


def test_the_script_hands_over_its_work(store: str) -> None:
    def run(*words: str) -> str:
        environment = os.environ | {"ROTA_STORE": store}
        command = [sys.executable, "-m", *words]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout

    assert run("examples.script", "one.example", "two.example") == "2 new schedules, 2 runs\n"
    assert run("examples.script", "two.example", "three.example") == "1 new schedules, 2 runs\n"
    run("rota", "tick", "examples.script:app")
    asyncio.run(ended(store))


async def ended(store: str) -> None:
    async with rota.Rota(store) as app:
        found = await app.runs.list()
        assert {each.state for each in found} == {"succeeded"}
        assert '"one.example is well"' in {each.result for each in found}
        assert [each.key for each in await app.schedules.list()] == [
            "check-one.example",
            "check-three.example",
            "check-two.example",
        ]


@pytest.mark.parametrize("on", ["examples.embedded"], indirect=True)
def test_an_embedded_server_fires_works_and_is_looked_at_by_its_own_users(on: ModuleType) -> None:
    with TestClient(on.api) as web:
        while len(web.get("/headlines").json()) < 3:
            web.portal.call(asyncio.sleep, 0.02)
        assert web.get("/rota/readyz").status_code == 200
        assert web.get("/rota/openapi.json").status_code == 401
        assert web.get("/rota/openapi.json", headers={"x-user": "ann"}).status_code == 200
        assert web.get("/rota/api/tokens", headers={"x-user": "ann"}).status_code == 403
    assert on.headlines[0] == "open"
    assert on.headlines[-1] == "closed"
    assert len(set(on.headlines)) == len(on.headlines)


@pytest.mark.parametrize("on", ["examples.separate"], indirect=True)
def test_a_separate_worker_does_what_the_server_took(on: ModuleType, store: str) -> None:
    with TestClient(on.api) as web:
        run = web.post("/orders", params={"item": "tea"}).json()["run"]
        assert web.portal.call(on.app.runs.get, run).state == "ready"
        command = [sys.executable, "-m", "rota", "worker", "examples.separate:app"]
        with subprocess.Popen(command, cwd=ROOT, env=os.environ | {"ROTA_STORE": store}) as worker:
            web.portal.call(on.app.runs.wait, run)
            worker.terminate()
        assert web.portal.call(on.app.runs.result, run) == "mailed: tea"
    assert worker.returncode == 0


def test_system_cron_does_what_is_due(store: str) -> None:
    command = [sys.executable, "-m", "rota", "tick", "examples.system_cron:app"]
    own = os.environ | {"ROTA_STORE": store}
    said = [
        subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=True).stdout for _ in range(2)
    ]
    assert said == ["1 fired; 1 succeeded\n", "0 fired; nothing to do\n"]
