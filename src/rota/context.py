"""The run that the code is in: `rota.current_run()`."""

import logging
import math
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from numbers import Real
from typing import Any, Protocol

from rota.errors import Invalid, NoCurrentRun
from rota.model import RunError
from rota.schedule import Kind
from rota.times.durations import duration
from rota.times.policies import Length

LONGEST_NOTE = 1_000

_CURRENT: ContextVar["CurrentRun | None"] = ContextVar("rota_current_run", default=None)


class Host(Protocol):
    """Who executes a run: it knows what most tasks never ask for, and hears what they say."""

    def due(self) -> datetime:
        """Return when the run was due."""

    def previous_result(self) -> Any:
        """Return what the last attempt that returned left behind."""

    def previous_error(self) -> RunError | None:
        """Return why the attempt before failed."""

    def log(self) -> "logging.LoggerAdapter[logging.Logger]":
        """Return a log whose lines name the run."""

    def note_progress(self, share: float, note: str) -> None:
        """Hear how far the run is."""

    def app(self) -> object:
        """Return the app whose worker this is; None where there is none in this process."""

    async def settle_on(self, result: Any, connection: Any) -> None:
        """End the run as succeeded inside the transaction that is open on this connection."""


@dataclass(slots=True, eq=False)
class CurrentRun:
    """What a task may know of its own run, and say about it."""

    id: int
    task: str
    queue: str
    attempt: int
    host: Host = field(repr=False)
    schedule: str | None = None
    """The key of the schedule that it is a run of."""
    trigger: Kind | None = None
    """What made it a run of its schedule: cron, interval, once, manual or backfill."""
    completed: bool = False
    """Whether the task ended its run by `complete`."""
    asked: int | None = None
    """How long after its end the schedule is to run next, in microseconds."""

    @property
    def due(self) -> datetime:
        """When it was due; of a schedule's run, the instant that it stands for."""
        return self.host.due()

    @property
    def previous_result(self) -> Any:
        """What the last attempt that returned left behind; None at first."""
        return self.host.previous_result()

    @property
    def previous_error(self) -> RunError | None:
        """Why the attempt before this one failed; None at first."""
        return self.host.previous_error()

    @property
    def log(self) -> "logging.LoggerAdapter[logging.Logger]":
        """A log whose lines name the run."""
        return self.host.log()

    @property
    def key(self) -> str:
        """The same over all attempts of the run: give it to others who can ignore what they have seen."""
        return f"rota-run-{self.id}"

    def progress(self, share: float, note: str = "") -> None:
        """Say how far the run is, from 0 to 1, and perhaps a note of up to 1,000 characters; the last word counts."""
        self.host.note_progress(_share(share), _note(note))

    def run_next(self, delay: Length) -> None:
        """Say when this run's schedule should run next: so long after this run has ended, inside the rule's bounds.

        The due instants until then are skipped as backing off. The last word counts, and only that of the attempt that
        ends the run.
        """
        if self.schedule is None:
            raise Invalid("run_next", delay, "it is for the runs of schedules", "has no schedule to speak to")
        self.asked = duration(delay, "delay", least=1)

    async def complete(self, result: Any = None, *, connection: Any) -> None:
        """End the run as succeeded inside the transaction that is open on this connection.

        The effect and the completion then happen together or not at all. Raises `LeaseLost` where the run is not this
        worker's any more: roll back.
        """
        await self.host.settle_on(result, connection)
        self.completed = True


def current_run() -> CurrentRun:
    """Return the run that the code is in."""
    found = _CURRENT.get()
    if found is None:
        raise NoCurrentRun
    return found


def current_or_none() -> CurrentRun | None:
    """Return the run that the code is in, if any."""
    return _CURRENT.get()


def enter(run: CurrentRun) -> None:
    """Make this the current run of the task that is about to start."""
    _CURRENT.set(run)


def _share(share: object) -> float:
    number: Any = math.nan if isinstance(share, bool) or not isinstance(share, Real) else share
    if not -math.inf < number < math.inf:
        raise Invalid("share", share, "use a number from 0 to 1")
    return float(min(max(number, 0), 1))


def _note(note: object) -> str:
    if not isinstance(note, str):
        raise Invalid("note", note, "use text")
    # PostgreSQL cannot keep a NUL, not even in JSON that somebody wants to look into.
    return note[:LONGEST_NOTE].replace("\0", "\N{REPLACEMENT CHARACTER}")
