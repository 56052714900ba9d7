"""What the decision goes by, and what it says."""

from dataclasses import dataclass
from typing import Literal

from rota.times.moments import Instant

Reason = Literal["overlap", "missed", "merged", "paused", "excluded", "parked", "backing off"]


@dataclass(frozen=True, slots=True)
class Hold:
    """A time in which a schedule does not fire, and why. `until` is None while nobody knows when it ends."""

    reason: Literal["paused", "parked"]
    until: Instant | None = None

    def open(self, now: Instant) -> bool:
        """Tell whether it still holds."""
        return self.until is None or now < self.until


@dataclass(frozen=True, slots=True)
class Past:
    """What happened to a schedule so far."""

    since: Instant
    """When the schedule was made, or its rule last changed: its first due instant comes after."""
    through: Instant | None = None
    """Every due instant up to here has its answer."""
    due: Instant | None = None
    """The due instant of the last run that the rule made."""
    runs: int = 0
    """How many runs the rule made (triggers and back-fills do not count)."""
    under_way: int = 0
    """How many of its runs are waiting, ready or running."""
    started: Instant | None = None
    finished: Instant | None = None
    succeeded: Instant | None = None
    """When the last run started and ended, and when the last success ended."""
    ended: Literal["succeeded", "failed", "cancelled"] | None = None
    """How the last run ended."""
    failures: int = 0
    """How many runs failed in a row."""
    asked: Instant | None = None
    """When the last run asked to be run next."""
    average: float | None = None
    """How much was new in recent runs, on average; for an adaptive interval."""
    hold: Hold | None = None
    """The pause or parking that is, or that ended since the last decision."""


@dataclass(frozen=True, slots=True)
class Firing:
    """One run to make."""

    due: Instant
    at: Instant
    """Not to be started before; it lies after the due instant where work is spread."""
    queued: bool = False
    """To be started only when the runs before it have ended."""
    late: bool = False
    """Catching up: one priority lower than work that is on time."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Neighbouring due instants that did not become runs, and why."""

    reason: Reason
    first: Instant
    last: Instant
    count: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What a schedule's due instants up to now become, and what is next."""

    fire: tuple[Firing, ...] = ()
    skips: tuple[Skip, ...] = ()
    through: Instant | None = None
    """Every due instant up to here has its answer."""
    next: Instant | None = None
    """The next due instant; None while there is none."""
    wake: Instant | None = None
    """When to decide again unless something happens: the next due instant and its spread."""
    cancel: bool = False
    """The runs that are under way are to be cancelled first."""
    finished: bool = False
    """The rule will never name another instant."""
