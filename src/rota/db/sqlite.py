"""SQLite: one writer thread that commits together what waits, readers beside it.

WAL, `BEGIN IMMEDIATE`, a savepoint an operation. Several processes may share the file; each notices the others' writes
by `PRAGMA data_version`. "Memory" means a temporary file, so that every connection sees the same.
"""

import asyncio
import json
import os
import sqlite3
import tempfile
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote

from rota import clock
from rota.clock import REAL, VirtualClock
from rota.db.database import Ask, Database, Fetch, Load, Many, Operation, Rows, Snapshot, Step, Work
from rota.db.statements import Dialect, Statement, Statements, written
from rota.db.transaction import Transaction
from rota.db.watch import Watch
from rota.errors import CopyRefused, StoreUnavailable

T = TypeVar("T")

_BUSY_SECONDS = 30.0
"""How long to wait for another process's transaction before the store counts as away."""
_MOST_TOGETHER = 256
"""How many operations one commit takes along."""
_LOOK_SECONDS = 0.04
"""How often to look for other processes' writes where nothing tells of them."""
_LEAST_SECONDS = 0.005
"""How often to look at most, however much is written."""
_AFTER_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.2)
"""When to look again after a write: the kernel tells of it before the commit, which may be synced first."""
_ANYWAY_SECONDS = 1.0
"""How often to look though nothing was told: a process may have been stopped between its write and its commit."""
_READERS = 2
_BREATH = 16
"""After how many operations in the event loop's own thread its other tasks get in."""
_CHECKPOINT_PAGES = 1_000
_CHECKPOINT_AFTER = 1_000
"""After how many of them the log, some megabytes by then, is brought into the file by the other thread."""
_AGAIN_SECONDS = 0.005
_PLACE = written("sqlite.place", "PRAGMA database_list", "sqlite", None)


