"""Idempotency: who asks again with the same key gets the same answer, and what was asked for is done once.

The key is taken, the work done and its answer kept in one transaction: there is no instant at which one is there
without the others.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from rota.db.database import Database, Operation, Work
from rota.times.moments import DAY

T = TypeVar("T")

KEEP = DAY
"""For how long an answer is given again."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered."""

    status: int
    headers: Mapping[str, str]
    body: str


@dataclass(frozen=True, slots=True)
class KeptAnswer(Answer):
    """What was answered, and to which request."""

    request: str
    """A digest of all of the request that matters."""


class KeyTaken(Exception):
    """Somebody else took the key meanwhile; nothing was done."""


class Idempotency:
    """The answers that a database keeps."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def get(self, key: str) -> Operation[KeptAnswer | None]:
        """Return what was answered under a key."""
        rows = yield self._db.query("idempotency.get", key=key, keep=KEEP)
        if not rows:
            return None
        row = rows[0]
        return KeptAnswer(row["status"], json.loads(row["headers"]), row["body"], row["request"])

    def once(self, key: str, request: str, work: Work[T], answer: Callable[[T], Answer]) -> Operation[T]:
        """Do some work and keep its answer, unless the key is taken."""
        if not (yield self._db.query("idempotency.take", key=key, request=request, keep=KEEP)):
            raise KeyTaken
        found = yield from work()
        told = answer(found)
        headers = json.dumps(dict(told.headers))
        yield self._db.query("idempotency.keep", key=key, status=told.status, headers=headers, body=told.body)
        return found

    def sweep(self, most: int) -> Operation[int]:
        """Remove answers that are not given again; returns how many."""
        return len((yield self._db.query("idempotency.sweep", keep=KEEP, most=most)))
