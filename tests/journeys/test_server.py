"""The server while things die around it: one effect for one key; 503 while the store is away, and then it goes on."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2
import pytest
from tests.journeys.processes import Crew, Process, eventually
from tests.journeys.proxy import Proxy
from tests.server import shop
from tests.server.serving import by_header, client
from tests.servers import Servers, psql

from rota.app import Rota, store_database
from rota.server.web import web

TOKEN = "0123456789abcdef"  # noqa: S105 (it opens nothing)
KNOWN = {"Authorization": f"Bearer {TOKEN}"}


class Shop:
    """A server in a process of its own, which may be killed and started again at the same address."""

    def __init__(self, crew: Crew, folder: Path) -> None:
        self._crew = crew
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self._port}/rota"

    async def start(self) -> Process:
        words = ("-m", "uvicorn", "tests.server.shop:api", "--port", str(self._port))
        started = self._crew.python("server", *words, ROTA_TOKEN=TOKEN, ROTA_SHOP=str(self._folder))
        await eventually(lambda: started.gone or self.ready(), what="the start of the server")
        assert not started.gone, started.log.read_text()
        return started

    def ready(self) -> bool:
        return self.status("/readyz") == 200

    def status(self, path: str) -> int:
        try:
            return httpx2.get(f"{self.address}{path}", headers=KNOWN, timeout=60).status_code
        except httpx2.TransportError:
            return 0

    def make(self, key: str) -> httpx2.Response:
        return httpx2.post(f"{self.address}/api/make", headers={**KNOWN, "Idempotency-Key": key}, timeout=60)


async def runs(store: str) -> list[int]:
    async with Rota(store) as app:
        return [each.id for each in await app.runs.list(task="shop.slow")]


async def test_a_server_killed_between_commit_and_answer_made_it_once(crew: Crew, tmp_path: Path) -> None:
    server = Shop(crew, tmp_path)
    first = await server.start()
    (tmp_path / "die").touch()
    with pytest.raises(httpx2.TransportError):
        await asyncio.to_thread(server.make, "k")
    await first.exit_code()
    made = await runs(crew.store)
    assert len(made) == 1
    await server.start()
    again = await asyncio.to_thread(server.make, "k")
    assert (again.status_code, again.json(), again.headers["idempotent-replayed"]) == (201, {"id": made[0]}, "true")
    assert await runs(crew.store) == made


async def test_an_answer_of_the_store_that_is_lost_makes_nothing_twice(postgres_database: str, seed: int) -> None:
    async with Rota(postgres_database):
        pass
    async with Proxy(postgres_database, seed) as proxy, shop.app.beside(store_database(proxy.url)) as app:
        api = web(app, auth=by_header)
        api.add_api_route("/api/make", shop.make, methods=["POST"])
        async with client(api) as ann:
            proxy.lose_once = b"COMMIT"
            first = await ann.post("/api/make", headers={"Idempotency-Key": "k"})
            assert proxy.harmed == 1
            second = await ann.post("/api/make", headers={"Idempotency-Key": "k"})
    assert first.status_code in (201, 503)
    assert second.status_code == 201
    assert second.headers["idempotent-replayed"] == "true"
    assert await runs(postgres_database) == [second.json()["id"]]


@pytest.fixture
def breakable(servers_to_break: Servers) -> Iterator[str]:
    """The address of a store on a server that the test breaks."""
    url = servers_to_break.url("postgres")
    name = f"server_{uuid4().hex}"
    psql(url, f"CREATE DATABASE {name}")
    yield urlsplit(url)._replace(path=f"/{name}").geturl()
    psql(url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.xdist_group("servers to break")
async def test_while_the_store_is_away_the_server_says_so_and_goes_on_by_itself(
    breakable: str, servers_to_break: Servers, tmp_path: Path
) -> None:
    async with Rota(breakable):
        pass
    with Crew(breakable, tmp_path) as crew:
        server = Shop(crew, tmp_path)
        process = await server.start()
        before = await asyncio.to_thread(server.make, "before")
        assert before.status_code == 201
        servers_to_break.crash("postgres")
        try:
            await eventually(lambda: server.status("/readyz") == 503, what="a server that is not ready")
            away: list[Any] = [await asyncio.to_thread(server.make, key) for key in ("before", "during")]
            assert server.status("/healthz") == 200
        finally:
            servers_to_break.up("postgres")
        for each in away:
            assert (each.status_code, each.headers["retry-after"]) == (503, "2")
            assert each.headers["content-type"] == "application/problem+json"
            assert not any(word in each.text for word in ("postgres", "asyncpg", "refused", str(tmp_path)))
        await eventually(server.ready, what="recovery")
        again = [await asyncio.to_thread(server.make, key) for key in ("before", "during")]
        assert [each.status_code for each in again] == [201, 201]
        assert again[0].json() == before.json()
        assert not process.gone
    assert len(await runs(breakable)) == 2
