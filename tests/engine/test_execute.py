"""Executing: one attempt of one run, from its arguments to how it ended."""

import asyncio
import gc
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest
from tests.engine import isolated_tasks
from tests.stores import SECOND, START, until

from rota.app import Rota
from rota.context import CurrentRun, current_run
from rota.control import Cancel, RetryLater, Snooze
from rota.engine import execute
from rota.engine.complete import Holder
from rota.engine.execute import Executor
from rota.model import RunError
from rota.store.runs import Claimed, Settled
from rota.tasks import Call, Task
from rota.times.backoff import Retry
from rota.times.moments import moment

TWICE = Retry(attempts=2, first="10s", jitter=0)


class Feed:
    """Something that no annotation describes."""


def claimed(call: Call[Any] | None = None, *, task: str = "", args: str = "{}", **more: Any) -> Claimed:
    facts: dict[str, Any] = {
        "id": 7,
        "task": task if call is None else call.name,
        "args": args if call is None else call.args_json,
        "attempt": 1,
        "failures": 0,
        "due": START,
        "priority": 50,
        "queue": "default",
        "started_at": START,
        "limited": False,
        "lost": 0,
        "previous_result": None,
        "previous_error": None,
    }
    return Claimed(**(facts | more))


class NoHost:
    """Knows nothing of a run, and does not listen."""

    def due(self) -> datetime:
        return moment(START)

    def previous_result(self) -> Any:
        return None

    def previous_error(self) -> RunError | None:
        return None

    def log(self) -> "logging.LoggerAdapter[logging.Logger]":
        return logging.LoggerAdapter(logging.getLogger("test"), {})

    def note_progress(self, share: float, note: str) -> None:
        pass

    async def settle_on(self, result: Any, connection: Any) -> None:
        pass


def context_of(run: Claimed, task: Task[..., Any]) -> CurrentRun:
    return CurrentRun(run.id, task.name, run.queue, run.attempt, NoHost())


@pytest.fixture
def tasks() -> Rota:
    """An application whose store is never opened."""
    return Rota("sqlite://")


@pytest.fixture
async def executor(tasks: Rota, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Executor]:
    monkeypatch.setattr(execute, "_PATIENCE", 0.01)
    found = Executor(tasks.tasks, context_of, 2, lambda: Holder("w", "sqlite://"))
    yield found
    await found.close()


async def begun(executor: Executor, call: Call[Any], event: asyncio.Event) -> "asyncio.Task[Settled]":
    """Begin a run and wait until its task says that it has begun."""
    running = asyncio.ensure_future(executor.execute(claimed(call)))
    await event.wait()
    return running


# What returns


async def test_a_coroutine_runs_in_the_event_loop(tasks: Rota, executor: Executor) -> None:
    loop = asyncio.get_running_loop()

    @tasks.task
    async def add(left: int, right: int = 1) -> int:
        assert asyncio.get_running_loop() is loop
        return left + right

    assert await executor.execute(claimed(add.call(41))) == Settled(7, 1, "succeeded", "42")


async def test_what_is_told_to_stop_before_it_began_never_begins(tasks: Rota, executor: Executor) -> None:
    called: list[int] = []

    @tasks.task
    async def begin() -> None:
        called.append(1)

    ended: asyncio.Queue[Settled | None] = asyncio.Queue()
    executor.begin(claimed(begin.call()), lambda _, found: ended.put_nowait(found))
    executor.stop(7, "never mind")
    found = await ended.get()
    assert found is not None
    assert (found.outcome, executor.stuck, called) == ("cancelled", 0, [])
    executor.begin(claimed(begin.call()), lambda _, found: ended.put_nowait(found)).cut()
    assert await ended.get() is None
    assert (executor.stuck, called) == (0, [])


class Own(BaseException):
    """What some libraries raise to get past `except Exception`."""


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_whatever_a_task_raises_ends_its_run(tasks: Rota, executor: Executor, kind: str) -> None:
    @tasks.task(name="async")
    async def one() -> None:
        raise Own("past all")

    @tasks.task(name="plain")
    def two() -> None:
        raise Own("past all")

    ended = await executor.execute(claimed(task=kind))
    assert (ended.outcome, ended.error and ended.error.kind) == ("failed", "Own")


