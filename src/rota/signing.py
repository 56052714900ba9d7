"""Signed webhooks in the form of Standard Webhooks: who sent this, when, and that nobody changed it."""

import binascii
import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from rota import clock
from rota.errors import BadSignature, Invalid

PREFIX = "whsec_"
WINDOW = timedelta(minutes=5)
_SIZES = range(24, 65)
_ALLOWED = f"use {PREFIX} and 24 to 64 bytes in base64, as rota.notify.new_secret() makes them"
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
_SECONDS = re.compile(r"[0-9]{1,11}")
_MOST_SIGNATURES = 10


def new_secret() -> str:
    """Return a new secret to share with whoever receives, or sends."""
    return PREFIX + b64encode(secrets.token_bytes(32)).decode()


def message_id(given: str | None) -> str:
    """Return this id of a message, or refuse it; a new one where none is given."""
    if given is None:
        return f"msg_{secrets.token_hex(16)}"
    if not isinstance(given, str) or not _ID.fullmatch(given):
        raise Invalid("id", given, "use letters, digits, _ . : and -, up to 200 characters")
    return given


def sign(secret: str, body: bytes | str, *, id: str | None = None, at: datetime | None = None) -> dict[str, str]:  # noqa: A002
    """Return the headers that sign a message: its id, its time, and their signature with the body."""
    name = message_id(id)
    seconds = str(int((clock.now() if at is None else at).timestamp()))
    signature = _signature(secret_key(secret), name, seconds, body)
    return {"webhook-id": name, "webhook-timestamp": seconds, "webhook-signature": f"v1,{signature}"}


def verify(
    secret: str | Sequence[str], headers: Mapping[str, str], body: bytes | str, *, at: datetime | None = None
) -> str:
    """Return the id of a message that was signed with this secret, or one of these, within five minutes of now.

    Raises `BadSignature` otherwise. Who must not act twice remembers the id for ten minutes and refuses it again.
    """
    keys = [secret_key(each) for each in ([secret] if isinstance(secret, str) else secret)]
    found = {name.lower(): value for name, value in headers.items()}
    name, seconds, signatures = (found.get(f"webhook-{each}", "") for each in ("id", "timestamp", "signature"))
    if not _ID.fullmatch(name) or not _SECONDS.fullmatch(seconds) or not signatures:
        raise BadSignature("webhook-id, webhook-timestamp or webhook-signature is missing or unreadable")
    now = clock.now() if at is None else at
    if abs(now - datetime.fromtimestamp(int(seconds), UTC)) > WINDOW:
        raise BadSignature("its time is more than five minutes from now")
    given = [each.partition(",")[2] for each in signatures.split(" ")[:_MOST_SIGNATURES] if each.startswith("v1,")]
    right = [_signature(key, name, seconds, body).encode() for key in keys]
    if not any(hmac.compare_digest(one, other.encode()) for one in right for other in given):
        raise BadSignature("the signature is not that of this body with a secret known here")
    return name


def secret_key(secret: str) -> bytes:
    """Return the bytes of a secret; what is wrong with one does not show it."""
    try:
        key = b64decode(secret.removeprefix(PREFIX), validate=True) if secret.startswith(PREFIX) else b""
    except (binascii.Error, ValueError):
        key = b""
    if len(key) not in _SIZES:
        raise Invalid("secret", "…", _ALLOWED, "is not the secret of a webhook")
    return key


def _signature(key: bytes, name: str, seconds: str, body: bytes | str) -> str:
    text = body.encode() if isinstance(body, str) else body
    return b64encode(hmac.new(key, f"{name}.{seconds}.".encode() + text, hashlib.sha256).digest()).decode()
