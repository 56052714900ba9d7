"""Executing: one attempt of one run, from its arguments to how it ended."""

import asyncio
import contextlib
import contextvars
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from rota import clock, context
from rota.engine import outcome
from rota.engine.complete import Holder
from rota.engine.isolated import Isolated, Refused
from rota.engine.keeping import watch_records, worth_keeping
from rota.engine.threads import Threads
from rota.errors import InvalidData, TimedOut, UnknownTask, UnreadableArguments
from rota.schedule import read_retry
from rota.store.runs import Claimed, Settled
from rota.tasks import Registry, Task
from rota.times.backoff import Retry
from rota.tracing import RunSpan

_PATIENCE = 1.0
"""How long a task that was told to stop may take to do so before its slot is given to another run."""

MakeContext = Callable[[Claimed, Task[..., Any]], context.CurrentRun]
Done = Callable[["Attempt", Settled | None], None]
"""Hears once how an attempt ended; None where it was cut off, and there is nothing to settle."""


class Executor:
    """Runs tasks: coroutines in the event loop, plain functions in threads, isolated ones in processes of their own."""

    def __init__(
        self, tasks: Registry, make_context: MakeContext, most_stuck: int, holder: Callable[[], Holder]
    ) -> None:
        self._tasks = tasks
        self._make_context = make_context
        self._most_stuck = most_stuck
        self.threads = Threads("rota-task")
        self.isolated = Isolated(holder)
        self._attempts: dict[int, Attempt] = {}
        self.traces: dict[int, str] | None = None
        """The traces that claimed runs were enqueued in; None while nobody collects spans."""
        watch_records()
        self.stuck = 0
        """How many tasks were told to stop and did not."""

    @property
    def worn_out(self) -> bool:
        """Whether so much is stuck that the process should be replaced."""
        return self.stuck >= self._most_stuck

    @property
    def busy_threads(self) -> int:
        """How many threads are in tasks."""
        return self.threads.busy

    def stop(self, run: int, why: str) -> None:
        """Tell a run to end, as cancelled."""
        attempt = self._attempts.get(run)
        if attempt is not None:
            attempt.stop(outcome.Stopped(why))

    async def close(self) -> None:
        """Let go of the threads and end the processes."""
        self.threads.close()
        await self.isolated.close()

    def begin(self, run: Claimed, done: Done) -> "Attempt":
        """Begin one attempt; `done` hears in the event loop how it ended, never before this returns.

        What the task completed by itself, or lost, is fenced in the store: to settle it once more changes nothing.
        """
        attempt = Attempt(self, run, done)
        try:
            task = self._tasks.get(run.task)
        except UnknownTask:
            attempt.never()
            return attempt
        self._attempts[run.id] = attempt
        if self.traces is not None:
            attempt.trace(self.traces.pop(run.id, None))
        attempt.begin(task, self._make_context(run, task))
        return attempt

    async def execute(self, run: Claimed) -> Settled:
        """Run one attempt; returns how it ended. Where this is cancelled, the attempt is cut off."""
        ended: list[Settled | None] = []
        over = asyncio.Event()

        def done(_: Attempt, found: Settled | None) -> None:
            ended.append(found)
            over.set()

        attempt = self.begin(run, done)
        try:
            await over.wait()
        except asyncio.CancelledError:
            attempt.cut()
            await over.wait()
            raise
        return cast("Settled", ended[0])  # only who cuts it off hears of nothing

    def forget(self, attempt: "Attempt") -> None:
        """Hear that an attempt is over."""
        if self._attempts.get(attempt.run.id) is attempt:  # a worker may get its own lost run again
            del self._attempts[attempt.run.id]


