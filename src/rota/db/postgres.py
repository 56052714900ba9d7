"""PostgreSQL through asyncpg: prepared statements, arrays for many rows, LISTEN and NOTIFY.

A connection that is lost is an error to whoever used it; the pool makes new ones. The lease renewals have a thread, an
event loop and a connection of their own, so nothing that happens in the application's event loop can hold them up.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar, cast

import asyncpg

from rota.clock import REAL, VirtualClock
from rota.db.database import Database, Fetch, Load, Operation, Rows, Snapshot, Step, Work, array_values, drive
from rota.db.pool import Line, Loan, Pool
from rota.db.statements import Dialect, Statement, Statements, written
from rota.db.transaction import Transaction
from rota.errors import CopyRefused, StoreUnavailable

T = TypeVar("T")

NOW = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"
"""The database's clock, in microseconds, at the statement: a transaction that a caller began may be old by then."""

SETTINGS = {
    "application_name": "rota",
    "jit": "off",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
"""What Rota's own connections are set to: every statement finds a few rows by an index.

A planner goes by statistics, and those of a queue are always old: it may go through a million rows to find one.
"""

_CHANNEL = "rota"
_TELL = written(
    "postgres.tell",
    f"SELECT pg_notify('{_CHANNEL}', topic) FROM unnest(:topics::text[]) AS topic",  # noqa: S608
    "postgres",
    None,
)
_KNOCK = f"""
SELECT pg_notify('{_CHANNEL}', $1) FROM (SELECT set_config('synchronous_commit', 'off', true)) AS alone
"""  # noqa: S608
"""The same in a transaction of its own, which nobody waits to see on disk: a lost knock costs time, not a run."""
_PLACE = written(
    "postgres.place",
    "SELECT system_identifier || ' ' || (SELECT oid FROM pg_database WHERE datname = current_database())"
    " FROM pg_control_system()",
    "postgres",
    None,
)
"""The server's own number, which a copy shares, and that of the database: addresses may differ, these do not."""
_TRIES = 5
_GIVEN_UP = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.InvalidCachedStatementError,  # somebody has migrated the tables
)
"""When an operation is made again, so many times: PostgreSQL gave it up for the sake of another."""
_NOT_ALLOWED = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.ReadOnlySQLTransactionError,  # a replica, say
)
_CONNECT_SECONDS = 10.0
_COMMAND_SECONDS = 30.0
_PATIENT = {"application_name": "rota", "statement_timeout": "0", "idle_in_transaction_session_timeout": "0"}
_IDENTITY = """
SELECT concat_ws(' ', 'postgres', pg_postmaster_start_time(), oid, current_schema())
FROM pg_database WHERE datname = current_database()
"""
_AGAIN_SECONDS = 1.0
"""How long to wait before listening again after the connection was lost."""


