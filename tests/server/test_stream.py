"""The stream: hints that something changed, for those who may know, for as long as they may."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from tests.scheduling import made
from tests.server.serving import client, listening
from tests.stores import ask, claim_one, ended, put, settle

import rota
from rota.app import Rota
from rota.server import stream
from rota.server.web import web


class Events:
    """What a listener is told."""

    def __init__(self, answer: httpx2.Response) -> None:
        self._lines = answer.aiter_lines()

    async def next(self) -> tuple[str, Any] | None:
        """Return the next event with its data; a comment as it is; None at the end."""
        name = ""
        async for line in self._lines:
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                return name, json.loads(line.removeprefix("data: "))
            elif line.startswith(":"):
                return line, None
        return None

    async def until(self, topic: str) -> None:
        """Wait for a change of this."""
        while True:
            found = await self.next()
            assert found is not None
            if found[0] == "change" and topic in found[1]:
                return

    async def end(self) -> None:
        """Wait for the end."""
        while await self.next() is not None:
            pass


@asynccontextmanager
async def listening_to(address: httpx2.AsyncClient, token: str) -> AsyncIterator[Events]:
    headers = {"Authorization": f"Bearer {token}"}
    async with address.stream("GET", "/api/stream", headers=headers, timeout=60) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        events = Events(answer)
        assert await events.next() == ("hello", ["runs", "schedules", "tokens"])
        yield events


async def test_a_change_by_whatever_process_is_told(app: Rota, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "REST_SECONDS", 0.0)
    token = (await app.tokens.create("ann")).token
    async with listening(web(app), None) as server, listening_to(server, token) as events:
        await app.schedules.put(made("s1", rota.Every("1h")))
        await events.until("schedules")
        async with Rota(store) as other:  # as another process would
            await other.schedules.put(made("s2", rota.Every("1h")))
            await events.until("schedules")


async def test_the_end_of_a_run_is_told_though_nobody_says_so(app: Rota) -> None:
    token = (await app.tokens.create("ann")).token
    run = await put(app.database)
    async with listening(web(app), None) as server, listening_to(server, token) as events:
        claimed = await claim_one(app.database)
        await settle(app.database, "w", [ended(claimed, "succeeded")])
        await events.until("runs")
    assert claimed.id == run.id


async def test_who_was_just_told_rests(app: Rota) -> None:
    token = (await app.tokens.create("ann")).token
    told = 0
    async with listening(web(app), None) as server, listening_to(server, token) as events:
        for number in range(50):
            await app.schedules.put(made(f"s{number}", rota.Every("1h")))
        await app.tokens.revoke("ann")
        while (found := await events.next()) is not None:
            told += found[0] == "change"
    assert told <= 25


async def test_a_stream_ends_when_its_token_is_revoked(app: Rota) -> None:
    token = (await app.tokens.create("ann")).token
    kept = (await app.tokens.create("bob")).token
    async with (
        listening(web(app), None) as server,
        listening_to(server, token) as events,
        listening_to(server, kept) as others,
    ):
        await app.tokens.revoke("ann")
        await events.end()
        await app.schedules.put(made("s1", rota.Every("1h")))
        await others.until("schedules")


async def test_a_stream_ends_when_its_token_expires(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.05)
    token = (await app.tokens.create("ann", expires="1h")).token
    async with listening(web(app), None) as server, listening_to(server, token) as events:
        assert await events.next() == (": still here", None)
        await ask(app.database, "UPDATE rota_tokens SET expires_at = 1")
        await events.end()


async def test_streams_end_with_the_server(app: Rota) -> None:
    token = (await app.tokens.create("ann")).token
    api = web(app)
    async with listening(api, None) as server, listening_to(server, token) as events:
        api.state.streams.close()
        await events.end()


async def test_there_are_so_many_listeners_and_no_more_and_who_leaves_makes_room(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "MOST_LISTENERS", 1)
    token = (await app.tokens.create("ann")).token
    headers = {"Authorization": f"Bearer {token}"}
    api = web(app)
    async with listening(api, None) as server:
        async with listening_to(server, token):
            refused = await server.get("/api/stream", headers=headers)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
        while api.state.streams.listeners:  # noqa: ASYNC110 (the server hears of it in its own time)
            await asyncio.sleep(0.01)
        async with listening_to(server, token):
            pass


async def test_a_stranger_hears_nothing(app: Rota) -> None:
    async with client(web(app), None) as stranger:
        assert (await stranger.get("/api/stream")).status_code == 401
