"""`rota.http` as a task: call a URL."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from rota import clock
from rota.builtin.secrets import Secrets
from rota.context import current_or_none
from rota.errors import FetchFailed, Invalid
from rota.http.client import Client
from rota.http.guard import Guard, read_place
from rota.signing import sign

MOST_KEPT = 1_000
_SHOWN = 200


@dataclass(frozen=True)
class Called:
    """What came of a call."""

    status: int
    seconds: float
    bytes: int
    start: str
    """The first characters of the answer."""


def _checked(url: str) -> str:
    """Refuse an address when the call is made, for what can be seen of it."""
    Guard(None, None).check_literal(read_place(url).host)
    return url


async def call_url(
    url: Annotated[str, AfterValidator(_checked)],
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: str | None = None,
    expect: list[int] | None = None,
    secret: str | None = None,
    timeout: str = "30s",
) -> Called:
    """Call a URL; it has failed where the status is none of those expected, or not 200 to 299.

    Headers may name secrets, as in `Bearer {ROTA_SECRET_SHOP}`. With `secret`, the name of one, the call is signed in
    the form of Standard Webhooks; its id is the same over all attempts of the run.
    """
    known = Secrets()
    sent = {name: known.fill(value) for name, value in (headers or {}).items()}
    if secret is not None:
        run = current_or_none()
        sent |= sign(known.get(secret), body or "", id=None if run is None else run.key)
    if expect is not None and not all(100 <= each <= 599 for each in expect):
        raise Invalid("expect", expect, "use statuses from 100 to 599")
    begun = clock.monotonic()
    found = await Client(timeout=timeout).fetch(url, method=method, headers=sent, body=body)
    seconds = round(clock.monotonic() - begun, 3)
    start = known.mask(found.body[: 4 * MOST_KEPT].decode(errors="replace").replace("\0", "�"))[:MOST_KEPT]
    if not (found.ok if expect is None else found.status in expect):
        raise FetchFailed(str(read_place(url)), "unexpected status", f"{found.status}: {start[:_SHOWN]}")
    return Called(found.status, seconds, len(found.body), start)
