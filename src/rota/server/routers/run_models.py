"""Runs as JSON: what people send, and what they are told."""

import json
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from rota.masking import without_secrets
from rota.model import Attempt, Outcome, Run, RunState
from rota.schedule import Kind
from rota.server.routers.parts import (
    Arguments,
    ErrorOut,
    Given,
    Json,
    Length,
    LimitKeys,
    Moment,
    Name,
    Priority,
    Seconds,
    Told,
)
from rota.store.hours import Hour


class NewRun(Given):
    """A run to make."""

    task: Name = Field(description="The name of a registered task.", examples=["news.refresh"])
    arguments: Arguments = Field(default={})
    delay: Length | None = Field(default=None, description="Not before so long from now.")
    at: Moment | None = Field(default=None, description="Not before this moment; in the place of `delay`.")
    priority: Priority | None = Field(default=None, description="Null: its task's.")
    queue: Name | None = Field(default=None, description="The lane; null: its task's.")
    unique: str | None = Field(
        default=None,
        min_length=1,
        max_length=1_000,
        pattern=r"^[^\x00]*$",
        description="No second run of this key while one is under way: the answer is that one, with `created` false.",
        examples=["feed-42"],
    )
    unique_for: Length | None = Field(default=None, description="Nor within so long after one was made.")
    limits: LimitKeys = Field(default=[], description="Limits that it is under beside its task's.")


class ProgressOut(Told):
    """How far a run is."""

    share: float = Field(description="From 0 to 1.")
    note: str


class RunOut(Told):
    """One durable piece of work."""

    id: int
    task: str = Field(examples=["news.refresh"])
    queue: str
    state: RunState
    priority: int
    due: datetime = Field(description="When it is, or was, to begin.")
    arguments: Json = Field(description="The arguments by name; what sounds like a secret is masked.")
    unique: str | None
    limits: list[str]
    attempt: int = Field(description="The number of its last attempt; 0 before the first.")
    lost: int = Field(description="How often its worker was lost.")
    worker: str | None = Field(description="Who took it last.")
    cancelled: str | None = Field(description="Why it was cancelled, if it was.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: Json = Field(description="What its task returned; what sounds like a secret is masked.")
    error: ErrorOut | None
    progress: ProgressOut | None
    schedule_id: str | None = Field(description="The key of the schedule that it is a run of.")
    trigger_type: Kind | None = Field(description="What made it a run of its schedule.")
    scheduled_at: datetime | None = Field(description="The due instant of its schedule that it stands for.")

    @classmethod
    def of(cls, run: Run[Any]) -> "RunOut":
        """Tell of a run."""
        return cls(**_values(run))


class RunMade(RunOut):
    """A run that was made just now, or the one that its unique key had already."""

    created: bool = Field(description="Whether this made it.")

    @classmethod
    def of(cls, run: Run[Any]) -> "RunMade":
        """Tell of a run."""
        return cls(created=run.created, **_values(run))


class AttemptOut(Told):
    """One numbered try at a run that was not a success at the first try."""

    number: int
    outcome: Outcome
    worker: str | None
    started_at: datetime
    finished_at: datetime
    error: ErrorOut | None


class LogLineOut(Told):
    """A line that a task logged; or the mark between the first lines and the newest."""

    attempt: int
    at: datetime | None = Field(description="Null for the mark.")
    level: str = Field(examples=["WARNING"])
    logger: str
    message: str = Field(description="What was said; what sounds like a secret is masked.")
    left_out: int = Field(description="Of the mark: how many lines are not there.")


class RunDetail(RunOut):
    """A run, with its attempts and what it waits for."""

    attempts: list[AttemptOut] = Field(description="Oldest first; a success at the first try is in the run itself.")
    waits_for: str | None = Field(description="The limit that a due run waits for, or a worker of its queue.")

    @classmethod
    def whole(cls, run: Run[Any], attempts: list[Attempt], waits_for: str | None) -> "RunDetail":
        """Tell all of a run."""
        tries = [AttemptOut.model_validate(each) for each in attempts]
        return cls(attempts=tries, waits_for=waits_for, **_values(run))


class HourOut(Told):
    """The runs of a task and a queue that ended in one hour in one way."""

    hour: datetime = Field(description="When the hour began.")
    task: str
    queue: str
    state: Literal["succeeded", "failed", "cancelled"]
    runs: int
    busy: Seconds = Field(description="How many seconds their last attempts took, all together.")
    longest: Seconds
    waited: Seconds = Field(description="How long after they were due their last attempts began, all together.")

    @classmethod
    def of(cls, found: Hour) -> "HourOut":
        """Tell of an hour."""
        plain = {name: getattr(found, name) for name in ("hour", "task", "queue", "state", "runs")}
        lengths = {name: getattr(found, name).total_seconds() for name in ("busy", "longest", "waited")}
        return cls(**plain, **lengths)


def _values(run: Run[Any]) -> dict[str, Any]:
    plain = {name: getattr(run, name) for name in RunOut.model_fields if hasattr(run, name)}
    return plain | {
        "arguments": without_secrets(json.loads(run.args)),
        "limits": list(run.limits),
        "cancelled": run.cancel,
        "result": None if run.result is None else without_secrets(json.loads(run.result)),
        "error": ErrorOut.of(run.error),
        "progress": None if run.progress is None else ProgressOut(share=run.progress[0], note=run.progress[1]),
        "schedule_id": run.schedule,
        "trigger_type": run.trigger,
    }