async def test_a_run_fails_for_which_the_system_has_no_thread(
    tasks: Rota, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    @tasks.task
    def plain() -> int:
        return 1

    def full(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", full)
        ended = await executor.execute(claimed(plain.call()))
    assert (ended.outcome, ended.error and ended.error.message) == ("failed", "can't start new thread")
    assert (await executor.execute(claimed(plain.call()))).result == "1"
    assert executor.busy_threads == 0


async def test_a_plain_function_runs_in_a_thread(tasks: Rota, executor: Executor) -> None:
    @tasks.task
    def where() -> str:
        return threading.current_thread().name

    ended = await executor.execute(claimed(where.call()))
    assert ended.outcome == "succeeded"
    assert "rota-task" in str(ended.result)


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_task_knows_its_run(tasks: Rota, executor: Executor, kind: str) -> None:
    @tasks.task(name="async")
    async def one() -> tuple[int, int, str]:
        return current_run().id, current_run().attempt, current_run().key

    @tasks.task(name="plain")
    def two() -> tuple[int, int, str]:
        return current_run().id, current_run().attempt, current_run().key

    ended = await executor.execute(claimed(task=kind, id=12, attempt=3))
    assert ended.result == '[12,3,"rota-run-12"]'


async def test_runs_beside_each_other_know_their_own(tasks: Rota, executor: Executor) -> None:
    @tasks.task
    async def me() -> int:
        await asyncio.sleep(0)
        return current_run().id

    ended = await asyncio.gather(*(executor.execute(claimed(me.call(), id=n)) for n in range(20)))
    assert [each.result for each in ended] == [str(n) for n in range(20)]


# What raises


@pytest.mark.parametrize("kind", ["async", "plain"])
@pytest.mark.parametrize(
    ("failures", "outcome", "delay"), [(0, "retry", 10 * SECOND), (1, "failed", None), (5, "failed", None)]
)
async def test_what_raises_is_tried_again_as_often_as_its_policy_says(
    tasks: Rota, executor: Executor, kind: str, failures: int, outcome: str, delay: int | None
) -> None:
    @tasks.task(name="async", retry=TWICE)
    async def one() -> None:
        raise LookupError("no such feed")

    @tasks.task(name="plain", retry=TWICE)
    def two() -> None:
        raise LookupError("no such feed")

    ended = await executor.execute(claimed(task=kind, attempt=9, failures=failures))
    assert (ended.outcome, ended.delay, ended.attempt) == (outcome, delay, 9)
    assert ended.error is not None
    assert (ended.error.kind, ended.error.message) == ("LookupError", "no such feed")
    assert 'raise LookupError("no such feed")' in str(ended.error.traceback)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (RetryLater("30s", "busy"), ("retry", 30 * SECOND, "busy")),
        (Snooze("1h"), ("snoozed", 3600 * SECOND, None)),
        (Cancel("gone"), ("cancelled", None, "gone")),
    ],
)
async def test_a_task_says_how_its_run_goes_on(
    tasks: Rota, executor: Executor, raised: Exception, expected: tuple[str, int | None, str | None]
) -> None:
    @tasks.task(retry=TWICE)
    async def says() -> None:
        raise raised

    ended = await executor.execute(claimed(says.call()))
    assert (ended.outcome, ended.delay, ended.error and ended.error.message) == expected


async def test_to_be_tried_later_is_bounded_by_the_attempts(tasks: Rota, executor: Executor) -> None:
    @tasks.task(retry=TWICE)
    async def later() -> None:
        raise RetryLater("30s")

    assert (await executor.execute(claimed(later.call(), failures=1))).outcome == "failed"


async def test_a_snooze_is_not_bounded(tasks: Rota, executor: Executor) -> None:
    @tasks.task
    async def snooze() -> None:
        raise Snooze("1s")

    assert (await executor.execute(claimed(snooze.call(), attempt=500))).outcome == "snoozed"


@pytest.mark.parametrize("kind", ["async", "plain"])
@pytest.mark.parametrize("error", [StopIteration("empty"), StopAsyncIteration("empty"), SystemExit(3)])
async def test_no_error_of_a_task_ends_the_worker(
    tasks: Rota, executor: Executor, kind: str, error: BaseException
) -> None:
    @tasks.task(name="async")
    async def one() -> None:
        raise error

    @tasks.task(name="plain")
    def two() -> None:
        raise error

    ended = await executor.execute(claimed(task=kind))
    assert ended.outcome == "failed"
    assert ended.error is not None


async def test_an_error_is_kept_within_bounds(tasks: Rota, executor: Executor) -> None:
    @tasks.task
    async def wordy() -> None:
        raise ValueError("x" * 1_000_000)

    ended = await executor.execute(claimed(wordy.call()))
    assert ended.error is not None
    assert len(ended.error.text()) < 30_000


async def test_an_error_that_cannot_say_itself_is_settled_like_any_other(tasks: Rota, executor: Executor) -> None:
    @tasks.task
    async def unspeakable() -> None:
        raise isolated_tasks.Unspeakable

    ended = await executor.execute(claimed(unspeakable.call()))
    assert ended.error is not None
    assert (ended.error.kind, ended.error.message) == ("Unspeakable", "its message cannot be shown")


