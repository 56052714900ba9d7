"""Admission under limits: which waiting runs become ready. One admission at a time decides, for the whole store.

Runs of the same queue and the same limited keys wait in one line, in the order of their priority and their time. A line
stands behind one gate: the key, or the group, that lacks room. Whatever ends makes room at a few gates, and only the
best lines there are looked at; so a thousand runs behind one key cost the others nothing. A run takes all its keys at
once or none. A line that was passed over again and again, because its keys were never free at the same moment, keeps
those it can get until it has all; one line at a time may, so no two can wait for each other.
"""

import heapq
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from rota.db.database import Database, Operation
from rota.limit import Limit, LimitSet, Room, Use, group
from rota.model import Run
from rota.times.moments import Instant

_LINES = 50
"""How many lines of a gate are looked at together."""
_RUNS = 100
"""How many runs of a line are looked at together."""
_PATIENCE = 5
"""How often a line is passed over before it may keep what it has."""
_SOON = 20_000
_LONGEST = 1_000_000
"""How long until the next look while runs wait behind gates: whoever gave room may have died before he could say so."""

_MOVED = ("line", "gate", "priority", "due", "run", "passed", "reserves")


@dataclass(frozen=True, slots=True)
class Admitted:
    """What became of an admission."""

    ready: dict[str, int]
    """How many runs of each queue became ready."""
    wait: int | None
    """In how many microseconds to come again, at the latest; None if nothing waits for room."""


@dataclass(slots=True)
class _Line:
    """Waiting runs of one queue and the same keys."""

    name: str
    gate: str
    rank: tuple[int, Instant, int]
    passed: int
    reserves: bool
    queue: str = ""
    keys: tuple[str, ...] = ()
    heads: list[tuple[int, Instant, int]] = field(default_factory=list)
    """Its first runs, by rank: (-priority, due, run)."""
    asked: int = 0
    taken: int = 0

    @classmethod
    def read(cls, row: Any) -> "_Line":
        queue, *keys = json.loads(row["line"])
        rank = (-row["priority"], row["due"], row["run"])
        return cls(row["line"], row["gate"], rank, row["passed"], bool(row["reserves"]), queue, tuple(keys))

    @property
    def empty(self) -> bool:
        """Whether no run is left in it, as far as it was looked at."""
        return self.taken == len(self.heads) and self.taken < self.asked


def line_name(queue: str, keys: Iterable[str]) -> str:
    """Return the name of the line for this queue and these keys."""
    return json.dumps([queue, *keys], separators=(",", ":"))


def read_limits(rows: Iterable[Any]) -> LimitSet:
    """Make the limits from the store's rows."""
    return LimitSet(
        {
            row["key"]: Limit(row["at_once"], gap=timedelta(microseconds=row["gap"]), keys_at_once=row["keys_at_once"])
            for row in rows
        }
    )


