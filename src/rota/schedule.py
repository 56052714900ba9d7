"""What a schedule is: a call, a rule, and policies, under a key; and how the store writes them down."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from inspect import signature
from typing import Any, Literal

from rota.errors import InvalidSchedule
from rota.limit import keys as limit_keys
from rota.tasks import Call, Priority, TaskOptions, priority_number
from rota.times.backoff import Retry
from rota.times.durations import duration
from rota.times.intervals import Every
from rota.times.listed import At
from rota.times.moments import micros
from rota.times.policies import Adaptive, Length, Missed, OnFailure, Overlap, Policies
from rota.times.rule import Rule

Kind = Literal["cron", "interval", "once", "manual", "backfill"]
"""What made a run of a schedule: its rule, or a person."""

LONGEST_KEY = 200
LONGEST_DESCRIPTION = 1_000
MOST_TAGS = 20
_KEY = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.:-]{{0,{LONGEST_KEY - 1}}}")
_KEYS = f"use letters, digits, _ - . and :, beginning with a letter or digit, up to {LONGEST_KEY} characters"
_TAGS = "use letters, digits, _ - . and :, beginning with a letter or digit, up to 200 characters"


@dataclass(frozen=True, init=False)
class Schedule:
    """A durable rule for a call, under a key.

    `queue`, `priority`, `limits`, `timeout` and `retry` go before those of the task; what is left out is the task's.
    """

    key: str
    call: Call[Any]
    rule: Rule
    policies: Policies
    queue: str | None
    priority: int | None
    limits: tuple[str, ...]
    timeout: timedelta | None
    retry: Retry | None
    tags: tuple[str, ...]
    description: str

    def __init__(
        self,
        key: str,
        call: Call[Any],
        rule: Rule,
        *,
        overlap: Overlap = "skip",
        max_running: int = 1,
        missed: Missed = "latest",
        max_missed: int = 100,
        grace: Length | None = None,
        spread: Length = 0,
        jitter: Length = 0,
        exclude: Rule | Iterable[Rule] = (),
        max_runs: int | None = None,
        on_failure: OnFailure | None = None,
        adaptive: Adaptive | None = None,
        queue: str | None = None,
        priority: Priority | None = None,
        limits: Iterable[str] = (),
        timeout: Length | None = None,
        retry: Retry | None = None,
        tags: Iterable[str] = (),
        description: str = "",
    ) -> None:
        if not isinstance(call, Call):
            raise InvalidSchedule("call", call, "use what task.call(…) returns", "is not a call")
        if not isinstance(rule, Rule):
            raise InvalidSchedule("rule", rule, "use a rule, such as Cron('0 9 * * MON')", "is not a rule")
        given = {
            "overlap": overlap,
            "max_running": max_running,
            "missed": missed,
            "max_missed": max_missed,
            "grace": grace,
            "spread": spread,
            "jitter": jitter,
            "exclude": exclude,
            "max_runs": max_runs,
            "on_failure": on_failure,
            "adaptive": adaptive,
        }
        named = {name: value for name, value in given.items() if value is not _LEFT_OUT[name]}
        policies = Policies(**named) if named else _USUAL  # type: ignore[arg-type]
        vars(self).update(
            key=schedule_key(key),
            call=call,
            rule=rule,
            policies=policies,
            queue=None if queue is None else TaskOptions(queue=queue).queue,
            priority=None if priority is None else priority_number(priority),
            limits=limit_keys(limits),
            timeout=None if timeout is None else timedelta(microseconds=duration(timeout, "timeout", least=1)),
            retry=schedule_retry(retry),
            tags=schedule_tags(tags),
            description=schedule_description(description),
        )


def schedule_key(key: object) -> str:
    """Return this key of a schedule, or refuse it."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InvalidSchedule("key", key, _KEYS)
    return key


def schedule_retry(retry: object) -> Retry | None:
    """Return how the runs of a schedule are retried, or refuse it."""
    if retry is not None and not isinstance(retry, Retry):
        raise InvalidSchedule("retry", retry, "use a rota.Retry")
    return retry


