"""Tokens: who may ask the server for what. A token is shown once, when it is made; the store has only its hash."""

import builtins
import contextlib
import hashlib
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum

from rota.db.database import Database
from rota.errors import Invalid, StoreUnavailable, UnknownToken
from rota.store.tokens import TokenState, TokenStore
from rota.times.choices import sendable
from rota.times.durations import duration
from rota.times.moments import DAY, SECOND
from rota.times.policies import Length

_PREFIX = "rota_"
"""Lets those who look for secrets in files know one."""
LONGEST_NAME = 100
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._:@+-]{{0,{LONGEST_NAME - 1}}}", re.ASCII)
_GIVEN = "ROTA_TOKEN"


class Role(StrEnum):
    """What a caller may do: look; also change what runs; also decide who may do what."""

    READ = "read"
    OPERATE = "operate"
    ADMIN = "admin"

    def covers(self, other: "Role") -> bool:
        """Tell whether this role may do all that the other may."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(other)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks; the name is what history says of what they change."""

    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was made just now."""

    token: str
    """What its bearer shows. It is here and nowhere else."""
    state: TokenState

    def __repr__(self) -> str:
        return f"NewToken({self.state!r})"


class Tokens:
    """The tokens of a store."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._store = TokenStore(database)

    async def create(self, name: str, role: str = Role.READ, *, expires: Length | None = None) -> NewToken:
        """Make a token; `expires` is how long it is valid. A name is one token's at a time, until that is revoked."""
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name == _GIVEN:
            raise Invalid("name", name, "use up to 100 letters, digits and . _ : @ + -, with a letter or digit first")
        if role not in list(Role):
            raise Invalid("role", role, f"use {', '.join(Role)}", "is no role")
        length = None if expires is None else duration(expires, "expires", least=SECOND, most=3_653 * DAY)
        token, digest = _new()
        made = await self._db.write(lambda: self._store.make(digest, name, str(role), length))
        if made is None:
            raise Invalid("name", name, "revoke that first, or use another name", "is the name of a token already")
        return NewToken(token, made)

    async def create_first(self) -> str | None:
        """Make an admin token and return it, where there never was any token in the store."""
        token, digest = _new()
        return token if await self._db.write(lambda: self._store.make_first(digest, "admin")) else None

    async def list(self) -> "builtins.list[TokenState]":
        """Return the tokens, also those that are revoked, the oldest first."""
        return await self._db.read(self._store.list)

    async def revoke(self, name: str) -> TokenState:
        """Let a token be valid no more, from now on and everywhere."""
        known = isinstance(name, str) and sendable(name)
        found = await self._db.write(lambda: self._store.revoke(name)) if known else None
        if found is None:
            raise UnknownToken(name)
        with contextlib.suppress(StoreUnavailable):
            await self._db.notify("tokens")  # whoever listens with it hears no more
        return found

    async def find(self, token: str) -> TokenState | None:
        """Return what a token that is valid now stands for; None for any other text."""
        digest = _digest(token)
        found = await self._db.read(lambda: self._store.find(digest))
        if found is None:
            return None
        state, worth_a_note = found
        if worth_a_note:
            with contextlib.suppress(StoreUnavailable):  # it is valid all the same
                await self._db.write(lambda: self._store.use(digest))
        return state


def _new() -> tuple[str, str]:
    token = _PREFIX + secrets.token_urlsafe(32)
    return token, _digest(token)


def _digest(token: str) -> str:
    """Hash a token. It is as random as a key, so that one round of a plain hash tells nothing of it."""
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()
