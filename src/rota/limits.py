"""`app.limits`: caps on runs at once and on their pace, held across all processes."""

import asyncio
import builtins
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from rota import clock, context, limit
from rota.db.borrowed import run_on
from rota.db.database import Database, Work
from rota.errors import Invalid, StoreUnavailable, TimedOut, UnknownLimit
from rota.limit import Limit
from rota.store.limits import Asked, LimitState, LimitStore
from rota.times.durations import duration
from rota.times.policies import Length

T = TypeVar("T")

_log = logging.getLogger("rota.limits")
_ASK_SECONDS = 2.0
"""How often a hold that waits says that it still does."""
_LOOK_AGAIN = 20_000
"""How long at least between two questions, in microseconds: the group may lack room though the key has some."""
_LEASE_SECONDS = 30.0
"""How long a hold whose process died keeps its room."""


class Limits:
    """The limits of a store."""

    def __init__(self, database: Database, knock: Callable[[str], None]) -> None:
        self._db = database
        self._store = LimitStore(database)
        self._knock = knock

    async def put(self, key: str, limited: Limit, *, connection: Any = None) -> None:
        """Put a limit in force at once, everywhere: for a key, or for each key of a group such as `host:*`.

        `task:NAME` and `queue:NAME` limit all runs of a task or a queue; other keys limit the runs that name them. A
        key's own limit goes before its group's. What is under way already is counted, not stopped.

        With `connection` it is in force from the moment that the caller's transaction on it commits. Until then nothing
        under any limit is let in, and what others store may miss a new limit of its task or queue.
        """
        if not isinstance(limited, Limit):
            raise Invalid("limit", limited, "use a rota.Limit(…)", "is not a limit")
        name = limit.pattern(key, limited)
        await self._write(lambda: self._store.put(name, limited), connection)
        if connection is None:  # what became ready while it was put
            await self._db.write(lambda: self._store.call_back(name), single=True)

    async def list(self) -> "builtins.list[LimitState]":
        """Return the limits by key, with how much of each is busy and how many due runs wait for it."""
        return await self._db.read(self._store.list)

    async def remove(self, key: str, *, connection: Any = None) -> None:
        """Take a limit out of force; raises `UnknownLimit` where there is none.

        With `connection` it happens if and only if the caller's transaction on it commits.
        """
        known = isinstance(key, str) and "\0" not in key
        if not known or not await self._write(lambda: self._store.remove(key), connection):
            raise UnknownLimit(key)

    async def waits_for(self, run: int) -> str | None:
        """Return what a due run waits for: a key, a group, or a worker of its queue; None if nothing."""
        gate = await self._db.read(lambda: self._store.gate_of(run))
        return f"a worker of queue {gate[1:]}" if gate and gate.startswith("!") else gate or None

    @contextlib.asynccontextmanager
    async def hold(self, key: str, *, wait: Length | None = None) -> AsyncIterator[None]:
        """Have room under a key while this is entered: for one more request to a place, from inside a task or not.

        Waits until there is room, before runs that have not begun; `TimedOut` after `wait`. In a run that has room
        under this key itself, only the pause is waited for, counted from when it asks.
        """
        limit.key(key)
        asked = await self._ask(key, None if wait is None else duration(wait, "wait") / 1_000_000)
        renewing = asyncio.get_running_loop().create_task(self._renew(key, asked))
        try:
            yield
        finally:
            renewing.cancel()
            await self._give_back(key, asked, began=True)

    async def _write(self, work: Work[T], connection: Any) -> T:
        if connection is not None:
            return await run_on(connection, self._db, work, "waiting")
        found = await self._db.write(work)
        self._knock("waiting")
        return found

    async def _ask(self, key: str, wait: float | None) -> Asked:
        until = None if wait is None else clock.monotonic() + wait
        current = context.current_or_none()
        run = None if current is None else current.id
        asked: Asked | None = None
        try:
            while True:
                asked = await self._ask_once(key, asked, run)
                if asked.granted:
                    return asked
                await self._wait_for_room(key, asked, until)
                if until is not None and clock.monotonic() >= until:
                    raise TimedOut(f"there was no room under {key} for {wait:g} s")
        except BaseException:
            if asked is not None:
                await asyncio.shield(self._give_back(key, asked, began=False))
            raise

    async def _wait_for_room(self, key: str, asked: Asked, until: float | None) -> None:
        """Look, without being in anybody's way, until there may be room, or it is time to say that we still wait."""
        latest, looked = clock.monotonic() + _ASK_SECONDS, False
        while clock.monotonic() < latest and (until is None or clock.monotonic() < until):
            pause = await self._db.read(lambda: self._store.look(key, asked))
            if pause is None and looked:
                return
            looked, pause = True, _LOOK_AGAIN if pause is None else pause
            left = latest if until is None else min(latest, until)
            await asyncio.sleep(min(pause / 1_000_000, max(0.0, left - clock.monotonic())))

    async def _ask_once(self, key: str, before: Asked | None, run: int | None) -> Asked:
        """Ask. Who is cancelled meanwhile may have been let in all the same: then that is given back."""
        hold = None if before is None else before.hold
        asking = asyncio.ensure_future(self._db.write(lambda: self._store.ask(key, hold, run, _micros(_LEASE_SECONDS))))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            with contextlib.suppress(StoreUnavailable):
                await self._give_back(key, await asking, began=False)
            raise

    async def _renew(self, key: str, asked: Asked) -> None:
        held = True
        while held:
            await asyncio.sleep(_LEASE_SECONDS / 3)
            try:
                held = await self._db.write(lambda: self._store.renew(key, asked, _micros(_LEASE_SECONDS)), first=True)
            except StoreUnavailable as error:
                _log.warning("the room under %s was not renewed: %s", key, error)
        _log.warning("the room under %s was lost: it was not renewed for %g s", key, _LEASE_SECONDS)

    async def _give_back(self, key: str, asked: Asked, *, began: bool) -> None:
        try:
            await self._db.write(lambda: self._store.release(key, asked, began=began))
        except StoreUnavailable as error:  # the sweep gives it back when its time is over
            _log.warning("the room under %s could not be given back: %s", key, error)
        self._knock("waiting")


def _micros(seconds: float) -> int:
    return int(seconds * 1_000_000)
