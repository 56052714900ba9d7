"""Schedules as JSON: what people send, and what they are told."""

import json
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import Field

from rota.app import Rota
from rota.codec import encode
from rota.errors import Invalid, InvalidData, UnknownTask
from rota.masking import masked_json, without_secrets
from rota.schedule import LONGEST_DESCRIPTION, MOST_TAGS, Kind, Schedule
from rota.server.routers.in_time import ahead
from rota.server.routers.parts import (
    Arguments,
    ErrorOut,
    Given,
    Json,
    Key,
    Length,
    LimitKeys,
    Moment,
    Name,
    Note,
    Priority,
    RunId,
    Seconds,
    Told,
    seconds,
    unmasked,
)
from rota.server.routers.rules import RuleIn, RuleOut, rule_of, rule_out
from rota.store.schedule_reads import FiringState, HeldState, Revision, ScheduleState, State
from rota.tasks import Call, Task
from rota.times import Adaptive, OnFailure, Retry
from rota.times.backoff import MOST_ATTEMPTS, MOST_FACTOR
from rota.times.decision import Reason
from rota.times.intervals import Every
from rota.times.moments import instant, micros, moment
from rota.times.policies import MOST_EXCLUDED, MOST_FAILURES, MOST_MISSED, MOST_RUNNING, MOST_RUNS, Missed, Overlap
from rota.times.spread import spread_offset

_PLAIN = (
    *("overlap", "max_running", "missed", "max_missed", "max_runs", "grace", "spread", "jitter"),
    *("timeout", "limits", "tags", "description"),
)
_PARTS: dict[str, type[Any]] = {"retry": Retry, "on_failure": OnFailure, "adaptive": Adaptive}


# What people send


class RetryParts(Given):
    """How often a run is tried, and how long it waits in between."""

    attempts: int = Field(default=1, ge=1, le=MOST_ATTEMPTS)
    first: Length = "1s"
    factor: float = Field(default=2, ge=1, le=MOST_FACTOR, allow_inf_nan=False)
    cap: Length = "1h"
    jitter: float = Field(default=0.1, ge=0, le=1, allow_inf_nan=False)


class OnFailureParts(Given):
    """What consecutive failed runs change; null for what is not wanted."""

    double_from: int | None = Field(
        default=None, ge=1, le=MOST_FAILURES, description="From which failure in a row on the interval doubles."
    )
    cap: Length = Field(default="24h", description="Up to what it doubles.")
    pause_after: int | None = Field(default=None, ge=1, le=MOST_FAILURES, description="When the schedule pauses.")
    alert_after: int | None = Field(default=None, ge=1, le=MOST_FAILURES, description="When somebody is told.")


class AdaptiveParts(Given):
    """How an interval follows how much is new."""

    busy: float = Field(default=10, ge=0, le=1e9, allow_inf_nan=False, description="More new items a run halve it.")
    quiet: float = Field(default=1, ge=0, le=1e9, allow_inf_nan=False, description="Fewer new items a run double it.")
    floor: Length = "15m"
    ceiling: Length = "24h"


class Policies(Given):
    """What decides, beside the rule, what becomes of due instants."""

    overlap: Overlap = Field(default="skip", description="What a firing does while a run of the schedule is under way.")
    max_running: int = Field(default=1, ge=1, le=MOST_RUNNING, description="How many at once with `overlap: allow`.")
    missed: Missed = Field(
        default="latest", description="After downtime: one run for all that was missed, all in order, or none."
    )
    max_missed: int = Field(default=100, ge=1, le=MOST_MISSED, description="How many at most with `missed: all`.")
    grace: Length | None = Field(default=None, description="How late a firing may still start; null: no bound.")
    spread: Length = Field(default=0, description="A window in which the key has its own, stable place.")
    jitter: Length = Field(default=0, description="A window in which each run has a place at random.")
    exclude: list[RuleIn] = Field(default=[], max_length=MOST_EXCLUDED, description="Rules that name what is left out.")
    max_runs: int | None = Field(default=None, ge=1, le=MOST_RUNS, description="After so many it is finished.")
    on_failure: OnFailureParts = OnFailureParts()
    adaptive: AdaptiveParts | None = None