class Admission:
    """Admits runs to the limits of a store."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def admit(self, most: int) -> Operation[Admitted]:
        """Make ready what is due and has room."""
        if self._db.dialect == "postgres" and not (yield self._db.query("limits.try_alone"))[0][0]:
            return Admitted({}, _SOON)
        limits = read_limits((yield self._db.query("limits.all")))
        ready: dict[str, int] = {}
        arrived = yield from self._arrive(limits, most, ready)
        rested = yield self._db.query("taken.rested")
        again = arrived == most
        if (yield self._db.query("lines.any")):
            again |= yield from self._open({row[0] for row in rested}, limits, ready)
        return Admitted(ready, 0 if again else (yield from self._wait()))

    def _wait(self) -> Operation[int | None]:
        """Return how long nothing changes by itself."""
        (row,) = yield self._db.query("lines.next")
        if not row["waiting"]:
            return None
        until: int | None = row["wait"]
        return _LONGEST if until is None else max(0, min(until, _LONGEST))

    def _arrive(self, limits: LimitSet, most: int, ready: dict[str, int]) -> Operation[int]:
        """Put the runs whose time has come into their lines; those that nothing limits are ready."""
        rows = yield self._db.query("limits.arrivals", most=most)
        free: list[tuple[int]] = []
        placed: list[tuple[int, str]] = []
        best: dict[str, tuple[int, Instant, int]] = {}
        for row in rows:
            keys = limits.governing(row["task"], row["queue"], Run.read_limits(row["limits"]))
            if not keys:
                free.append((row["id"],))
                continue
            name = line_name(row["queue"], keys)
            placed.append((row["id"], name))
            rank = (-row["priority"], row["due"], row["id"])
            best[name] = min(best.get(name, rank), rank)
        if free:
            _count(ready, (yield self._db.many("limits.ready", ("id",), free)))
        if placed:
            yield self._db.many("limits.place", ("id", "line"), placed)
            lines = [(name, -rank[0], rank[1], rank[2]) for name, rank in sorted(best.items())]
            yield self._db.many("lines.arrive", ("line", "priority", "due", "run"), lines)
        return len(rows)

    def _open(self, rested: set[str], limits: LimitSet, ready: dict[str, int]) -> Operation[bool]:
        """Let runs in through the gates where there may be room; tells whether more could be let in at once."""
        rows = yield self._db.query("limits.queues")
        worked = {queue for row in rows for queue in json.loads(row[0])}
        room = Room(limits)
        for name in limits.groups:
            room.busy_keys[name] = {row[0] for row in (yield self._db.query("taken.family", family=name))}
        opening = _Opening(worked, room, (yield from self._reserved()))
        gates = {"", *rested, *room.open_groups(opening.own), *(f"!{queue}" for queue in worked)}
        again = False
        reserving = (yield self._db.query("lines.reserves")) if opening.own else ()
        while gates:
            rows = yield self._db.many("lines.at", ("gate",), [(each,) for each in sorted(gates)], most=_LINES)
            names = {row["line"] for row in rows}
            rows = [*rows, *(row for row in reserving if row["line"] not in names)]  # whatever it waits for
            reserving = ()
            lines = [_Line.read(row) for row in rows]
            yield from self._look_up(lines, opening.room)
            yield from self._write(lines, opening.decide(lines), ready)
            again |= any(line.gate == "" and not line.empty for line in lines)
            gates = _unfinished(gates, rows, lines)
        return again

    def _reserved(self) -> Operation[frozenset[str]]:
        """Return what a line keeps until it has all. It gives way to a task that waits for the same from within."""
        rows = yield self._db.query("lines.reserving")
        if any(row["wanted"] for row in rows):
            yield self._db.query("lines.unreserve")
            yield self._db.many("taken.drop", ("holder",), [(0,)])
            return frozenset()
        return frozenset(row["key"] for row in rows)

    def _look_up(self, lines: list[_Line], room: Room) -> Operation[None]:
        """Read how much is in use of all keys of these lines, and the lines' first runs."""
        unknown = sorted({each for line in lines for each in line.keys} - set(room.uses))
        if unknown:
            for row in (yield self._db.many("taken.uses", ("key",), [(each,) for each in unknown])):
                room.uses[row["key"]] = Use(row["busy"], bool(row["resting"]), bool(row["wanted"]))
        for line in lines:
            most = room.most(line.keys)
            line.asked = 1 + min(_RUNS if most is None else most, _RUNS)
        wanted = [(line.name, line.asked) for line in lines]
        by_name = {line.name: line for line in lines}
        if wanted:
            for row in (yield self._db.many("lines.heads", ("line", "most"), wanted)):
                by_name[row["line"]].heads.append((-row["priority"], row["due"], row["id"]))
        for line in lines:
            line.heads.sort()

    def _write(self, lines: list[_Line], found: "_Found", ready: dict[str, int]) -> Operation[None]:
        if found.unreserved:
            yield self._db.many("taken.drop", ("holder",), [(0,)])
        if found.fulfilled:
            yield self._db.query("taken.unreserve")
        if found.admitted:
            _count(ready, (yield self._db.many("limits.ready", ("id",), [(run,) for run, _ in found.admitted])))
        taken = [(key, run, group(key)) for run, keys in found.admitted for key in keys]
        taken += [(key, 0, group(key)) for key in found.reserved]
        if taken:
            yield self._db.many("taken.take", ("key", "holder", "family"), taken)
        gone = [(line.name,) for line in lines if line.empty]
        if gone:
            yield self._db.many("lines.remove", ("line",), gone)
        moved = [
            (line.name, line.gate, -line.rank[0], line.rank[1], line.rank[2], line.passed, int(line.reserves))
            for line in lines
            if not line.empty
        ]
        if moved:
            yield self._db.many("lines.move", _MOVED, moved)


