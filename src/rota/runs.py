"""`app.runs`: looking at runs, waiting for them, cancelling them, trying them again."""

import asyncio
import builtins
from collections.abc import Callable
from datetime import datetime
from typing import Any, get_args

from rota import clock
from rota.context import LONGEST_NOTE
from rota.db.database import Database, Operation
from rota.errors import Invalid, TimedOut, UnknownRun
from rota.kept import LogLine
from rota.model import Attempt, Run, RunState
from rota.store.hours import Hour, Hours
from rota.store.reads import Reads, RunFilter, Statistics
from rota.store.runs import RunStore
from rota.tasks import Registry
from rota.times.choices import one_of, sendable, whole_number
from rota.times.durations import duration
from rota.times.moments import DAY, HOUR, LATEST, SECOND, instant, optional_instant
from rota.times.policies import Length

_LOOK_SECONDS = 0.05
_LONGEST_TEXT = 1_000


class Runs:
    """The runs of a store."""

    def __init__(self, database: Database, store: RunStore, tasks: Registry, knock: Callable[[str], None]) -> None:
        self._db = database
        self._store = store
        self._tasks = tasks
        self._knock = knock
        self._reads = Reads(database)
        self._hours = Hours(database)

    async def get(self, run: int) -> Run[Any]:
        """Return a run; raises `UnknownRun` where there is none."""
        found = await self._db.read(lambda: self._store.get(_number(run)))
        if found is None:
            raise UnknownRun(run)
        return found

    async def list(
        self,
        *,
        state: str | None = None,
        task: str | None = None,
        queue: str | None = None,
        schedule: str | None = None,
        worker: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        text: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> "builtins.list[Run[Any]]":
        """Return runs, newest first; `before` is the last number of the page before.

        `since` and `until` say when they were made; `text` is looked for in the task's name, the schedule's key, the
        unique key and the error, whether in large or in small letters.
        """
        if state is not None:
            one_of("state", state, get_args(RunState), Invalid)
        whole_number("limit", limit, 1, 200, Invalid)
        if before is not None:
            whole_number("before", before, 0, 2**62, Invalid)
        named = {"task": task, "queue": queue, "schedule": schedule, "worker": worker, "text": text}
        for field, value in named.items():
            _name(field, value)
        first, last = optional_instant(since, "since"), optional_instant(until, "until")
        wanted = RunFilter(state=state, since=first, until=last, **named)
        return await self._db.read(lambda: self._reads.runs(wanted, before=before, most=limit))

    async def attempts(self, run: int) -> "builtins.list[Attempt]":
        """Return its attempts, oldest first. A success at the first try is in the run itself."""
        return await self._db.read(lambda: self._store.attempts(_number(run)))

    async def log(self, run: int) -> "builtins.list[LogLine]":
        """Return what it logged, oldest first, as far as that is kept: of attempts that failed or took 2 s and more."""
        return await self._db.read(lambda: self._store.log(_number(run)))

    async def result(self, run: int) -> Any:
        """Return what its task returned, as the task's return annotation says."""
        found = await self.get(run)
        return None if found.result is None else self._tasks.get(found.task).load_result(found.result)

    async def wait(self, run: int, *, timeout: Length | None = None) -> Run[Any]:
        """Wait until a run has ended; raises `TimedOut` after this long."""
        until = None if timeout is None else clock.monotonic() + duration(timeout, "timeout") / 1_000_000
        while True:
            found = await self.get(run)
            if not found.under_way:
                return found
            if until is not None and clock.monotonic() >= until:
                raise TimedOut(f"run {run} is still {found.state}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def hours(
        self,
        start: datetime | None = None,
        end: datetime | None = None,
        *,
        task: str | None = None,
        queue: str | None = None,
    ) -> "builtins.list[Hour]":
        """Return how many runs ended in each hour and how, oldest first; without `start`, of the last 24 hours.

        Hours are kept for 400 days, longer than single runs. An hour in which nothing ended is not there.
        """
        until = LATEST if end is None else instant(end, "end")
        for field, value in (("task", task), ("queue", queue)):
            _name(field, value)

        def work() -> Operation[Any]:
            (row,) = yield self._db.query("hours.through")
            first = row["now"] - DAY if start is None else instant(start, "start")
            return (yield from self._hours.list(first // HOUR * HOUR, until, task=task, queue=queue))

        found: builtins.list[Hour] = await self._db.read(work)
        return found

    async def statistics(
        self,
        window: Length = "1h",
        *,
        task: str | None = None,
        schedule: str | None = None,
        queue: str | None = None,
    ) -> Statistics:
        """Return how the runs went that ended in the last hour, or so long a window: the same from every process.

        It reaches as far back as single runs are kept; `hours` reaches further.
        """
        period = duration(window, "window", least=SECOND, most=3_653 * DAY)
        for field, value in (("task", task), ("schedule", schedule), ("queue", queue)):
            _name(field, value)
        return await self._db.read(lambda: self._reads.statistics(period, task=task, schedule=schedule, queue=queue))

    async def cancel(self, run: int, *, note: str = "cancelled") -> RunState:
        """Cancel a run: at once where it waits, by telling its worker where it runs. Returns its state then."""
        why = _note(note)
        state = await self._db.write(lambda: self._store.cancel(_number(run), why))
        if state is None:
            return (await self.get(run)).state
        self._knock("cancel" if state == "running" else "waiting")  # where it waited there may be room now
        self._knock("schedules")  # what counts from its end has a next now
        return state

    async def retry(self, run: int) -> Run[Any]:
        """Make an ended run ready again: the same run, with its history.

        Refused while it has not ended, and while another run of its unique key is under way.
        """
        queue = await self._db.write(lambda: self._store.retry(_number(run)))
        found = await self.get(run)
        if queue is None and found.under_way:
            raise Invalid("run", run, "only a run that has ended can be tried again", f"is {found.state}")
        if queue is None:
            other = f"another run of its unique key {found.unique!r} is under way: wait for it, or cancel it"
            raise Invalid("run", run, other, "cannot be tried again now")
        self._knock("waiting" if found.state == "waiting" else "ready")
        return found


def _name(field: str, value: str | None) -> None:
    if value is not None and (not sendable(value) or len(value) > _LONGEST_TEXT):
        raise Invalid(field, value, f"use text of up to {_LONGEST_TEXT:,} characters, without NUL")


def _note(note: str) -> str:
    if not sendable(note) or len(note) > LONGEST_NOTE:
        raise Invalid("note", note, f"use text of up to {LONGEST_NOTE:,} characters, without NUL")
    return note


def _number(run: int) -> int:
    """Refuse a number that no store can hold; there is no run under it."""
    if isinstance(run, bool) or not isinstance(run, int):
        raise Invalid("run", run, "use the run's number", "is no number")
    if not 0 < run < 2**63:
        raise UnknownRun(run)
    return run
