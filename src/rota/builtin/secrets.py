"""Secrets by name: arguments are stored and shown, so they name a secret that the worker's environment holds."""

import os
import re

from rota.errors import Invalid

_NAME = re.compile(r"ROTA_SECRET_[A-Z0-9_]+")
_NAMED = re.compile(r"\{(ROTA_SECRET_[A-Z0-9_]+)\}")
_MASK = "…"


class Secrets:
    """The secrets that were looked up for one call, so that none of them is shown by what comes of it."""

    def __init__(self) -> None:
        self._found: set[str] = set()

    def get(self, name: str) -> str:
        """Return a secret by the name of its variable."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise Invalid("secret", name, "use the name of a variable that begins with ROTA_SECRET_")
        value = os.environ.get(name)
        if not value:
            raise Invalid("secret", name, "set it in the environment of the worker", "is not set")
        self._found.add(value)
        return value

    def fill(self, text: str) -> str:
        """Put secrets in the places of their names, as in `Bearer {ROTA_SECRET_SHOP}`."""
        return _NAMED.sub(lambda match: self.get(match[1]), text)

    def mask(self, text: str) -> str:
        """Return text without them."""
        for each in sorted(self._found, key=len, reverse=True):
            text = text.replace(each, _MASK)
        return text
