"""The journal of schedules that people change while they run, and whether it agrees with what was made of them.

Triggers in the store write the journal: each plan that a schedule had, its end, and each run that was made of it.
Whoever changes or fires a schedule holds its row meanwhile, so for each schedule the journal tells in which order it
happened. What was due is counted here, from the plans alone.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.journeys.ledger import Books, execute, read, rows

import rota
from rota.app import Rota
from rota.times.moments import moment

SECOND = 1_000_000
FIXED: dict[rota.Rule, int] = {
    rota.Every("1s"): 1,
    rota.Every("2s"): 2,
    rota.Every("3s"): 3,
    rota.Cron("*/2 * * * * *"): 2,
    rota.Cron("*/3 * * * * *"): 3,
}
"""Rules that name the multiples of so many seconds since the epoch."""
ANCHORED: dict[rota.Rule, int] = {
    rota.Every("1s", since="finish"): 1,
    rota.Every("2s", since="finish"): 2,
    rota.Every("1s", since="success"): 1,
}
_PERIODS = {str(rule): seconds for rule, seconds in (FIXED | ANCHORED).items()}
_HELD = ("paused", "parked", "retired")
_WHY = 300
"""How many instants to ask `why` about; more would take longer than the journey."""

_COLUMNS = "schedule, what, rule, args, state, since, hold_until, run, nominal"
_PLAN = "NEW.key, 'plan', NEW.rule, NEW.args, NEW.state, NEW.since, NEW.hold_until, NULL, NULL"
_GONE = "OLD.key, 'gone', OLD.rule, OLD.args, OLD.state, OLD.since, OLD.hold_until, NULL, OLD.through"
_RUN = "NEW.schedule, 'run', NULL, NEW.args, NEW.kind, NULL, NULL, NEW.id, NEW.nominal"
_STOPPED = "NEW.schedule, 'stopped', NULL, NEW.args, NEW.kind, NULL, NULL, NEW.id, NEW.nominal"
_TRIGGERS = {
    "made": ("INSERT ON rota_schedules", "", _PLAN),
    "changed": (
        "UPDATE ON rota_schedules",
        " OR ".join(
            f"coalesce(OLD.{name}, {nothing}) <> coalesce(NEW.{name}, {nothing})"
            for name, nothing in {"rule": "''", "args": "''", "state": "''", "since": 0, "hold_until": 0}.items()
        ),
        _PLAN,
    ),
    "gone": ("DELETE ON rota_schedules", "", _GONE),
    "run": ("INSERT ON rota_runs", "NEW.schedule IS NOT NULL", _RUN),
    "stopped": ("UPDATE ON rota_runs", "OLD.state = 'running' AND NEW.state = 'cancelled'", _STOPPED),
}


def _journal(*, sqlite: bool) -> Iterator[str]:
    if sqlite:
        number, now = "INTEGER PRIMARY KEY AUTOINCREMENT", "(julianday('now') - 2440587.5) * 86400000000"
        step = "NULL"  # there is one writer: what it does in one step stands together
    else:
        number, now = (
            "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
            "extract(epoch FROM clock_timestamp()) * 1000000",
        )
        step = "txid_current()"
    yield f"""CREATE TABLE journey_plans (id {number}, schedule TEXT NOT NULL, what TEXT NOT NULL, rule TEXT, args TEXT,
        state TEXT, since BIGINT, hold_until BIGINT, run BIGINT, nominal BIGINT, at BIGINT NOT NULL, step BIGINT);"""
    for name, (event, when, values) in _TRIGGERS.items():
        insert = f"INSERT INTO journey_plans ({_COLUMNS}, at, step) VALUES ({values}, CAST({now} AS BIGINT), {step});"
        condition = f"WHEN ({when})" if when else ""
        if sqlite:
            yield f"CREATE TRIGGER journey_{name} AFTER {event} {condition} BEGIN {insert} END;"
        else:
            yield f"""CREATE FUNCTION journey_{name}() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN {insert} RETURN NULL; END $$;"""
            yield f"""CREATE TRIGGER journey_{name} AFTER {event} FOR EACH ROW {condition}
                EXECUTE FUNCTION journey_{name}();"""


async def watch_plans(store: str) -> None:
    """Have the store itself write the journal."""
    await execute(store, "\n".join(_journal(sqlite=store.startswith("sqlite"))))


@dataclass
class PlanFindings:
    """What the journal says when all is quiet."""

    schedules: int = 0
    plans: int = 0
    removed: int = 0
    runs: int = 0
    skipped: int = 0
    mistakes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.schedules} schedules, {self.plans} plans, {self.removed} removals, {self.runs} runs,"
            f" {self.skipped} skipped instants"
        )


@dataclass
class _Life:
    """A schedule from its making to its removal."""

    plans: list[tuple[int, str]] = field(default_factory=list)
    """Since when it had a rule, and which."""
    through: int | None = None

    def dues(self) -> Iterator[int]:
        """Yield what was due, as far as it should be answered, by counting."""
        ends = [since for since, _ in self.plans[1:]]
        for (since, rule), end in zip(self.plans, [*ends, self.through], strict=True):
            period = _PERIODS[rule] * SECOND
            yield from range((since // period + 1) * period, min(end or 0, self.through or 0) + 1, period)


class _Key:
    """What the journal says of one key."""

    def __init__(self, key: str, entries: list[Any], found: PlanFindings) -> None:
        self.key = key
        self.lives: list[_Life] = []
        self.runs: list[tuple[int, int, int, int]] = []
        """Each run of a rule: its number, its due instant, its life, and the period of its rule."""
        self._found = found
        self._plan: dict[str, Any] | None = None
        self._following: dict[str, Any] | None
        hear = {"plan": self._planned, "gone": self._gone, "run": self._run, "stopped": self._stopped}
        for entry, self._following in zip(entries, [*entries[1:], None], strict=True):
            hear[entry["what"]](entry)

    def _planned(self, entry: dict[str, Any]) -> None:
        if self._plan is None:
            self.lives.append(_Life())
        plans = self.lives[-1].plans
        # A change is written in two steps: the rule, then since when; until then it is the old one's.
        if not plans or plans[-1][0] != entry["since"]:
            plans.append((entry["since"], entry["rule"]))
        self._found.plans += self._plan is None or self._plan["args"] != entry["args"]
        self._plan = entry

    def _gone(self, entry: dict[str, Any]) -> None:
        self.lives[-1].through = entry["nominal"]
        self._plan = None
        self._found.removed += 1

    def _run(self, entry: dict[str, Any]) -> None:
        plan, name = self._plan, f"{self.key}: run {entry['run']}, due {entry['nominal']},"
        if plan is None:
            self.wrong(f"{name} was made after the schedule was removed")
            return
        if plan["args"] != entry["args"]:
            self.wrong(f"{name} is of an older plan: {entry['args']}, not {plan['args']}")
        if plan["state"] in _HELD and plan["hold_until"] is None and not self._resumes(entry):
            self.wrong(f"{name} was made while the schedule was {plan['state']}")
        if entry["nominal"] > entry["at"] + 1_000:  # SQLite tells the time to the millisecond
            self.wrong(f"{name} was made too early, at {entry['at']}")
        self.runs.append((entry["run"], entry["nominal"], len(self.lives) - 1, _PERIODS[plan["rule"]]))

    def _resumes(self, entry: dict[str, Any]) -> bool:
        """Tell whether the run was made in one step with the end of a hold, which is written after it."""
        after = self._following
        if after is None or after["what"] != "plan" or after["state"] != "active":
            return False
        return bool(after["step"] == entry["step"] if entry["step"] else after["id"] == entry["id"] + 1)

    def _stopped(self, entry: dict[str, Any]) -> None:
        self.wrong(f"{self.key}: run {entry['run']} was stopped while it ran")

    def wrong(self, words: str) -> None:
        self._found.mistakes.append(words)

    def judge_fixed(self, skips: list[Any]) -> dict[int, int | str]:
        """Every instant up to where all is answered has exactly one answer, and nothing else has any; returns them."""
        dues = [due for life in self.lives for due in life.dues()]
        answers: dict[int, int | str] = {}
        times = Counter(due for _, due, *_ in self.runs)
        answers |= {due: run for run, due, *_ in self.runs}
        for reason, first, last, count in skips:
            within = [due for due in dues if first <= due <= last]
            times.update(within)
            answers |= dict.fromkeys(within, reason)
            if not within or (within[0], within[-1], len(within)) != (first, last, count):
                self.wrong(f"{self.key}: skip of {count} from {first} to {last}, but due were {within}")
        for due in {*dues, *times}:
            if times[due] != 1 or due not in set(dues):
                known = "due" if due in set(dues) else "not due"
                self.wrong(f"{self.key}: {due} was {known}, and has {times[due]} answers: {answers.get(due)}")
        return answers

    def judge_anchored(self, runs: dict[int, Any]) -> None:
        """One run at a time, each an interval after the end of the last."""
        for before, (run, due, life, period) in zip(self.runs, self.runs[1:], strict=False):
            finished = runs[before[0]]["finished_at"]
            if runs[run]["created_at"] < finished:
                self.wrong(f"{self.key}: run {run} was made while run {before[0]} was under way")
            if life == before[2] and due < finished + period * SECOND:
                self.wrong(f"{self.key}: run {run} was due {due}, before {period} s were over since {finished}")


async def audit_plans(store: str, books: Books, chance: random.Random) -> PlanFindings:
    """Compare what was made of the schedules with what people said."""
    found = PlanFindings()
    journal: dict[str, list[Any]] = {}
    names = f"id, {_COLUMNS}, at, step"
    for row in await rows(store, f"SELECT {names} FROM journey_plans ORDER BY id"):
        entry = dict(zip(names.split(", "), row, strict=True))
        journal.setdefault(entry["schedule"], []).append(entry)
    known = {json.loads(entry["args"])["plan"] for entries in journal.values() for entry in entries}
    found.mistakes += [
        f"{key}: plan {plan} was accepted, and is lost" for key, plan in read(books.plans) if plan not in known
    ]
    columns = ("id", "created_at", "finished_at")
    runs = {
        row[0]: dict(zip(columns, row, strict=True))
        for row in await rows(store, f"SELECT {', '.join(columns)} FROM rota_runs")
    }
    skips: dict[str, list[Any]] = {}
    for key, *rest in await rows(store, "SELECT schedule, reason, first, last, count FROM rota_skips"):
        skips.setdefault(key, []).append(rest)
    through = dict([tuple(row) for row in await rows(store, "SELECT key, through FROM rota_schedules")])
    answers: list[tuple[str, int, int | str]] = []
    for key, entries in sorted(journal.items()):
        one = _Key(key, entries, found)
        if key in through:
            one.lives[-1].through = through[key]
        if {run for run, *_ in one.runs} - set(runs):
            one.wrong(f"{key}: runs are gone from the history")
        if key.startswith("fixed"):
            answers += [(key, due, answer) for due, answer in one.judge_fixed(skips.get(key, [])).items()]
        else:
            one.judge_anchored(runs)
        found.schedules += 1
        found.runs += len(one.runs)
        found.skipped += sum(row[3] for row in skips.get(key, []))
    await _ask_why(store, chance.sample(answers, min(_WHY, len(answers))), found)
    return found


async def _ask_why(store: str, answers: list[tuple[str, int, int | str]], found: PlanFindings) -> None:
    async with Rota(store) as app:
        for key, due, answer in answers:
            why = await app.schedules.why(key, at=moment(due))
            said = None if why.firing is None else why.firing.run or why.firing.reason
            if said != answer:
                found.mistakes.append(f"{key}: why says of {due} {why.text!r}, and it is {answer}")