# What cannot be begun, or not be written


async def test_a_task_that_is_not_known_is_waited_for_and_then_failed(executor: Executor) -> None:
    first = await executor.execute(claimed(task="later.deployed"))
    assert first.outcome == "retry"
    assert first.delay
    assert first.error is not None
    assert first.error.kind == "UnknownTask"
    assert (await executor.execute(claimed(task="later.deployed", failures=9))).outcome == "failed"


@pytest.mark.parametrize("args", ["{}", '{"feed":"x"}', '{"feed":1,"more":2}', "not JSON", "[1,2,3]", '{"feed":null}'])
@pytest.mark.parametrize("isolated", [False, True])
async def test_arguments_that_cannot_be_read_fail_at_once(
    tasks: Rota, executor: Executor, args: str, *, isolated: bool
) -> None:
    @tasks.task(retry=TWICE, isolation="process" if isolated else None)
    def refresh(feed: int) -> None:
        raise AssertionError

    ended = await executor.execute(claimed(task=refresh.name, args=args))
    assert ended.outcome == "failed"
    assert ended.error is not None
    assert ended.error.kind == "UnreadableArguments"


async def test_a_result_that_cannot_be_written_fails_at_once(tasks: Rota, executor: Executor) -> None:
    @tasks.task(retry=TWICE)
    async def feed() -> Any:
        return Feed()

    @tasks.task(retry=TWICE)
    async def lies() -> int:
        return "seven"  # type: ignore[return-value]

    for task in (feed, lies):
        ended = await executor.execute(claimed(task.call()))
        assert ended.outcome == "failed"
        assert ended.error is not None
        assert ended.error.kind == "InvalidData"


# What does not end by itself


async def test_a_coroutine_that_takes_too_long_is_stopped(tasks: Rota, executor: Executor) -> None:
    stopped = asyncio.Event()

    @tasks.task(timeout="10ms", retry=TWICE)
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    ended = await executor.execute(claimed(slow.call()))
    assert stopped.is_set()
    assert ended.outcome == "retry"
    assert ended.error is not None
    assert (ended.error.kind, ended.error.message) == ("TimedOut", "took longer than 0.01 s")
    assert executor.stuck == 0


async def test_a_coroutine_that_does_not_listen_is_left_behind(tasks: Rota, executor: Executor) -> None:
    go_on, gone = asyncio.Event(), asyncio.Event()

    @tasks.task(timeout="10ms")
    async def deaf() -> None:
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue
        gone.set()

    ended = await executor.execute(claimed(deaf.call()))
    assert ended.outcome == "failed"
    assert executor.stuck == 1
    go_on.set()
    await gone.wait()
    await asyncio.sleep(0)
    assert executor.stuck == 0


async def test_a_thread_that_takes_too_long_is_left_behind_and_the_slot_is_free(
    tasks: Rota, executor: Executor
) -> None:
    go_on = threading.Event()

    @tasks.task(timeout="10ms")
    def slow() -> None:
        go_on.wait()

    @tasks.task
    def quick() -> str:
        return "there"

    for _ in range(2):
        assert (await executor.execute(claimed(slow.call()))).outcome == "failed"
    assert executor.stuck == 2
    assert executor.worn_out
    ended = await asyncio.gather(*(executor.execute(claimed(quick.call(), id=n)) for n in range(4)))
    assert [each.result for each in ended] == ['"there"'] * 4
    go_on.set()
    await until(lambda: not executor.stuck)
    assert not executor.worn_out


async def test_a_run_is_stopped_by_who_wants_it_cancelled(tasks: Rota, executor: Executor) -> None:
    running = asyncio.Event()

    @tasks.task(retry=TWICE)
    async def long() -> None:
        running.set()
        await asyncio.Event().wait()

    task = await begun(executor, long.call(), running)
    executor.stop(8, "somebody else's")
    executor.stop(7, "not needed")
    executor.stop(7, "twice")
    ended = await task
    assert ended.outcome == "cancelled"
    assert ended.error is not None
    assert ended.error.message == "not needed"
    executor.stop(7, "too late")


async def test_a_thread_that_is_cancelled_frees_its_slot(tasks: Rota, executor: Executor) -> None:
    running, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @tasks.task
    def long() -> None:
        loop.call_soon_threadsafe(running.set)
        go_on.wait()

    task = await begun(executor, long.call(), running)
    executor.stop(7, "not needed")
    assert (await task).outcome == "cancelled"
    assert executor.stuck == 1
    go_on.set()


