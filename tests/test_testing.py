"""The test kit drives the real engine by virtual time, on either store."""

from datetime import UTC, datetime, timedelta

import pytest

import rota
from rota.testing import assert_enqueued, drain, enqueued, refute_enqueued, travel

ZONES = {
    "Europe/Berlin": ("2027-03-28", "2027-10-31"),
    "America/New_York": ("2027-03-14", "2027-11-07"),
    "America/Santiago": ("2027-09-05", "2027-04-04"),
    "Australia/Lord_Howe": ("2027-10-03", "2027-04-04"),
    "Europe/Dublin": ("2027-03-28", "2027-10-31"),
}


@pytest.mark.parametrize(("zone", "day"), [(zone, day) for zone, days in ZONES.items() for day in days])
@pytest.mark.parametrize("text", ["30 2 * * *", "*/30 * * * *", "0 0 * * *", "15 0-4 * * *"])
async def test_on_days_of_a_clock_change_the_engine_fires_what_the_rule_names(zone: str, day: str, text: str) -> None:
    app, seen = rota.Rota("sqlite://"), []
    rule = rota.Cron(text, tz=zone)

    @app.schedule("one", rule)
    @app.task
    async def work() -> None:
        seen.append(rota.current_run().due)

    start = datetime.fromisoformat(f"{day}T00:00Z") - timedelta(hours=14)
    async with travel(app, start=start) as time:
        await time.advance("50h")
    named = rule.instants(start, start + timedelta(hours=50))
    assert seen == [each.astimezone(UTC) for each in named]


async def test_an_open_app_travels_on_its_own_store(app: rota.Rota) -> None:
    @app.task(retry=rota.Retry(attempts=3, first="10s", jitter=0), queue="mail")
    async def work(n: int) -> None: ...

    async with travel(app, start="2027-01-01T00:00Z") as time:
        time.fail(work, times=2)
        run = await work.enqueue(7)
        counts = await time.advance("1h")
    assert (counts.retry, counts.succeeded) == (2, 1)
    assert (await app.runs.get(run.id)).finished_at == datetime.fromisoformat("2027-01-01T00:00:30Z")


async def test_limits_hold_by_virtual_time(app: rota.Rota) -> None:
    @app.task(limits=["host:a"])
    async def work() -> None: ...

    await app.limits.put("host:a", rota.Limit(at_once=1, gap="1m"))
    async with travel(app, start="2027-01-01T00:00Z", durations={work: "30s"}) as time:
        await app.enqueue_many([work.call()] * 3)
        await time.advance("1h")
        ends = [run.finished_at for run in await enqueued(app, work)]
    assert [f"{end:%H:%M:%S}" for end in ends if end] == ["00:00:30", "00:02:00", "00:03:30"]


async def test_what_a_dead_worker_was_at_comes_back_when_its_lease_has_ended(app: rota.Rota) -> None:
    @app.task
    async def work() -> None: ...

    async with travel(app, start="2027-01-01T00:00Z", durations={work: "10s"}) as time:
        run = await work.enqueue()
        await time.advance("5s")
        await time.crash()
        await time.advance("1m")
        found = await app.runs.get(run.id)
    assert (found.state, found.attempt, found.lost) == ("succeeded", 2, 1)


async def test_after_an_outage_what_was_missed_is_merged() -> None:
    app = rota.Rota("sqlite://")

    @app.schedule("hourly", rota.Cron("0 * * * *"))
    @app.task
    async def work() -> None: ...

    async with travel(app, start="2027-01-01T00:30Z") as time:
        assert (await time.down("5h")).fired == 1
        assert [(each.reason, each.count) for each in await app.schedules.firings("hourly")] == [
            (None, 1),
            ("merged", 4),
        ]


async def test_a_task_that_takes_longer_than_it_may_fails() -> None:
    app = rota.Rota("sqlite://")

    @app.task(timeout="5s")
    async def work() -> None: ...

    async with travel(app, start="2027-01-01T00:00Z") as time:
        time.takes(work, "1m")
        await work.enqueue()
        assert (await time.drain()).failed == 1
        assert time.now == datetime.fromisoformat("2027-01-01T00:00:05Z")


async def test_draining_works_off_what_is_ready_now(app: rota.Rota) -> None:
    @app.task
    def work(n: int, kind: str = "plain") -> int:
        return n

    await app.enqueue_many(work.call(n) for n in range(20))
    await app.enqueue(work.call(99), delay="1h")
    assert (await drain(app)).succeeded == 20
    await assert_enqueued(app, work, n=3, kind="plain", count=1, state="succeeded")
    await assert_enqueued(app, work.call(99), state="waiting")
    await refute_enqueued(app, work, n=100)
    with pytest.raises(AssertionError, match=r"expected no run of \S+ with n=3, found 1; the newest"):
        await refute_enqueued(app, work, n=3)


async def test_arguments_count_as_the_function_takes_them(app: rota.Rota) -> None:
    @app.task(name="send")
    def send(to: str, *, loud: bool = False, **more: str) -> None: ...

    await send.enqueue("ann", subject="hello")
    await assert_enqueued(app, send, to="ann", loud=False, subject="hello")
    await assert_enqueued(app, to="ann")
    await refute_enqueued(app, send, subject="bye")
    await refute_enqueued(app, "unknown", to="ann")


async def test_an_argument_that_no_run_can_have_is_refused(app: rota.Rota) -> None:
    @app.task(name="send")
    def send(to: str) -> None: ...

    with pytest.raises(rota.Invalid, match="args: 'two' is no argument of send; use to"):
        await refute_enqueued(app, send, two="ann")
    with pytest.raises(rota.Invalid, match="do not go with a call"):
        await refute_enqueued(app, send.call("ann"), to="ann")


async def test_none_is_for_refute_enqueued_to_say(app: rota.Rota) -> None:
    with pytest.raises(rota.Invalid, match="count: 0 is not allowed"):
        await assert_enqueued(app, count=0)


async def test_runs_of_a_task_that_is_unknown_here_match_no_argument(app: rota.Rota) -> None:
    await app.schedules.put(rota.Schedule("s", _elsewhere(), rota.Every("1h", since="start")))
    await app.schedules.trigger("s")
    await assert_enqueued(app, "elsewhere", schedule="s")
    await refute_enqueued(app, n=1)


def _elsewhere() -> rota.Call[None]:
    other = rota.Rota("sqlite://")

    @other.task(name="elsewhere")
    def elsewhere(n: int) -> None: ...

    return elsewhere.call(1)
