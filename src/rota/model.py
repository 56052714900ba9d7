"""Frozen records: what the store keeps, as people and the engine see it."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from rota.times.moments import Instant, moment

RunState = Literal["waiting", "ready", "running", "succeeded", "failed", "cancelled"]
Outcome = Literal["succeeded", "failed", "retry", "snoozed", "cancelled", "lost"]

UNDER_WAY: tuple[RunState, ...] = ("waiting", "ready", "running")

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class RunError:
    """What went wrong in an attempt."""

    kind: str
    message: str
    traceback: str | None = None

    def text(self) -> str:
        """Write it as the store keeps it."""
        return json.dumps({"kind": self.kind, "message": self.message, "traceback": self.traceback})

    @classmethod
    def read(cls, text: str | None) -> "RunError | None":
        """Read what the store keeps."""
        return None if text is None else cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One numbered try at a run that was not a success at the first try."""

    number: int
    outcome: Outcome
    worker: str | None
    started_at: datetime
    finished_at: datetime
    error: RunError | None


@dataclass(frozen=True, slots=True)
class Run(Generic[R]):
    """One durable piece of work."""

    id: int
    task: str
    queue: str
    state: RunState
    priority: int
    due: datetime
    args: str
    unique: str | None
    limits: tuple[str, ...]
    attempt: int
    lost: int
    worker: str | None
    cancel: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: str | None
    error: RunError | None
    progress: tuple[float, str] | None
    schedule: str | None = None
    """The key of the schedule that it is a run of."""
    trigger: str | None = None
    """What made it a run of its schedule: cron, interval, once, manual or backfill."""
    scheduled_at: datetime | None = None
    """The due instant of its schedule that it stands for."""
    created: bool = False
    """Whether the call that returned this made the run; False where its unique key had one already."""

    @property
    def under_way(self) -> bool:
        """Whether it is waiting, ready or running."""
        return self.state in UNDER_WAY

    @staticmethod
    def read_limits(text: str | None) -> tuple[str, ...]:
        """Read the keys of the limits that it names."""
        return tuple(json.loads(text)) if text else ()

    @classmethod
    def read(cls, row: Any, *, created: bool = False) -> "Run[Any]":
        """Make the record from the store's row."""
        progress = json.loads(row["progress"]) if row["progress"] else None
        return cls(
            id=row["id"],
            task=row["task"],
            queue=row["queue"],
            state=row["state"],
            priority=row["priority"],
            due=moment(row["due"]),
            args=row["args"],
            unique=row["unique_key"],
            limits=cls.read_limits(row["limits"]),
            attempt=row["attempt"],
            lost=row["lost"],
            worker=row["worker"],
            cancel=row["cancel"],
            created_at=moment(row["created_at"]),
            started_at=_moment(row["started_at"]),
            finished_at=_moment(row["finished_at"]),
            result=row["result"],
            error=RunError.read(row["error"]),
            progress=None if progress is None else (progress[0], progress[1]),
            schedule=row["schedule"],
            trigger=row["kind"],
            scheduled_at=_moment(row["nominal"]),
            created=created,
        )


def _moment(found: Instant | None) -> datetime | None:
    return None if found is None else moment(found)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    ok: bool
    what: str
    advice: str = ""

    def line(self) -> str:
        """Say it, and what to do about it."""
        return f"{self.what}: {self.advice}" if self.advice else self.what