class Values(Policies):
    """All that a schedule has beside its key; for a change, all of it may be left out."""

    task: Name | None = Field(default=None, description="The name of a registered task.", examples=["news.refresh"])
    arguments: Arguments = Field(default={})
    rule: RuleIn | None = None
    queue: Name | None = Field(default=None, description="The lane of its runs; null: its task's.")
    priority: Priority | None = Field(default=None, description="Null: its task's.")
    limits: LimitKeys = Field(default=[], description="Limits that its runs are under beside its task's.")
    timeout: Length | None = Field(default=None, description="Null: its task's.")
    retry: RetryParts | None = Field(default=None, description="Null: its task's.")
    tags: list[Key] = Field(default=[], max_length=MOST_TAGS, examples=[["feeds", "hourly"]])
    description: str = Field(default="", max_length=LONGEST_DESCRIPTION, pattern=r"^[^\x00]*$")
    note: Note = None

    def named(self, app: Rota) -> dict[str, Any]:
        """Return what was sent, as `Schedules.change` takes it; what was not stays as it is."""
        given = self.model_fields_set
        for name in {"rule", "task"} & given:
            if getattr(self, name) is None:
                raise Invalid(name, None, "leave it out to keep it as it is", "is null")
        found: dict[str, Any] = {name: getattr(self, name) for name in _PLAIN if name in given}
        if self.rule is not None:
            found["rule"] = rule_of(self.rule)
        if "exclude" in given:
            found["exclude"] = [rule_of(each) for each in self.exclude]
        for name in ("queue", "priority"):
            if name in given:
                found[name] = self._own(app, name)
        for name, kind in _PARTS.items():
            if name in given:
                found[name] = _together(name, kind, getattr(self, name))
        if given & {"task", "arguments"}:
            found["call"] = self._call(app)
        return found

    def _own(self, app: Rota, name: str) -> Any:
        """Return a value that goes before its task's, or, where that is null, how its task's is found."""
        given = getattr(self, name)
        return given if given is not None else lambda known: getattr(task_of(app, known.task).options, name)

    def _call(self, app: Rota) -> Any:
        """Return how the call is made: a task or arguments that were not sent stay as they are."""
        task, arguments = self.task, self.arguments if "arguments" in self.model_fields_set else None
        unmasked("arguments", arguments)

        def together(known: ScheduleState) -> Call[Any]:
            args = known.args if arguments is None else _written(arguments)
            return task_of(app, task or known.task).call_of(args)

        return together


class Change(Values):
    """A change of a schedule: what is not named stays as it is."""

    last_success: Moment | None = Field(default=None, description="Says by hand when the last success was.")


class Definition(Values):
    """A schedule, whole: what is left out has its usual value."""

    task: Name = Field(description="The name of a registered task.", examples=["news.refresh"])
    rule: RuleIn

    def schedule(self, app: Rota, key: str) -> Schedule:
        """Return the schedule; refuse one whose rule takes too long to say what is next."""
        unmasked("arguments", self.arguments)
        found = Schedule(
            key,
            call_of(app, self.task, self.arguments),
            rule_of(self.rule),
            exclude=[rule_of(each) for each in self.exclude],
            queue=self.queue,
            priority=self.priority,
            **{name: getattr(self, name) for name in _PLAIN},
            **{name: _made(kind, getattr(self, name)) for name, kind in _PARTS.items()},
        )
        check_pace(app, found.rule, found.policies.exclude)
        return found


class NewSchedule(Definition):
    """A schedule to make."""

    key: Key


def task_of(app: Rota, name: str) -> Task[..., Any]:
    """Return a task of the registry: a name that is not there is no name of anything."""
    try:
        return app.tasks.get(name)
    except UnknownTask as error:
        similar = f"is it {' or '.join(error.similar)}? " if error.similar else ""
        raise Invalid("task", name, f"{similar}see /api/task-types", "is not registered here") from None


def call_of(app: Rota, task: str, arguments: dict[str, Any]) -> Call[Any]:
    """Return the call of a registered task, checked against its signature."""
    return task_of(app, task).call_of(_written(arguments))


def _written(arguments: dict[str, Any]) -> str:
    """Write arguments as JSON; refuse what JSON cannot carry."""
    try:
        return encode(arguments)
    except InvalidData as error:
        raise Invalid("arguments", error.value, error.allowed, error.problem) from None


