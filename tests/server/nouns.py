"""What the tests of the nouns share: an app with tasks on an open store, and somebody who asks its server."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
from tests.server.serving import client, served

from rota.app import Rota

Client = httpx2.AsyncClient


@pytest.fixture
async def ann(app: Rota) -> AsyncIterator[Client]:
    """An operator, at the server of an app with a task."""

    @app.task(name="refresh", queue="feeds", priority="high", timeout="30s")
    async def refresh(feed_id: int = 0, password: str = "") -> int:
        """Refresh a feed."""
        if feed_id < 0:
            raise ValueError("no such feed")
        return feed_id

    async with client(served(app), "ann:operate") as asking:
        yield asking


async def made(ann: Client, key: str = "s", **more: Any) -> dict[str, Any]:
    """Make a schedule."""
    answer = await ann.post("/api/schedules", json={"key": key, "task": "refresh", "rule": {"every": "1h"}} | more)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def paged(ann: Client, path: str, name: Callable[[Any], Any], **query: Any) -> list[Any]:
    """Return all items of a list, two a page."""
    found: list[Any] = []
    cursor: dict[str, str] = {}
    while True:
        answer = await ann.get(path, params={"limit": 2, **query, **cursor})
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["items"]) <= 2
        found += map(name, answer.json()["items"])
        if answer.json()["next"] is None:
            return found
        cursor = {"cursor": answer.json()["next"]}


def problem(answer: httpx2.Response) -> tuple[int, str]:
    """Return the status of a problem, and what it says."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return answer.status_code, answer.json()["detail"]
