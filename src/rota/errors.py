"""Every error of Rota's, as a tree.

RotaError
├── BadSignature                a webhook that was not signed with the secret, or not now: `.reason`
├── CommandFailed               a program did not end well: `.program`, `.code`, `.output`
├── CopyRefused                 a copy of a store cannot be begun, or cannot be finished
├── FetchFailed                 nothing usable came back from an address: `.place`, `.reason`, `.detail`
├── Invalid (a ValueError)      a value that was given is not allowed: `.field`, `.value`, `.allowed`
│   ├── AddressRefused          an address that Rota does not call, given or redirected to
│   ├── InvalidArguments        what was passed to a task: `.task`, `.parameter`
│   ├── InvalidData             a value that JSON cannot carry as annotated, or JSON that does not fit the annotation
│   ├── InvalidDuration         a length of time
│   ├── InvalidMoment           a point in time: naive, unreadable, or out of range
│   ├── InvalidPolicy           a policy of a schedule, or how a task is retried
│   ├── InvalidRule             a cron expression, an interval, a calendar, or a rule's text
│   ├── InvalidSchedule         a schedule's key, call, rule, tags or description
│   │   └── OutdatedVersion     a change of a version that somebody else has changed since: `.newest`
│   ├── InvalidTask             a task's function, name or options
│   └── InvalidZone             a time zone
├── LeaseLost                   the run is another worker's by now, and nothing was changed: `.run`
├── LockHeld                    another holds the lock: `.name`, `.holder`, `.until`
├── LockLost                    the lock's time was over, and another has taken it since: `.name`
├── MissingExtra (an ImportError)   a part of Rota that was not installed: `.extra`
├── NoCurrentRun                the code is not inside a run
├── NotMigrated                 the store's tables are not there, or older than this Rota
├── NotifyFailed                some could not be told: `.reasons`, `.failed`
├── ScheduleExists              a schedule was only to be made, and there is one: `.key`
├── SchemaTooNew                the store was made by a newer Rota: `.owner`, `.found`, `.known`
├── StoreUnavailable            the store does not answer now; what was asked may be asked again
├── TaskFailed                  a task in a process of its own raised: `.kind`, `.message`, `.trace`
│   └── ChildDied               or its process ended under it
├── TimedOut                    something took longer than it may
├── UnknownLimit (a LookupError)    a key under which no limit was put: `.key`
├── UnknownRun (a LookupError)      a number under which there is no run: `.run`
├── UnknownSchedule (a LookupError)  a key under which there is no schedule: `.key`
├── UnknownTask (a LookupError)     a name under which there is no task: `.name`
├── UnknownToken (a LookupError)    a name that no valid token has: `.name`
├── UnknownWorker (a LookupError)   a name under which no worker is there: `.name`
├── UnreadableArguments         stored arguments that their task does not take, or no longer: `.task`, `.problem`
└── WouldBlock (a RuntimeError)     a call of `rota.Blocking` where an event loop runs: `.call`
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any


class RotaError(Exception):
    """Something that Rota cannot do, said in one line."""


class Invalid(RotaError, ValueError):
    """A value that was given is not allowed; the message names the field, the value and what is allowed."""

    def __init__(self, field: str, value: object, allowed: str, problem: str = "is not allowed") -> None:
        super().__init__(field, value, allowed, problem)
        self.field = field
        self.value = value
        self.allowed = allowed
        self.problem = problem

    def __str__(self) -> str:
        """Say it in one line, whatever the value holds."""
        return f"{self.field}: {_shown(self.value)} {self.problem}; {self.allowed}"


class AddressRefused(Invalid):
    """An address that Rota does not call; the message names its host at most, since the rest may be secret."""


class InvalidArguments(Invalid):
    """Arguments that a task does not take; the message names the task, the parameter and the problem."""

    def __init__(self, task: str, parameter: str | None, value: object, allowed: str, problem: str) -> None:
        super().__init__(task if parameter is None else f"{task}({parameter})", value, allowed, problem)
        self.args = (task, parameter, value, allowed, problem)
        self.task = task
        self.parameter = parameter


class InvalidData(Invalid):
    """A value that JSON cannot carry as its annotation says, or JSON that does not fit the annotation."""


class InvalidDuration(Invalid):
    """A length of time that cannot be read or is out of bounds."""


class InvalidMoment(Invalid):
    """A point in time that is naive, unreadable or out of range."""


class InvalidPolicy(Invalid):
    """A policy of a schedule, or of a task's retries, that does not exist or does not fit the others."""


