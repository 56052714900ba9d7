"""The traces that runs were enqueued in, so that what they do is seen as part of them."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from rota.db.database import Database, Operation

T = TypeVar("T")


class TraceStore:
    """The traces in a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def around(self, insert: Operation[T], runs: Callable[[T], Iterable[int]], trace: str) -> Operation[T]:
        """Store runs, and beside those that this made the trace that they are enqueued in."""
        found = yield from insert
        rows = [(run, trace) for run in runs(found)]
        if rows:
            yield self._db.many("traces.insert", ("run", "trace"), rows)
        return found

    def of(self, runs: Iterable[int]) -> Operation[dict[int, str]]:
        """Return the traces of these runs, where there are any."""
        rows = yield self._db.many("traces.of", ("run",), [(run,) for run in runs])
        return {row["run"]: row["trace"] for row in rows}