def check_pace(app: Rota, rule: Any, exclude: Any) -> None:
    """Refuse a rule that takes too long to say what is next."""
    ahead(rule, tuple(exclude), instant(app.database.clock.now()))


def _made(kind: type[Any], parts: Given | None) -> Any:
    return None if parts is None else kind(**parts.model_dump())


def _together(name: str, kind: type[Any], parts: Given | None) -> Any:
    """Return how parts come together with those that are not named, of what a schedule has."""
    if parts is None:
        return None
    named = parts.model_dump(exclude_unset=True)

    def together(known: ScheduleState) -> Any:
        old = known.retry if name == "retry" else getattr(known.policies, name)
        kept = {} if old is None else {part: getattr(old, part) for part in type(parts).model_fields}
        return kind(**kept | named)

    return together


# What people are told


class HeldOut(Told):
    """Who keeps a schedule from firing, and why."""

    reason: Literal["paused", "parked"]
    by: str | None
    note: str | None
    since: datetime | None
    until: datetime | None

    @classmethod
    def of(cls, held: HeldState | None) -> "HeldOut | None":
        """Tell of a pause or parking, if there is one."""
        return None if held is None else cls.model_validate(held)


class RetryOut(Told):
    """How often a run is tried, and how long it waits in between."""

    attempts: int
    first: Seconds
    factor: float
    cap: Seconds
    jitter: float


class OnFailureOut(Told):
    """What consecutive failed runs change."""

    double_from: int | None
    cap: Seconds
    pause_after: int | None
    alert_after: int | None


class AdaptiveOut(Told):
    """How an interval follows how much is new."""

    busy: float
    quiet: float
    floor: Seconds
    ceiling: Seconds


class ScheduleOut(Told):
    """A schedule as the store has it. Lengths are in seconds."""

    key: str = Field(examples=["feed-42"])
    state: State = Field(
        description="The task or arguments of a parked one do not resolve; a retired one is gone from the code."
    )
    enabled: bool = Field(description="Whether it fires: it is active.")
    held: HeldOut | None
    task: str = Field(examples=["news.refresh"])
    arguments: Json = Field(description="The arguments by name; what sounds like a secret is masked.")
    rule: RuleOut
    rule_text: str = Field(description="The rule as Rota writes it.", examples=["Every('15m', since='success')"])
    exclude_text: list[str] = Field(description="What `exclude` holds, as Rota writes it.")
    words: str = Field(description="The rule in English.", examples=["15 min after the last success"])
    overlap: Overlap
    max_running: int
    missed: Missed
    max_missed: int
    grace: Seconds | None
    spread: Seconds
    jitter: Seconds
    exclude: list[RuleOut]
    max_runs: int | None
    on_failure: OnFailureOut
    adaptive: AdaptiveOut | None
    queue: str
    priority: int
    limits: list[str] = Field(description="Those that are said of the schedule itself.")
    call_limits: list[str] = Field(description="Those that its task brings; its runs are under both.")
    timeout: Seconds | None
    retry: RetryOut | None
    tags: list[str]
    description: str
    app: str = Field(description="The name of the app that it belongs to.")
    declared: bool = Field(description="Whether the code declares it.")
    version: int = Field(description="It grows with every change; the ETag.")
    created_at: datetime
    changed_at: datetime
    next_due: datetime | None = Field(description="The next instant that the rule names; null while there is none.")
    next_run: datetime | None = Field(description="When that is to be fired: the due instant and its spread.")
    last_due: datetime | None = Field(description="The due instant of the last run that the rule made.")
    last_run: datetime | None = Field(description="When its last run began.")
    last_finish: datetime | None
    last_success: datetime | None
    last_outcome: str | None = Field(examples=["succeeded"])
    last_error: ErrorOut | None
    failures: int = Field(description="How many runs failed in a row.")
    run_count: int
    own_runs: int = Field(description="How many of them the rule made: what `max_runs` counts.")
    answered_through: datetime | None = Field(description="Every due instant up to here has its answer.")

    @classmethod
    def of(cls, found: ScheduleState) -> "ScheduleOut":
        """Tell of a schedule."""
        policies = found.policies
        plain = {name: getattr(found, name) for name in cls.model_fields if hasattr(found, name)}
        own = {name: getattr(policies, name) for name in ("overlap", "max_running", "missed", "max_missed", "max_runs")}
        more: dict[str, Any] = {
            "enabled": found.state == "active",
            "held": HeldOut.of(found.held),
            "arguments": without_secrets(json.loads(found.args)),
            "rule": rule_out(found.rule),
            "rule_text": str(found.rule),
            "exclude_text": [str(each) for each in policies.exclude],
            "words": found.rule.words(),
            "grace": seconds(policies.grace),
            "spread": seconds(policies.spread),
            "jitter": seconds(policies.jitter),
            "exclude": [rule_out(each) for each in policies.exclude],
            "on_failure": OnFailureOut(**_lengths(policies.on_failure, OnFailureOut)),
            "adaptive": None if policies.adaptive is None else AdaptiveOut(**_lengths(policies.adaptive, AdaptiveOut)),
            "timeout": seconds(found.timeout),
            "retry": None if found.retry is None else RetryOut(**_lengths(found.retry, RetryOut)),
            "limits": list(found.limits),
            "call_limits": list(found.call_limits),
            "tags": list(found.tags),
            "last_error": ErrorOut.of(found.last_error),
            "next_run": next_run(found),
        }
        return cls(**plain | own | more)