class SqliteDatabase(Database):
    """A SQLite file."""

    dialect: Dialect = "sqlite"
    may_fork = False
    beside = False
    tell = None

    def __init__(
        self, path: str | None, statements: Statements, now: Callable[[], int], *, durable: bool = False
    ) -> None:
        self.statements = statements
        self._path = path
        self._file = path or ""
        self.now: Callable[[], int] = now
        self._own_now = now
        self._durable = durable
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._writer: _Writer | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._looking: asyncio.Task[None] | None = None
        self._listeners: list[Callable[[str | None], None]] = []
        self._in_a_row = 0

    def live_by(self, clock: VirtualClock | None) -> None:
        """Live by this clock, or by the machine's again."""
        self.clock = REAL if clock is None else clock
        self.now = self._own_now if clock is None else clock.micros

    @property
    def address(self) -> str:
        """The file; for memory, the temporary one while it is open."""
        return f"sqlite:///{quote(str(Path(self._file).absolute()))}"

    async def identity(self) -> str:
        """The file itself, whatever leads to it."""
        found = await asyncio.to_thread(Path(self._file).stat)
        return f"sqlite {found.st_dev} {found.st_ino}"

    async def open(self) -> None:
        """Open the file. One that is not there is made, for its owner alone."""
        if self._path is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="rota-", ignore_cleanup_errors=True)
        self._file = self._path or str(Path(cast("tempfile.TemporaryDirectory[str]", self._temporary).name) / "rota.db")
        try:
            os.close(os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600))
            _refuse_inherited(self._file)
            self._writer = _Writer(self._connect(), lambda: self.now())  # noqa: PLW0108 (it may be set anew)
            looker = self._connect()
        except (OSError, sqlite3.Error) as error:
            raise StoreUnavailable(f"the SQLite file {self._file} cannot be opened: {error}") from error
        self._readers = ThreadPoolExecutor(_READERS, "rota-reader")
        _OPEN[id(self)] = _identity(self._file)
        self._looking = asyncio.get_running_loop().create_task(self._look(looker))

    async def close(self) -> None:
        """Finish what was asked for, then close the file."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        if self._writer is not None:
            try:
                await asyncio.to_thread(self._writer.stop)
            except RuntimeError:  # the interpreter is ending, and there are no new threads
                self._writer.stop()
        if self._readers is not None:
            self._readers.shutdown(wait=True)
        for connection in self._connections:
            connection.close()
        self._connections.clear()
        _OPEN.pop(id(self), None)
        if self._temporary is not None:
            self._temporary.cleanup()
            self._file = ""
        self._writer = self._readers = self._looking = self._temporary = None

    async def write(self, work: Work[T], *, first: bool = False, single: bool = False, brief: bool = False) -> T:
        """Run an operation in the writer thread, committed together with what else waits.

        A hop to that thread and back costs most of a brief one: that runs here where nobody else is writing and commits
        are not synced. By virtual time all do.
        """
        if self._writer is not None and isinstance(self.clock, VirtualClock):
            await asyncio.sleep(0)
            return self._writer.run_here(work)
        if brief and self._writer is not None and not self._durable:
            self._in_a_row += 1
            writer = self._writer
            if self._in_a_row % _BREATH == 0:
                await asyncio.sleep(0)  # whoever writes without a pause holds up everybody else in the event loop
            with suppress(_Taken):
                return writer.run_at_once(work, single=single)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._submit(_Job(work, future, loop), first=first)
        return await future

    def write_from_thread(self, work: Work[T]) -> T:
        """Run an operation before all that waits."""
        future: Future[T] = Future()
        self._submit(_Job(work, future), first=True)
        return future.result()

    def anew(self) -> "SqliteDatabase":
        """Return the same file, not opened yet; of memory, another."""
        return SqliteDatabase(self._path, self.statements, self._own_now, durable=self._durable)

    @property
    def place(self) -> Statement:
        """The file."""
        return _PLACE

    def is_here(self, place: Rows) -> bool:
        """Compare the files."""
        files = [row[2] for row in place if row[1] == "main"]
        return bool(files[0]) and Path(self._file).is_file() and Path(files[0]).samefile(self._file)

    def _submit(self, job: "_Job", *, first: bool) -> None:
        if self._writer is None:
            raise StoreUnavailable("the store is not open")
        self._writer.submit(job, first=first)

    async def read(self, work: Work[T]) -> T:
        """Run an operation beside the writer."""
        if self._readers is None:
            raise StoreUnavailable("the store is not open")
        if isinstance(self.clock, VirtualClock):
            await asyncio.sleep(0)
            return self._read(work)
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, work)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Begin a transaction in a thread of its own; the others' writes wait for its end."""
        if self._readers is None:
            raise StoreUnavailable("the store is not open")
        with _translated():
            connection = self._connect()
        thread = ThreadPoolExecutor(1, "rota-transaction")

        async def aside(work: Callable[[], T]) -> T:
            with _translated():  # what the caller does in between is not SQLite's
                return await asyncio.get_running_loop().run_in_executor(thread, work)

        transaction = Transaction(self, lambda step: aside(lambda: rows(connection, step, self.now)))
        try:
            await aside(lambda: connection.execute("BEGIN IMMEDIATE"))
            yield transaction
            await aside(lambda: connection.execute("COMMIT"))
        finally:
            transaction.end()
            thread.shutdown()  # whoever was cancelled may still be at a statement
            self._connections.remove(connection)
            connection.close()  # what was not committed is undone

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Look at the file as it is now; whoever writes to it meanwhile is not held up."""
        if self._readers is None:
            raise StoreUnavailable("the store is not open")
        with _translated():
            connection, thread = self._connect(), ThreadPoolExecutor(1, "rota-snapshot")
            try:
                connection.execute("BEGIN")
                connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # the first look decides what is seen
                yield _Snapshot(connection, thread)
            finally:
                thread.shutdown()  # whoever was cancelled may still be reading
                self._connections.remove(connection)
                connection.close()

    async def notify(self, topic: str) -> None:
        """Tell this process; the others see that the file changed."""
        for heard in tuple(self._listeners):
            heard(topic)

    def listen(self, heard: Callable[[str | None], None]) -> None:
        """Call this in the event loop when something changed."""
        self._listeners.append(heard)

    def unlisten(self, heard: Callable[[str | None], None]) -> None:
        """Call this no more."""
        self._listeners.remove(heard)

    async def _look(self, connection: sqlite3.Connection) -> None:
        """Hear of other processes' writes, and tell whoever listens."""
        seen, looked = _data_version(connection), 0.0
        watch = Watch.on(f"{self._file}-wal")
        again: Iterator[float] = iter(())
        try:
            while True:
                if watch is None:
                    await asyncio.sleep(_LOOK_SECONDS)
                elif await watch.written(next(again, _ANYWAY_SECONDS)):
                    again = iter(_AFTER_SECONDS)
                    await asyncio.sleep(max(0.0, looked + _LEAST_SECONDS - clock.monotonic()))
                looked = clock.monotonic()
                seen = self._tell(connection, seen)
        finally:
            if watch is not None:
                watch.close()

    def _tell(self, connection: sqlite3.Connection, seen: int) -> int:
        """Tell whoever listens if the file was changed since the version that was seen; returns the one that is."""
        try:
            found = _data_version(connection)
        except sqlite3.Error:  # the disk, say: whoever reads or writes hears of it
            return seen
        if found != seen:
            for heard in tuple(self._listeners):
                heard(None)
        return found

    def _read(self, work: Work[T]) -> T:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        with _translated():
            if connection is None:
                connection = self._local.connection = self._connect()
            connection.execute("BEGIN")
            try:
                return run(connection, work(), self.now)
            finally:
                if connection.in_transaction:  # not after an error of the disk
                    connection.execute("ROLLBACK")

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._file, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        self._connections.append(connection)
        _use_wal(connection)
        for pragma in (
            f"synchronous = {'FULL' if self._durable else 'NORMAL'}",
            "foreign_keys = ON",
            "temp_store = MEMORY",
        ):
            connection.execute(f"PRAGMA {pragma}")
        return connection


