"""Executing: one attempt of one run, from its arguments to how it ended."""

import asyncio
import contextlib
import contextvars
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from rota import context
from rota.engine import outcome
from rota.engine.complete import Holder
from rota.engine.isolated import Isolated, Refused
from rota.engine.threads import Threads
from rota.errors import InvalidData, TaskFailed, TimedOut, UnknownTask, UnreadableArguments
from rota.store.runs import Claimed, Settled
from rota.tasks import Registry, Task

_PATIENCE = 1.0
"""How long a task that was told to stop may take to do so before its slot is given to another run."""

MakeContext = Callable[[Claimed, Task[..., Any]], context.CurrentRun]


@dataclass(slots=True, eq=False)
class _Attempt:
    work: "asyncio.Future[Any]"
    stop: "asyncio.Future[str]"
    """Set with the reason when somebody wants it to end."""


class Executor:
    """Runs tasks: coroutines in the event loop, plain functions in threads, isolated ones in processes of their own."""

    def __init__(
        self, tasks: Registry, make_context: MakeContext, most_stuck: int, holder: Callable[[], Holder]
    ) -> None:
        self._tasks = tasks
        self._make_context = make_context
        self._most_stuck = most_stuck
        self._threads = Threads("rota-task")
        self._isolated = Isolated(holder)
        self._attempts: dict[int, _Attempt] = {}
        self.stuck = 0
        """How many tasks were told to stop and did not."""

    @property
    def worn_out(self) -> bool:
        """Whether so much is stuck that the process should be replaced."""
        return self.stuck >= self._most_stuck

    @property
    def busy_threads(self) -> int:
        """How many threads are in tasks."""
        return self._threads.busy

    def stop(self, run: int, why: str) -> None:
        """Tell a run to end, as cancelled."""
        attempt = self._attempts.get(run)
        if attempt is not None and not attempt.stop.done():
            attempt.stop.set_result(why)

    async def close(self) -> None:
        """Let go of the threads and end the processes."""
        self._threads.close()
        await self._isolated.close()

    async def execute(self, run: Claimed) -> Settled:
        """Run one attempt; returns how it ended.

        What the task completed by itself, or lost, is fenced in the store: to settle it once more changes nothing.
        """
        try:
            task = self._tasks.get(run.task)
        except UnknownTask:
            return outcome.unknown(run)
        current = self._make_context(run, task)
        try:
            value = await self._limited(run, task, self._begin(task, current, run))
            result = value if task.isolation == "process" else task.dump_result(value)
            ended = outcome.returned(run, result)
        except outcome.Stopped as stopped:
            ended = outcome.cancelled(run, str(stopped))
        except (InvalidData, UnreadableArguments, Refused) as error:
            ended = outcome.refused(run, error)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever a task raises is its own)
            ended = outcome.raised(run, error, task.options.retry)
        return outcome.undone(run, ended, task.options.retry) if current.completed else ended

    def _begin(self, task: Task[..., Any], current: context.CurrentRun, run: Claimed) -> "asyncio.Future[Any]":
        """Start the task, as its kind wants it, with its own context."""
        loop = asyncio.get_running_loop()
        own = contextvars.copy_context()
        own.run(context.enter, current)
        args, kwargs = task.load(run.args)
        if task.isolation == "process":
            return loop.create_task(self._isolated.call(task, run, current), context=own)
        if task.isolation == "async":
            return loop.create_task(_guarded(task.function(*args, **kwargs)), context=own)
        return self._in_thread(lambda: own.run(task.function, *args, **kwargs))

    def _in_thread(self, work: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Run a plain function in a thread. Its future is done when the thread is: nobody can cancel a thread."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def finish(value: Any, error: BaseException | None) -> None:
            if isinstance(error, StopIteration):  # which a future cannot carry
                error = TaskFailed("StopIteration", str(error), "".join(traceback.format_exception(error)))
            with contextlib.suppress(RuntimeError):  # the event loop is closed: nobody waits for it any more
                if error is None:
                    loop.call_soon_threadsafe(future.set_result, value)
                else:
                    loop.call_soon_threadsafe(future.set_exception, error)

        self._threads.run(work, finish)
        return future

    async def _limited(self, run: Claimed, task: Task[..., Any], work: "asyncio.Future[Any]") -> Any:
        """Wait for the task, its time limit, or somebody who wants it to end, whichever comes first."""
        attempt = _Attempt(work, asyncio.get_running_loop().create_future())
        self._attempts[run.id] = attempt
        limit = None if task.options.timeout is None else task.options.timeout.total_seconds()
        try:
            await asyncio.wait({work, attempt.stop}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            await self._abandon(work)
            if attempt.stop.done():
                raise outcome.Stopped(attempt.stop.result())
            raise TimedOut(f"took longer than {limit:g} s")
        except asyncio.CancelledError:
            if work.cancelled() and not attempt.stop.done():
                raise outcome.Stopped("its task cancelled itself") from None
            await self._abandon(work)
            raise
        finally:
            if self._attempts.get(run.id) is attempt:  # a worker may get its own lost run again
                del self._attempts[run.id]

    async def _abandon(self, work: "asyncio.Future[Any]") -> None:
        """Tell the task to stop, and do not wait for one that does not listen."""
        if isinstance(work, asyncio.Task):
            work.cancel()
        await asyncio.wait({work}, timeout=_PATIENCE)
        if work.done():
            _ignore(work)
        else:
            self.stuck += 1
            work.add_done_callback(self._unstuck)

    def _unstuck(self, work: "asyncio.Future[Any]") -> None:
        self.stuck -= 1
        _ignore(work)


def _ignore(work: "asyncio.Future[Any]") -> None:
    """Take note of how it ended: it was told to stop, so what it says is of no interest."""
    work.cancelled() or work.exception()


async def _guarded(work: Coroutine[Any, Any, Any]) -> Any:
    """Wait for a task's own coroutine. One that wants the process to end fails; it does not end the worker."""
    try:
        return await work
    except SystemExit as error:
        raise TaskFailed("SystemExit", str(error), "".join(traceback.format_exception(error))) from error
