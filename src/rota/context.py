"""The run that the code is in: `rota.current_run()`."""

import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rota.errors import NoCurrentRun
from rota.model import RunError

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
        """Say how far the run is, from 0 to 1."""
        self.note_progress(min(max(float(share), 0.0), 1.0), note)

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