class _Snapshot(Snapshot):
    """A transaction that only reads."""

    dialect: Dialect = "sqlite"

    def __init__(self, connection: sqlite3.Connection, thread: ThreadPoolExecutor) -> None:
        self._connection = connection
        self._thread = thread

    async def rows(self, text: str) -> list[tuple[Any, ...]]:
        return await self._aside(lambda: self._connection.execute(text).fetchall())

    async def stream(self, text: str) -> Fetch:
        cursor = await self._aside(lambda: self._connection.execute(text))
        return lambda most: self._aside(lambda: cursor.fetchmany(most))

    async def _aside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """An operation that waits to be written, and who waits for it: an event loop's future, or a thread's."""

    work: Work[Any]
    future: "asyncio.Future[Any] | Future[Any]"
    loop: asyncio.AbstractEventLoop | None = None


Ended = list[tuple[_Job, Any, BaseException | None]]


class _Taken(Exception):
    """Somebody else is writing; nothing was done."""


class _Writer:
    """The one thread that writes."""

    def __init__(self, connection: sqlite3.Connection, now: Callable[[], int]) -> None:
        self._connection = connection
        self._now = now
        self._waiting: deque[_Job] = deque()
        self._wanted = threading.Event()
        self._stopping = False
        self._door = threading.Lock()
        """Nobody comes in while it closes: what is let in is done."""
        self._pen = threading.Lock()
        """Whoever writes has it: this thread, or the event loop's."""
        self._patient = True
        """Whether the connection waits for other processes, and brings the log into the file where it is long."""
        self._unchecked = 0
        """How many operations were done since without that."""
        self._thread = threading.Thread(target=self._work, name="rota-writer", daemon=True)
        self._thread.start()

    def submit(self, job: _Job, *, first: bool) -> None:
        with self._door:
            if self._stopping:
                raise StoreUnavailable("the store is closing")
            (self._waiting.appendleft if first else self._waiting.append)(job)
        self._wanted.set()

    def stop(self) -> None:
        with self._door:
            self._stopping = True
        self._wanted.set()
        self._thread.join()

    def _work(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            stopping = self._stopping  # before the last look: what was let in before is done
            while self._waiting:
                self._commit([self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_TOGETHER))])
            if self._unchecked >= _CHECKPOINT_AFTER:
                self._checkpoint()
            if stopping:
                return

    def run_here(self, work: Work[T]) -> T:
        """Run an operation in the caller's thread."""
        future: Future[T] = Future()
        self._commit([_Job(work, future)])
        return future.result()

    def run_at_once(self, work: Work[T], *, single: bool) -> T:
        """Run an operation in the caller's thread, which it does not hold up: raise _Taken where it would wait."""
        if self._waiting or self._stopping or not self._pen.acquire(blocking=False):
            raise _Taken
        try:
            self._wait(patiently=False)
            return self._run_whole(work, single=single)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise _Taken from None
            if not _concerns_everyone(error):
                raise
            raise StoreUnavailable(f"SQLite: {error}") from error
        finally:
            self._pen.release()
            self._unchecked += 1
            if self._unchecked == _CHECKPOINT_AFTER:
                self._wanted.set()

    def _run_whole(self, work: Work[T], *, single: bool) -> T:
        """Run an operation as a transaction; a single statement is one by itself."""
        if single:
            return run(self._connection, work(), self._now)
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            found = run(self._connection, work(), self._now)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return found

    def _wait(self, *, patiently: bool) -> None:
        """Wait for other processes and for the disk from now on, or not."""
        if self._patient != patiently:
            self._connection.execute(f"PRAGMA busy_timeout = {int(_BUSY_SECONDS * 1000) if patiently else 0}")
            self._connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES if patiently else 0}")
            self._patient = patiently

    def _checkpoint(self) -> None:
        with self._pen, suppress(sqlite3.Error):  # whoever writes next hears what is wrong
            self._unchecked = 0
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _commit(self, jobs: list[_Job]) -> None:
        with self._pen:
            self._commit_together(jobs)

    def _commit_together(self, jobs: list[_Job]) -> None:
        """Run the operations in one transaction. One that fails undoes only itself."""
        try:
            with _translated():
                self._wait(patiently=True)
                self._connection.execute("BEGIN IMMEDIATE")
                ended: Ended = [(job, *self._attempt(job, alone=len(jobs) == 1)) for job in jobs]
                self._connection.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001 (whatever it was, everyone who waits must hear of it)
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            ended = [(job, None, error) for job in jobs]
        for loop in {job.loop for job in jobs}:
            mine = [each for each in ended if each[0].loop is loop]
            if loop is None:
                _resolve(mine)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(_resolve, mine)  # one wake-up for the whole commit

    def _attempt(self, job: _Job, *, alone: bool) -> tuple[Any, BaseException | None]:
        if alone:  # the transaction itself is the savepoint
            return run(self._connection, job.work(), self._now), None
        self._connection.execute("SAVEPOINT one")
        try:
            result = run(self._connection, job.work(), self._now)
        except Exception as error:
            if _concerns_everyone(error):
                raise
            self._connection.execute("ROLLBACK TO one")
            self._connection.execute("RELEASE one")
            return None, error
        self._connection.execute("RELEASE one")
        return result, None


