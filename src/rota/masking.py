"""Masking: what is secret does not get into logs, by its name, by its form, or because it is known."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

MASK = "…"
STANDS_IN = "***"
"""What stands for a secret in data: nobody takes it for one, and it can be refused where it comes back."""
_LEAST = 6
"""How long a known secret is at least: a shorter one would blot out half of what is said."""
_DEEPEST = 6

_NAME = r"(?:password|passwd|passphrase|secret|token|api[_-]?key|private[_-]?key|authorization|cookie|credential)"
_IS_SECRET = re.compile(rf"{_NAME}|pass$", re.IGNORECASE)
# None of them begins with what may repeat: they are done in one pass over the longest text.
_ADDRESS = re.compile(r"(://[^\s/:@]*):[^\s/]*@")
_BEARER = re.compile(r"(\bbearer\s+)[\w.~+/=-]+", re.IGNORECASE)
_NAMED = re.compile(rf"({_NAME}s?[\"']?\s*[=:]\s*[\"']?)(?!bearer\b)[^\s\"'&,;)}}\]]+", re.IGNORECASE)

_known: set[str] = set()


def hide(secrets: Iterable[str]) -> None:
    """Mask these values from now on, wherever they come up."""
    _known.update(each for each in secrets if len(each) >= _LEAST)


def hide_environment(environment: Mapping[str, str]) -> None:
    """Mask what the settings keep secret: tokens, targets of messages, and the passwords in addresses."""
    hide(value for name, value in environment.items() if name.startswith("ROTA_") and is_secret(name))
    hide(environment.get("ROTA_NOTIFY", "").split())
    for name in ("ROTA_STORE", "ROTA_BROKER", "ROTA_URL", "ROTA_SMTP"):
        try:
            password = urlsplit(environment.get(name, "")).password
        except ValueError:  # no address; whoever uses it says so
            continue
        hide([password, unquote(password)] if password else [])


def is_secret(name: str) -> bool:
    """Tell whether a name sounds like that of a secret."""
    return _IS_SECRET.search(name) is not None


def masked(text: str) -> str:
    """Return the text without what is secret in it."""
    for each in _known:
        text = text.replace(each, MASK)
    text = _ADDRESS.sub(rf"\1:{MASK}@", text)
    return _NAMED.sub(rf"\1{MASK}", _BEARER.sub(rf"\1{MASK}", text))


def masked_value(value: Any, name: str = "", deep: int = 0) -> Any:
    """Return a value with what is secret in it masked, also by the names inside; what is no data becomes text."""
    if is_secret(name) and value is not None:
        return MASK
    if value is None or isinstance(value, bool | int | float):
        return value
    if deep < _DEEPEST and isinstance(value, Mapping):
        return {str(key): masked_value(each, str(key), deep + 1) for key, each in value.items()}
    if deep < _DEEPEST and isinstance(value, list | tuple | set | frozenset):
        return [masked_value(each, "", deep + 1) for each in value]
    return masked(value if isinstance(value, str) else _text(value))


def without_secrets(plain: Any, *, secret: bool = False) -> Any:
    """Return JSON data in which something else stands for the text under every name that sounds like a secret."""
    if isinstance(plain, dict):
        return {key: without_secrets(each, secret=secret or is_secret(key)) for key, each in plain.items()}
    if isinstance(plain, list):
        return [without_secrets(each, secret=secret) for each in plain]
    return STANDS_IN if secret and isinstance(plain, str) and plain else plain


def masked_json(text: str) -> str:
    """Return JSON without the secrets in it; as it is where it has none."""
    plain = json.loads(text)
    found = without_secrets(plain)
    return text if found == plain else json.dumps(found)


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 (what cannot say itself must not keep the rest from being said)
        return f"a {type(value).__name__}"
