"""A witness of all that happens to runs and schedules in a store: triggers write it down, and laws are held against it.

It shares no code with the engine. `Witness.hear` takes in what is new, move by move; `Witness.account` compares the
books when all is at rest.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

ENDED = ("succeeded", "failed", "cancelled")
UNDER_WAY = ("waiting", "ready", "running")
OWN = ("cron", "interval", "once")
MOVES = {
    (None, "waiting"),
    (None, "ready"),
    ("waiting", "ready"),
    ("waiting", "cancelled"),
    ("ready", "running"),
    ("ready", "waiting"),
    ("ready", "cancelled"),
    *(("running", state) for state in (*ENDED, "waiting", "ready")),
    *((state, None) for state in ENDED),
}
"""What may become of a run; that a run comes back from its end is for those to say who asked for it."""

_RUN = (
    *("id", "attempt", "worker", "lost", "max_lost", "schedule", "kind", "nominal", "due", "created_at"),
    *("result", "error", "unique_key"),
)
_TEXTS = ("worker", "schedule", "kind", "result", "error", "unique_key")
_MOVES = f"""CREATE TABLE seen_moves (number {{serial}}, old TEXT, new TEXT, lost_before BIGINT,
  {", ".join(f"run_{name} {'TEXT' if name in _TEXTS else 'BIGINT'}" for name in _RUN)})"""
_ANSWERS = """CREATE TABLE seen_answers (number {serial}, key TEXT, rule TEXT, made BIGINT, since BIGINT,
  before BIGINT, through BIGINT, earlier BIGINT)"""
_MOVED = f"INSERT INTO seen_moves (old, new, lost_before, {', '.join(f'run_{name}' for name in _RUN)}) VALUES"
_ANSWERED = """INSERT INTO seen_answers (key, rule, made, since, before, through, earlier)
  VALUES (OLD.key, OLD.rule, OLD.created_at, OLD.since, OLD.through, NEW.through, OLD.decided_at - NEW.decided_at);"""
A_STEP_BACK = 60_000_000
"""By how much the clock must have been set back for a schedule to answer once more what lies ahead by the new time."""


def _values(row: str) -> str:
    return ", ".join(f"{row}.{name}" for name in _RUN)


_STATES = f"OLD.state <> NEW.state OR OLD.state IN {ENDED}"
WATCH: dict[str, tuple[str, ...]] = {
    "sqlite": (
        _MOVES.format(serial="INTEGER PRIMARY KEY AUTOINCREMENT"),
        _ANSWERS.format(serial="INTEGER PRIMARY KEY AUTOINCREMENT"),
        (
            f"CREATE TRIGGER seen_made AFTER INSERT ON rota_runs"
            f" BEGIN {_MOVED} (NULL, NEW.state, 0, {_values('NEW')}); END"
        ),
        (
            f"CREATE TRIGGER seen_moved AFTER UPDATE OF state ON rota_runs WHEN {_STATES}"
            f" BEGIN {_MOVED} (OLD.state, NEW.state, OLD.lost, {_values('NEW')}); END"
        ),
        (
            f"CREATE TRIGGER seen_gone AFTER DELETE ON rota_runs"
            f" BEGIN {_MOVED} (OLD.state, NULL, OLD.lost, {_values('OLD')}); END"
        ),
        (
            f"CREATE TRIGGER seen_answered AFTER UPDATE OF through ON rota_schedules"
            f" WHEN OLD.through IS NOT NEW.through BEGIN {_ANSWERED} END"
        ),
    ),
    "postgres": (
        _MOVES.format(serial="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
        _ANSWERS.format(serial="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
        f"""CREATE FUNCTION seen_move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF TG_OP = 'INSERT' THEN {_MOVED} (NULL, NEW.state, 0, {_values("NEW")});
          ELSIF TG_OP = 'DELETE' THEN {_MOVED} (OLD.state, NULL, OLD.lost, {_values("OLD")});
          ELSIF {_STATES} THEN {_MOVED} (OLD.state, NEW.state, OLD.lost, {_values("NEW")}); END IF;
          RETURN NULL; END $$""",
        f"""CREATE FUNCTION seen_answer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF OLD.through IS DISTINCT FROM NEW.through THEN {_ANSWERED} END IF; RETURN NULL; END $$""",
        (
            "CREATE TRIGGER seen_moved AFTER INSERT OR DELETE OR UPDATE OF state ON rota_runs"
            " FOR EACH ROW EXECUTE FUNCTION seen_move()"
        ),
        (
            "CREATE TRIGGER seen_answered AFTER UPDATE OF through ON rota_schedules"
            " FOR EACH ROW EXECUTE FUNCTION seen_answer()"
        ),
    ),
}
"""What has the store write down every move of a run, and every stretch of due instants that was answered."""

NEW_MOVES = "SELECT * FROM seen_moves WHERE number > :after ORDER BY number"
ANSWERS = "SELECT * FROM seen_answers ORDER BY number"
GOING = f"""SELECT id, schedule FROM rota_runs
WHERE schedule IS NOT NULL AND state IN {UNDER_WAY} AND (gate IS NULL OR gate NOT LIKE '@%')"""
LIMITED = (
    "SELECT limits, count(*) AS number FROM rota_runs WHERE state = 'running' AND limits IS NOT NULL GROUP BY limits"
)

LOSSES = """SELECT id, lost,
  (SELECT count(*) FROM rota_attempts WHERE run = rota_runs.id AND outcome = 'lost') AS number FROM rota_runs"""


@dataclass
class Life:
    """What was seen of a run."""

    state: str | None
    attempt: int
    ends: int = 0
    schedule: str | None = None


@dataclass
class Witness:
    """What was seen, and what it must be like."""

    lives: dict[int, Life] = field(default_factory=dict)
    firings: Counter[tuple[str, int]] = field(default_factory=Counter)
    """The runs that rules made, by schedule and due instant."""
    keys: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The newest run of each unique key that is still kept, and when it was made."""
    accepted: set[int] = field(default_factory=set)
    """The runs that somebody was told of."""
    asked_back: set[int] = field(default_factory=set)
    """The runs that somebody wanted to be tried again."""
    begun: Counter[int] = field(default_factory=Counter)
    """How often the task of a run was called."""
    heard: int = 0

    def hear(self, rows: Iterable[Any], latest: int | None, unique_for: int) -> None:
        """Take in new moves. `latest` is the latest that the store's clock was; None where nobody knows."""
        for row in rows:
            self.heard = row["number"]
            self._move(row, latest)
            if row["run_unique_key"] is not None:
                self._unique(row, unique_for)

    def _move(self, row: Any, latest: int | None) -> None:
        run, old, new = row["run_id"], row["old"], row["new"]
        life = self.lives.setdefault(run, Life(None, 0, schedule=row["run_schedule"]))
        assert life.state == old, f"run {run} was {life.state} and is said to have been {old}"
        back = old in ENDED and new in ("waiting", "ready") and run in self.asked_back
        assert (old, new) in MOVES or back, f"run {run} went from {old} to {new}"
        attempt = row["run_attempt"]
        if new == "running":
            assert attempt == life.attempt + 1, f"run {run} went from attempt {life.attempt} to {attempt}"
        if old is None:
            self._made(row)
        due = new == "ready" and old in (None, "waiting")
        assert not due or latest is None or row["run_due"] <= latest, f"run {run} was ready before its time"
        if new == "succeeded":
            said = json.loads(row["run_result"])
            assert said == [run, attempt, row["run_worker"]], f"run {run} ended by {said}, attempt {attempt} was at it"
            assert self.begun[run], f"run {run} succeeded and never began"
        self._lost(row)
        life.state, life.attempt = new, attempt
        life.ends += new in ENDED

    def _made(self, row: Any) -> None:
        if row["run_kind"] not in OWN:
            return
        firing = (row["run_schedule"], row["run_nominal"])
        self.firings[firing] += 1
        assert self.firings[firing] == 1, f"{firing} was fired twice"
        assert row["run_nominal"] <= row["run_created_at"], f"{firing} was fired at {row['run_created_at']}, too early"

    def _lost(self, row: Any) -> None:
        run, lost = row["run_id"], row["run_lost"]
        if row["old"] != "running" or lost == row["lost_before"]:
            return
        too_often = row["lost_before"] >= row["run_max_lost"]
        allowed = ("failed", "cancelled") if too_often else ("ready", "cancelled")
        assert row["new"] in allowed, f"run {run} was lost {lost} times of {row['run_max_lost']} and is {row['new']}"

    def _unique(self, row: Any, unique_for: int) -> None:
        run, key, made = row["run_id"], row["run_unique_key"], row["run_created_at"]
        if row["old"] is None:
            first, at = self.keys.get(key, (run, made - unique_for))
            assert made - at >= unique_for, f"{key} has run {first} and, too soon after it, run {run}"
            self.keys[key] = (run, made)
        elif row["new"] is None and self.keys.get(key, (0, 0))[0] == run:
            del self.keys[key]

    def account(self) -> None:
        """Compare what was accepted with what ended."""
        for run in sorted(self.accepted):
            life = self.lives.get(run)
            assert life is not None, f"run {run} was accepted and is not there"
            assert life.ends >= 1, f"run {run} was accepted and has not ended: it is {life.state}"
        for run, life in self.lives.items():
            assert run in self.asked_back or life.ends == 1, f"run {run} ended {life.ends} times"


