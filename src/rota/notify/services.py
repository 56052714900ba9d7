"""Telling by a chat or paging service, through Apprise."""

import asyncio
import logging
from contextvars import ContextVar

from rota.errors import FetchFailed, Invalid, MissingExtra
from rota.notify.targets import Target

try:
    import apprise
except ImportError:
    raise MissingExtra("notify", "telling by a chat service") from None

_SECONDS = 30.0
_OURS: ContextVar[bool] = ContextVar("rota_notify", default=False)


class _Discreet(logging.Filter):
    """Drops what is logged while Rota sends: it shows addresses, and they are secret."""

    def filter(self, _: logging.LogRecord) -> bool:
        return not _OURS.get()


for _name in ("apprise", "urllib3.connectionpool"):
    logging.getLogger(_name).addFilter(_Discreet())


async def tell_service(target: Target, title: str, text: str) -> None:
    """Tell by a service; its host is its own and redirects are not followed, so that it leads nowhere else."""
    try:
        async with asyncio.timeout(_SECONDS):
            taken = await asyncio.to_thread(_tell, target.secret, title, text or title)
    except TimeoutError:
        raise FetchFailed(target.shown, "timed out", f"it took longer than {_SECONDS:g} s") from None
    if not taken:
        raise FetchFailed(target.shown, "not taken", "the service did not take it")


def _tell(url: str, title: str, text: str) -> bool:
    _OURS.set(True)
    asset = apprise.AppriseAsset(http_redirects=False)
    service = apprise.Apprise.instantiate(url, asset=asset)
    if service is None:
        scheme = url.partition(":")[0]
        raise Invalid("target", f"{scheme}://…", "see Apprise's page on the service", "does not have all its parts")
    return bool(service.notify(body=text, title=title))