class InvalidRule(Invalid):
    """A rule that cannot be read or never names an instant."""


class InvalidSchedule(Invalid):
    """A schedule's key, call, rule, tags or description."""


class OutdatedVersion(InvalidSchedule):
    """A change of a version that somebody else has changed since; nothing was changed."""

    def __init__(self, version: int, newest: int) -> None:
        super().__init__("version", version, f"it is {newest} by now", "is not the newest")
        self.args = (version, newest)
        self.newest = newest


class InvalidTask(Invalid):
    """A function that cannot be a task, or a name or option that a task cannot have."""


class InvalidZone(Invalid):
    """A time zone that is not in the IANA database."""


class BadSignature(RotaError):
    """A webhook that was not signed with the secret, or not now."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        """Say why."""
        return f"the signature does not hold: {self.reason}"


class CommandFailed(RotaError):
    """A program did not end well, or could not be started."""

    def __init__(self, program: str, code: int | None, output: str) -> None:
        super().__init__(program, code, output)
        self.program = program
        self.code = code
        """Its exit code; below 0 the signal that ended it; None where it did not start."""
        self.output = output
        """The end of what it wrote."""

    def __str__(self) -> str:
        """Say it in one line, with the last one that it wrote."""
        how = "could not be started" if self.code is None else f"exit code {self.code}"
        last = self.output.strip().rpartition("\n")[2]
        return f"{_shown(self.program)}: {how}" + (f": {_plain(last)}" if last else "")


class CopyRefused(RotaError):
    """A copy of a store cannot be begun, or cannot be finished; the message says what to do."""


class FetchFailed(RotaError):
    """Nothing usable came back from an address; what is named is its host, since the rest may be secret."""

    def __init__(self, place: str, reason: str, detail: str) -> None:
        super().__init__(place, reason, detail)
        self.place = place
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        """Say it in one line, whatever the other side said."""
        return f"{self.place}: {self.reason}: {_plain(self.detail)}"


class MissingExtra(RotaError, ImportError):
    """A part of Rota that was not installed."""

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(extra, purpose)
        self.extra = extra
        self.purpose = purpose

    def __str__(self) -> str:
        """Say what to install."""
        return f"{self.purpose} needs an extra that is not installed: pip install 'rota[{self.extra}]'"


class LeaseLost(RotaError):
    """The run is another worker's by now; nothing was changed."""

    def __init__(self, run: int) -> None:
        super().__init__(run)
        self.run = run

    def __str__(self) -> str:
        """Say what to do."""
        return f"run {self.run} is not this worker's any more: roll back"


class LockHeld(RotaError):
    """Another holds the lock."""

    def __init__(self, name: str, holder: str | None = None, until: datetime | None = None) -> None:
        super().__init__(name, holder, until)
        self.name = name
        self.holder = holder
        self.until = until

    def __str__(self) -> str:
        """Say who, and until when, as far as that is known."""
        who = "another" if self.holder is None else self.holder
        return f"lock: {_shown(self.name)} is held by {who}" + ("" if self.until is None else f" until {self.until}")


class LockLost(RotaError):
    """The lock's time was over, and another has taken it since."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        """Say what it means."""
        return f"lock: {_shown(self.name)} is not held here any more; another may have worked at the same time"


class NoCurrentRun(RotaError):
    """The code is not inside a run."""

    def __str__(self) -> str:
        """Say where it would be."""
        return "there is no current run here: this is for code that a worker calls"


class NotMigrated(RotaError):
    """The store's tables are not there, or older than this Rota."""

    def __str__(self) -> str:
        """Say what to do."""
        return "the store's tables are not there, or older than this Rota: run rota migrate, or open the app once"


class NotifyFailed(RotaError):
    """Some could not be told; secrets in their targets are not shown."""

    def __init__(self, reasons: Sequence[str], failed: Sequence[object], tried: int) -> None:
        super().__init__(reasons, failed, tried)
        self.reasons = list(reasons)
        """Why, each with what may be shown of its target."""
        self.failed: list[Any] = list(failed)
        """The targets that were not told."""
        self.tried = tried

    def __str__(self) -> str:
        """Say who and why, in one line."""
        return f"{len(self.failed)} of {self.tried} could not be told: {_plain('; '.join(self.reasons), 2_000)}"


