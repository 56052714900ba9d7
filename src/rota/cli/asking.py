"""Asking a server of Rota's, as whoever `ROTA_TOKEN` stands for; what it refuses is one line."""

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Self, TypeVar, cast
from urllib.parse import urlsplit

import httpx2
from pydantic import TypeAdapter, ValidationError

from rota import settings
from rota.cli.output import bar
from rota.errors import Invalid, RotaError

T = TypeVar("T")

_PAGE = 200
_SECONDS = 60.0
_CONNECT_SECONDS = 10.0
_LONGEST_WAIT = 60
"""For how many seconds at most a server may tell us to wait before we ask again."""
_MAKE = "rota tokens create makes one"


class NotDone(RotaError):
    """What a server did not do, and why."""


class Asking:
    """Somebody who asks a server. The token is in a header and nowhere else."""

    def __init__(self, url: str) -> None:
        self._url = _checked(url)
        token = settings.token()
        self._known = token is not None
        headers = {} if token is None else {"Authorization": f"Bearer {token.get_secret_value()}"}
        lengths = httpx2.Timeout(_SECONDS, connect=_CONNECT_SECONDS)
        self._client = httpx2.AsyncClient(headers=headers, timeout=lengths)

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Return what the server answers, as JSON; what is None is not asked about. Waits where it asks too often."""
        named = {name: value for name, value in (query or {}).items() if value is not None}
        while True:
            try:
                answer = await self._client.request(
                    method, f"{self._url}/api/{path}", json=body, params=named, headers=headers
                )
            except httpx2.TimeoutException:
                raise NotDone(
                    f"the server at {self._url} takes too long; what was asked may be done all the same"
                ) from None
            except httpx2.TransportError as error:
                why = str(error) or type(error).__name__
                advice = "is it running? rota serve starts one"
                raise NotDone(f"no server answers at {self._url} ({why}); {advice}") from None
            if answer.status_code != httpx2.codes.TOO_MANY_REQUESTS:
                return self._read(answer)
            again = answer.headers.get("Retry-After", "1")
            await asyncio.sleep(min(int(again), _LONGEST_WAIT) if again.isdigit() else 1)

    async def items(self, path: str, most: int | None = None, **query: Any) -> list[Any]:
        """Return the items of a list, page after page, up to so many."""
        found: list[Any] = []
        cursor: str | None = None
        with bar(shown=most is None or most > _PAGE) as progress:
            shown = progress.add_task(path, total=most)
            while True:
                size = _PAGE if most is None else min(_PAGE, most - len(found))
                page = await self.ask("GET", path, query=query | {"limit": size, "cursor": cursor})
                found += page["items"]
                cursor = page["next"]
                progress.update(shown, completed=len(found))
                if cursor is None or len(found) == most:
                    return found

    def _read(self, answer: httpx2.Response) -> Any:
        if answer.status_code == httpx2.codes.NO_CONTENT:
            return None
        try:
            found = answer.json()
        except ValueError:
            found = None
        if answer.is_success and found is not None:
            return found
        detail = found.get("detail") if isinstance(found, dict) else None
        if not isinstance(detail, str):
            raise NotDone(f"what answers at {self._url} ({answer.status_code}) is no server of Rota's; see --url")
        raise NotDone(self._advice(answer.status_code, detail, found.get("id")))

    def _advice(self, status: int, detail: str, number: str | None) -> str:
        if status == httpx2.codes.UNAUTHORIZED and not self._known:
            return f"the server wants a token: set ROTA_TOKEN; {_MAKE}"
        if status == httpx2.codes.UNAUTHORIZED:
            return f"the server does not know ROTA_TOKEN, or not any more; {_MAKE}"
        if status == httpx2.codes.FORBIDDEN:
            return f"{detail}; set ROTA_TOKEN to a token whose role reaches further"
        return f"{detail} (id {number})" if number else detail


def _checked(url: str) -> str:
    wrong = Invalid("url", "what was given", "use such as http://127.0.0.1:8080", "is no address of a server")
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname and parts.port != 0)
    except ValueError:
        raise wrong from None
    if not named or parts.query or parts.fragment:
        raise wrong
    if parts.username is not None or parts.password is not None:
        raise Invalid("url", parts.hostname, "leave them out, and set ROTA_TOKEN", "has a name or password before it")
    return url.rstrip("/")


def record(kind: type[T], found: dict[str, Any], **own: Any) -> T:
    """Make a record of what a server answers, and of what is named otherwise here."""
    try:
        made: T = _reader(cast("Any", kind)).validate_python(found | own)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise NotDone(f"the server answers as another version of Rota does: {kind.__name__}.{where}") from None
    return made


@lru_cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