class PostgresDatabase(Database):
    """A PostgreSQL database."""

    dialect: Dialect = "postgres"
    may_fork = True
    beside = True
    tell = _TELL

    def __init__(
        self, url: str, statements: Statements, now: Callable[[], int] | None, *, connections: int = 10
    ) -> None:
        self.statements = statements
        self._url = url
        self.now = now
        self._own = (statements, now)
        self._connections = connections
        self._pool: Pool | None = None
        self._listening: asyncio.Task[None] | None = None
        self._listeners: list[Callable[[str | None], None]] = []
        self._aside: _Aside | None = None
        self._door = threading.Lock()
        self._place: str | None = None

    def live_by(self, clock: VirtualClock | None) -> None:
        """Live by this clock, or by the database's again."""
        statements, now = self._own
        self.clock = REAL if clock is None else clock
        self.statements = statements if clock is None else statements.on_clock(None)
        self.now = now if clock is None else clock.micros

    @property
    def address(self) -> str:
        """A connection that somebody brings knows the rest, with the password."""
        return "postgresql://"

    def anew(self) -> "PostgresDatabase":
        """Return the same database, not opened yet."""
        return PostgresDatabase(self._url, *self._own, connections=self._connections)

    @property
    def place(self) -> Statement | None:
        """The numbers of server and database, once it was open and could ask for its own."""
        return None if self._place is None else _PLACE

    def is_here(self, place: Rows) -> bool:
        """Compare the numbers."""
        return bool(place[0][0] == self._place)

    async def identity(self) -> str:
        """The database in the server that has run since then."""
        with _translated():
            async with self._lent() as line:
                return cast("str", (await line.fetch(_IDENTITY))[0][0])

    async def open(self) -> None:
        """Connect."""
        with _translated():
            pool = Pool(self._connect, self._connections, patience=_CONNECT_SECONDS, silence=_COMMAND_SECONDS)
            async with pool.lend() as line:  # now, not with the first operation
                with suppress(asyncpg.InsufficientPrivilegeError):
                    self._place = (await line.fetch(_PLACE.text))[0][0]
            self._pool = pool
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    async def close(self) -> None:
        """Disconnect."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])
        if self._aside is not None:
            await asyncio.to_thread(self._aside.stop)
        if self._pool is not None:
            await self._pool.close()
        self._pool = self._listening = self._aside = None

    async def write(self, work: Work[T], *, first: bool = False, single: bool = False, brief: bool = False) -> T:  # noqa: ARG002 (nobody waits in line here)
        """Run an operation as one transaction."""
        for attempt in range(1, _TRIES + 1):
            try:
                with _translated():
                    async with self._lent() as line:
                        if single:
                            return await run(line, work(), self.now)
                        async with line.connection.transaction():
                            return await run(line, work(), self.now)
            except _GIVEN_UP as error:
                if attempt == _TRIES:
                    raise StoreUnavailable(f"PostgreSQL cannot now: {_said(error)}") from error
        raise AssertionError

    async def read(self, work: Work[T]) -> T:
        """Run an operation that only reads."""
        with _translated():
            async with self._lent() as line:
                return await run(line, work(), self.now)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Begin a transaction on a connection of the pool."""
        with _translated():
            lent = self._lent()
            line = await lent.__aenter__()

        async def asked(answer: Awaitable[T]) -> T:
            try:
                with _translated():  # what the caller does in between is not PostgreSQL's
                    return await answer
            except _GIVEN_UP as error:
                raise StoreUnavailable(f"PostgreSQL cannot now: {_said(error)}") from error
            finally:
                line.rest()

        transaction = Transaction(self, lambda step: asked(_rows(line, step, self.now)))
        begun = line.connection.transaction()
        ended: BaseException | None = None
        try:
            await asked(begun.start())
            yield transaction
            line.ask()
            await asked(begun.commit())
        except BaseException as error:
            ended = error
            with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await begun.rollback()
            raise
        finally:
            transaction.end()
            await lent.__aexit__(None, ended, None)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Look at the database as it is now; whoever writes to it meanwhile is not held up."""
        if self._pool is None:
            raise StoreUnavailable("the store is not open")
        with _translated():
            connection = await asyncpg.connect(self._url, timeout=_CONNECT_SECONDS, server_settings=_PATIENT)
            try:
                async with connection.transaction(isolation="repeatable_read", readonly=True):
                    await connection.fetchval("SELECT 1 FROM pg_class LIMIT 1")  # the first look decides what is seen
                    yield _Snapshot(connection)
            finally:
                connection.terminate()

    def write_from_thread(self, work: Work[T]) -> T:
        """Run an operation on a connection of its own."""
        if self._pool is None:
            raise StoreUnavailable("the store is not open")
        with self._door:  # several workers may come at once
            aside = self._aside = self._aside or _Aside(self._url, lambda: self.now)
        return aside.run(work)

    async def notify(self, topic: str) -> None:
        """Tell every process. Not inside a transaction: NOTIFY makes commits wait for each other."""
        with suppress(StoreUnavailable), _translated():
            async with self._lent() as line:
                await line.fetch(_KNOCK, topic)

    def listen(self, heard: Callable[[str | None], None]) -> None:
        """Call this in the event loop with each topic that changed."""
        self._listeners.append(heard)

    def unlisten(self, heard: Callable[[str | None], None]) -> None:
        """Call this no more."""
        self._listeners.remove(heard)

    def _lent(self) -> Loan:
        if self._pool is None:
            raise StoreUnavailable("the store is not open")
        return self._pool.lend()

    async def _connect(self) -> Any:
        return await asyncpg.connect(
            self._url,
            timeout=_CONNECT_SECONDS,
            statement_cache_size=512,
            max_cacheable_statement_size=0,
            server_settings=SETTINGS,
        )

    async def _listen(self) -> None:
        def heard(_connection: object, _pid: object, _channel: object, topic: object) -> None:
            for listener in tuple(self._listeners):
                listener(cast("str", topic))

        while True:
            with suppress(OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                connection = await asyncpg.connect(self._url, timeout=_CONNECT_SECONDS)
                try:
                    lost = asyncio.Event()
                    connection.add_termination_listener(lambda _, lost=lost: lost.set())
                    await connection.add_listener(_CHANNEL, heard)
                    for listener in self._listeners:  # whatever was said meanwhile was missed
                        listener(None)
                    await lost.wait()
                finally:
                    connection.terminate()
            await asyncio.sleep(_AGAIN_SECONDS)


class _Snapshot(Snapshot):
    """A transaction that only reads, at the isolation that shows one instant."""

    dialect: Dialect = "postgres"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def rows(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self._connection.fetch(text)]

    async def stream(self, text: str) -> Fetch:
        cursor = await self._connection.cursor(text)

        async def fetch(most: int) -> list[tuple[Any, ...]]:
            return [tuple(row) for row in await cursor.fetch(most)]

        return fetch


class _Aside:
    """A thread with an event loop and a connection, for what must not wait for the application's event loop."""

    def __init__(self, url: str, now: Callable[[], Callable[[], int] | None]) -> None:
        self._url = url
        self._now = now
        self._loop = asyncio.new_event_loop()
        self._line: Line | None = None
        self._turn = asyncio.Lock()
        """Several workers of a process share the connection, one question at a time."""
        self._thread = threading.Thread(target=self._loop.run_forever, name="rota-aside", daemon=True)
        self._thread.start()

    def run(self, work: Work[T]) -> T:
        try:
            asked = asyncio.run_coroutine_threadsafe(self._run(work), self._loop)
            return asked.result(_COMMAND_SECONDS + _CONNECT_SECONDS)
        except (TimeoutError, CancelledError) as error:
            raise StoreUnavailable("PostgreSQL does not answer, or the store is closing") from error

    def stop(self) -> None:
        """End, also what is under way: whoever waits for it hears that the store is away."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _stop(self) -> None:
        under_way = asyncio.all_tasks() - {asyncio.current_task()}
        for each in under_way:
            each.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        if self._line is not None:
            self._line.connection.terminate()

    async def _run(self, work: Work[T]) -> T:
        async with self._turn:
            with _translated():
                if self._line is None or self._line.connection.is_closed():
                    connection = await asyncpg.connect(
                        self._url, timeout=_CONNECT_SECONDS, command_timeout=_CONNECT_SECONDS
                    )
                    self._line = Line(connection)
                # A statement is a transaction here: to begin and to commit would be two more questions to a slow store.
                return await run(self._line, work(), self._now())


async def run(line: Line, operation: Operation[T], now: Callable[[], int] | None) -> T:
    """Run an operation on a connection, inside the transaction that is open there."""
    return await drive(operation, lambda step: _rows(line, step, now))


def _rows(line: Line, step: Step, now: Callable[[], int] | None) -> Awaitable[Rows]:
    return _load(line, step) if isinstance(step, Load) else line.fetch(step.statement.text, *array_values(step, now))


async def _load(line: Line, step: Load) -> Rows:
    try:
        await line.copy(step.table, step.columns, step.rows)
    except (
        asyncpg.IntegrityConstraintViolationError,
        asyncpg.DataError,
        OverflowError,
        TypeError,
        ValueError,
    ) as error:
        raise CopyRefused(f"{step.table} does not take a row: {_said(error)}") from error
    return ()


@contextmanager
def _translated() -> Iterator[None]:
    """Turn what PostgreSQL says about itself into an error of Rota's, without the address and its password."""
    try:
        yield
    except (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.PostgresConnectionError) as error:
        raise StoreUnavailable(f"PostgreSQL does not answer: {_said(error)}") from error
    except asyncpg.InternalClientError as error:  # so it calls a connection that the server is just hanging up
        raise StoreUnavailable(f"PostgreSQL does not answer: {_said(error)}") from error
    except (asyncpg.CannotConnectNowError, asyncpg.AdminShutdownError, asyncpg.CrashShutdownError) as error:
        raise StoreUnavailable(f"PostgreSQL is not ready: {_said(error)}") from error
    except _NOT_ALLOWED as error:
        raise StoreUnavailable(f"PostgreSQL refuses: {_said(error)}") from error
    except (asyncpg.TooManyConnectionsError, asyncpg.DiskFullError, asyncpg.QueryCanceledError) as error:
        raise StoreUnavailable(f"PostgreSQL cannot now: {_said(error)}") from error


def _said(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