def _resolve(ended: Ended) -> None:
    for job, result, error in ended:
        if job.future.cancelled():
            continue
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)


def run(connection: sqlite3.Connection, operation: Operation[T], now: Callable[[], int]) -> T:
    """Run an operation on a connection, inside the transaction that is open there."""
    try:
        step = next(operation)
        while True:
            step = operation.send(rows(connection, step, now))
    except StopIteration as stop:
        return cast("T", stop.value)


def rows(connection: sqlite3.Connection, step: Step, now: Callable[[], int] | None) -> Rows:
    """Run a step on a connection."""
    if isinstance(step, Load):
        return _load(connection, step)
    text, bound = step.statement.text, values(step, now)
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row  # the connection may be somebody else's, with rows of its own
    if isinstance(bound, list):
        return cursor.execute(text, bound[0]).fetchall()
    if returns(step):
        return [found for each in bound for found in cursor.execute(text, each).fetchall()]
    cursor.executemany(text, bound)
    return ()


def returns(step: Ask) -> bool:
    """Tell whether a step may have rows; what is done for many rows of values at once has none."""
    text = step.statement.text
    return not isinstance(step, Many) or "RETURNING" in text or text.startswith("SELECT")


def values(step: Ask, now: Callable[[], int] | None) -> list[list[Any]] | Iterator[list[Any]]:
    """Return the values of each time that the statement is to run: one list for a query, any number for many rows."""
    names = step.statement.parameters
    given = dict(step.shared if isinstance(step, Many) else step.values)
    if now is not None and "now" in names and "now" not in given:
        given["now"] = now()
    if isinstance(step, Many) and "rows" in names:  # once: a statement each costs Python more than SQLite
        given["rows"] = json.dumps(step.rows)
    if not isinstance(step, Many) or "rows" in names:
        return [[given[name] for name in names]]
    places = [step.columns.index(name) if name in step.columns else -1 for name in names]
    fixed = [None if place >= 0 else given[name] for name, place in zip(names, places, strict=True)]
    return ([row[p] if p >= 0 else f for p, f in zip(places, fixed, strict=True)] for row in step.rows)


_OPEN: dict[int, tuple[int, int]] = {}
"""The files that are open in this process."""
_INHERITED: set[tuple[int, int]] = set()
"""Those that were open in the process that this one was forked from. SQLite would take its locks for ours."""


def _inherit() -> None:
    _INHERITED.update(_OPEN.values())
    _OPEN.clear()


os.register_at_fork(after_in_child=_inherit)


def _identity(file: str) -> tuple[int, int]:
    found = Path(file).stat()
    return found.st_dev, found.st_ino


def _refuse_inherited(file: str) -> None:
    if _identity(file) in _INHERITED:
        why = "was open in the process that this one was forked from: fork before it is opened, or spawn"
        raise StoreUnavailable(f"the SQLite file {file} {why}")


def _load(connection: sqlite3.Connection, step: Load) -> Rows:
    names = ", ".join(f'"{name}"' for name in step.columns)
    marks = ", ".join("?" * len(step.columns))
    try:
        connection.executemany(f'INSERT INTO "{step.table}" ({names}) VALUES ({marks})', step.rows)  # noqa: S608 (names of the schema)
    except (sqlite3.IntegrityError, sqlite3.DataError, OverflowError) as error:
        raise CopyRefused(f"{step.table} does not take a row: {error}") from error
    return ()


@contextmanager
def _translated() -> Iterator[None]:
    """Turn what SQLite says about the file into an error of Rota's."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if not _concerns_everyone(error):
            raise
        raise StoreUnavailable(f"SQLite: {error}") from error


def _concerns_everyone(error: Exception) -> bool:
    """Tell a full disk or a lock from a mistake in one statement."""
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode != sqlite3.SQLITE_ERROR


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL, for good. Whoever else opens a new file at this moment makes SQLite refuse at once."""
    until = clock.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or clock.monotonic() >= until:
                raise
            time.sleep(_AGAIN_SECONDS)
        else:
            return


def _data_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])
