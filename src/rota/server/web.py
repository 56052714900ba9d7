"""The server as one ASGI application, put together."""

from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rota.app import Rota
from rota.server import problems, tokens
from rota.server.auth import Auth
from rota.server.door import Door, by_token
from rota.server.routers import ROUTERS
from rota.version import __version__


def web(app: Rota, *, auth: Auth | None = None) -> FastAPI:
    """Return the server of an app. `auth` finds out who asks, in the place of tokens."""
    api = FastAPI(
        title="Rota",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        openapi_url="/openapi.json",
    )
    api.state.rota = app
    api.state.secret = None
    problems.install(api)
    for router in (
        *ROUTERS,
        tokens.router,
        *(each.routes for each in getattr(app, "applications", ()) if each.routes is not None),
    ):
        api.include_router(router, prefix="/api", responses=problems.RESPONSES)
    api.add_middleware(Door, auth=by_token(app) if auth is None else auth)
    api.add_middleware(Failures)
    _describe(api)
    return api


class Failures:
    """Answers what nobody foresaw, and tells the caller nothing but a number."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; where that fails before an answer began, answer it here."""
        began = False

        async def sending(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:
            if scope["type"] != "http":
                raise
            answer = problems.failure(error, f"{scope['method']} {scope['path']!r}")
            if began:
                raise  # there is no way to say it but to hang up
            await answer(scope, receive, send)


def _describe(api: FastAPI) -> None:
    """Let the description of the API say in which form problems come."""
    usual = api.openapi

    def described() -> dict[str, Any]:
        found = usual()
        for path in found["paths"].values():
            for operation in path.values():
                for answer in operation["responses"].values():
                    content = answer.get("content", {})
                    if content.get("application/json", {}).get("schema", {}).get("$ref", "").endswith("/Problem"):
                        content[problems.MEDIA_TYPE] = content.pop("application/json")
        return found

    api.openapi = described  # type: ignore[method-assign]
