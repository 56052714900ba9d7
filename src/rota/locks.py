"""`app.lock(…)`: one holder at a time among all processes of a store."""

import asyncio
import contextlib
import logging
import os
import secrets
import socket
from types import TracebackType
from typing import Self

from rota import clock
from rota.context import current_run
from rota.db.database import Database
from rota.engine.bell import Bell
from rota.errors import Invalid, LockHeld, LockLost, NoCurrentRun, StoreUnavailable
from rota.store.locks import LockStore
from rota.times.durations import duration, duration_words
from rota.times.moments import DAY, SECOND, moment
from rota.times.policies import Length

_log = logging.getLogger("rota.lock")

LONGEST_NAME = 200
_LOOK_SECONDS = 1.0
"""How long a waiter sleeps at most: what it is told may get lost."""


class Lock:
    """A named lock. By the store's clock at most one holds it at a time, for its ttl unless it extends it.

    Every acquisition has a fence that is higher than all before it of this name. Give it to whatever the lock protects,
    to refuse what comes late from somebody who had stopped and did not know that his time was over.
    """

    def __init__(self, database: Database, name: str, *, ttl: Length = "60s", wait: Length | None = None) -> None:
        self.name = _checked(name)
        self.fence = 0
        """The number of the last acquisition; 0 before the first."""
        self._ttl = _ttl(ttl)
        self._wait = 0 if wait is None else duration(wait, "wait")
        self._db = database
        self._store = LockStore(database)
        self._topic = f"lock:{name}"
        self._token: str | None = None
        self._until = 0.0
        self._giving_back: set[asyncio.Task[None]] = set()

    @property
    def held(self) -> bool:
        """Whether the lock is certainly this holder's now, by this machine's monotonic clock; asks nobody."""
        return self._token is not None and self._db.clock.monotonic() < self._until

    async def acquire(self) -> bool:
        """Take the lock; False where another holds it, and goes on holding it for all of `wait`.

        It cannot be taken twice, not even by its own holder.
        """
        return await self._take() or (self._wait > 0 and await self._take_when_free())

    async def extend(self, ttl: Length | None = None) -> None:
        """Hold the lock for its ttl, or another, from now on; raises `LockLost` where another has it by now."""
        length = self._ttl if ttl is None else _ttl(ttl)
        token, began = self._token, self._db.clock.monotonic()
        if token is None or not await self._db.write(lambda: self._store.extend(self.name, token, length), single=True):
            self._token = None
            raise LockLost(self.name)
        self._until = began + length / SECOND

    async def release(self) -> bool:
        """Give the lock back; False where there was nothing to give back, since another has it by now."""
        token, self._until = self._token, 0.0  # not trusted from here on, whatever becomes of the answer
        if token is None:
            return False
        released = await self._db.write(lambda: self._store.release(self.name, token), single=True)
        self._token = None
        if released is None:
            return False
        if released.left < 0:
            late = duration_words(-released.left)
            _log.warning("lock %s: held %s longer than its ttl; nobody took it meanwhile", self.name, late)
        if released.wanted:
            await self._db.notify(self._topic)
        return True

    async def __aenter__(self) -> Self:
        if not await self.acquire():
            found = await self._db.read(lambda: self._store.holding(self.name))
            raise LockHeld(self.name) if found is None else LockHeld(self.name, found.holder, moment(found.ends_at))
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._token is None:  # given back inside, or lost, of which `extend` spoke
            return
        alone = self.held
        try:
            if await self.release():
                return
            trouble: LockLost | StoreUnavailable = LockLost(self.name)
        except StoreUnavailable as away:
            if alone:  # all that was done was done under the lock, and it ends by itself
                _log.warning("lock %s: not released, so it ends with its ttl: %s", self.name, away)
                return
            trouble = away
        if error is None:
            raise trouble
        error.add_note(str(trouble))  # what went wrong first is not hidden
        _log.warning("lock %s: %s", self.name, trouble)

    async def _take(self) -> bool:
        token, holder, began = secrets.token_hex(16), _holder(), self._db.clock.monotonic()
        try:
            fence = await self._db.write(lambda: self._store.take(self.name, token, holder, self._ttl), single=True)
        except BaseException:  # cancelled, say: it may be taken all the same, and then nobody would release it
            self._give_back(token)
            raise
        if fence is None:
            return False
        self.fence, self._token, self._until = fence, token, began + self._ttl / SECOND
        return True

    async def _take_when_free(self) -> bool:
        """Wait to be told, or until the holder's time is over. Of several who wait, any may be first."""
        until = clock.monotonic() + self._wait / SECOND
        bell = Bell()

        def heard(topic: str | None) -> None:
            if topic in (None, self._topic):
                bell.ring()

        self._db.listen(heard)
        try:
            found = await self._db.write(lambda: self._store.want(self.name, self._wait), single=True)
            while True:
                if found is None and await self._take():
                    return True
                left = until - clock.monotonic()
                if left <= 0:
                    return False
                if found is not None:
                    await bell.wait(min(left, found.left / SECOND, _LOOK_SECONDS))
                found = await self._db.read(lambda: self._store.holding(self.name))
        finally:
            self._db.unlisten(heard)

    def _give_back(self, token: str) -> None:
        async def release() -> None:
            with contextlib.suppress(StoreUnavailable):  # then it ends with its ttl
                await self._db.write(lambda: self._store.release(self.name, token), single=True)

        task = asyncio.get_running_loop().create_task(release())
        self._giving_back.add(task)
        task.add_done_callback(self._giving_back.discard)


def _checked(name: str) -> str:
    fits = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME
    if not fits or not name.isprintable() or name != name.strip():
        allowed = f"use 1 to {LONGEST_NAME} printable characters, without spaces at the ends"
        raise Invalid("name", name, allowed)
    return name


def _ttl(length: Length) -> int:
    return duration(length, "ttl", least=SECOND, most=DAY)


def _holder() -> str:
    """Say who takes a lock, for people."""
    where = f"{socket.gethostname()}-{os.getpid()}"
    try:
        return f"run {current_run().id} on {where}"
    except NoCurrentRun:
        return where