class ScheduleExists(RotaError):
    """There is a schedule under that key already."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        """Say which."""
        return f"there is a schedule {_shown(self.key)} already"


class SchemaTooNew(RotaError):
    """The store was made by a newer Rota than this one."""

    def __init__(self, owner: str, found: int, known: int) -> None:
        super().__init__(owner, found, known)
        self.owner = owner
        self.found = found
        self.known = known

    def __str__(self) -> str:
        """Say what to do."""
        return (
            f"the store's tables of {self.owner} are at version {self.found}, this code knows {self.known}: upgrade it"
        )


class StoreUnavailable(RotaError):
    """The store does not answer now; what was asked may be asked again."""


class TaskFailed(RotaError):
    """A task in a process of its own raised."""

    def __init__(self, kind: str, message: str, trace: str = "") -> None:
        super().__init__(kind, message, trace)
        self.kind = kind
        self.message = message
        self.trace = trace

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.kind}: {_shown(self.message)}"


class ChildDied(TaskFailed):
    """The process of a task ended under it."""

    def __init__(self, message: str) -> None:
        super().__init__("ChildDied", message)
        self.args = (message,)


class TimedOut(RotaError):
    """Something took longer than it may."""


class UnknownLimit(RotaError, LookupError):
    """There is no limit under that key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        """Say which."""
        return f"no limit was put under {_shown(self.key)}"


class UnknownRun(RotaError, LookupError):
    """A number under which there is no run."""

    def __init__(self, run: object) -> None:
        super().__init__(run)
        self.run = run

    def __str__(self) -> str:
        """Say it in one line."""
        return f"run: there is no {_shown(self.run)}; ended runs are kept for a while only"


class UnknownSchedule(RotaError, LookupError):
    """There is no schedule under that key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        """Say which."""
        return f"there is no schedule {_shown(self.key)}"


class UnknownTask(RotaError, LookupError):
    """A name under which there is no task."""

    def __init__(self, name: str, similar: Sequence[str] = ()) -> None:
        super().__init__(name, similar)
        self.name = name
        self.similar = tuple(similar)

    def __str__(self) -> str:
        """Say it in one line, with the names that look like it."""
        hint = f"is it {' or '.join(self.similar)}?" if self.similar else "is its module imported?"
        return f"task: {_shown(self.name)} is not known here; {hint}"


class UnknownToken(RotaError, LookupError):
    """There is no token of that name that could be revoked."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        """Say which."""
        return f"there is no token {_shown(self.name)}, or it was revoked before"


class UnknownWorker(RotaError, LookupError):
    """A name under which no worker is there."""

    def __init__(self, name: object) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        """Say which."""
        return f"there is no worker {_shown(self.name)}: it has ended, or never was"


class UnreadableArguments(RotaError):
    """Stored arguments that their task does not take, or no longer."""

    def __init__(self, task: str, problem: str) -> None:
        super().__init__(task, problem)
        self.task = task
        self.problem = problem

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.task}: the stored arguments cannot be read: {self.problem}"


class WouldBlock(RotaError, RuntimeError):
    """A call that waits, made where an event loop runs: it would hold up all that happens there."""

    def __init__(self, call: str) -> None:
        super().__init__(call)
        self.call = call

    def __str__(self) -> str:
        """Say what to use."""
        return f"an event loop runs in this thread, and the call would hold it up: use {self.call}"


def _shown(value: object, most: int = 80) -> str:
    """Show a value in part of a line, whatever it is and however it shows itself."""
    try:
        text = ascii(value[:most]) if isinstance(value, str) else repr(value)
    except Exception:  # noqa: BLE001 (a value that cannot show itself must not hide what is wrong with it)
        text = f"a {type(value).__name__}"
    return _plain(text, most)


def _plain(text: str, most: int = 400) -> str:
    """Return text as part of a line, with control characters escaped."""
    line = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[: most + 1])
    return line if len(line) <= most else f"{line[: most - 1]}…"
