"""The door: nobody whom it does not know gets in, whatever they ask for and however they write it.

It stands before the routes, so that no route can be forgotten. Only the paths in `OPEN` are for everybody, and only as
they are written here.
"""

import hmac
import inspect
from urllib.parse import urlsplit

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from rota import settings
from rota.app import Rota
from rota.errors import RotaError
from rota.server import docs
from rota.server.auth import CALLER, SAFE, Auth, Caller, Role
from rota.server.problems import Refused, of

OPEN = frozenset({"/healthz", "/readyz"}) | docs.OPEN
"""What everybody may ask for."""


def bearer(request: Request) -> str | None:
    """Return the token that a request brings."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def by_token(app: Rota) -> Auth:
    """Know callers by the token that the operator gives, or by one of the store's."""
    settings.token()  # one that is none is refused now, and not to those who ask

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
        if scope["type"] == "websocket":  # nothing here speaks it
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "http" and own_path(scope) not in OPEN:
            try:
                scope[CALLER] = await self._known(Request(scope))
            except Refused as refused:
                await refused.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _known(self, request: Request) -> Caller:
        if request.method not in SAFE and _from_elsewhere(request):
            raise Refused(403, "a page of another place may change nothing here")
        try:
            found = self._auth(request)
            caller = await found if inspect.isawaitable(found) else found
        except RotaError as error:
            raise of(error) or error from error
        if caller is None:
            raise Refused(401, "a token is needed: Authorization: Bearer …", headers={"WWW-Authenticate": "Bearer"})
        return caller


def _from_elsewhere(request: Request) -> bool:
    """Tell whether a browser asks for a page of another place, with what it knows of the user and the page does not.

    Who brings a token has put it there by hand: a browser never does. A password it remembers and sends by itself.
    """
    if bearer(request) is not None:
        return False
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site not in ("same-origin", "none")
    return origin is not None and urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()


def own_path(scope: Scope) -> str:
    """Return the path of a request without the prefix under which the server is mounted."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))