class Upcoming(Told):
    """A due instant that lies ahead."""

    key: str
    due: datetime


class FiringOut(Told):
    """One due instant and what came of it: a run, or a skip. Neighbouring skips of one reason are one."""

    schedule_id: str | None = Field(description="The schedule's key.")
    due: datetime
    run: int | None = Field(description="The run that stands for it.")
    state: Literal["waiting", "ready", "running", "succeeded", "failed", "cancelled"] | None = Field(
        description="How that run is."
    )
    trigger_type: Kind | None = Field(description="What made it a run.")
    started_at: datetime | None
    finished_at: datetime | None
    error: ErrorOut | None
    reason: Reason | None = Field(description="Why it did not run.")
    first: datetime | None = Field(description="The first of the instants that were skipped; `due` is the last.")
    count: int = Field(description="How many instants it stands for.")

    @classmethod
    def of(cls, found: FiringState) -> "FiringOut":
        """Tell of a firing."""
        plain = {name: getattr(found, name) for name in cls.model_fields if hasattr(found, name)}
        own = {"schedule_id": found.schedule, "trigger_type": found.trigger, "error": ErrorOut.of(found.error)}
        return cls(**plain | own)


class RevisionOut(Told):
    """One change of a schedule: who, when, what, why."""

    version: int
    at: datetime
    by: str | None
    what: str = Field(examples=["changed"])
    note: str | None
    changes: dict[str, Json] = Field(description="The old and the new value of each, as the store writes them.")

    @classmethod
    def of(cls, found: Revision) -> "RevisionOut":
        """Tell of a change."""
        plain = {name: getattr(found, name) for name in ("version", "at", "by", "what", "note")}
        changes = {name: _told_change(name, pair) for name, pair in found.changes.items()}
        return cls(**plain, changes=changes)


class TriggeredOut(Told):
    """Runs that somebody wanted at once."""

    run: RunId = Field(description="The number of the first.")
    blocker: int | None = Field(description="The run under way that it waits for, or whose place it takes.")
    count: int = Field(description="How many were made.")


class WhyOut(Told):
    """What came of a due instant, and why."""

    key: str
    at: datetime
    text: str = Field(examples=["skipped: overlap, a run of the schedule was under way"])
    firing: FiringOut | None


class CountOut(Told):
    """How many schedules something was done to."""

    count: int


def next_run(found: ScheduleState) -> datetime | None:
    """Return when what is due next is to be fired: a fixed series comes later by the key's own place in the spread."""
    if found.next_due is None or (isinstance(found.rule, Every) and found.rule.anchored):
        return found.next_due
    return moment(instant(found.next_due) + spread_offset(found.key, micros(found.policies.spread)))


def _lengths(found: Any, shape: type[Told]) -> dict[str, Any]:
    values = {name: getattr(found, name) for name in shape.model_fields}
    return {name: seconds(each) if isinstance(each, timedelta) else each for name, each in values.items()}


def _told_change(name: str, pair: list[Any]) -> list[Any]:
    """Return the two values of a change; those of arguments with a mask over what sounds like a secret."""
    if name != "args":
        return pair
    return [None if each is None else masked_json(each) for each in pair]
