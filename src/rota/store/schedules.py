"""The verbs of a schedule's life: define, fire, hear how its runs ended, hold, trigger, back-fill, remove.

A verb reads the schedules that it concerns and holds their rows, decides (`times.decide`, pure), stores the runs,
records the skips and writes the schedules down, in one operation. The unique index of (schedule, due) is the backstop.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rota.db.database import Database, Operation, Rows
from rota.errors import InvalidSchedule, UnknownSchedule
from rota.schedule import Kind, read_policies
from rota.store.schedule_rows import (
    DEFINED,
    FIRED,
    RUN,
    STATE,
    Author,
    Definition,
    EndedRun,
    Fired,
    KnownSchedule,
    Triggered,
    anchored,
    bring_back,
    closing,
    decision_of,
    first_wake,
    has_room,
    heard,
    known_schedules,
    look,
    run_of,
    runs_of,
    take_in,
    to_open,
)
from rota.times.decision import Decision, Firing, Skip
from rota.times.fixed import ON_TIME
from rota.times.moments import Instant, moment
from rota.times.overlap import room

Now = tuple[Instant, bool, Instant | None]
"""What time it is, whether everything is paused, and else when it was resumed, if it ever was."""


class ScheduleStore:
    """The schedules in a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    # Define

    def put(
        self, new: Sequence[Definition], author: Author, *, create: bool = False
    ) -> Operation[tuple[set[str], set[str]]]:
        """Store schedules, or change what differs; returns the keys that were made, and those that were changed.

        What exists keeps its pause and, where the rule stays, its next due instant. With `create` nothing that exists
        is touched.
        """
        open_, made, changed = sorted(new, key=lambda each: each.key), set[str](), set[str]()
        while open_:  # what somebody removes in between is made after all
            fresh = yield from self._make(open_, author)
            made |= fresh
            old = [each for each in open_ if each.key not in fresh]
            if create or not old:
                break
            known = yield from self._lock([each.key for each in old], missing=True)
            changed |= yield from self._change([each for each in old if each.key in known], known, author)
            open_ = [each for each in old if each.key not in known]
        return made, changed

    def _make(self, new: Sequence[Definition], author: Author) -> Operation[set[str]]:
        """Store those whose key is free; returns which. In the order of keys, as locks are taken."""
        now, *_ = yield from self._clock()
        rows = [(*each.values(), *first_wake(each, now)) for each in new]
        columns = (*DEFINED, "state", "next", "wake")
        made = {row[0] for row in (yield self._db.many("schedules.insert", columns, rows))}
        fresh = [each for each in new if each.key in made]
        if fresh:
            yield from self._tag(fresh, made)
            yield from self._revise([(each.key, "made", {}) for each in fresh], author)
        return made

    def _change(
        self, new: Sequence[Definition], known: Mapping[str, KnownSchedule], author: Author
    ) -> Operation[set[str]]:
        differing = {each.key: changes for each in new if (changes := each.changes(known[each.key].row))}
        back = {each.key for each in new if known[each.key]["state"] == "retired"}
        touched = [each for each in new if each.key in differing or each.key in back]
        if not touched:
            return set()
        # What was due under the old rule is answered under it; an interval only counts differently.
        other = [each for each in touched if "rule" in differing.get(each.key, ())]
        closed = [each.key for each in other if not (anchored(known[each.key]["rule"]) and anchored(each.rule))]
        yield from self._decide([known[key] for key in closed], closed=True)
        now, *_ = yield from self._clock()
        if differing:
            changed = [each for each in touched if each.key in differing]
            yield self._db.many("schedules.define", DEFINED, [each.values() for each in changed])
            yield from self._tag([each for each in changed if "tags" in differing[each.key]], set())
        for each in touched:
            one = known[each.key]
            one.row |= dict(zip(DEFINED, each.values(), strict=True))
            one.revised = True
            if one["state"] == "finished":
                one.set(state="active", since=now)  # it goes on with the future
            if one["state"] == "retired":
                held = one["hold_reason"] is not None and (one["hold_until"] is None or one["hold_until"] > now)
                one.set(state=one["hold_reason"] if held else "active")  # somebody's pause stays
                if not held:
                    one.set(hold_reason="paused", hold_until=now)
            if each.key in closed:
                one.set(since=one["decided_at"], asked=None)  # not later: nothing is due between two rules
        yield from self.look_ahead([known[each.key] for each in touched])
        yield from self._revise(
            [
                (each.key, "changed" if each.key in differing else "returned", differing.get(each.key, {}))
                for each in touched
            ],
            author,
        )
        return {each.key for each in touched}

    def _tag(self, new: Sequence[Definition], fresh: set[str]) -> Operation[None]:
        old = [(each.key,) for each in new if each.key not in fresh]
        if old:
            yield self._db.many("tags.clear", ("key",), old)
        tags = [(tag, each.key) for each in new for tag in each.tags]
        if tags:
            yield self._db.many("tags.insert", ("tag", "schedule"), tags)

    def set_success(self, keys: Sequence[str], at: Instant, author: Author) -> Operation[None]:
        """Say by hand when the last success was: an anchored interval counts from it at once."""
        now, *_ = yield from self._clock()
        if at > now:
            raise InvalidSchedule("last_success", moment(at), "use a moment that is past", "lies ahead")
        known = list((yield from self._lock(keys)).values())
        for one in known:
            one.set(succeeded=at)
            one.revised = True
        yield from self.look_ahead(known)
        yield from self._revise(
            [(one.key, "last success", {"succeeded": [one.row["succeeded"], at]}) for one in known], author
        )

    def ask(self, wanted: Mapping[str, Instant], author: Author) -> Operation[set[str]]:
        """Say by hand when anchored intervals run next; returns those that could: active, with no run under way."""
        able = yield from self._askable(wanted)
        for one in able:
            one.set(asked=wanted[one.key])
            one.revised = True
        if able:
            yield from self.look_ahead(able)
            yield from self._revise(
                [(one.key, "spread", {"next": [one.row["next"], one["next"]]}) for one in able], author
            )
        return {one.key for one in able}

    def askable(self, keys: Iterable[str]) -> Operation[set[str]]:
        """Return which of these could be told when they run next."""
        return {one.key for one in (yield from self._askable(keys))}

    def _askable(self, keys: Iterable[str]) -> Operation[list[KnownSchedule]]:
        known = list((yield from self._lock(keys, missing=True)).values())
        yield from self._count(known)
        return [one for one in known if one["state"] == "active" and not one.under_way and anchored(one["rule"])]

    def rows(self, keys: Sequence[str]) -> Operation[list[Any]]:
        """Return schedules' rows, and hold them."""
        return [one.row for one in (yield from self._lock(keys)).values()]

    # Fire

    def fire(self, most: int) -> Operation[Fired]:
        """Decide about the schedules that are due, store their runs, record their skips.

        What is late has a share of its own, not all: after an outage, what comes due does not wait behind it.
        """
        rows = yield self._db.query("schedules.due", most=most, late=-(-most // 2), on_time=ON_TIME)
        if not rows:
            return Fired(0, 0, 0, {})
        clock = rows[0]["clock"], False, rows[0]["resumed"]
        return (yield from self._decide(known_schedules(rows), clock))

    def next_wake(self) -> Operation[int | None]:
        """Return how long until a schedule is due; None while all are paused or none will be."""
        (row,) = yield self._db.query("schedules.next_wake")
        return None if row["paused"] else row["wait"]

    def _decide(
        self, known: Sequence[KnownSchedule], clock: Now | None = None, *, closed: bool = False
    ) -> Operation[Fired]:
        """Answer every due instant of these schedules; where they are `closed`, under a rule that is about to go."""
        if not known:
            return Fired(0, 0, 0, {})
        now, paused, resumed = clock or (yield from self._clock())
        yield from self._count(known)
        runs: list[tuple[Any, ...]] = []
        skips: list[tuple[str, Skip, Instant | None]] = []
        late: list[int] = []
        if closed:
            decided = {one.key: closing(one, now, paused=paused, resumed=resumed) for one in known}
        else:
            decided = {one.key: decision_of(one, resumed, now) for one in known}
        cancelled = yield from self._cancel(
            [key for key, each in decided.items() if each.cancel], "replaced by a newer run"
        )
        for one in known:
            decision = decided[one.key]
            through = one["through"]
            runs += runs_of(one, decision, free=cancelled.get(one.key, 0))
            first = min((each.due for each in decision.fire), default=None)
            skips += [
                (one.key, skip, through if first is None or skip.first < first else None) for skip in decision.skips
            ]
            late += [now - each.due for each in decision.fire]
            take_in(one, decision, resumed, now)
        stored = yield from self._store(runs)
        for one in known:
            one.counted = False
        lost = _take_back(known, decided, stored, now) if len(stored) < len(runs) else {}
        yield from self._skip(skips)
        yield from self._write_down(known, now)
        ready: dict[str, int] = {}
        for row in stored:
            if row["state"] == "ready":
                ready[row["queue"]] = ready.get(row["queue"], 0) + 1
        reasons: dict[str, int] = {}
        for _, skip, _ in skips:
            reasons[skip.reason] = reasons.get(skip.reason, 0) + skip.count
        return Fired(
            len(known),
            len(stored),
            sum(reasons.values()),
            ready,
            bool(cancelled),
            len(runs) - len(stored),
            tuple(late),
            stored,
            {one.key: one for one in known},
            reasons,
            lost,
        )

    def _write_down(self, known: Sequence[KnownSchedule], now: Instant) -> Operation[None]:
        """Write the schedules as they are now; of those that only fired, only what that changes."""
        plain = [one.fired() for one in known if one.only_fired]
        if plain:
            yield self._db.many("schedules.fired", FIRED, plain, decided_at=now)
        others = [one.values() for one in known if not one.only_fired]
        if others:
            yield self._db.many("schedules.decided", STATE, others)

    def _store(self, runs: Sequence[tuple[Any, ...]]) -> Operation[Rows]:
        if not runs:
            return ()
        return (yield self._db.many("schedules.runs", RUN, runs))

    def _skip(self, skips: Sequence[tuple[str, Skip, Instant | None]]) -> Operation[None]:
        """Record skips; one that goes on where the schedule's last one ended, for the same reason, lengthens it."""
        if not skips:
            return
        keys = sorted({key for key, _, _ in skips})
        newest = {row["schedule"]: row for row in (yield self._db.many("skips.newest", ("key",), [(k,) for k in keys]))}
        longer, new = [], []
        for key, skip, through in skips:
            last = newest.pop(key, None)
            if last is not None and last["reason"] == skip.reason and last["last"] == through:
                longer.append((last["id"], skip.last, skip.count))
            else:
                new.append((key, skip.reason, skip.first, skip.last, skip.count))
        if longer:
            yield self._db.many("skips.extend", ("id", "last", "more"), longer)
        if new:
            yield self._db.many("skips.insert", ("schedule", "reason", "first", "last", "count"), new)

    def _cancel(self, keys: Sequence[str], note: str, *, running: bool = True) -> Operation[dict[str, int]]:
        """Cancel what is under way of these schedules; returns how many of each had not begun, and have ended now."""
        if not keys:
            return {}
        rows = yield self._db.many(
            "schedules.cancel_runs", ("key",), [(key,) for key in sorted(keys)], note=note, running=int(running)
        )
        ended = dict.fromkeys(keys, 0)
        for row in rows:
            ended[row["schedule"]] += row["state"] == "cancelled"
        gone = [(row["id"],) for row in rows if row["state"] == "cancelled" and row["gate"] is not None]
        if gone:
            yield self._db.many("taken.drop", ("holder",), gone)
        return ended

    # Hear

    def hold_rows(self, keys: Iterable[str]) -> Operation[dict[str, KnownSchedule]]:
        """Hold the rows of schedules whose runs are about to be settled: schedules come before runs."""
        return (yield from self._lock(keys, missing=True))

    def ended(self, known: dict[str, KnownSchedule], runs: Sequence[EndedRun]) -> Operation[None]:
        """Take in how runs ended: what is next, failures in a row, what waited for them."""
        clock = now, *_ = yield from self._clock()
        touched = {one.schedule: known[one.schedule] for one in runs if one.schedule in known}
        revised: list[tuple[str, str, dict[str, Any]]] = []
        for run in runs:
            if run.schedule in touched:
                revised += heard(touched[run.schedule], run, now)
        if not touched:
            return
        yield from self._count(list(touched.values()))
        opening = [(key, wanted) for key, one in touched.items() if (wanted := to_open(one))]
        if opening:
            yield self._db.many("schedules.open", ("key", "most"), opening)
        yield from self.look_ahead(list(touched.values()), clock)
        if revised:
            yield from self._revise(revised, Author("rota"))

    def gate(self, known: KnownSchedule) -> Operation[str | None]:
        """Return what a run that is to be tried again waits behind while there is no room beside what is under way."""
        yield from self._count([known])
        return None if has_room(known) else f"@{known.key}"

    # Hold

    def pause(
        self, keys: Sequence[str], until: Instant | None, author: Author, *, reason: str = "paused"
    ) -> Operation[set[str]]:
        """Keep schedules from firing; returns those that were not held before."""
        known = yield from self._lock(keys)
        now, *_ = yield from self._clock()
        if until is not None and until <= now:
            raise InvalidSchedule("until", moment(until), "use a moment that lies ahead", "is past")
        held = [one for one in known.values() if one["state"] in ("active", "paused", "parked", "finished")]
        for one in held:
            one.set(
                state=reason,
                hold_reason=reason,
                hold_at=now,
                hold_until=until,
                hold_by=author.by,
                hold_note=author.note,
            )
            one.revised = True
        if held:
            yield from self._count(held)
            yield from self.look_ahead(held)
            yield from self._revise([(one.key, reason, {"until": [None, until]}) for one in held], author)
        return {one.key for one in held if one.row["state"] != reason}

    def resume(self, keys: Sequence[str], author: Author) -> Operation[set[str]]:
        """Let schedules go on with the future, and record what passed; returns those that were held."""
        known = yield from self._lock(keys)
        now, paused, _ = yield from self._clock()
        held = [one for one in known.values() if one["state"] in ("paused", "parked", "retired")]
        for one in held:
            reason = one["hold_reason"] or "paused"
            one.set(state="active", hold_reason=reason, hold_until=now, failures=0)
            one.revised = True
        if held:
            yield from (self.look_ahead(held) if paused else self._decide(held))
            yield from self._revise([(one.key, "resumed", {}) for one in held], author)
        return {one.key for one in held}

    def retire(self, keys: Sequence[str], author: Author) -> Operation[None]:
        """Put declared schedules aside that are gone from the code; they come back with it."""
        known = yield from self._lock(keys)
        for one in known.values():
            one.set(state="retired", next=None, wake=None)
            one.revised = True
        yield self._db.many("schedules.decided", STATE, [one.values() for one in known.values()])
        yield from self._revise([(key, "retired", {}) for key in known], author)

    # Run now, run the past, remove

    def trigger(self, key: str, author: Author) -> Operation[Triggered]:
        """Run a schedule now, beside its rule, as its overlap policy lets it."""
        (known,) = (yield from self._lock([key])).values()
        now, *_ = yield from self._clock()
        yield from self._count([known])
        return (yield from self._extra(known, [now], "manual", author, now))

    def backfill(self, key: str, dues: Sequence[Instant], author: Author) -> Operation[Triggered]:
        """Run past instants of a schedule, in order, as its overlap policy lets them."""
        (known,) = (yield from self._lock([key])).values()
        now, *_ = yield from self._clock()
        yield from self._count([known])
        return (yield from self._extra(known, list(dues), "backfill", author, now))

    def _extra(
        self, known: KnownSchedule, dues: list[Instant], kind: Kind, author: Author, now: Instant
    ) -> Operation[Triggered]:
        blocker = known.first
        space = room(read_policies(known["policies"]), known.under_way, len(dues))
        going = dues[: space.start + space.queue]
        if not going:
            return Triggered(None, blocker)
        ended = (yield from self._cancel([known.key], "replaced by a newer run")) if space.cancel else {}
        free = space.start or int(space.cancel and ended.get(known.key, 0) == known.under_way)
        firings = [Firing(due, now, queued=number >= free) for number, due in enumerate(going)]
        runs = [run_of(known, each, kind) for each in firings]
        stored = yield from self._store(runs)
        known.set(run_count=known["run_count"] + len(stored))
        known.counted = False
        known.revised = True
        yield from self.look_ahead([known])
        yield from self._revise([(known.key, "triggered" if kind == "manual" else "back-filled", {})], author)
        return Triggered(stored[0]["id"], blocker, len(stored))

    def remove(self, keys: Sequence[str], author: Author) -> Operation[set[str]]:
        """Remove schedules: what waits is cancelled, what runs ends, the history stays."""
        known = yield from self._lock(keys)
        yield from self._cancel(sorted(known), "its schedule was removed", running=False)
        yield from self._revise(
            [(key, "removed", {"rule": [known[key]["rule"], None]}) for key in sorted(known)], author
        )
        rows = [(key,) for key in sorted(known)]
        for each in ("schedules.forget", "skips.forget", "revisions.forget"):  # from now on its history goes by age
            yield self._db.many(each, ("key",), rows)
        gone = yield self._db.many("schedules.remove", ("key",), rows)
        return {row[0] for row in gone}

    def pause_all(self, author: Author, *, paused: bool) -> Operation[None]:
        """Pause everything, durably, or resume."""
        yield self._db.query("pause.put", paused=int(paused), by_whom=author.by, note=author.note)

    # Repair

    def heal(self, most: int) -> Operation[int]:
        """Decide again about active schedules that have neither a next nor a run under way, and about those whose last
        decision lies ahead, because the clock was set back since; returns how many.
        """
        rows = yield self._db.query("schedules.orphans", most=most, on_time=ON_TIME)
        if not rows:
            return 0
        known = yield from self._lock([row[0] for row in rows], missing=True)
        now, *_ = yield from self._clock()
        for one in known.values():
            if one["decided_at"] > now + ON_TIME:
                bring_back(one, now)
        yield from self.look_ahead(list(known.values()))
        return len(known)

    # Parts

    def _clock(self) -> Operation[Now]:
        """Return what time it is, whether everything is paused, and else when it was resumed, if it ever was."""
        (row,) = yield self._db.query("schedules.now")
        return row["now"], bool(row["paused"]), None if row["paused"] else row["paused_at"]

    def _lock(self, keys: Iterable[str], *, missing: bool = False) -> Operation[dict[str, KnownSchedule]]:
        wanted = sorted(set(keys))
        rows = (yield self._db.many("schedules.lock", ("key",), [(key,) for key in wanted])) if wanted else ()
        found = {one.key: one for one in known_schedules(rows)}
        for key in wanted:
            if key not in found and not missing:
                raise UnknownSchedule(key)
        return found

    def _count(self, known: Sequence[KnownSchedule]) -> Operation[None]:
        """Count the runs under way, where that is not done."""
        unknown = [one for one in known if not one.counted]
        if not unknown:
            return
        counts = {
            row["schedule"]: row
            for row in (yield self._db.many("schedules.under_way", ("key",), [(one.key,) for one in unknown]))
        }
        for one in unknown:
            one.counted = True
            row = counts.get(one.key)
            one.under_way, one.going, one.first = (row["number"], row["going"], row["first"]) if row else (0, 0, None)

    def look_ahead(self, known: Sequence[KnownSchedule], clock: Now | None = None) -> Operation[None]:
        """Write down what is next. What is due already is left to whoever fires: it comes at once."""
        yield from self._count(known)
        now, _, resumed = clock or (yield from self._clock())
        for one in known:
            if one["state"] == "retired":
                one.set(next=None, wake=None)
                continue
            look(one, decision_of(one, resumed, now), resumed, now)
        yield self._db.many("schedules.decided", STATE, [one.values() for one in known])

    def _revise(self, changes: Sequence[tuple[str, str, dict[str, Any]]], author: Author) -> Operation[None]:
        rows = [
            (key, author.by, what, author.note, json.dumps(changed) if changed else "{}")
            for key, what, changed in changes
        ]
        yield self._db.many("revisions.insert", ("schedule", "by_whom", "what", "note", "changes"), rows)


def _take_back(
    known: Sequence[KnownSchedule], decided: dict[str, Decision], stored: Rows, now: Instant
) -> dict[str, int]:
    """Take back what was counted of firings that somebody else had made before, and look again at once.

    Returns how many of which schedule.
    """
    mine = {(row["schedule"], row["nominal"]) for row in stored}
    found: dict[str, int] = {}
    for one in known:
        lost = sum((one.key, each.due) not in mine for each in decided[one.key].fire)
        if lost:
            found[one.key] = lost
            one.set(runs=one["runs"] - lost, run_count=one["run_count"] - lost)
            one.set(wake=now if one["state"] == "active" else one["wake"])
    return found
