"""Troubles: what somebody should know of, from when it began until it is over; told once each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from rota.db.database import Database, Operation
from rota.schedule import read_policies, read_rule
from rota.times.exclusion import excluded
from rota.times.intervals import Every
from rota.times.moments import DAY, SECOND, Instant, micros, moment
from rota.times.policies import Policies
from rota.times.rule import Rule

Kind = Literal["failing", "parked", "overdue", "silent"]

MOST = 10_000
_LATE = 60 * SECOND
"""For how long something may be late before it is looked at, and beyond twice its interval before it is overdue."""
_CLAIMED = 300 * SECOND
"""How long somebody may take to tell; then he died, and another does."""
_TOLD_AT_ONCE = 50
_UNREPLACED = DAY
"""After how long nobody waits any more for a worker to take a silent one's place."""
_KEPT = 14 * DAY
_STEPS = 1_000


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that somebody should know of."""

    subject: str
    """What is in trouble, such as `schedule feed-42` or `worker news-1`."""
    kind: Kind
    said: str
    began: datetime
    over: datetime | None
    told: bool
    """Whether all is told that was to be."""

    @classmethod
    def read(cls, row: Any) -> "Trouble":
        """Make the record from the store's row."""
        over = None if row["over"] is None else moment(row["over"])
        told = row["told"] == (1 if over is None else 2)
        return cls(row["subject"], row["kind"], row["said"], moment(row["began"]), over, told)


@dataclass(frozen=True, slots=True)
class Telling:
    """A trouble that one process tells of, and nobody else meanwhile."""

    subject: str
    began: Instant
    over: bool
    said: str


class TroubleStore:
    """The troubles in a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def look(self, failures: int) -> Operation[None]:
        """Look at the schedules and workers, and write down what began and what is over."""
        (clock,) = yield self._db.query("schedules.now")
        known = {row["subject"]: row for row in (yield self._db.query("troubles.open"))}
        paused_since = clock["paused_at"] if clock["paused"] else None
        found = yield from self._schedules(clock["now"], clock["paused_at"], failures, paused=paused_since is not None)
        for subject, (kind, said) in found.items():
            if subject not in known:
                if not (yield self._db.query("troubles.again", subject=subject, kind=kind, said=said)):
                    yield self._db.query("troubles.begin", subject=subject, kind=kind, said=said)
            elif (known[subject]["kind"], known[subject]["said"]) != (kind, said):
                yield self._db.query("troubles.change", subject=subject, kind=kind, said=said)
        for subject, row in known.items():
            is_kept = row["kind"] == "silent" or (row["kind"] == "overdue" and paused_since is not None)
            if subject not in found and not is_kept:
                yield self._db.query("troubles.end", subject=subject)
        yield self._db.query("troubles.silent", id=None)
        for row in (yield self._db.query("troubles.replaced", longest=_UNREPLACED)):
            yield self._db.query("troubles.end", subject=row["subject"])
        yield self._db.query("troubles.old", keep=_KEPT)

    def _schedules(
        self, now: Instant, resumed: Instant | None, failures: int, *, paused: bool
    ) -> Operation[dict[str, tuple[Kind, str]]]:
        """Return the schedules in trouble, each by what is worst about it."""
        found: dict[str, tuple[Kind, str]] = {}
        for row in (yield self._db.query("troubles.held", most=MOST)):
            note = f": {row['hold_note']}" if row["hold_note"] else ""
            found[_subject(row)] = (
                ("parked", f"schedule {row['key']} is parked{note}")
                if row["state"] == "parked"
                else ("failing", f"schedule {row['key']} paused itself: it failed {row['failures']} times in a row")
            )
        for row in (yield self._db.query("troubles.unwell", most=MOST, late=_LATE)):
            policies = read_policies(row["policies"])
            bound = policies.on_failure.alert_after or failures
            if row["failures"] >= bound:
                said = f"schedule {row['key']} failed {_many(row['failures'], bound)} times in a row"
                found[_subject(row)] = ("failing", said)
            elif not paused and is_overdue(row, policies, now, resumed):
                (let_go,) = yield self._db.query("troubles.let_go", key=row["key"])
                if is_overdue(row, policies, now, max(let_go["at"] or 0, resumed or 0)):
                    found[_subject(row)] = ("overdue", f"schedule {row['key']} had no success for twice its interval")
        return found

    def claim(self) -> Operation[list[Telling]]:
        """Take what is to be told, so that nobody else tells it too."""
        rows = yield self._db.query("troubles.claim", most=_TOLD_AT_ONCE, length=_CLAIMED)
        return [
            Telling(row["subject"], row["began"], row["told"] == 1, row["said"])
            for row in sorted(rows, key=lambda row: (row["began"], row["subject"]))
        ]

    def told(self, telling: Sequence[Telling]) -> Operation[None]:
        """Write down that somebody was told."""
        for each in telling:
            told = 2 if each.over else 1
            yield self._db.query("troubles.told", subject=each.subject, began=each.began, told=told)

    def untold(self, telling: Sequence[Telling]) -> Operation[None]:
        """Give back what could not be told: it is tried again."""
        for each in telling:
            yield self._db.query("troubles.untold", subject=each.subject, began=each.began)

    def list(self, *, over: bool, after: tuple[Instant, str] | None, most: int) -> Operation[Any]:
        """Return the troubles that are open, or those that are over too, the newest first."""
        began, subject = after or (None, None)
        rows = yield self._db.query("troubles.list", over=int(over), began=began, subject=subject, most=most)
        return [Trouble.read(row) for row in rows]


def is_overdue(row: Any, policies: Policies, now: Instant, resumed: Instant | None) -> bool:
    """Tell whether a schedule had no success for twice its interval, and two of its instants have passed since.

    It is counted from its last success, or from when it was made, or was let go on; what the rule or the exclusions
    leave out, such as a weekend, is no delay.
    """
    ends = [row["created_at"], row["succeeded"], resumed]
    since: Instant = max(each for each in ends if each is not None and each <= now)
    first, second = _two(read_rule(row["rule"]), policies, row["average"], since)
    if first is None or second is None:
        return False
    spread = micros(policies.spread) + micros(policies.jitter)
    return now > max(second, since + 2 * (second - first)) + spread + _LATE


def _two(
    rule: Rule, policies: Policies, average: float | None, since: Instant
) -> tuple[Instant | None, Instant | None]:
    """Return the first two instants after a moment that count; of an interval, as if each run took no time."""
    if isinstance(rule, Every) and rule.anchored:
        own = micros(rule.interval)
        length = own if policies.adaptive is None else policies.adaptive.interval(own, average)
        start = max(since, rule.bounds[0])
        return start + length, start + 2 * length
    found: list[Instant] = []
    at = rule.series.next(since)
    for _ in range(_STEPS):
        if at is None or len(found) == 2:
            break
        if not excluded(policies.exclude, at):
            found.append(at)
        at = rule.series.next(at)
    return (found[0], found[1]) if len(found) == 2 else (None, None)


def _subject(row: Any) -> str:
    return f"schedule {row['key']}"


def _many(failures: int, bound: int) -> str:
    """Say a number that does not change with every failure: what is said once stays true."""
    return str(bound) if failures == bound else f"more than {bound}"
