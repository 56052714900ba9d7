"""What type checkers let through and what they object to; test_calls.py reads the expectations in the comments.

`error:` names the rules of mypy that a line breaks, and pyright objects to the same lines in its own words; a line
without it must break none.
"""

from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

import rota
from rota.tasks import AsyncTask, PlainTask, Registry, TaskDecorator
from rota.testing import Counts, TimeTravel, assert_enqueued, drain, enqueued, refute_enqueued, travel

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


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


async def put_and_change(rota_app: rota.Rota) -> None:
    """Make schedules, and say what they would do."""
    made = rota.Schedule("s", refresh.call(feed_id=42), rota.Every("1h"), overlap="skip", grace="5m")
    assert_type(await rota_app.schedules.put(made, by="ann"), rota.ScheduleState)
    assert_type(await rota_app.schedules.change("s", rule=rota.Cron("@daily")), int)
    assert_type(await rota_app.schedules.spread(tag="feeds", window="1h"), int)
    assert_type(await rota_app.tick(timeout="50s"), rota.Ticked)
    assert_type(rota.simulate(made, "2027-01-01T00:00Z", NOON), list[rota.Simulated])
    assert_type(
        rota.simulate(rota_app.declared, NOON, NOON, outages=[(NOON, "2027-01-01T00:00Z")]), list[rota.Simulated]
    )
    rota.simulate([made], NOON, NOON, durations={"s": "5m", "t": timedelta(1), "u": 5, "v": lambda due: due.hour * 60})
    rota.Schedule("s", refresh, rota.Every("1h"))  # error: arg-type
    rota.Schedule("s", refresh.call(1), "@daily")  # error: arg-type
    rota.Schedule("s", refresh.call(1), rota.Every("1h"), overlap="never")  # error: arg-type
    rota.simulate(rota.Every("1h"), NOON, NOON)  # error: arg-type
    rota.simulate(made, NOON, 5)  # error: arg-type
    rota.simulate(made, NOON, NOON, outages=[NOON])  # error: list-item
    rota.simulate(made, NOON, NOON, durations={"s": None})  # error: dict-item


async def travel_in_time(rota_app: rota.Rota) -> None:
    """Test by virtual time."""
    async with travel(rota_app, start=NOON, seed=7, durations={refresh: "5s", "s": lambda due: due.hour}) as time:
        assert_type(time, TimeTravel)
        assert_type(time.now, datetime)
        assert_type(await time.advance("1h"), Counts)
        assert_type(await time.travel_to("2027-01-01T00:00Z"), Counts)
        assert_type(await time.down(timedelta(hours=1)), Counts)
        assert_type(await time.drain(), Counts)
        await time.crash()
        time.takes(refresh, "5s")
        time.takes("s", lambda due: due.hour)
        time.fail(refresh, times=2, error=ValueError())
        assert_type(time.random.random(), float)
        await time.advance(None)  # error: arg-type
        await time.travel_to(5)  # error: arg-type
        time.takes(refresh, None)  # error: arg-type
        time.takes(refresh.call(1), "5s")  # error: arg-type
        time.fail(refresh, times="2")  # error: arg-type
        time.fail(refresh, error="x")  # error: arg-type
        time.now = NOON  # error: misc
    travel(app)  # error: arg-type
    travel(rota_app, start=5)  # error: arg-type


async def look_at_what_was_enqueued(rota_app: rota.Rota) -> None:
    """Find runs by their task, its name, a call, or anything."""
    assert_type(await drain(rota_app, slots=5), Counts)
    assert_type((await drain(rota_app)).succeeded, int)
    assert_type(await enqueued(rota_app), list[rota.Run[Any]])
    assert_type(await enqueued(rota_app, refresh, state="ready", feed_id=42), list[rota.Run[Any]])
    assert_type(await assert_enqueued(rota_app, refresh.call(42), count=1), rota.Run[Any])
    await refute_enqueued(rota_app, "news.refresh", schedule="s", queue="slow")
    await enqueued(refresh)  # error: arg-type
    await enqueued(rota_app, 5)  # error: arg-type
    await assert_enqueued(rota_app, refresh, count="1")  # error: arg-type
    await refute_enqueued(rota_app, refresh, state=5)  # error: arg-type


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
    assert_type(calls.schedules.revisions("key"), list[rota.Revision])
    assert_type(calls.schedules.spread(tag="feeds"), int)
    assert_type(calls.runs.hours(task="news"), list[rota.Hour])
    assert_type(calls.limits.list(), list[rota.LimitState])
    calls.limits.put("host:*", rota.Limit(at_once=1))
    with calls.lock("invoices", ttl="60s") as lock, calls.limits.hold("host:one"):
        assert_type(lock.fence, int)
        assert_type(lock.acquire(), bool)
        lock.extend([])  # error: arg-type
    with calls as same:
        assert_type(same, rota.Blocking)
    calls.enqueue(refresh.call(feed_id="x"))  # error: arg-type
    calls.enqueue(1)  # error: arg-type
    calls.enqueue(refresh.call(1), delays="5m")  # error: call-arg
    calls.runs.get("x")  # error: arg-type
    calls.limits.put("host:*", 1)  # error: arg-type
    calls.lock("invoices", ttl=None)  # error: arg-type
    calls.schedules.pause("key", notes="why")  # error: call-arg
    later: rota.Run[int]
    later = calls.enqueue(refresh.call(42))  # error: arg-type
    assert later


@rota.task(timeout="30s")
async def loose(size: int) -> str:
    """Belong to no app."""
    return "x" * size


@rota.task
def plainly(size: int) -> int:
    """Belong to no app either."""
    return size


async def apply(rota_app: rota.Rota) -> None:
    """Bring an application, and work on its tables."""
    made = rota.Application("shelf", tasks=[loose, plainly], limits={"shelf": rota.Limit(at_once=1)}, doctor=look)
    rota_app.include(made)
    assert_type(rota_app.applications, tuple[rota.Application, ...])
    assert_type(loose.call(1), rota.Call[str])
    assert_type(plainly.call(1), rota.Call[int])
    assert_type(rota.current_app(), rota.Rota)
    async with rota_app.database.transaction() as transaction:
        assert_type(transaction, rota.Transaction)
        await rota_app.enqueue(loose.call(1), connection=transaction)
    loose.call("x")  # error: arg-type
    rota.Application("shelf", tasks=[apply])  # error: list-item
    rota.Application("shelf", doctor=plain)  # error: arg-type
    rota_app.include("shelf")  # error: arg-type


async def look(rota_app: rota.Rota) -> list[rota.Finding]:
    """Have a word for the doctor."""
    return [rota.Finding(ok=rota_app.entered, what="fine")]


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