class Attempt:
    """An attempt under way. It is over when its task ends; or soon after somebody, or its time limit, wanted it to.

    A coroutine is driven by one task of the event loop, and what ends it is called: futures to wait for would cost
    more than a short task does.
    """

    __slots__ = (
        "_begun",
        "_current",
        "_done",
        "_executor",
        "_over",
        "_span",
        "_task",
        "_timer",
        "_why",
        "_work",
        "began",
        "run",
    )

    def __init__(self, executor: Executor, run: Claimed, done: Done) -> None:
        self._executor = executor
        self.run = run
        self.began = clock.monotonic()
        self._done = done
        self._begun = False
        self._over = False
        self._why: Exception | None = None
        """Why it was told to end, if it was."""
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[None] | None = None
        self._span: RunSpan | None = None
        self._task: Task[..., Any]
        self._current: context.CurrentRun

    def seconds(self) -> float:
        """Return how long it has been going on."""
        return clock.monotonic() - self.began

    def trace(self, carried: str | None) -> None:
        """Be a span, in the trace that the run was enqueued in or in one of its own."""
        names = ("id", "task", "queue", "attempt", "schedule")
        self._span = RunSpan({name: getattr(self.run, name) for name in names}, carried)

    def never(self) -> None:
        """There is no task to begin."""
        self._over = True
        asyncio.get_running_loop().call_soon(self._done, self, outcome.unknown(self.run))

    def begin(self, task: Task[..., Any], current: context.CurrentRun) -> None:
        """Start the task, as its kind wants it, with its own context."""
        loop = asyncio.get_running_loop()
        self._task, self._current = task, current
        limit = task.limit if self.run.timeout is None else self.run.timeout / 1_000_000
        if limit is not None:
            self._timer = loop.call_later(limit, self.stop, TimedOut(f"took longer than {limit:g} s"))
        if task.isolation != "thread":
            self._work = loop.create_task(self._call())
            return
        try:
            self._in_thread(loop)
        except RuntimeError as error:  # the system has no thread left
            loop.call_soon(self._raised, error)

    def stop(self, why: Exception) -> None:
        """Tell it to end. One that does not listen is given up after a while; what it says then is of no interest."""
        if self._over or self._why is not None:
            return
        self._why = why
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(_PATIENCE, self._give_up)
        if self._work is not None:
            self._work.add_done_callback(self._unbegun)
            self._work.cancel()

    def cut(self) -> None:
        """Tell it to end, with nothing to settle: the run is not this worker's any more, or goes back."""
        if self._why is None:
            self.stop(_CutOff())
        elif not self._over:
            self._why = _CutOff()

    def _unbegun(self, _: "asyncio.Task[None]") -> None:
        """Hear that the event loop's task has ended; one that was told to before it began says nothing by itself."""
        if not self._begun:
            self._raised(asyncio.CancelledError())

    async def _call(self) -> None:
        """Call a coroutine function, or a function in a process of its own."""
        self._begun = True
        context.enter(self._current)
        if self._span is not None:
            self._span.enter()
        try:
            args, kwargs = self._task.load(self.run.args)
            if self._task.isolation == "process":
                carried = None if self._span is None else self._span.carried()
                result = await self._executor.isolated.call(self._task, self.run, self._current, carried)
            else:
                result = self._task.dump_result(await self._task.function(*args, **kwargs))
        except (KeyboardInterrupt, GeneratorExit):  # somebody ends the process, or the event loop
            raise
        except BaseException as error:  # noqa: BLE001 (whatever a task raises is its own)
            self._raised(error)
        else:
            self._end(outcome.returned(self.run, result))

    def _in_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call a plain function in a thread. It is over when the thread is: nobody can cancel a thread."""
        own = contextvars.copy_context()
        own.run(context.enter, self._current)
        if self._span is not None:
            own.run(self._span.enter)

        def work() -> str:
            args, kwargs = self._task.load(self.run.args)
            return self._task.dump_result(own.run(self._task.function, *args, **kwargs))

        def finish(result: Any, error: BaseException | None) -> None:
            with contextlib.suppress(RuntimeError):  # the event loop is closed: nobody waits for it any more
                if error is None:
                    loop.call_soon_threadsafe(self._end, outcome.returned(self.run, result))
                else:
                    loop.call_soon_threadsafe(self._raised, error)

        self._executor.threads.run(work, finish)

    def _raised(self, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError):
            self._end(outcome.cancelled(self.run, "its task cancelled itself"))
        elif isinstance(error, InvalidData | UnreadableArguments | Refused):
            self._end(outcome.refused(self.run, error))
        else:  # one that wants the process to end fails; it does not end the worker
            self._end(outcome.raised(self.run, error, self._retry))

    @property
    def _retry(self) -> Retry:
        if self.run.retry is not None:
            with contextlib.suppress(ValueError, TypeError, LookupError):  # newer code may have written it
                return read_retry(self.run.retry)
        return self._task.options.retry

    def _give_up(self) -> None:
        """Do not wait for a task that does not stop: its slot is given to another."""
        self._executor.stuck += 1
        self._finish(None)

    def _end(self, ended: Settled) -> None:
        """The task has ended."""
        if self._over:
            self._executor.stuck -= 1
        else:
            self._finish(ended)

    def _finish(self, ended: Settled | None) -> None:
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
        self._executor.forget(self)
        if self._why is not None:
            ended = _told(self.run, self._why, self._retry)
        done = ended  # of what a task completed by itself the store knows more, but a span cannot wait for it
        if ended is not None and self._current.completed:
            ended = outcome.undone(self.run, ended, self._retry)
        elif ended is not None and self._current.asked is not None:
            ended = replace(ended, asked=self._current.asked)
        if ended is not None and self._current.kept is not None:
            self._current.kept.close()
            ended = replace(ended, log=worth_keeping(self._current, ended.outcome, self.seconds))
        if self._span is not None:
            error = None if done is None or done.error is None else f"{done.error.kind}: {done.error.message}"
            self._span.end("cut off" if done is None else done.outcome, error)
        self._done(self, ended)


class _CutOff(Exception):
    """It is told to end, and there is nothing to settle."""


def _told(run: Claimed, why: Exception, retry: Retry) -> Settled | None:
    """Return how an attempt ended that was told to."""
    if isinstance(why, _CutOff):
        return None
    if isinstance(why, outcome.Stopped):
        return outcome.cancelled(run, str(why))
    return outcome.raised(run, why, retry)
