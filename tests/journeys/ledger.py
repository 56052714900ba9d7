"""The books of a journey: what was accepted, what had an effect, how often each run ended; and whether they agree.

Three witnesses that share no code with Rota. Clients write down what they were promised and tasks what they did, each
line on the disk before anything else happens. Triggers in the store write down each time that a run ends.
"""

import os
import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

_ENDED = "('succeeded', 'failed', 'cancelled')"
_TABLES = """
CREATE TABLE journey_endings (run BIGINT NOT NULL, attempt BIGINT NOT NULL, state TEXT NOT NULL);
CREATE TABLE journey_effects (run BIGINT NOT NULL, attempt BIGINT NOT NULL);
"""
_TRIGGER = {
    "sqlite": f"""
    CREATE TRIGGER journey_end AFTER UPDATE OF state ON rota_runs
    WHEN NEW.state IN {_ENDED} OR OLD.state IN {_ENDED}
    BEGIN INSERT INTO journey_endings VALUES (NEW.id, NEW.attempt, NEW.state); END;
    """,
    "postgres": f"""
    CREATE FUNCTION journey_end() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO journey_endings VALUES (NEW.id, NEW.attempt, NEW.state); RETURN NULL; END $$;
    CREATE TRIGGER journey_end AFTER UPDATE OF state ON rota_runs FOR EACH ROW
    WHEN (NEW.state IN {_ENDED} OR OLD.state IN {_ENDED}) EXECUTE FUNCTION journey_end();
    """,
}
_MISTAKES = ("a loop of the worker failed", "database is locked", "Traceback")
"""What no log of a process may say, whatever was done to the store."""


def note(book: Path, *words: object) -> None:
    """Write a line that survives whatever comes next: one write at the end of the file, then to the disk."""
    file = os.open(book, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, (" ".join(map(str, words)) + "\n").encode())
        os.fsync(file)
    finally:
        os.close(file)


def read(book: Path) -> list[list[str]]:
    """Return the lines of a book; one that a killed writer left unfinished does not count."""
    text = book.read_text() if book.exists() else ""
    return [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]


async def rows(store: str, text: str) -> list[Any]:
    """Ask the store behind Rota's back."""
    if store.startswith("sqlite"):
        connection = sqlite3.connect(store.removeprefix("sqlite:///"), timeout=30)
        try:
            return connection.execute(text).fetchall()
        finally:
            connection.close()
    link = await asyncpg.connect(store)
    try:
        return list(await link.fetch(text))
    finally:
        await link.close()


async def execute(store: str, text: str) -> None:
    """Tell the store something behind Rota's back."""
    if store.startswith("sqlite"):
        connection = sqlite3.connect(store.removeprefix("sqlite:///"), timeout=30)
        connection.executescript(text)
        connection.close()
        return
    link = await asyncpg.connect(store)
    await link.execute(text)
    await link.close()


async def watch(store: str) -> None:
    """Have the store itself write down each time that a run ends, or comes back from its end."""
    await execute(store, _TABLES + _TRIGGER["sqlite" if store.startswith("sqlite") else "postgres"])


@dataclass(frozen=True)
class Books:
    """Where the processes of a journey write."""

    folder: Path

    @property
    def accepted(self) -> Path:
        return self.folder / "accepted"

    @property
    def effects(self) -> Path:
        return self.folder / "effects"

    @property
    def arrivals(self) -> Path:
        return self.folder / "arrivals"

    @property
    def plans(self) -> Path:
        return self.folder / "plans"

    def mistakes(self) -> list[str]:
        """Return what the logs say that no log may say."""
        lines = [(log.name, line) for log in self.folder.glob("*.log") for line in log.read_text().splitlines()]
        return [f"{name}: {line}" for name, line in lines if any(word in line for word in _MISTAKES)]


@dataclass
class Findings:
    """What the books say when all is quiet."""

    accepted: int = 0
    ended: int = 0
    lost: set[int] = field(default_factory=set)
    """Accepted, and not ended."""
    doubled: set[int] = field(default_factory=set)
    """Ended more than once."""
    twins: set[str] = field(default_factory=set)
    """Unique keys that two runs have, although each was made for an hour."""
    unfounded: set[int] = field(default_factory=set)
    """Succeeded without an effect, or failed although nothing was wrong."""
    repeated: set[int] = field(default_factory=set)
    """Began twice and must not, or wrote in its own transaction other than once."""
    mistakes: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> dict[str, Any]:
        """What must be empty, and is not."""
        names = ("lost", "doubled", "twins", "unfounded", "repeated", "mistakes")
        return {name: getattr(self, name) for name in names if getattr(self, name)}


async def audit(store: str, books: Books) -> Findings:
    """Compare the books."""
    accepted = {int(run) for run, _ in read(books.accepted)}
    runs = {row[0]: row for row in await rows(store, "SELECT id, task, state, attempt, error FROM rota_runs")}
    ended = {run for run, row in runs.items() if row[2] in ("succeeded", "failed", "cancelled")}
    endings = Counter(row[0] for row in await rows(store, "SELECT run FROM journey_endings"))
    own = Counter(row[0] for row in await rows(store, "SELECT run FROM journey_effects"))
    keys = await rows(store, "SELECT unique_key FROM rota_runs WHERE unique_key IS NOT NULL")
    begun, done = Counter[int](), set[int]()
    for run, _, what in read(books.effects):
        if what == "begin":
            begun[int(run)] += 1
        else:
            done.add(int(run))
    return Findings(
        accepted=len(accepted),
        ended=len(ended),
        lost=accepted - ended,
        doubled={run for run, times in endings.items() if times > 1} | (ended - set(endings)),
        twins={key for key, times in Counter(row[0] for row in keys).items() if times > 1},
        unfounded={run for run, row in runs.items() if not _founded(row, done, own)},
        repeated={run for run, row in runs.items() if not _at_most_once(row, begun, own)},
        mistakes=books.mistakes(),
    )


def _founded(row: Any, done: set[int], own: "Counter[int]") -> bool:
    run, task, state, _, error = row
    if state == "succeeded":
        return run in own if task.endswith(".own") else run in done
    return state != "failed" or (task.endswith(".once") and '"Lost"' in error)


def _at_most_once(row: Any, begun: "Counter[int]", own: "Counter[int]") -> bool:
    run, task, state, _, _ = row
    if task.endswith(".own"):
        return own[run] == (state == "succeeded")
    return not task.endswith(".once") or begun[run] <= 1
