"""The contract of a database, and operations that run on either.

An operation is a generator: it yields a query, is sent the rows, and returns its result. It knows nothing of threads,
pools or event loops, so the same text runs in SQLite's writer thread, on PostgreSQL, and on a connection that a caller
brings. One operation is one transaction.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rota.clock import REAL, Clock, VirtualClock
from rota.db.statements import Dialect, Statement, Statements

if TYPE_CHECKING:
    from rota.db.transaction import Transaction

T = TypeVar("T")

Row = Any
"""A row, by position or by name."""
Rows = Sequence[Row]


@dataclass(frozen=True, slots=True)
class Query:
    """A statement with its values."""

    statement: Statement
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Many:
    """A statement for many rows of values at once.

    On PostgreSQL every parameter is an array; on SQLite the statement runs for each row. `rows` hold the values in the
    order of `columns`; `shared` values are the same for all.
    """

    statement: Statement
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    shared: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Load:
    """Rows for a table as they are, by the fastest way that the database has."""

    table: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]


Ask = Query | Many
"""What any connection can be asked."""
Step = Ask | Load
Operation = Generator[Step, Rows, T]
Work = Callable[[], Operation[T]]
"""What makes an operation, so that it can be made again where it has to be tried again."""


async def drive(operation: Operation[T], rows: Callable[[Step], Awaitable[Rows]]) -> T:
    """Run an operation, with what runs a step."""
    try:
        step = next(operation)
        while True:
            step = operation.send(await rows(step))
    except StopIteration as stop:
        return cast("T", stop.value)


def array_values(step: Ask, now: Callable[[], int] | None) -> list[Any]:
    """Return the values of a step in order, those of many rows as arrays."""
    given = dict(step.shared if isinstance(step, Many) else step.values)
    if isinstance(step, Many):
        columns = list(zip(*step.rows, strict=True)) or [()] * len(step.columns)
        given |= dict(zip(step.columns, columns, strict=True))
    if now is not None and "now" in step.statement.parameters and "now" not in given:
        given["now"] = now()
    return [given[name] for name in step.statement.parameters]


Fetch = Callable[[int], Awaitable[list[tuple[Any, ...]]]]
"""Returns the next rows, at most so many; none when there are no more."""


class Snapshot(ABC):
    """A database as it was at one instant, to be read for as long as that takes."""

    dialect: Dialect

    @abstractmethod
    async def rows(self, text: str) -> list[tuple[Any, ...]]:
        """Return what a statement finds."""

    @abstractmethod
    async def stream(self, text: str) -> Fetch:
        """Begin to read what a statement finds, however much that is."""


class Database(ABC):
    """A place where transactions happen.

    Applications use `dialect`, `fetch`, `execute` and `transaction`; the rest is how Rota itself works on it.
    """

    dialect: Dialect
    statements: Statements
    clock: Clock = REAL
    """What those who work on it count seconds by."""
    now: Callable[[], int] | None
    """What fills in `:now`; None where the database itself does."""
    may_fork: bool
    """Whether a process may fork while it is open, as long as the new process leaves it alone."""
    tell: Statement | None
    """Tells every process of `:topics` with the commit of its transaction; None where a commit tells by itself."""

    @abstractmethod
    def live_by(self, clock: VirtualClock | None) -> None:
        """Live by this clock, as does all that works on it; None means by its own again."""

    @property
    @abstractmethod
    def address(self) -> str:
        """Where it is, for another process that brings its own connection: complete, but for what is secret."""

    @abstractmethod
    def anew(self) -> "Database":
        """Return the same database, not opened yet."""

    @property
    @abstractmethod
    def place(self) -> Statement | None:
        """Asks a connection which database it is to; None where the answer would not help."""

    @abstractmethod
    def is_here(self, place: Rows) -> bool:
        """Tell whether a connection with this answer to `place` is to this database."""

    @abstractmethod
    async def identity(self) -> str:
        """Return what is the same for every address of one database, and for no other, as long as it is not restarted.

        `place` serves for longer and without a question of one's own, but does not tell a database from its clone.
        """

    @abstractmethod
    async def open(self) -> None:
        """Connect."""

    @abstractmethod
    async def close(self) -> None:
        """Finish what was asked for, then disconnect."""

    @abstractmethod
    async def write(self, work: Work[T], *, first: bool = False, single: bool = False) -> T:
        """Run an operation as one transaction; once this returns it is durable.

        `first` goes before what waits. `single` promises that it is one statement, which needs no transaction.
        """

    @abstractmethod
    async def read(self, work: Work[T]) -> T:
        """Run an operation that only reads."""

    async def fetch(self, name: str, /, **values: Any) -> Rows:
        """Return the rows that a named statement finds; it only reads."""
        return await self.read(lambda: _one(self.query(name, **values)))

    async def execute(self, name: str, /, **values: Any) -> Rows:
        """Run a named statement as a transaction of its own, and return its rows; then it is durable."""
        return await self.write(lambda: _one(self.query(name, **values)), single=True)

    @abstractmethod
    def transaction(self) -> "AbstractAsyncContextManager[Transaction]":
        """Begin a transaction on a connection of its own; it commits at the end, or rolls back where that is an error.

        Short ones: on SQLite nobody else writes while it is open.
        """

    @abstractmethod
    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """Look at it as it is now, on a connection of its own, for as long as this is open."""

    @abstractmethod
    def write_from_thread(self, work: Work[T]) -> T:
        """Run an operation from a thread that is not the event loop's, in the way of nobody there.

        Each of its statements stands for itself: there may be no transaction around them.
        """

    @abstractmethod
    async def notify(self, topic: str) -> None:
        """Tell every process that something of this topic changed. It may get lost: who listens also looks."""

    @abstractmethod
    def listen(self, heard: Callable[[str | None], None]) -> None:
        """Call this in the event loop with each topic that changed; None means that any may have."""

    @abstractmethod
    def unlisten(self, heard: Callable[[str | None], None]) -> None:
        """Call this no more."""

    def query(self, name: str, /, **values: Any) -> Query:
        """Return a named statement with its values."""
        return Query(self.statements[name], values)

    def many(self, name: str, columns: tuple[str, ...], rows: Sequence[Sequence[Any]], /, **shared: Any) -> Many:
        """Return a named statement for many rows."""
        return Many(self.statements[name], columns, rows, shared)


def _one(step: Step) -> Operation[Rows]:
    return (yield step)
