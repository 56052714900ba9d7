"""What the tests of the server share: a server in this process, and callers by a header."""

from collections.abc import Callable
from typing import Any

import httpx2
from fastapi import APIRouter, FastAPI, Request

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
