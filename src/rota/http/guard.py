"""What stands between an address that somebody gave and the network."""

import asyncio
import socket
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes
from urllib.request import getproxies_environment, proxy_bypass

from rota import settings
from rota.errors import AddressRefused, FetchFailed, Invalid
from rota.http.addresses import Network, address_allowed, literal, name_problem, port_allowed, read_networks

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Finds the addresses of a name."""

PORTS = {"http": 80, "https": 443}
LONGEST_URL = 8_000
_ALLOWED = "use http:// or https:// and the name of a public host"
_PRIVATE = "public addresses may be called, and networks that ROTA_ALLOW_NETWORKS names"
_PORTS = "80, 443 and ports over 1023 may be called, but for those of databases and other services"


@dataclass(frozen=True)
class Place:
    """An address that may be looked up: its parts, read once, by those who use them."""

    url: Any = field(repr=False)
    """An `httpx2.URL`, without user and password."""
    scheme: str
    host: str
    port: int
    authorization: str | None = field(repr=False)
    """What user and password in the URL come to."""

    def __str__(self) -> str:
        """Say where it is; path, query, user and password may be secret."""
        return origin(self.scheme, self.host, self.port)


def origin(scheme: str, host: str, port: int) -> str:
    """Return the part of an address that is no secret."""
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}" + ("" if port == PORTS.get(scheme) else f":{port}")


def read_place(url: object) -> Place:
    """Read an address, or refuse it for what can be seen without asking anybody."""
    import httpx2  # noqa: PLC0415 (it takes a while to import, and most commands call nobody)

    if not isinstance(url, str) or len(url) > LONGEST_URL or any(char <= " " or char in "\\\x7f" for char in url):
        problem = f"is not a URL of up to {LONGEST_URL:,} characters without spaces and backslashes"
        raise AddressRefused("url", "…", _ALLOWED, problem)
    try:
        found = httpx2.URL(url)
        host = found.raw_host.decode("ascii").lower()
    except (httpx2.InvalidURL, ValueError):
        raise AddressRefused("url", "…", _ALLOWED, "cannot be read as a URL") from None
    if found.scheme not in PORTS:
        raise AddressRefused("url", f"{found.scheme}:…", _ALLOWED, "is not called")
    port = PORTS[found.scheme] if found.port is None else found.port
    if not port_allowed(port):
        raise AddressRefused("url", origin(found.scheme, host, port), _PORTS, "has a port that is not called")
    check_host(host)
    place = found.copy_with(username=None, password=None, fragment=None)
    return Place(place, found.scheme, host, port, _authorization(found.userinfo))


def check_host(host: str) -> None:
    """Refuse a host for what can be seen of it without asking anybody."""
    if "%" in host:
        raise AddressRefused("url", host, _ALLOWED, "is not the name of a host")
    if literal(host) is None and (problem := name_problem(host)):
        raise AddressRefused("url", host, _ALLOWED, problem)


class Guard:
    """Looks names up once, and lets through only what may be called."""

    def __init__(self, networks: Iterable[str] | None, resolve: Resolve | None) -> None:
        named = settings.allow_networks() if networks is None else list(networks)
        self._networks = _networks(named, "ROTA_ALLOW_NETWORKS" if networks is None else "networks")
        self._resolve = resolve or addresses_of

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host; all of them may be called, or the host is refused."""
        check_host(host)
        found = [host] if literal(host) else list(await self._resolve(host, port))
        if not found:
            raise FetchFailed(host, "unresolved", "the name has no address")
        for each in found:
            self._check(each, host if each == host else f"{host} ({each})")
        return list(dict.fromkeys(found))

    def check_literal(self, host: str) -> None:
        """Refuse a host that is an address which may not be called; of a name nothing can be said yet."""
        if literal(host) is not None:
            self._check(host, host)

    def _check(self, found: str, shown: str) -> None:
        address = literal(found)
        if address is None or not address_allowed(address, self._networks):
            raise AddressRefused("url", shown, _PRIVATE, "is not public")

    def proxied(self, place: Place) -> str | None:
        """Return the proxy that the operator wants for this address, if any.

        The proxy looks names up, so that only what can be seen of the host itself is checked here.
        """
        proxies = getproxies_environment()
        proxy = proxies.get(place.scheme) or proxies.get("all")
        if not proxy or proxy_bypass(f"{place.host}:{place.port}", proxies):
            return None
        address = literal(place.host)
        here = place.host == "localhost" or place.host.endswith(".localhost")
        if here or (address and not address_allowed(address, self._networks)):
            raise AddressRefused("url", place.host, _PRIVATE, "is not public")
        proxy = proxy if "://" in proxy else f"http://{proxy}"
        if not proxy.startswith(("http://", "https://")):
            raise Invalid("proxy", proxy.partition("://")[0], "use http:// or https://", "is no proxy that Rota knows")
        return proxy


def _networks(texts: list[str], field: str) -> list[Network]:
    try:
        return read_networks(texts)
    except ValueError as error:
        raise Invalid(field, ",".join(texts), "use networks such as 10.0.0.0/8,fd00::/8", f"({error})") from None


async def addresses_of(host: str, port: int) -> list[str]:
    """Ask the system for the addresses of a name."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchFailed(host, "unresolved", getattr(error, "strerror", None) or "the name cannot be found") from None
    return [str(each[4][0]) for each in found]


def _authorization(userinfo: bytes) -> str | None:
    if not userinfo:
        return None
    user, _, password = userinfo.partition(b":")
    return "Basic " + b64encode(unquote_to_bytes(user) + b":" + unquote_to_bytes(password)).decode()
