"""Who asks, and what they may do.

The door (rota.server.door) finds out who asks before anything else is looked at, and lets nobody in whom it does not
know. Here a route says which role it takes: by a parameter (`Reader`, `Operator`, `Admin`) or for a whole router by
`needs`.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from rota.server.problems import Refused
from rota.tokens import Caller, Role

__all__ = ["CALLER", "Admin", "Auth", "Caller", "Known", "Operator", "Reader", "Role", "needs"]

CALLER = "rota.caller"
"""Under this name the door leaves the caller in the scope of a request."""


Auth = Callable[[Request], Caller | Awaitable[Caller | None] | None]
"""Finds out who asks; None where nobody does whom it knows."""

_bearer = HTTPBearer(auto_error=False, scheme_name="token", description="A token of `rota tokens create`.")


def _caller(
    request: Request, _shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)] = None
) -> Caller:
    """Return whom the door let in; the scheme is there for the description of the API."""
    found: Caller = request.scope[CALLER]
    return found


Known = Annotated[Caller, Depends(_caller)]
"""Whoever asks, whatever their role."""


def needs(role: Role) -> Any:
    """Take this role, or a higher one: as `dependencies=[needs(Role.ADMIN)]` of a router or a route."""

    def check(caller: Known) -> Caller:
        if not caller.role.covers(role):
            raise Refused(403, f"this needs the role {role}, and {caller.name} has the role {caller.role}")
        return caller

    return Depends(check)


Reader = Annotated[Caller, needs(Role.READ)]
"""Anybody who may look, as a parameter of a route."""
Operator = Annotated[Caller, needs(Role.OPERATE)]
"""Anybody who may change what runs."""
Admin = Annotated[Caller, needs(Role.ADMIN)]
"""Anybody who may decide who may do what."""