async def test_a_task_that_cancels_itself_is_cancelled_and_the_worker_goes_on(tasks: Rota, executor: Executor) -> None:
    @tasks.task
    async def harakiri() -> None:
        raise asyncio.CancelledError

    ended = await executor.execute(claimed(harakiri.call()))
    assert ended.outcome == "cancelled"


async def test_an_attempt_whose_worker_lets_go_is_stopped_and_says_nothing(tasks: Rota, executor: Executor) -> None:
    running, stopped = asyncio.Event(), asyncio.Event()

    @tasks.task
    async def long() -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    task = await begun(executor, long.call(), running)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()


async def test_what_a_stopped_task_still_says_troubles_nobody(
    tasks: Rota, executor: Executor, caplog: pytest.LogCaptureFixture
) -> None:
    @tasks.task(timeout="10ms")
    async def sulky() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise LookupError("and another thing") from None

    assert (await executor.execute(claimed(sulky.call()))).outcome == "failed"
    gc.collect()
    assert caplog.records == []


# Completed by itself


async def test_what_a_task_completed_by_itself_is_settled_only_where_that_was_rolled_back(
    tasks: Rota, executor: Executor
) -> None:
    @tasks.task(retry=TWICE)
    async def completes() -> int:
        await current_run().complete(1, connection=None)
        return 2

    ended = await executor.execute(claimed(completes.call()))
    assert (ended.outcome, ended.completed) == ("retry", True)
    assert ended.error is not None
    assert ended.error.message == "its own transaction did not commit"


# In processes of their own


@pytest.fixture
async def isolating(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Executor]:
    monkeypatch.setattr(execute, "_PATIENCE", 5)
    found = Executor(isolated_tasks.app.tasks, context_of, 2, lambda: Holder("w", "sqlite://"))
    yield found
    await found.close()


async def test_an_isolated_task_runs_in_a_process_that_is_kept_warm(isolating: Executor) -> None:
    for task in (isolated_tasks.add, isolated_tasks.add_later):
        assert await isolating.execute(claimed(task.call(40, 2))) == Settled(7, 1, "succeeded", "42")
    pids = {(await isolating.execute(claimed(isolated_tasks.which.call()))).result for _ in range(2)}
    assert len(pids) == 1
    assert str(os.getpid()) not in pids
    failed = await isolating.execute(claimed(isolated_tasks.wrong.call()))
    assert failed.error is not None
    assert (failed.outcome, failed.error.kind, failed.error.message) == ("failed", "LookupError", "no such feed")
    assert 'raise LookupError("no such feed")' in str(failed.error.traceback)
    mute = await isolating.execute(claimed(isolated_tasks.unspeakable.call()))
    assert mute.error is not None
    assert (mute.error.kind, mute.error.message) == ("Unspeakable", "its message cannot be shown")
    left = await isolating.execute(claimed(isolated_tasks.leave.call()))
    assert left.error is not None
    assert (left.outcome, left.error.kind) == ("failed", "SystemExit")
    said = [await isolating.execute(claimed(isolated_tasks.control.call(kind))) for kind in ("snooze", "cancel")]
    assert [(each.outcome, each.delay) for each in said] == [("snoozed", 3600 * SECOND), ("cancelled", None)]
    assert {(await isolating.execute(claimed(isolated_tasks.which.call()))).result} == pids


async def test_a_process_that_dies_fails_its_run_and_no_other(isolating: Executor) -> None:
    died = await isolating.execute(claimed(isolated_tasks.die.call()))
    assert died.error is not None
    assert (died.outcome, died.error.kind) == ("failed", "ChildDied")
    assert died.error.message == "its process ended with exit code 7"
    warm = await isolating.execute(claimed(isolated_tasks.which.call()))
    (child,) = isolating.isolated._warm
    os.kill(int(str(warm.result)), signal.SIGKILL)  # while it waits for work
    child._process.join()
    assert (await isolating.execute(claimed(isolated_tasks.add.call(1, 1)))).result == "2"


async def test_a_process_that_takes_too_long_or_is_cancelled_is_killed(isolating: Executor) -> None:
    late = await isolating.execute(claimed(isolated_tasks.hang.call()))
    assert late.error is not None
    assert (late.outcome, late.error.kind, isolating.stuck) == ("failed", "TimedOut", 0)
    assert isolating.isolated._warm == []
    running = asyncio.ensure_future(isolating.execute(claimed(isolated_tasks.hang_for_ever.call())))
    await until(lambda: 7 in isolating._attempts)
    isolating.stop(7, "not needed")
    assert (await running).outcome == "cancelled"
    assert isolating.isolated._warm == []
