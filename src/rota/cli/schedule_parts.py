"""What several options say together: what happens after failures, how runs are retried, how an interval adapts."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from rota.errors import InvalidSchedule
from rota.store.schedule_reads import ScheduleState
from rota.times.backoff import Retry
from rota.times.policies import Adaptive, OnFailure

NONE = "none"

DoubleFrom = Annotated[
    str | None,
    typer.Option("--double-from", metavar="N", help="From which failure in a row on the interval is doubled; or none."),
]
Cap = Annotated[str | None, typer.Option("--cap", metavar="T", help="Up to what it is doubled.")]
PauseAfter = Annotated[
    str | None, typer.Option("--pause-after", metavar="N", help="After how many failures in a row it pauses; or none.")
]
AlertAfter = Annotated[
    str | None, typer.Option("--alert-after", metavar="N", help="After how many it alerts; or none.")
]
Attempts = Annotated[
    str | None, typer.Option("--attempts", metavar="N", help="How often a run is tried; or none: as its task says.")
]
RetryFirst = Annotated[
    str | None, typer.Option("--retry-first", metavar="T", help="How long to wait after the first attempt.")
]
RetryFactor = Annotated[
    float | None, typer.Option("--retry-factor", help="How many times longer to wait after each further one.")
]
RetryCap = Annotated[str | None, typer.Option("--retry-cap", metavar="T", help="The longest wait between attempts.")]
RetryJitter = Annotated[
    float | None, typer.Option("--retry-jitter", help="By which fraction a wait is spread to both sides.")
]
AdaptiveText = Annotated[
    bool | None,
    typer.Option("--adaptive/--not-adaptive", help="Whether the interval follows how much is new.", show_default=False),
]
Busy = Annotated[float | None, typer.Option("--busy", help="More new items a run than this halve the interval.")]
Quiet = Annotated[float | None, typer.Option("--quiet", help="Fewer new items a run than this double it.")]
Floor = Annotated[str | None, typer.Option("--floor", metavar="T", help="It is not halved below this.")]
Ceiling = Annotated[str | None, typer.Option("--ceiling", metavar="T", help="It is not doubled above this.")]

_RETRY = {"retry_first": "first", "retry_factor": "factor", "retry_cap": "cap", "retry_jitter": "jitter"}
_ADAPTIVE = ("busy", "quiet", "floor", "ceiling")

Part = Callable[[ScheduleState | None], Any]
"""What a schedule is to have, from what it has; it has nothing yet where it is being made."""


def given_parts(given: dict[str, Any]) -> dict[str, Part]:
    """Return what was given: for each value that has parts, how they come together with those that are not named."""
    found: dict[str, Part | None] = {
        "on_failure": _on_failure(given),
        "retry": _retry(given),
        "adaptive": _adaptive(given),
    }
    return {name: part for name, part in found.items() if part is not None}


def number(name: str, text: str, other: str = "") -> int:
    """Read a whole number that an option is given."""
    try:
        return int(text)
    except ValueError:
        raise InvalidSchedule(f"--{name.replace('_', '-')}", text, f"use {other}a whole number") from None


def number_or_none(name: str, text: str) -> int | None:
    """Read a whole number, or the word that takes it away."""
    return None if text == NONE else number(name, text, f"{NONE} or ")


def _on_failure(given: dict[str, Any]) -> Part | None:
    counts = ("double_from", "pause_after", "alert_after")
    parts = {name: number_or_none(name, given[name]) for name in counts if given[name] is not None}
    named: dict[str, Any] = parts | ({} if given["cap"] is None else {"cap": given["cap"]})
    if not named:
        return None

    def together(known: ScheduleState | None) -> OnFailure:
        old = OnFailure() if known is None else known.policies.on_failure
        return OnFailure(**{name: getattr(old, name) for name in (*counts, "cap")} | named)

    return together


def _retry(given: dict[str, Any]) -> Part | None:
    named = {part: given[name] for name, part in _RETRY.items() if given[name] is not None}
    attempts = given["attempts"]
    if attempts == NONE:
        if named:
            raise typer.BadParameter("takes away the whole retry; name no part of it", param_hint="--attempts")
        return lambda _: None
    if attempts is not None:
        named["attempts"] = number_or_none("attempts", attempts)
    if not named:
        return None

    def together(known: ScheduleState | None) -> Retry:
        old = None if known is None else known.retry
        if old is None and attempts is None:
            allowed = "say --attempts too: its runs are tried as their task says until then"
            raise InvalidSchedule("retry", named, allowed, "are parts of a retry that is not there")
        old = old or Retry()
        return Retry(**{name: getattr(old, name) for name in ("attempts", *_RETRY.values())} | named)

    return together


def _adaptive(given: dict[str, Any]) -> Part | None:
    named = {name: given[name] for name in _ADAPTIVE if given[name] is not None}
    if given["adaptive"] is False:
        if named:
            raise typer.BadParameter("does not go with a part of it", param_hint="--not-adaptive")
        return lambda _: None
    if not named and given["adaptive"] is None:
        return None

    def together(known: ScheduleState | None) -> Adaptive:
        old = (None if known is None else known.policies.adaptive) or Adaptive()
        return Adaptive(**{name: getattr(old, name) for name in _ADAPTIVE} | named)

    return together
