"""`app.alerts`: troubles that somebody is told of, once when they begin and once when they are over.

The truth is in the store. A message is claimed there before it is sent, so that of several processes one sends it; one
that could not be sent is tried again.
"""

import asyncio
import builtins
import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rota import notify
from rota.db.database import Database
from rota.errors import Invalid, NotifyFailed, RotaError
from rota.masking import masked
from rota.store.troubles import Telling, Trouble, TroubleStore
from rota.times.choices import whole_number
from rota.times.moments import instant

TASK = "rota.alerts"
"""The task, and the key of the schedule, that look for troubles."""
FAILURES = 3
_MOST_ROUNDS = 20
_SECONDS = 120.0
_AGAIN_SECONDS = (1.0, 5.0, 20.0)

_log = logging.getLogger("rota.alerts")


class Tell(Protocol):
    """Tells a person; raises where nobody was told. The same message has the same `id`, however often it is sent."""

    async def __call__(self, title: str, text: str, *, id: str) -> object:  # noqa: A002
        """Send a message."""


async def by_notify(title: str, text: str, *, id: str) -> None:  # noqa: A002
    """Tell the targets of `ROTA_NOTIFY`. Where some were told, the others are tried again here, and nobody twice."""
    try:
        await notify.send(title, text, id=id)
    except NotifyFailed as error:
        if len(error.failed) == error.tried:
            raise
        for seconds in _AGAIN_SECONDS:
            await asyncio.sleep(seconds)
            try:
                await notify.send(title, text, to=error.failed, id=id)
            except NotifyFailed as again:
                error = again
            else:
                return
        _log.error("some could not be told: %s", error, extra={"verb": "failed"})


@dataclass
class Watch:
    """How an app looks for troubles, and whom it tells."""

    tell: Tell | None = None
    failures: int = FAILURES


class Alerts:
    """The troubles of a store."""

    def __init__(self, database: Database, name: str, watch: Watch) -> None:
        self._db = database
        self._name = name
        self._watch = watch
        self._store = TroubleStore(database)

    async def list(
        self, *, over: bool = False, after: tuple[datetime, str] | None = None, limit: int = 100
    ) -> "builtins.list[Trouble]":
        """Return the troubles that are open, newest first; with `over` those that are over too, for 14 days.

        `after` is the beginning and the subject of the last one of the page before.
        """
        whole_number("limit", limit, 1, 1_000, Invalid)
        place = None if after is None else (instant(after[0], "after"), after[1])
        found: builtins.list[Trouble] = await self._db.read(
            lambda: self._store.list(over=over, after=place, most=limit)
        )
        return found

    async def check(self) -> int:
        """Look for troubles, and tell of what began and what is over; returns how many messages were sent."""
        await self._db.write(lambda: self._store.look(self._watch.failures))
        sent = 0
        for _ in range(_MOST_ROUNDS):
            telling = await self._db.write(self._store.claim)
            if not telling or not await self._told(telling):
                break
            sent += 1
        return sent

    async def _told(self, telling: Sequence[Telling]) -> bool:
        """Tell of these in one message; what could not be told is given back."""
        title, text = _message(self._name, telling)
        for each in telling:
            level = logging.INFO if each.over else logging.WARNING
            verb = "over" if each.over else "began"
            _log.log(level, "%s: %s", verb, each.said, extra={"verb": verb, "subject": each.subject})
        try:
            if self._watch.tell is not None:
                async with asyncio.timeout(_SECONDS):
                    await self._watch.tell(title, text, id=_id(telling))
        except (RotaError, OSError, TimeoutError) as error:
            _log.error("nobody could be told, it is tried again: %s", masked(str(error)), extra={"verb": "failed"})
            await self._db.write(lambda: self._store.untold(telling))
            return False
        except BaseException:
            await self._db.write(lambda: self._store.untold(telling))
            raise
        await self._db.write(lambda: self._store.told(telling))
        return True


def _message(name: str, telling: Sequence[Telling]) -> tuple[str, str]:
    lines = [f"over: {each.said}" if each.over else each.said for each in telling]
    title = lines[0] if len(lines) == 1 else f"{len(lines)} messages, the first: {lines[0]}"
    advice = "See them: rota alerts; and what to do: rota doctor"
    return f"Rota {name}: {masked(title)}", masked("\n".join([*lines, "", advice]))


def _id(telling: Sequence[Telling]) -> str:
    """Return what is the same for the same message."""
    words = "\n".join(f"{each.subject} {each.began} {each.over}" for each in telling)
    return hashlib.sha256(words.encode()).hexdigest()[:32]
