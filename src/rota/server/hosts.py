"""By which names a server may be called.

A page from elsewhere can let its own name lead to this machine and then speak to a server here as if it were its own
(DNS rebinding); but it cannot choose another name for the request than its own.
"""

from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from rota.server.problems import Refused

HERE = ("localhost", "127.0.0.1", "[::1]")
"""The names of a machine for itself."""


class Hosts:
    """Refuses requests that call the server by another name."""

    def __init__(self, app: ASGIApp, names: Iterable[str]) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] == "http" and host_name(Headers(scope=scope).get("host", "")) not in self._names:
            refused = Refused(400, "this server is not called so; name it in ROTA_HOSTS, or call it by its own name")
            await refused.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)


def host_name(given: str) -> str:
    """Return the name in a Host header, without the port."""
    name, colon, port = given.rpartition(":")
    return (name if colon and port.isdigit() else given).lower()
