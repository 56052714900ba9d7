"""The one guarded HTTP client: `fetch`, and the limits it keeps."""

import asyncio
import re
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from rota.errors import FetchFailed, Invalid
from rota.http.guard import Guard, Place, Resolve, read_place
from rota.times.choices import whole_number
from rota.times.durations import duration
from rota.times.moments import SECOND
from rota.times.policies import Length

T = TypeVar("T")

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
MOST_BYTES = 10_000_000
MOST_REDIRECTS = 10
_LARGEST = 1_000_000_000
_LONGEST = 3_600 * SECOND
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE = re.compile(r"([!-~]([ -~\t]{0,8000}[!-~])?)?")
_OURS = frozenset(
    {"accept-encoding", "connection", "content-length", "host", "proxy-authorization", "te", "trailer"}
) | {"transfer-encoding", "upgrade"}
"""Headers that say how a request travels."""
_HARMLESS = frozenset(
    {"accept", "accept-language", "cache-control", "content-type", "if-modified-since", "if-none-match"}
) | {"range", "user-agent"}
"""Headers that go along to another host; all others may hold a secret."""


@dataclass(frozen=True)
class Hop:
    """A redirect that was followed: what was asked, and how that was answered."""

    url: str = field(repr=False)
    status: int


@dataclass(frozen=True)
class Response:
    """What came back."""

    url: str = field(repr=False)
    """Where it came from, after all redirects."""
    status: int
    headers: Mapping[str, str] = field(repr=False)
    """By name, in whatever case."""
    body: bytes = field(repr=False)
    hops: tuple[Hop, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the status is 200 to 299."""
        return 200 <= self.status < 300


class Client:
    """Calls public addresses, and what the operator allows, within limits of time and size.

    Names are looked up once; if one of the answers may not be called, none is, and the connection goes to an address
    that was checked. Redirects are checked as the first address is. There is no cookie jar and no pool.
    """

    def __init__(
        self,
        *,
        timeout: Length = "30s",
        most_bytes: int = MOST_BYTES,
        redirects: int = MOST_REDIRECTS,
        content_types: Iterable[str] = (),
        networks: Iterable[str] | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        whole_number("most_bytes", most_bytes, 0, _LARGEST, Invalid)
        whole_number("redirects", redirects, 0, MOST_REDIRECTS, Invalid)
        self._seconds = duration(timeout, "timeout", least=1, most=_LONGEST) / SECOND
        self._most_bytes = most_bytes
        self._redirects = redirects
        self._content_types = tuple(each.lower() for each in content_types)
        self._guard = Guard(networks, resolve)

    async def check(self, url: str) -> None:
        """Refuse an address that would not be called, without calling it; its name is looked up."""
        place = read_place(url)
        if self._guard.proxied(place) is None:
            await self._within_time(place, self._guard.addresses(place.host, place.port))

    async def fetch(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | str | None = None,
    ) -> Response:
        """Ask an address and return what it answers, whatever the status.

        Raises `AddressRefused` for an address that is not called, first or behind a redirect, and `FetchFailed` where
        nothing usable comes back in time.
        """
        if method not in METHODS:
            raise Invalid("method", method, f"use {', '.join(METHODS)}")
        place = read_place(url)
        sent = _checked(headers or {})
        content = body.encode() if isinstance(body, str) else body
        return await self._within_time(place, self._follow(place, method, sent, content))

    async def _within_time(self, place: Place, work: Coroutine[Any, Any, T]) -> T:
        try:
            async with asyncio.timeout(self._seconds):
                return await work
        except TimeoutError:
            raise FetchFailed(str(place), "timed out", f"it took longer than {self._seconds:g} s") from None

    async def _follow(self, place: Place, method: str, headers: dict[str, str], body: bytes | None) -> Response:
        hops: list[Hop] = []
        while True:
            found = await self._ask(place, method, headers, body)
            target = found.headers.get("location")
            if found.status not in _REDIRECTS or target is None or not self._redirects:
                return replace(found, hops=tuple(hops))
            if len(hops) == self._redirects:
                raise FetchFailed(str(place), "too many redirects", f"more than {self._redirects}")
            hops.append(Hop(found.url, found.status))
            new = read_place(_joined(place, target))
            if found.status == 303 or (found.status in (301, 302) and method == "POST"):
                method, body = ("HEAD" if method == "HEAD" else "GET"), None
            if not _keeps_secrets(place, new):
                headers = {name: value for name, value in headers.items() if name.lower() in _HARMLESS}
            place = new

    async def _ask(self, place: Place, method: str, headers: dict[str, str], body: bytes | None) -> Response:
        from rota.http.exchange import Exchange  # noqa: PLC0415 (httpx2 takes a while to import)

        proxy = self._guard.proxied(place)
        addresses = [] if proxy else await self._guard.addresses(place.host, place.port)
        if place.authorization and "authorization" not in map(str.lower, headers):
            headers = {**headers, "Authorization": place.authorization}
        limits = (self._most_bytes, self._content_types, _REDIRECTS if self._redirects else frozenset())
        return await Exchange(place, *limits).run(method, headers, body, addresses, proxy)


async def fetch(
    url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes | str | None = None
) -> Response:
    """Ask an address within the usual limits, and return what it answers; see `Client.fetch`."""
    return await Client().fetch(url, method=method, headers=headers, body=body)


async def check(url: str) -> None:
    """Refuse an address that would not be called, without calling it; see `Client.check`."""
    await Client().check(url)


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name.lower() in _OURS:
            raise Invalid("headers", name, "use the name of a header that does not say how a request travels")
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise Invalid("headers", name, "use one line of ASCII, without spaces around it", "has a wrong value")
    return dict(headers)


def _joined(place: Place, target: str) -> str:
    try:
        return str(place.url.join(target))
    except ValueError:
        raise FetchFailed(str(place), "broken answer", "it redirects to what is no URL") from None


def _keeps_secrets(old: Place, new: Place) -> bool:
    """Tell whether a redirect stays with those who were trusted with the headers."""
    if (old.scheme, old.host, old.port) == (new.scheme, new.host, new.port):
        return True
    upgraded = (old.scheme, old.port, new.scheme, new.port) == ("http", 80, "https", 443)
    return old.host == new.host and upgraded
