"""Tokens in the store: hashes, names and roles."""

from dataclasses import dataclass
from datetime import datetime

from rota.db.database import Database, Operation, Row
from rota.times.moments import HOUR, moment

_COARSE = HOUR
"""How exactly it is kept when a token was used last: who asks often does not write often."""


@dataclass(frozen=True, slots=True)
class TokenState:
    """A token as the store keeps it: all but the token."""

    name: str
    role: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None
    """When it was used last, to the hour."""


class TokenStore:
    """The tokens in a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def find(self, digest: str) -> Operation[tuple[TokenState, bool] | None]:
        """Return a token that is valid now, and whether its use is worth a note."""
        rows = yield self._db.query("tokens.find", hash=digest, coarse=_COARSE)
        return (_state(rows[0]), bool(rows[0]["stale"])) if rows else None

    def make(self, digest: str, name: str, role: str, length: int | None) -> Operation[TokenState | None]:
        """Keep a new token; None where one of this name is there."""
        rows = yield self._db.query("tokens.make", hash=digest, name=name, role=role, length=length)
        return _state(rows[0]) if rows else None

    def make_first(self, digest: str, name: str) -> Operation[bool]:
        """Keep an admin token where there never was any; tells whether it was kept."""
        return bool((yield self._db.query("tokens.make_first", hash=digest, name=name)))

    def list(self) -> Operation["list[TokenState]"]:
        """Return all tokens, also those that are revoked, the oldest first."""
        return [_state(row) for row in (yield self._db.query("tokens.list"))]

    def revoke(self, name: str) -> Operation[TokenState | None]:
        """Let a token be valid no more; None where there is none of this name."""
        rows = yield self._db.query("tokens.revoke", name=name)
        return _state(rows[0]) if rows else None

    def use(self, digest: str) -> Operation[None]:
        """Note that a token was used."""
        yield self._db.query("tokens.use", hash=digest, coarse=_COARSE)


def _state(row: Row) -> TokenState:
    times = [None if row[name] is None else moment(row[name]) for name in ("expires_at", "revoked_at", "used_at")]
    return TokenState(row["name"], row["role"], moment(row["created_at"]), *times)