@dataclass(frozen=True)
class Stretch:
    """Due instants that were answered at one time, under one rule."""

    rule: str
    made: int
    """When the schedule was made; one that was removed may be made anew."""
    before: int
    """Up to where all was answered before."""
    since: int
    """Since when the rule is the schedule's."""
    through: int
    back: bool = False
    """It was brought back instead, because the clock was: what lies ahead is answered once more."""


def stretches(rows: Iterable[Any]) -> dict[str, list[Stretch]]:
    """Return what was answered of each schedule."""
    found: dict[str, list[Stretch]] = {}
    for row in rows:
        before, through = row["before"], row["through"]
        assert through is not None, f"{row['key']} forgot what it had answered"
        back = row["earlier"] > A_STEP_BACK
        assert before is None or before < through or back, f"{row['key']} went back from {before} to {through}"
        stretch = Stretch(row["rule"], row["made"], before or 0, row["since"], through, back)
        found.setdefault(row["key"], []).append(stretch)
    return found


def check_answers(
    key: str, answered: list[Stretch], steps: dict[str, int], ran: set[int], skips: list[Any], life: int | None
) -> int:
    """Check that each due instant of a schedule has one answer, and no other instant has; returns how many it has.

    `steps` says how far apart the instants of a rule are; one that is not there counts from the last run, and its
    instants are its runs. A schedule that was removed and made anew, by a clock that went back, may answer once more.
    `life` is when the schedule was made that there is: of those before, history may be gone.
    """
    named: Counter[int] = Counter()
    kept: set[int] = set()
    loose: list[tuple[int, int]] = []
    for each in answered:
        if each.rule in steps:
            step = steps[each.rule]
            first = max(each.before, each.since) // step * step + step
            named.update(range(first, each.through + 1, step))
            kept.update(range(first, each.through + 1, step) if each.made == life else ())
        else:
            loose.append((each.before, each.through))
    again = len({each.made for each in answered}) > 1 or any(each.back for each in answered)
    spans = [(each["first"], each["last"]) for each in skips]
    for instant, times in named.items():
        answers = (instant in ran) + sum(first <= instant <= last for first, last in spans)
        right = instant not in kept if answers == 0 else answers == 1 or times > 1 or again
        assert right, f"{key} has {answers} answers for {instant}"
    for instant in ran:
        counted = any(before < instant <= through for before, through in loose)
        assert instant in named or counted, f"{key} ran for {instant}, which nothing names"
    if not again and not loose:
        for one, following in pairwise(sorted(spans)):
            assert one[1] < following[0], f"{key} has skips that overlap: {one} and {following}"
        for each in skips:
            inside = sum(each["first"] <= instant <= each["last"] for instant in named)
            assert each["count"] == inside, f"{key} skipped {each['count']} of {inside} from {each['first']}"
    return len(named)
