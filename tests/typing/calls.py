"""What type checkers let through and what they object to; test_calls.py reads the expectations in the comments.

`error:` names the rules of mypy that a line breaks, and pyright objects to the same lines in its own words; a line
without it must break none.
"""

from collections.abc import Coroutine
from typing import Any, assert_type

import rota
from rota.tasks import AsyncTask, PlainTask, Registry, TaskDecorator


class App(TaskDecorator):
    """An app, as far as its decorator goes."""

    def __init__(self) -> None:
        self.tasks = Registry()


app = App()


@app.task
async def refresh(feed_id: int, *, force: bool = False) -> str:
    """Be async, and decorated plainly."""
    return f"{feed_id} {force}"


@app.task(timeout="30s", retry=rota.Retry(attempts=5, first="1s", factor=2, cap="5m"))
async def fetch(url: str) -> bytes:
    """Be async, with options."""
    return url.encode()


@app.task
def add(left: int, right: int = 1, /, *more: int, **named: str) -> int:
    """Be plain, decorated plainly."""
    return left + right + sum(more) + len(named)


@app.task(name="reports.weekly", priority="high", isolation="process", on_lost="fail")
def report() -> None:
    """Be plain, with options."""


# What tasks are, and that R is the result and not the coroutine.
assert_type(refresh.call(feed_id=42), rota.Call[str])
assert_type(refresh.call(42, force=True), rota.Call[str])
assert_type(fetch.call("x"), rota.Call[bytes])
assert_type(add.call(1, 2, 3, name="x"), rota.Call[int])
assert_type(report.call(), rota.Call[None])
assert_type(refresh.load_result("1"), str)
assert_type(add(1, 2), int)
plain: PlainTask[[], None] = report
unknown: rota.Task[..., Any] = refresh
typed: rota.Task[[str], bytes] = fetch
asynchronous: AsyncTask[[str], bytes] = fetch


async def use() -> None:
    """Call the function itself."""
    coming: Coroutine[Any, Any, str] = refresh(1)
    assert_type(await coming, str)
    assert_type(await refresh(1), str)
    await refresh("x")  # error: arg-type


async def enqueue() -> None:
    """Enqueue what the function takes, and know what comes of it."""
    assert_type(await refresh.enqueue(feed_id=42), rota.Run[str])
    assert_type(await refresh.enqueue(42, force=True), rota.Run[str])
    assert_type(await add.enqueue(1, 2, 3, name="x"), rota.Run[int])
    assert_type(await report.enqueue(), rota.Run[None])
    await refresh.enqueue(feed_id="x")  # error: arg-type
    await refresh.enqueue("x")  # error: arg-type
    await refresh.enqueue()  # error: call-arg
    await refresh.enqueue(42, delay="5m")  # error: call-arg
    await add.enqueue(1, "x")  # error: arg-type
    await report.enqueue(1)  # error: call-arg
    other: rota.Run[int]
    other = await refresh.enqueue(42)  # error: assignment
    assert other


def block() -> None:
    """Do the same without an event loop."""
    calls = rota.Blocking(rota.Rota())
    assert_type(calls.enqueue(refresh.call(feed_id=42), delay="5m"), rota.Run[str])
    assert_type(calls.enqueue(report.call()), rota.Run[None])
    assert_type(calls.enqueue_many([refresh.call(1), report.call()]), list[int])
    assert_type(calls.runs.get(1), rota.Run[Any])
    assert_type(calls.runs.list(limit=5), list[rota.Run[Any]])
    assert_type(calls.schedules.get("key"), rota.ScheduleState)
    assert_type(calls.schedules.pause("key", note="why"), int)
    assert_type(calls.schedules.change("key", priority="high"), int)
    with calls as same:
        assert_type(same, rota.Blocking)
    calls.enqueue(refresh.call(feed_id="x"))  # error: arg-type
    calls.enqueue(1)  # error: arg-type
    calls.enqueue(refresh.call(1), delays="5m")  # error: call-arg
    calls.runs.get("x")  # error: arg-type
    calls.schedules.pause("key", notes="why")  # error: call-arg
    later: rota.Run[int]
    later = calls.enqueue(refresh.call(42))  # error: arg-type
    assert later


# Arguments that do not fit.
refresh.call(feed_id="x")  # error: arg-type
refresh.call("x")  # error: arg-type
refresh.call()  # error: call-arg
refresh.call(1, True)  # error: call-arg
refresh.call(feed=1)  # error: call-arg
refresh.call(1, force="x")  # error: arg-type
fetch.call(url=1)  # error: arg-type
add.call(left=1)  # error: arg-type call-arg
add.call(1, "x")  # error: arg-type
add.call(1, name=1)  # error: arg-type
report.call(1)  # error: call-arg
add("x")  # error: arg-type

# What a call is, is known.
wrong: rota.Call[int] = fetch.call("x")  # error: assignment
wrong_task: rota.Task[[int], bytes] = fetch  # error: assignment


@app.task(timeout=None, priority="urgent")  # error: call-overload untyped-decorator
def late() -> None:
    """Have an option that does not exist."""


@app.task(isolation="thread")  # error: call-overload untyped-decorator
def thread() -> None:
    """Ask for what is anyway."""


@app.task(colour="red")  # error: call-overload untyped-decorator
def red() -> None:
    """Have an option of another kind."""
