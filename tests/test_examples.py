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
