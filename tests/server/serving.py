"""What the tests of the server share: a server in this process, and callers by a header."""

import asyncio
import os
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self

import httpx2
import uvicorn
from fastapi import APIRouter, FastAPI, Request
from tests.servers import ROOT

from rota.app import Rota
from rota.server.auth import Caller, Role
from rota.server.web import web


def by_header(request: Request) -> Caller | None:
    """Take a caller's word for it."""
    name, _, role = request.headers.get("x-caller", "").partition(":")
    return Caller(name, Role(role)) if role else None


def served(app: Rota, *routes: tuple[str, str, Callable[..., Any]], auth: Any = by_header) -> FastAPI:
    """The server of an app, with routes of a test's own under /api."""
    api = web(app, auth=auth)
    router = APIRouter(prefix="/api")
    for method, path, route in routes:
        router.add_api_route(path, route, methods=[method], response_model=None)
    api.include_router(router)
    return api


def client(api: FastAPI, caller: str | None = "ann:admin", **headers: str) -> httpx2.AsyncClient:
    """Somebody who asks the server without a network between."""
    known = {"x-caller": caller} if caller else {}
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(api), base_url="http://test", headers=known | headers)


@asynccontextmanager
async def listening(api: Any, caller: str | None = "ann:admin") -> AsyncIterator[httpx2.AsyncClient]:
    """Somebody who asks a server over a real connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(api, lifespan="on", log_config=None, access_log=False, timeout_graceful_shutdown=1)
    server = _Quiet(config)
    going = asyncio.create_task(server.serve([listener]))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    known = {"x-caller": caller} if caller else {}
    async with httpx2.AsyncClient(base_url=address, headers=known, timeout=30) as found:
        try:
            yield found
        finally:
            server.should_exit = True
            await going


class _Quiet(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Served:
    """`rota serve` as a process of its own; what it says is read as it comes."""

    def __init__(self, *words: str, cwd: Path, **env: str) -> None:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("ROTA_")}
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "rota", "serve", "--port", "0", *words],
            cwd=cwd,
            env=clean | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"} | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.popen.kill()
        self.popen.communicate()

    def until(self, words: str) -> str:
        """Read what it says up to a line with these words."""
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            self.said.append(line)
            if words in line:
                return line
        raise AssertionError(f"it never said {words!r}: {''.join(self.said)}")

    def address(self) -> str:
        found = re.search(r"http://\S+", self.until("Rota serves at"))
        assert found
        self.until("is it well?")
        return found[0]

    def token(self) -> str:
        """Return the first token, which is shown below the address."""
        return self.until("shown this once").split()[-1]

    def ended(self) -> tuple[int, str]:
        """Wait for its end, and return its exit code and what it said last."""
        rest, _ = self.popen.communicate(timeout=60)
        return self.popen.returncode, rest
