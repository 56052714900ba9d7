"""Pages of lists: a cursor is opaque and signed, and names where the last page ended, so that the order is stable."""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Annotated, Generic, TypeVar

from fastapi import Depends, Query, Request
from pydantic import BaseModel, Field

from rota.server.here import Here
from rota.server.problems import Refused
from rota.store.secrets import secret

T = TypeVar("T")

MOST = 200
"""How many items a page has at most."""
LONGEST = 2_000
_SIGNATURE = 16

Value = str | int | float | bool | None

Limit = Annotated[int, Query(ge=1, le=MOST, description="How many items at most.")]
"""How many items a page is to have, as a parameter of a route: `limit: Limit = 50`."""
CursorText = Annotated[
    str | None, Query(max_length=LONGEST, description="The `next` of the page before; the first page if left out.")
]
"""Where a page begins, as a parameter of a route: `cursor: CursorText = None`."""


class Page(BaseModel, Generic[T]):
    """A part of a list."""

    items: list[T] = Field(description="What there is, in the order of the list.")
    next: str | None = Field(default=None, description="The `cursor` of the page after this one; null at the end.")


async def _secret(request: Request, here: Here) -> bytes:
    """Return what all servers on the store sign with; it is read once."""
    state = request.app.state
    if state.secret is None:
        state.secret = await here.database.write(lambda: secret(here.database, "cursors"), single=True)
    found: bytes = state.secret
    return found


Secret = Annotated[bytes, Depends(_secret)]
"""What cursors are signed with, as a parameter of a route."""


def encode(secret: bytes, values: Sequence[Value]) -> str:
    """Write a cursor."""
    text = json.dumps(list(values), separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_signature(secret, text) + text).decode().rstrip("=")


def decode(secret: bytes, cursor: str) -> list[Value]:
    """Read a cursor that this server, or another on its store, wrote; any other is refused."""
    try:
        whole = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        whole = b""
    signature, text = whole[:_SIGNATURE], whole[_SIGNATURE:]
    if not hmac.compare_digest(signature, _signature(secret, text)):
        raise Refused(400, "cursor: this is no cursor of this server; use the next of a page, as it is")
    values: list[Value] = json.loads(text)
    return values


def _signature(secret: bytes, text: bytes) -> bytes:
    return hmac.digest(secret, text, hashlib.sha256)[:_SIGNATURE]
