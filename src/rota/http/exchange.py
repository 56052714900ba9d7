"""One request and its answer, over a connection to an address that was checked."""

from collections.abc import Mapping
from functools import lru_cache
from ssl import SSLContext

import httpx2

from rota.errors import FetchFailed, Invalid
from rota.http.client import Response
from rota.http.guard import Place
from rota.version import __version__

MOST_HEADER_BYTES = 64_000
_CONNECT_SECONDS = 10.0
_MOST_ADDRESSES = 4
_USUAL = {"User-Agent": f"rota/{__version__}", "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}


class Exchange:
    """Asks one place, and reads no more of the answer than it may."""

    def __init__(
        self, place: Place, most_bytes: int, content_types: tuple[str, ...], redirects: frozenset[int]
    ) -> None:
        self._place = place
        self._most_bytes = most_bytes
        self._content_types = content_types
        self._redirects = redirects
        """With these the body is of no interest."""

    async def run(
        self, method: str, headers: Mapping[str, str], body: bytes | None, addresses: list[str], proxy: str | None
    ) -> Response:
        """Ask by one of these addresses, or by a proxy."""
        if proxy is not None:
            return await self._ask(self._request(method, headers, body), proxy)
        tried = addresses[:_MOST_ADDRESSES]
        for number, address in enumerate(tried, 1):
            try:
                return await self._ask(self._request(method, headers, body, address))
            except FetchFailed as error:
                if error.reason != "unreachable" or number == len(tried):
                    raise
        raise FetchFailed(str(self._place), "unresolved", "the name has no address")

    def _request(
        self, method: str, headers: Mapping[str, str], body: bytes | None, address: str | None = None
    ) -> httpx2.Request:
        """Return the request: to the address itself, while its headers and TLS speak of the name."""
        url: httpx2.URL = self._place.url
        given = {name.lower() for name in headers}
        sent = {name: value for name, value in _USUAL.items() if name.lower() not in given}
        return httpx2.Request(
            method,
            url if address is None else url.copy_with(host=address),
            headers={**sent, **headers, "Host": url.netloc.decode("ascii")},
            content=body,
            extensions={"sni_hostname": self._place.host, "timeout": {"connect": _CONNECT_SECONDS}},
        )

    async def _ask(self, request: httpx2.Request, proxy: str | None = None) -> Response:
        where = str(self._place)
        try:
            async with httpx2.AsyncHTTPTransport(verify=_tls(), trust_env=False, proxy=proxy) as transport:
                answer = await transport.handle_async_request(request)
                try:
                    return await self._read(answer)
                finally:
                    await answer.aclose()
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            raise FetchFailed(where, "unreachable", str(error) or "no connection") from None
        except httpx2.LocalProtocolError as error:
            raise Invalid("headers", "…", "use what HTTP can carry", f"cannot be sent: {error}") from None
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise FetchFailed(where, "broken answer", str(error) or type(error).__name__) from None

    async def _read(self, answer: httpx2.Response) -> Response:
        where = str(self._place)
        if sum(len(name) + len(value) + 4 for name, value in answer.headers.raw) > MOST_HEADER_BYTES:
            raise FetchFailed(where, "too large", f"its headers are over {MOST_HEADER_BYTES:,} bytes")
        body = bytearray()
        if answer.status_code not in self._redirects:
            self._check_type(answer)
            too_large = FetchFailed(where, "too large", f"it is over {self._most_bytes:,} bytes")
            if _length(answer) > self._most_bytes:
                raise too_large
            async for part in answer.aiter_bytes():
                if len(body) + len(part) > self._most_bytes:
                    raise too_large
                body += part
        return Response(str(self._place.url), answer.status_code, answer.headers, bytes(body))

    def _check_type(self, answer: httpx2.Response) -> None:
        """Refuse an answer of a kind that nobody asked for; those that are no success may be of any kind."""
        if not self._content_types or not answer.is_success:
            return
        found = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not {found, f"{found.partition('/')[0]}/*"} & set(self._content_types):
            detail = f"it is {found or 'of no kind'}, not {' or '.join(self._content_types)}"
            raise FetchFailed(str(self._place), "wrong content type", detail)


def _length(answer: httpx2.Response) -> int:
    """Return the length that it says it has."""
    text = answer.headers.get("content-length", "")
    bodiless = answer.status_code in (204, 304)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 and not bodiless else 0


@lru_cache(1)
def _tls() -> SSLContext:
    return httpx2.create_ssl_context()