@dataclass(slots=True)
class _Found:
    """What was decided about some lines."""

    admitted: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    reserved: tuple[str, ...] = ()
    fulfilled: bool = False
    unreserved: bool = False


@dataclass(slots=True)
class _Opening:
    """Decides which runs of some lines are let in. Pure."""

    worked: set[str]
    """The queues that have a worker."""
    room: Room
    own: frozenset[str]
    """What the line that reserves has."""

    def decide(self, lines: list[_Line]) -> _Found:
        """Let in the best run of all lines that has room, until none has."""
        found = _Found()
        heap: list[tuple[tuple[int, Instant, int], int]] = []
        for number, line in enumerate(lines):
            if line.heads:
                line.rank = max(line.rank, line.heads[0])  # its best may have been cancelled, or it is to stand last
                heapq.heappush(heap, (line.rank, number))
            elif line.reserves:
                self._give_up(line, found)
        while heap:
            _, number = heap[0]
            line = lines[number]
            gate = self._gate(line)
            if gate is None:
                self._let_in(line, found)
                line.gate = ""
            else:
                self._stand(line, gate, found)
            if gate is None and line.taken < len(line.heads):
                line.rank = line.heads[line.taken]
                heapq.heapreplace(heap, (line.rank, number))
            else:
                heapq.heappop(heap)
        return found

    def _gate(self, line: _Line) -> str | None:
        if line.queue not in self.worked:
            return f"!{line.queue}"
        return self.room.blocker(line.keys, self.own if line.reserves else frozenset())

    def _let_in(self, line: _Line, found: _Found) -> None:
        own = self.own if line.reserves else frozenset()
        self.room.take(each for each in line.keys if each not in own)
        found.admitted.append((line.heads[line.taken][2], line.keys))
        line.taken += 1
        line.passed = 0
        if line.reserves:
            found.fulfilled = True
            line.reserves = False
            self.own = frozenset()

    def _stand(self, line: _Line, gate: str, found: _Found) -> None:
        """Leave a line behind the gate that lacks room for it."""
        if line.reserves and gate.startswith("!"):
            self._give_up(line, found)
        if line.gate not in ("", gate):
            line.passed += 1
        line.gate = gate
        line.rank = line.heads[line.taken]  # to stand last is for one turn
        may = line.reserves or (line.passed >= _PATIENCE and not self.own)
        if may and not gate.startswith("!"):
            self._reserve(line, found)

    def _reserve(self, line: _Line, found: _Found) -> None:
        """Keep what the line can get of its keys, beside what it has."""
        for each in line.keys:
            if each not in self.own and self.room.blocker((each,), self.own) is None:
                self.room.take((each,))
                self.own |= {each}
                found.reserved += (each,)
                line.reserves = True

    def _give_up(self, line: _Line, found: _Found) -> None:
        line.reserves = False
        found.unreserved = True
        self.own = frozenset()


def _unfinished(gates: set[str], rows: Iterable[Any], lines: list[_Line]) -> set[str]:
    """Return the gates that have more lines than were looked at, and that all of those left."""
    came = [(row["gate"], line) for row, line in zip(rows, lines, strict=True)]
    return {
        gate
        for gate in gates
        if sum(each == gate for each, _ in came) == _LINES
        and not any(each == gate == line.gate and not line.empty for each, line in came)
    }


def _count(ready: dict[str, int], rows: Iterable[Any]) -> None:
    for row in rows:
        ready[row["queue"]] = ready.get(row["queue"], 0) + 1
