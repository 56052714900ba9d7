"""Limits as people put them, tasks that ask for room from within, and the repair of what crashes left taken."""

import builtins
import json
from dataclasses import dataclass

from rota.db.database import Database, Operation
from rota.errors import Invalid
from rota.limit import Limit, LimitSet, Room, Use, group
from rota.model import Run
from rota.store.admission import line_name, read_limits
from rota.times.moments import micros

MOST_LIMITS = 1_000
_UNCLAIMED = 60_000_000
"""How long a run that was let in may stay unclaimed while others wait for the same room."""
_ASKING = 5_000_000
"""How long a hold that waits is believed to be there since it last asked."""
_SOON = 50_000
_SELDOM = 1_000_000
OWN = "own"
"""The family of what a run uses of its own room."""


@dataclass(frozen=True, slots=True)
class LimitState:
    """A limit, and how it is used."""

    key: str
    limit: Limit
    busy: int
    """How many runs and holds have room under it now."""
    waiting: int
    """How many due runs wait for room under it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The answer to a hold that asked for room."""

    hold: int
    granted: bool
    own: str | None = None
    """Under what a run uses room that it has itself; None where the hold takes room beside others."""


class LimitStore:
    """The limits in a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, key: str, limit: Limit) -> Operation[None]:
        """Put a limit in force, also for what is under way."""
        yield from self._alone()
        rows = yield self._db.query("limits.all")
        known = {row["key"] for row in rows}
        if key in known and read_limits(row for row in rows if row["key"] == key).of(key) == limit:
            return
        if key not in known and len(known) >= MOST_LIMITS:
            raise Invalid(
                "limits", key, "use a group such as host:* for many keys", f"would be number {len(known) + 1}"
            )
        yield self._db.query(
            "limits.put", key=key, at_once=limit.at_once, gap=micros(limit.gap), keys_at_once=limit.keys_at_once
        )
        yield from self.call_back(key)
        yield self._db.query("taken.clamp")
        yield from self._form_anew()
        yield from self._count_in((yield from self.all()))

    def call_back(self, key: str) -> Operation[None]:
        """Let runs that are ready wait for room under a new limit. Whoever made them ready may not have seen it yet."""
        kind, _, name = key.partition(":")
        every = name == "*" and kind in ("task", "queue")
        task, queue = (name if kind == each else None for each in ("task", "queue"))
        yield self._db.query("limits.call_back", every=int(every), task=task, queue=queue)

    def remove(self, key: str) -> Operation[bool]:
        """Take a limit out of force; False if there is none."""
        yield from self._alone()
        found = yield self._db.query("limits.remove", key=key)
        if found:
            yield from self._form_anew()
        return bool(found)

    def all(self) -> Operation[LimitSet]:
        """Return all limits."""
        return read_limits((yield self._db.query("limits.all")))

    def list(self) -> Operation["builtins.list[LimitState]"]:
        """Return the limits by key, and how each is used."""
        rows = yield self._db.query("limits.all")
        busy = {row["key"]: row["number"] for row in (yield self._db.query("taken.counts"))}
        gates = {row["gate"]: row["number"] for row in (yield self._db.query("lines.counts"))}
        names = {row["key"] for row in rows}

        def total(limit: str, counts: dict[str, int]) -> int:
            return sum(number for key, number in counts.items() if limit == (key if key in names else group(key)))

        limits = read_limits(rows)
        return [
            LimitState(name, found, total(name, busy), total(name, gates))
            for name in sorted(names)
            if (found := limits.of(name)) is not None
        ]

    def gate_of(self, run: int) -> Operation[str | None]:
        """Return what a waiting run waits for: a key, a group, or `!queue` for a worker of its queue."""
        rows = yield self._db.query("lines.gate_of", run=run)
        return rows[0][0] if rows else None

    def _alone(self) -> Operation[None]:
        if self._db.dialect == "postgres":
            yield self._db.query("limits.alone")

    def _form_anew(self) -> Operation[None]:
        """Dissolve the lines: the next admission forms them by the limits as they are then."""
        yield self._db.query("lines.reset")
        yield self._db.query("lines.clear")
        yield self._db.many("taken.drop", ("holder",), [(0,)])

    def _count_in(self, limits: LimitSet) -> Operation[None]:
        """Count what is under way into limits that are newer than it."""
        taken: builtins.list[tuple[str, int, str | None]] = []
        lines: builtins.list[tuple[int, str]] = []
        for row in (yield self._db.query("limits.under")):
            keys = limits.governing(row["task"], row["queue"], Run.read_limits(row["limits"]))
            before = set(json.loads(row["gate"])[1:]) if row["gate"] else set()
            new = [key for key in keys if key not in before]
            taken += [(key, row["id"], group(key)) for key in new]
            lines += [(row["id"], line_name(row["queue"], keys))] if new else []
        if taken:
            yield self._db.many("taken.take", ("key", "holder", "family"), taken)
            yield self._db.many("limits.place", ("id", "line"), lines)

    # Room for tasks that ask from within

    def look(self, key: str, asked: Asked) -> Operation[int | None]:
        """Tell in how many microseconds to look again whether there may be room for a hold that waits; None: ask now.

        It only reads, and whoever waits behind others looks less often: many who wait are in nobody's way.
        """
        used = asked.own or key
        (row,) = yield self._db.query("holds.look", key=key, used=used, id=asked.hold)
        before, busy, rest = int(row["before"]), int(row["busy"]), int(row["rest"] or 0)
        if before and asked.own is None:
            return min(_SOON * (before + 1), _SELDOM)
        if rest > 0:
            return min(_SOON, max(rest, 1_000))
        most = 1 if asked.own is not None else (yield from self.all()).at_once(key)
        return _SOON if most is not None and busy >= most else None

    def ask(self, key: str, hold: int | None, run: int | None, lease: int) -> Operation[Asked]:
        """Take room under a key; where there is none, stand in line for it: before runs that have not begun."""
        yield from self._alone()
        limits = yield from self.all()
        first = hold is None
        if hold is None or not (yield self._db.query("holds.ask_again", id=hold, patience=_ASKING)):
            hold = (yield self._db.query("holds.ask", key=key, patience=_ASKING))[0][0]
        owned = bool(run and (yield self._db.query("holds.owned", key=key, holder=run)))
        if owned:
            return (yield from self._ask_own(key, hold, run, lease, limits, first=first))
        (row,) = yield self._db.many("taken.uses", ("key",), [(key,)])
        room = Room(limits, {key: Use(row["busy"], bool(row["resting"]), wanted=False)})
        name = group(key)
        if limits.cap(name) is not None:
            room.busy_keys[str(name)] = {each[0] for each in (yield self._db.query("taken.family", family=name))}
        if (yield self._db.query("holds.before", key=key, id=hold)) or room.blocker((key,)):
            return Asked(hold, granted=False)
        yield self._db.query("holds.remove", id=hold)
        yield self._db.query("holds.take", key=key, holder=-hold, family=name, lease=lease)
        return Asked(hold, granted=True)

    def _ask_own(
        self, key: str, hold: int, run: int | None, lease: int, limits: LimitSet, *, first: bool
    ) -> Operation[Asked]:
        """Let a run that has room under a key itself use it once more: one use at a time, each after the pause."""
        own = f"{run} {key}"  # no key of a limit has a space in it
        if first:  # what the run did there before is taken to end now
            yield self._db.query("holds.rest", key=key, holder=-hold, family=group(key), gap=limits.gap(key))
        uses = yield self._db.many("taken.uses", ("key",), [(key,), (own,)])
        resting = any(row["resting"] for row in uses)
        in_use = any(row["busy"] for row in uses if row["key"] == own)
        if resting or in_use:
            return Asked(hold, granted=False, own=own)
        yield self._db.query("holds.remove", id=hold)
        yield self._db.query("holds.take", key=own, holder=-hold, family=OWN, lease=lease)
        return Asked(hold, granted=True, own=own)

    def renew(self, key: str, asked: Asked, lease: int) -> Operation[bool]:
        """Keep the room of a hold; False if it is gone."""
        return bool((yield self._db.query("holds.renew", key=asked.own or key, holder=-asked.hold, lease=lease)))

    def release(self, key: str, asked: Asked, *, began: bool) -> Operation[None]:
        """Give the room of a hold back, or stop asking for it."""
        yield self._db.query("holds.remove", id=asked.hold)
        limits = yield from self.all()
        gap = limits.gap(key) if began else 0
        yield self._db.query("holds.rest", key=key, holder=-asked.hold, family=group(key), gap=gap)
        if asked.own is not None and began:
            yield self._db.query("holds.rest", key=asked.own, holder=-asked.hold, family=OWN, gap=gap)

    # Repair

    def sweep(self) -> Operation[bool]:
        """Give back what nobody has any more; tells whether an admission should look."""
        if not (yield self._db.query("limits.any")):
            return False
        yield from self._alone()
        changed = bool((yield self._db.query("taken.left_behind")))
        changed |= bool((yield self._db.query("taken.clamp")))
        yield self._db.query("holds.forget")
        late = [(row["id"], row["gate"]) for row in (yield self._db.query("taken.unclaimed", patience=_UNCLAIMED))]
        if late:
            back = yield self._db.many("limits.take_back", ("id",), [(run,) for run, _ in late])
            runs = {row["id"] for row in back}
            yield self._db.many("taken.drop", ("holder",), [(run,) for run in sorted(runs)])
            lines = {line: run for run, line in late if run in runs}
            yield self._db.many("lines.last", ("line", "run"), sorted(lines.items()))
        opened = yield self._db.query("lines.forgotten")
        return changed or bool(late) or bool(opened)
