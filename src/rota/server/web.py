"""The server as one ASGI application, put together."""

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rota import settings
from rota.app import Rota
from rota.server import docs, health, metrics, problems, stream, tokens
from rota.server.auth import BY_METHOD, Auth
from rota.server.bodies import Bodies
from rota.server.door import Door, by_token
from rota.server.headers import Headers
from rota.server.health import Readiness
from rota.server.hosts import Hosts
from rota.server.pace import Pace
from rota.server.routers import ROUTERS
from rota.server.stream import Streams
from rota.version import __version__

_ABOUT = "The durable engine for recurring and background work. Errors are problem details (RFC 9457)."


def web(app: Rota, *, auth: Auth | None = None, hosts: Iterable[str] = ()) -> FastAPI:
    """Return the server of an app.

    `auth` finds out who asks, in the place of tokens. Where `hosts` are named it is called by one of these.
    """
    api = FastAPI(
        title="Rota",
        version=__version__,
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # one address for one thing
        telemetry={"logs": False, "operation_spans": False},  # errors are in the log, without what is secret in them
    )
    known = by_token(app) if auth is None else auth
    api.state.rota = app
    api.state.secret = None
    api.state.readiness = Readiness()
    api.state.streams = Streams(app, known)
    problems.install(api)
    for router in (*ROUTERS, stream.router, tokens.router):
        api.include_router(router, prefix="/api", responses=problems.RESPONSES)
    for each in app.applications:
        if each.routes is not None:
            api.include_router(each.routes, prefix="/api", responses=problems.RESPONSES, dependencies=[BY_METHOD])
    api.include_router(metrics.router, responses=problems.RESPONSES)
    api.include_router(health.router)
    api.include_router(docs.router)
    _put_before(api, known, hosts)
    _describe(api, by_tokens=auth is None)
    return api


def _put_before(api: FastAPI, auth: Auth, hosts: Iterable[str]) -> None:
    """Put what looks at every request before the routes; the last one here is the first to look."""
    api.add_middleware(Bodies)
    if settings.requests_a_minute():
        api.add_middleware(Pace, a_minute=settings.requests_a_minute())
    api.add_middleware(Door, auth=auth)
    if names := list(hosts):
        api.add_middleware(Hosts, names=names)
    api.add_middleware(Failures)
    api.add_middleware(Headers)


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


def _describe(api: FastAPI, *, by_tokens: bool) -> None:
    """Let the description of the API say in which form problems come, and nothing of tokens where others decide."""
    usual = api.openapi

    def described() -> dict[str, Any]:
        found = usual()
        if not by_tokens:
            found["components"].pop("securitySchemes", None)
        for path in found["paths"].values():
            for operation in path.values():
                if not by_tokens:
                    operation.pop("security", None)
                for answer in operation["responses"].values():
                    content = answer.get("content", {})
                    if content.get("application/json", {}).get("schema", {}).get("$ref", "").endswith("/Problem"):
                        content[problems.MEDIA_TYPE] = content.pop("application/json")
        return found

    api.openapi = described  # type: ignore[method-assign]
