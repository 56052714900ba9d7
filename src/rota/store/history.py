"""History: ended runs, skips and revisions are kept for a time, then removed; a schedule keeps its newest of each."""

from rota.db.database import Database, Operation, Rows

NEWEST = 100
"""How many runs, rows of skips and revisions a schedule keeps however old they are."""


class History:
    """What is over in a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def sweep(self, keep: int, most: int) -> Operation[int]:
        """Remove what was over more than `keep` ago, the oldest first; returns how much was gone through at most.

        `most` keeps one round short. Whoever sweeps at the same time takes others, and nobody waits for another.
        """
        runs = yield self._db.query("history.old", keep=keep, most=most)
        alone = [(row["id"],) for row in runs if row["schedule"] is None]
        if alone:
            yield self._db.many("history.remove", ("id",), alone)
        marked = [(row["id"],) for row in runs if row["schedule"] is not None]
        if marked:
            yield self._db.many("history.mark", ("id",), marked)
            yield self._db.many("history.remove_runs", ("key",), _keys(runs), newest=NEWEST)
        skips = yield self._db.query("history.old_skips", keep=keep, most=most)
        if skips:
            yield self._db.many("history.mark_skips", ("id",), [(row["id"],) for row in skips])
            yield self._db.many("history.remove_skips", ("key",), _keys(skips), newest=NEWEST, keep=keep)
        revisions = yield self._db.query("history.old_revisions", keep=keep, most=most)
        if revisions:
            rows = [(row["id"], row["schedule"]) for row in revisions]
            yield self._db.many("history.mark_revisions", ("id", "schedule"), rows)
            yield self._db.many("history.remove_revisions", ("key",), _keys(revisions), newest=NEWEST)
        return max(len(runs), len(skips), len(revisions))


def _keys(rows: Rows) -> list[tuple[str]]:
    return [(key,) for key in sorted({row["schedule"] for row in rows if row["schedule"] is not None})]