def schedule_description(description: object) -> str:
    """Return the description of a schedule, or refuse it."""
    if not isinstance(description, str) or len(description) > LONGEST_DESCRIPTION or "\0" in description:
        allowed = f"use text of up to {LONGEST_DESCRIPTION} characters, without NUL"
        raise InvalidSchedule("description", description, allowed)
    return description


def schedule_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return these tags in order, each once, or refuse them."""
    if isinstance(tags, str):
        raise InvalidSchedule("tags", tags, f"use a list: [{tags!r}]", "is one text")
    found = tuple(sorted(set(tags)))
    if len(found) > MOST_TAGS:
        raise InvalidSchedule("tags", list(found), f"use up to {MOST_TAGS}", "are too many")
    for each in found:
        if not isinstance(each, str) or not _KEY.fullmatch(each):
            raise InvalidSchedule("tags", each, _TAGS)
    return found


def kind_of(rule: Rule) -> Kind:
    """Return what a run is said to come from that this rule makes."""
    if isinstance(rule, Every):
        return "interval"
    return "once" if isinstance(rule, At) else "cron"


# As the store keeps them


def write_policies(policies: Policies) -> str:
    """Write policies as JSON: what differs from the usual."""
    if policies == _USUAL:
        return "{}"
    found: dict[str, Any] = {}
    for name in ("overlap", "max_running", "missed", "max_missed", "max_runs"):
        if getattr(policies, name) != getattr(_USUAL, name):
            found[name] = getattr(policies, name)
    for name in ("grace", "spread", "jitter"):
        if getattr(policies, name) != getattr(_USUAL, name):
            found[name] = micros(getattr(policies, name))
    if policies.exclude:
        found["exclude"] = [str(each) for each in policies.exclude]
    if policies.on_failure != _USUAL.on_failure:
        on_failure = policies.on_failure
        found["on_failure"] = {
            "double_from": on_failure.double_from,
            "cap": micros(on_failure.cap),
            "pause_after": on_failure.pause_after,
            "alert_after": on_failure.alert_after,
        }
    if policies.adaptive is not None:
        adaptive = policies.adaptive
        bounds = {"floor": micros(adaptive.floor), "ceiling": micros(adaptive.ceiling)}
        found["adaptive"] = {"busy": adaptive.busy, "quiet": adaptive.quiet, **bounds}
    return json.dumps(found, separators=(",", ":"))


@lru_cache(4_096)
def read_policies(text: str) -> Policies:
    """Read what `write_policies` wrote."""
    found = json.loads(text)
    for name in ("grace", "spread", "jitter"):
        if name in found:
            found[name] = _length(found[name])
    if "exclude" in found:
        found["exclude"] = [read_rule(each) for each in found["exclude"]]
    if "on_failure" in found:
        found["on_failure"] = OnFailure(**found["on_failure"] | {"cap": _length(found["on_failure"]["cap"])})
    if "adaptive" in found:
        bounds = {name: _length(found["adaptive"][name]) for name in ("floor", "ceiling")}
        found["adaptive"] = Adaptive(**found["adaptive"] | bounds)
    return Policies(**found)


@lru_cache(16_384)
def read_rule(text: str) -> Rule:
    """Read a rule's text; schedules that were made alike share one."""
    return Rule.parse(text)


def write_retry(retry: Retry | None) -> str | None:
    """Write how a schedule's runs are retried as JSON."""
    if retry is None:
        return None
    lengths = {name: micros(getattr(retry, name)) for name in ("first", "cap")}
    return json.dumps({"attempts": retry.attempts, "factor": retry.factor, "jitter": retry.jitter, **lengths})


@lru_cache(1_024)
def read_retry(text: str) -> Retry:
    """Read what `write_retry` wrote."""
    found = json.loads(text)
    return Retry(**found | {name: _length(found[name]) for name in ("first", "cap")})


def _length(found: int) -> timedelta:
    return timedelta(microseconds=found)


_USUAL = Policies()
_LEFT_OUT = {name: each.default for name, each in signature(Policies).parameters.items()}
"""What a policy is told that is not named."""
