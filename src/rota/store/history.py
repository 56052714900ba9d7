"""History: ended runs are kept for a time, then removed with their attempts; a schedule keeps its newest ones."""

from rota.db.database import Database, Operation

NEWEST = 100
"""How many runs, and how many rows of skips, a schedule keeps however old they are."""


class History:
    """The ended runs in a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def sweep(self, keep: int, most: int) -> Operation[int]:
        """Remove what ended more than `keep` ago, the oldest first, and return how many runs were gone through.

        `most` keeps one round short. Whoever sweeps at the same time takes others, and nobody waits for another.
        """
        rows = yield self._db.query("history.old", keep=keep, most=most)
        alone = [(row["id"],) for row in rows if row["schedule"] is None]
        if alone:
            yield self._db.many("history.remove", ("id",), alone)
        marked = [(row["id"],) for row in rows if row["schedule"] is not None]
        if marked:
            yield self._db.many("history.mark", ("id",), marked)
            keys = [(key,) for key in sorted({row["schedule"] for row in rows if row["schedule"] is not None})]
            yield self._db.many("history.remove_runs", ("key",), keys, newest=NEWEST)
            yield self._db.many("history.remove_skips", ("key",), keys, newest=NEWEST, keep=keep)
        return len(rows)
