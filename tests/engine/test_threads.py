"""Threads for plain functions."""

import queue
import threading
from typing import Any

import pytest

from rota.engine.threads import Threads


@pytest.fixture
def threads() -> Any:
    found = Threads("test")
    yield found
    found.close()


def in_thread(threads: Threads, work: Any) -> Any:
    ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threads.run(work, lambda value, error: ended.put((value, error)))
    return ended.get()


def test_a_thread_is_kept_for_the_next_function(threads: Threads) -> None:
    names = {in_thread(threads, lambda: threading.current_thread().name)[0] for _ in range(100)}
    assert names == {"test-1"}
    assert threads.busy == 0


def test_there_are_as_many_threads_as_functions_run_at_once(threads: Threads) -> None:
    meeting = threading.Barrier(5)
    ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for _ in range(3):
        for _ in range(5):
            threads.run(meeting.wait, lambda value, _: ended.put(value))
        assert sorted(ended.get() for _ in range(5)) == [0, 1, 2, 3, 4]
    assert threads._started == 5


def test_threads_do_not_keep_a_process_from_ending(threads: Threads) -> None:
    assert in_thread(threads, lambda: threading.current_thread().daemon) == (True, None)


@pytest.mark.parametrize("error", [LookupError("no"), SystemExit(3), KeyboardInterrupt()])
def test_whatever_a_function_raises_is_told_and_the_thread_goes_on(threads: Threads, error: BaseException) -> None:
    def raises() -> None:
        raise error

    assert in_thread(threads, raises) == (None, error)
    assert in_thread(threads, lambda: threads.busy) == (1, None)
