"""Telling people: every target is tried, whatever becomes of the others."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass

from rota import clock
from rota.errors import FetchFailed, Invalid, NotifyFailed, RotaError
from rota.http.client import Client
from rota.http.guard import read_place
from rota.notify.targets import MAIL_PORTS, OWN_HOSTS, SERVICES, Target, read_targets
from rota.signing import message_id, sign

LONGEST_TITLE = 200
LONGEST_TEXT = 20_000
_MOST_ANSWER = 100_000


@dataclass(frozen=True)
class Message:
    """What a person is told."""

    id: str
    title: str
    text: str


async def send(
    title: str,
    text: str = "",
    *,
    to: str | Target | Iterable[str | Target] | None = None,
    id: str | None = None,  # noqa: A002
) -> list[Target]:
    """Tell people, by these targets or by those of `ROTA_NOTIFY`; return the targets, of which there may be none.

    All are tried. Raises `NotifyFailed` where some could not be told: its `failed` may be given to `to` again, with
    the same `id`, so that who understands it hears it once.
    """
    targets = read_targets(to)
    message = Message(message_id(id), _title(title), _text(text))
    ended = await asyncio.gather(*(_tell(each, message) for each in targets), return_exceptions=True)
    failed: dict[Target, str] = {}
    for target, error in zip(targets, ended, strict=True):
        if isinstance(error, RotaError):
            failed[target] = str(error)
        elif isinstance(error, BaseException):
            raise error
    if failed:
        raise NotifyFailed([f"{each.shown}: {why}" for each, why in failed.items()], list(failed), len(targets))
    return targets


async def _tell(target: Target, message: Message) -> None:
    if target.scheme in SERVICES:
        from rota.notify.services import tell_service  # noqa: PLC0415 (an extra)

        await tell_service(target, message.title, message.text)
    elif target.scheme == "mailto" or target.scheme in MAIL_PORTS:
        from rota.notify.mail import tell_by_mail  # noqa: PLC0415 (an extra)

        await tell_by_mail(target, message.id, message.title, message.text)
    elif target.scheme in OWN_HOSTS:
        await _tell_own(target, message)
    else:
        await _tell_webhook(target, message)


async def _tell_webhook(target: Target, message: Message) -> None:
    url, secret = target.webhook()
    at = clock.now()
    data = {"title": message.title, "text": message.text}
    body = json.dumps({"type": "rota.message", "timestamp": at.isoformat(), "data": data})
    await _post(url, body, sign(secret, body, id=message.id, at=at))


async def _tell_own(target: Target, message: Message) -> None:
    """Tell a person's own ntfy or Gotify: ntfy://HOST/TOPIC, gotify://HOST/TOKEN."""
    url = OWN_HOSTS[target.scheme] + target.secret[len(target.scheme) :]
    base, _, last = url.rstrip("/").rpartition("/")
    if target.scheme.startswith("ntfy"):
        await _post(base, json.dumps({"topic": last, "title": message.title, "message": message.text or message.title}))
    else:
        said = json.dumps({"title": message.title, "message": message.text or message.title})
        await _post(f"{base}/message", said, {"X-Gotify-Key": last})


async def _post(url: str, body: str, headers: dict[str, str] | None = None) -> None:
    """Post JSON; whoever redirects has not taken it."""
    client = Client(redirects=0, most_bytes=_MOST_ANSWER)
    found = await client.fetch(
        url, method="POST", headers={"Content-Type": "application/json", **(headers or {})}, body=body
    )
    if not found.ok:
        raise FetchFailed(str(read_place(url)), "not taken", f"status {found.status}")


def _title(title: object) -> str:
    if not isinstance(title, str) or not title.strip():
        raise Invalid("title", title, "use a line of text")
    return " ".join(title.split())[:LONGEST_TITLE]


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise Invalid("text", text, "use text")
    return text[:LONGEST_TEXT]
