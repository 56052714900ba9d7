"""What a request may carry: so many bytes, JSON that every reader reads the same, and no NUL where a name stands."""

import asyncio
import contextlib
import json
import re
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rota.server.problems import FieldError, Refused

MOST_BYTES = 1_000_000
MOST_DEEP = 64
_DRAIN_BYTES = 20 * MOST_BYTES
_DRAIN_SECONDS = 5.0
"""How much of the rest of a body that is too large is thrown away at most, and for how long."""
_PARTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{\]}]', re.DOTALL)
"""The texts and brackets of JSON, in one pass: one that never ends is taken to the end, and not looked for again."""
_HALF = re.compile(r"[\ud800-\udfff]")


class Bodies:
    """Reads the whole body of a request before the application does, and refuses what nobody should have to read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            _check_address(scope)
            body = await _whole(scope, receive)
            if body and _is_json(scope):
                _check(body)
        except Refused as refused:
            await refused.response()(scope, receive, send)
            return
        if body is None:  # the caller has hung up
            return
        given = False

        async def receiving() -> Message:
            nonlocal given
            if given:
                return await receive()  # only that the caller has hung up is left to say
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, receiving, send)


async def _whole(scope: Scope, receive: Receive) -> bytes | None:
    """Read a body as it comes, and keep no more than is allowed; None where the caller hangs up."""
    length = dict(scope["headers"]).get(b"content-length", b"0")
    if not length.isdigit() or int(length) > MOST_BYTES:
        await _drained(receive)
        raise _too_large()
    parts = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts += message.get("body", b"")
        more = message.get("more_body", False)
        if len(parts) > MOST_BYTES:
            if more:
                await _drained(receive)
            raise _too_large()
    return bytes(parts)


async def _drained(receive: Receive) -> None:
    """Throw the rest of a body away: who is still sending when the connection ends does not get to read why."""
    read = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            while read < _DRAIN_BYTES:
                message = await receive()
                read += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def _too_large() -> Refused:
    return Refused(413, f"the body is too large; send at most {MOST_BYTES:,} bytes", headers={"Connection": "close"})


def _is_json(scope: Scope) -> bool:
    kind: bytes = dict(scope["headers"]).get(b"content-type", b"").partition(b";")[0].strip().lower()
    return kind.endswith((b"/json", b"+json"))


def _check_address(scope: Scope) -> None:
    if "\0" in scope["path"]:
        raise Refused(404, "there is nothing here")
    if b"\0" in unquote_to_bytes(scope["query_string"]):
        raise _wrong("query", "a NUL is in it", "leave it out")


def _check(body: bytes) -> None:
    """Refuse JSON that is too deep, and values that JSON does not have or that not all readers take."""
    if body.count(b"[") + body.count(b"{") > MOST_DEEP:
        deep = 0
        for part in _PARTS.finditer(body):
            mark = part[0]
            deep += (mark in (b"[", b"{")) - (mark in (b"]", b"}"))
            if deep > MOST_DEEP:
                raise _wrong("body", "it is nested too deeply", f"use at most {MOST_DEEP} levels")
    try:
        text = body.decode()
        json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError:
        return  # the route says where it is wrong
    except UnicodeDecodeError:
        raise _wrong("body", "it is no UTF-8", "send JSON in UTF-8") from None
    except RecursionError:
        raise _wrong("body", "it is nested too deeply", f"use at most {MOST_DEEP} levels") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise _wrong("body", str(error).partition(":")[0], "use smaller numbers") from None
    if "\\u" in text and _HALF.search(_strings(json.loads(text))):
        raise _wrong("body", "half a character is in it", "escape characters beyond U+FFFF as a pair")


def _strings(value: Any) -> str:
    """Return all text of a value; it is not deep."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join([*value, *map(_strings, value.values())])
    return "\n".join(map(_strings, value)) if isinstance(value, list) else ""


def _no_constant(word: str) -> None:
    raise _wrong("body", f"{word} is no JSON", "use numbers")


def _finite(word: str) -> float:
    found = float(word)
    if found in (float("inf"), float("-inf")):
        raise _wrong("body", "a number is too large", "use numbers up to 1e308")
    return found


def _wrong(field: str, message: str, allowed: str) -> Refused:
    wrong = FieldError(field=field, message=message, allowed=allowed)
    return Refused(422, f"{field}: {message}; {allowed}", errors=(wrong,))
