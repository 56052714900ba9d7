"""Locks: one holder a name until its time is over, and a fence that only grows."""

from dataclasses import dataclass

from rota.db.database import Database, Operation, Rows
from rota.times.moments import Instant


@dataclass(frozen=True, slots=True)
class Holding:
    """Who holds a lock, and until when."""

    holder: str
    ends_at: Instant
    left: int
    """How many microseconds are left of it."""


@dataclass(frozen=True, slots=True)
class Released:
    """What there is to say about a lock that was given back."""

    left: int
    """How many microseconds were left of it; negative where it had ended, and nobody had taken it since."""
    wanted: bool
    """Whether somebody waits for it."""


class LockStore:
    """The locks in a database. Each verb is one statement."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def take(self, name: str, token: str, holder: str, ttl: int) -> Operation[int | None]:
        """Take a lock that is free, and return its fence; None where another holds it."""
        rows = yield self._db.query("locks.take", name=name, token=token, holder=holder, ttl=ttl)
        return rows[0]["fence"] if rows else None

    def extend(self, name: str, token: str, ttl: int) -> Operation[bool]:
        """Let a lock end so long from now; False where another has taken it since."""
        rows = yield self._db.query("locks.extend", name=name, token=token, ttl=ttl)
        return bool(rows)

    def release(self, name: str, token: str) -> Operation[Released | None]:
        """Give a lock back; None where another has taken it since."""
        rows = yield self._db.query("locks.release", name=name, token=token)
        return Released(rows[0]["left_over"], bool(rows[0]["wanted"])) if rows else None

    def want(self, name: str, wait: int) -> Operation[Holding | None]:
        """Ask to be told when a lock is released, and return who holds it; None where it is free by now."""
        return _holding((yield self._db.query("locks.want", name=name, wait=wait)))

    def holding(self, name: str) -> Operation[Holding | None]:
        """Return who holds a lock; None where it is free."""
        return _holding((yield self._db.query("locks.get", name=name)))


def _holding(rows: Rows) -> Holding | None:
    if not rows or rows[0]["token"] is None or rows[0]["left_over"] <= 0:
        return None
    return Holding(rows[0]["holder"], rows[0]["ends_at"], rows[0]["left_over"])
