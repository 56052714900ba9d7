"""Connections to PostgreSQL that wait to be used.

To lend one of asyncpg's own pool takes longer than a small statement: a task, timers and some turns of the event loop.
Here one that is free is lent at once, and a single timer watches over all that are out.
"""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any

import asyncpg

from rota import clock
from rota.errors import StoreUnavailable

_IDLE_SECONDS = 300.0
"""How long a connection waits to be used before it is closed; what stands between may forget it after that."""


class Line:
    """A connection, and since when it has been asked, or idle."""

    __slots__ = ("connection", "since")

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.since = clock.monotonic()

    def ask(self) -> None:
        """Wait for an answer from now on."""
        self.since = clock.monotonic()

    def rest(self) -> None:
        """Wait for no answer, however long the next question takes to come."""
        self.since = math.inf

    def fetch(self, text: str, *values: Any) -> Awaitable[list[Any]]:
        """Ask for the rows of a statement."""
        self.ask()
        found: Awaitable[list[Any]] = self.connection.fetch(text, *values)
        return found

    def copy(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Awaitable[str]:
        """Load rows into a table."""
        self.ask()
        done: Awaitable[str] = self.connection.copy_records_to_table(table, columns=columns, records=rows)
        return done


class Loan:
    """The use of a line: given back whole, or closed where nobody knows what it is in the middle of."""

    __slots__ = ("_line", "_pool")

    def __init__(self, pool: "Pool") -> None:
        self._pool = pool

    async def __aenter__(self) -> Line:
        self._line = await self._pool.take()
        return self._line

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._pool.give_back(self._line, whole=error is None or isinstance(error, Exception))


class Pool:
    """At most so many connections, made when they are needed, in one event loop."""

    def __init__(self, connect: Callable[[], Awaitable[Any]], most: int, *, patience: float, silence: float) -> None:
        self._connect = connect
        self._most = most
        self._patience = patience
        """For how many seconds to wait for a line while all are out."""
        self._silence = silence
        """After how many seconds without an answer a line counts as dead."""
        self._loop = asyncio.get_running_loop()
        self._idle: list[Line] = []
        self._out: set[Line] = set()
        self._made = 0
        self._waiting: deque[asyncio.Future[Line | None]] = deque()
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False
        self._all_back = asyncio.Event()
        self._all_back.set()
        self._watching: asyncio.TimerHandle | None = None

    def lend(self) -> Loan:
        """Return the use of a line, for `async with`."""
        return Loan(self)

    async def take(self) -> Line:
        """Take a line that is free, or a new one, or wait for one."""
        while True:
            if self._closed:
                raise StoreUnavailable("the store is closing")
            line = self._free() or (await self._new() if self._made < self._most else await self._next())
            if line is not None:
                line.ask()
                self._out.add(line)
                self._all_back.clear()
                return line

    def give_back(self, line: Line, *, whole: bool) -> None:
        """Put a line back for the next one."""
        self._out.discard(line)
        if not self._out:
            self._all_back.set()
        connection = line.connection
        if connection.is_closed():
            self._forget()
        elif whole and not self._closed and not connection.is_in_transaction():
            line.ask()
            if not self._hand(line):
                self._idle.append(line)
        else:
            self._close(line)

    async def close(self) -> None:
        """Wait for the lines that are out, then close all; those that do not come back in time are cut."""
        self._closed = True
        while self._hand(None):
            pass
        for line in self._idle:
            self._close(line)
        self._idle.clear()
        try:
            async with asyncio.timeout(self._patience):
                await self._all_back.wait()
                await asyncio.gather(*self._closing, return_exceptions=True)
        except TimeoutError:
            for line in self._out:
                line.connection.terminate()
        if self._watching is not None:
            self._watching.cancel()

    def _free(self) -> Line | None:
        while self._idle:
            line = self._idle.pop()
            if not line.connection.is_closed():
                return line
            self._forget()
        return None

    async def _new(self) -> Line:
        self._made += 1
        try:
            line = Line(await self._connect())
        except BaseException:
            self._forget()
            raise
        if self._watching is None:
            self._watching = self._loop.call_later(self._silence / 6, self._watch)
        return line

    async def _next(self) -> Line | None:
        """Wait until a line is handed over, or there is room for a new one."""
        waiter: asyncio.Future[Line | None] = self._loop.create_future()
        self._waiting.append(waiter)
        try:
            async with asyncio.timeout(self._patience):
                return await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled() and (line := waiter.result()) is not None:
                self.give_back(line, whole=True)  # it came too late for this one
            elif waiter.done() and not waiter.cancelled():
                self._hand(None)
            raise

    def _hand(self, line: Line | None) -> bool:
        """Hand a line, or the word that there is room, to who waits longest; returns whether anybody does."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(line)
                return True
        return False

    def _forget(self) -> None:
        self._made -= 1
        self._hand(None)

    def _close(self, line: Line) -> None:
        async def close() -> None:
            try:
                await line.connection.close(timeout=self._patience)
            except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
                line.connection.terminate()
            finally:
                self._forget()

        task = self._loop.create_task(close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _watch(self) -> None:
        """Cut what has been silent for too long, and close what nobody needed for long."""
        now = clock.monotonic()
        for line in [each for each in self._out if now - each.since > self._silence]:
            line.connection.terminate()
        for line in [each for each in self._idle if now - each.since > _IDLE_SECONDS]:
            self._idle.remove(line)
            self._close(line)
        self._watching = self._loop.call_later(self._silence / 6, self._watch) if self._made else None
