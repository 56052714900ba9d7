"""The door: nobody whom it does not know gets in, whatever they ask for and however they write it.

It stands before the routes, so that no route can be forgotten. Only the paths in `OPEN` are for everybody, and only as
they are written here.
"""

import hmac
import inspect

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from rota import settings
from rota.app import Rota
from rota.errors import RotaError
from rota.server.auth import CALLER, Auth, Caller, Role
from rota.server.problems import Refused, of

OPEN = frozenset({"/healthz", "/readyz"})
"""What everybody may ask for."""


def bearer(request: Request) -> str | None:
    """Return the token that a request brings."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def by_token(app: Rota) -> Auth:
    """Know callers by the token that the operator gives, or by one of the store's."""

    async def who(request: Request) -> Caller | None:
        token, given = bearer(request), settings.token()
        if token is None:
            return None
        if given is not None and hmac.compare_digest(token.encode(), given.get_secret_value().encode()):
            return Caller("ROTA_TOKEN", Role.ADMIN)
        found = await app.tokens.find(token)
        return None if found is None else Caller(found.name, Role(found.role))

    return who


class Door:
    """Finds out who asks, and refuses all others."""

    def __init__(self, app: ASGIApp, auth: Auth) -> None:
        self._app = app
        self._auth = auth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it here."""
        if scope["type"] == "http" and own_path(scope) not in OPEN:
            try:
                scope[CALLER] = await self._known(Request(scope))
            except Refused as refused:
                await refused.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _known(self, request: Request) -> Caller:
        try:
            found = self._auth(request)
            caller = await found if inspect.isawaitable(found) else found
        except RotaError as error:
            raise of(error) or error from error
        if caller is None:
            raise Refused(401, "a token is needed: Authorization: Bearer …", headers={"WWW-Authenticate": "Bearer"})
        return caller


def own_path(scope: Scope) -> str:
    """Return the path of a request without the prefix under which the server is mounted."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))
