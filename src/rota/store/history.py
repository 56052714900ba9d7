"""History: ended runs are kept for a time, then removed with their attempts."""

from rota.db.database import Database, Operation


class History:
    """The ended runs in a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def sweep(self, keep: int, most: int) -> Operation[int]:
        """Remove runs that ended more than `keep` ago, the oldest first, and return how many.

        `most` keeps one round short. Whoever sweeps at the same time takes others, and nobody waits for another.
        """
        rows = yield self._db.query("history.sweep", keep=keep, most=most)
        return len(rows)
