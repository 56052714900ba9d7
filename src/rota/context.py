"""The run that the code is in: `rota.current_run()`."""

import logging
import math
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from numbers import Real
from typing import Any

from rota.errors import Invalid, NoCurrentRun
from rota.model import RunError

LONGEST_NOTE = 1_000

_CURRENT: ContextVar["CurrentRun | None"] = ContextVar("rota_current_run", default=None)


@dataclass(slots=True, eq=False)
class CurrentRun:
    """What a task may know of its own run, and say about it."""

    id: int
    task: str
    queue: str
    attempt: int
    due: datetime
    previous_result: Any
    """What the last attempt that returned left behind; None at first."""
    previous_error: RunError | None
    """Why the attempt before this one failed; None at first."""
    log: logging.LoggerAdapter[logging.Logger]
    note_progress: Callable[[float, str], None] = field(repr=False)
    settle_on: Callable[[Any, Any], Awaitable[None]] = field(repr=False)
    completed: bool = False
    """Whether the task ended its run by `complete`."""

    @property
    def key(self) -> str:
        """The same over all attempts of the run: give it to others who can ignore what they have seen."""
        return f"rota-run-{self.id}"

    def progress(self, share: float, note: str = "") -> None:
        """Say how far the run is, from 0 to 1, and perhaps a note of up to 1,000 characters; the last word counts."""
        self.note_progress(_share(share), _note(note))

    async def complete(self, result: Any = None, *, connection: Any) -> None:
        """End the run as succeeded inside the transaction that is open on this connection.

        The effect and the completion then happen together or not at all. Raises `LeaseLost` where the run is not this
        worker's any more: roll back.
        """
        await self.settle_on(result, connection)
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
