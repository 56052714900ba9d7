"""Rota in somebody's own server: under any prefix, with their auth and lifespan, in any number of processes."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from tests.journeys.processes import eventually
from tests.server.serving import by_header, client, listening
from tests.servers import ROOT

import rota


@pytest.fixture
def app() -> rota.Rota:
    return rota.Rota("sqlite://", name="shop")


async def mine(_: object) -> PlainTextResponse:
    return PlainTextResponse("mine")


def in_fastapi(app: rota.Rota, prefix: str) -> Any:
    api = FastAPI(lifespan=app.lifespan)
    api.add_route("/mine", mine)
    api.mount(prefix, app.web(auth=by_header))
    return api


def in_starlette(app: rota.Rota, prefix: str) -> Any:
    return Starlette(
        routes=[Route("/mine", mine), Mount(prefix, app.web(auth=by_header))], lifespan=lambda _: app.lifespan()
    )


def in_a_mount_of_a_mount(app: rota.Rota, prefix: str) -> Any:
    return Starlette(
        routes=[Route("/mine", mine), Mount("/deep", in_fastapi(app, prefix))], lifespan=lambda _: app.lifespan()
    )


@pytest.mark.parametrize("prefix", ["/rota", "/a/b/c", "/api"])
@pytest.mark.parametrize("build", [in_fastapi, in_starlette, in_a_mount_of_a_mount])
async def test_it_answers_under_any_prefix_and_only_there(app: rota.Rota, build: Any, prefix: str) -> None:
    root = f"/deep{prefix}" if build is in_a_mount_of_a_mount else prefix
    api = build(app, prefix)
    async with listening(api) as ann:
        assert (await ann.get("/mine")).text == "mine"
        assert "content-security-policy" not in (await ann.get("/mine")).headers
        for path in ("/healthz", "/readyz"):
            assert (await ann.get(root + path, headers={"x-caller": ""})).json() == {"status": "ok"}
        made = await ann.post(f"{root}/api/tokens", json={"name": "x"}, headers={"Sec-Fetch-Site": "same-origin"})
        assert made.status_code == 201
        assert (await ann.get(f"{root}/docs/docs.js")).status_code == 200
        for path in ("/api/tokens", "/openapi.json", "/healthz/", "//healthz", f"{root}/healthz"):
            assert (await ann.get(root + path, headers={"x-caller": ""})).status_code == 401, path
        assert (await ann.get("/healthz")).status_code == 404


async def test_the_description_knows_its_prefix(app: rota.Rota) -> None:
    async with client(in_fastapi(app, "/rota")) as ann:
        assert (await ann.get("/rota/openapi.json")).json()["servers"] == [{"url": "/rota"}]


@pytest.mark.parametrize("wait", [True, False])
async def test_an_auth_of_ones_own_takes_the_place_of_tokens(app: rota.Rota, wait: bool) -> None:
    async def later(request: Any) -> rota.Caller | None:
        await asyncio.sleep(0)
        return by_header(request)

    async with app:
        token = (await app.tokens.create("ann", "admin")).token
        async with client(app.web(auth=later if wait else by_header), None) as somebody:
            assert (await somebody.get("/api/tokens", headers={"x-caller": "bob:admin"})).status_code == 200
            assert (await somebody.get("/api/tokens", headers={"x-caller": "bob:read"})).status_code == 403
            assert (await somebody.get("/api/tokens", headers={"Authorization": f"Bearer {token}"})).status_code == 401


async def test_an_auth_that_fails_lets_nobody_in(app: rota.Rota) -> None:
    def broken(_: object) -> rota.Caller | None:
        raise RuntimeError("canary")

    async with client(app.web(auth=broken)) as somebody:
        answer = await somebody.get("/api/tokens")
    assert answer.status_code == 500
    assert "canary" not in answer.text


async def test_it_is_called_by_the_names_it_was_given(app: rota.Rota) -> None:
    async with client(app.web(auth=by_header, hosts=["News.example"])) as ann:
        assert (await ann.get("http://news.example/healthz")).status_code == 200
        assert (await ann.get("http://news.example:8080/healthz")).status_code == 200
        assert (await ann.get("http://evil.example/healthz")).status_code == 400


async def test_a_lifespan_of_ones_own_goes_around_it(app: rota.Rota) -> None:
    seen: list[str] = []

    @app.task(name="work")
    async def work() -> None:
        seen.append("worked")

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncIterator[None]:
        seen.append("opened")
        async with app.lifespan(api):
            yield
        seen.append("closed")

    api = FastAPI(lifespan=lifespan)
    api.mount("/rota", app.web(auth=by_header))
    async with listening(api) as ann:
        assert (await ann.get("/rota/readyz")).status_code == 200
        run = await work.enqueue()
        await app.runs.wait(run.id)
        assert not [each for each in seen if each == "closed"]
    assert seen == ["opened", "worked", "closed"]
    assert not app.entered


async def test_what_is_mounted_and_never_opened_says_so(app: rota.Rota) -> None:
    async with client(app.web(auth=by_header)) as ann:
        assert (await ann.get("/readyz")).status_code == 503
        assert (await ann.get("/api/tokens")).status_code == 503


async def test_two_server_processes_on_one_store_fire_each_instant_once(store: str, tmp_path: Path) -> None:
    ports, processes = [], []
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as free:
            ports.append(free.getsockname()[1])
    command = [sys.executable, "-m", "uvicorn", "tests.server.shop:api", "--log-level", "warning", "--port"]
    own = os.environ | {"ROTA_STORE": store, "PYTHONPATH": str(ROOT)}
    try:
        processes = [subprocess.Popen([*command, str(port)], cwd=tmp_path, env=own) for port in ports]  # noqa: ASYNC220
        for port in ports:
            await eventually(lambda port=port: ready(port), what="the start of a server")
        await eventually(lambda: len(ticks(tmp_path)) >= 6, what="six ticks")
    finally:
        for each in processes:
            each.terminate()
        for each in processes:
            each.wait()
    found = ticks(tmp_path)
    assert len(found) == len(set(found))
    async with rota.Rota(store) as app:
        fired = await app.schedules.firings("each-second", limit=100)
    assert len({each.run for each in fired if each.run}) == len([each for each in fired if each.run])
    assert {each.returncode for each in processes} == {-15}


def ticks(folder: Path) -> list[str]:
    notes = folder / "notes"
    return [line for line in notes.read_text().splitlines() if line.startswith("tick")] if notes.exists() else []


def ready(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/rota/readyz").status_code == 200
    except httpx2.TransportError:
        return False
