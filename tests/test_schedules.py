"""`app.schedules`: what people do with schedules and ask about them, on each store."""

import json
from datetime import timedelta
from typing import Any

import pytest
from tests.db.test_borrowed import borrowed, end
from tests.scheduling import Bench, at, made, other, seconds, tasks, work
from tests.stores import SECOND, START, Clock, ask

from rota.app import Rota
from rota.db.database import Database, Operation
from rota.engine.scheduler import Scheduler
from rota.errors import Invalid, InvalidSchedule, OutdatedVersion, ScheduleExists, UnknownSchedule
from rota.model import RunError
from rota.schedule import Schedule
from rota.store.history import NEWEST, History
from rota.store.schedule_reads import ScheduleReads
from rota.store.schedule_rows import Author
from rota.store.schedules import ScheduleStore
from rota.times import Cron, Every, Retry

NO_TASKS = Rota("sqlite://").tasks


@pytest.fixture
def bench(db: Database, clock: Clock) -> Bench:
    return Bench(db, clock)


# Define


async def test_creating_only_is_a_conflict_where_the_key_is_taken(bench: Bench) -> None:
    await bench.facade.put(made(), create=True)
    with pytest.raises(ScheduleExists, match="there is a schedule"):
        await bench.facade.put(made(description="mine"), create=True)
    assert (await bench.get()).description == ""


async def test_what_is_removed_while_it_is_put_is_made(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.put("s", description="old")
    make = ScheduleStore._make
    removed: list[str] = []

    def and_somebody_removes_it(self: ScheduleStore, *args: Any) -> Operation[set[str]]:
        found = yield from make(self, *args)
        if not removed:
            removed.append("s")
            yield from self.remove(["s"], Author())
        return found

    monkeypatch.setattr(ScheduleStore, "_make", and_somebody_removes_it)
    assert (await bench.put("s", description="new")).description == "new"
    assert [each.what for each in await bench.facade.revisions("s")] == ["made", "removed", "made"]


async def test_of_many_those_are_changed_that_are_still_there(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.facade.put_many([made("a1"), made("a2"), made("a3")])
    keys = ScheduleReads.list

    def and_one_goes(self: ScheduleReads, **more: Any) -> Operation[Any]:
        found = yield from keys(self, **more)
        yield from bench.store.remove(["a2"], Author()) if len(found) == 3 else ()
        return found

    monkeypatch.setattr(ScheduleReads, "list", and_one_goes)
    monkeypatch.setattr(bench.db, "read", bench.db.write)
    assert await bench.facade.pause(prefix="a") == 2
    assert {each.state for each in await bench.facade.list()} == {"paused"}


async def test_a_key_that_is_there_twice_is_refused_however_far_apart(bench: Bench) -> None:
    with pytest.raises(InvalidSchedule, match="is there twice"):
        await bench.facade.put_many([*(made(f"k{number}") for number in range(1_000)), made("k0", description="other")])
    assert (await bench.get("k0")).description == ""


@pytest.mark.parametrize("field", ["task", "app", "tag", "prefix", "after"])
@pytest.mark.parametrize("value", ["a\0b", "\udcff", 5])
async def test_what_no_store_can_hold_is_refused_as_a_filter(bench: Bench, field: str, value: Any) -> None:
    with pytest.raises(Invalid, match=field):
        await bench.facade.list(**{field: value})


async def test_many_are_put_at_once(bench: Bench) -> None:
    await bench.put("b", description="old")
    await bench.put("c")
    told: list[int] = []
    found = await bench.facade.put_many([made("c"), made("a"), made("b", description="new")], progress=told.append)
    assert (found.made, found.changed, found.same, told) == (1, 1, 1, [3])
    assert [each.key for each in await bench.facade.list()] == ["a", "b", "c"]
    with pytest.raises(InvalidSchedule, match="is there twice"):
        await bench.facade.put_many([made("x"), made("x")])


async def test_a_put_keeps_the_pause(bench: Bench) -> None:
    await bench.put()
    await bench.facade.pause("s", note="moving")
    found = await bench.put(rule=Every("2m"))
    assert found.held is not None
    assert (found.state, found.held.note) == ("paused", "moving")


@pytest.mark.parametrize(("word", "count"), [("COMMIT", 1), ("ROLLBACK", 0)])
async def test_a_schedule_exists_if_and_only_if_the_callers_transaction_commits(
    app: Rota, store: str, word: str, count: int
) -> None:
    async with borrowed(store) as connection:
        await app.schedules.put(made(tags=["x"]), connection=connection)
        await end(connection, word)
    assert len(await app.schedules.list(tag="x")) == count


async def test_a_change_names_what_changes_and_keeps_the_rest(bench: Bench) -> None:
    await bench.put(tags=["a"], retry=Retry(attempts=3), timeout="5s", grace="1m", queue="slow")
    await bench.facade.change("s", overlap="queue_all", tags=["b"], by="ann", note="busy")
    found = await bench.get()
    assert (found.tags, found.queue, found.policies.overlap) == (("b",), "slow", "queue_all")
    assert found.retry == Retry(attempts=3)
    assert (found.policies.grace, found.timeout) == (timedelta(minutes=1), timedelta(seconds=5))
    (revision, _) = await bench.facade.revisions("s")
    assert (revision.by, revision.note, sorted(revision.changes)) == ("ann", "busy", ["policies", "tags"])


async def test_another_call_brings_how_often_it_may_be_lost(bench: Bench) -> None:
    await bench.put()
    await bench.facade.change("s", call=other.call(2))
    await bench.go(60)
    assert [(row["task"], row["max_lost"]) for row in await bench.rows()] == [(other.name, 0)]


@pytest.mark.parametrize("values", [{"description": None}, {"retry": 3}, {"rule": "x"}, {"call": 1}, {"colour": "red"}])
async def test_what_a_schedule_cannot_have_is_refused(bench: Bench, values: dict[str, Any]) -> None:
    await bench.put()
    with pytest.raises(Invalid):
        await bench.facade.change("s", **values)


async def test_an_edit_of_what_somebody_else_changed_is_refused(bench: Bench) -> None:
    version = (await bench.put()).version
    await bench.facade.change("s", description="one", version=version)
    with pytest.raises(InvalidSchedule, match="it is 2 by now"):
        await bench.facade.change("s", description="two", version=version)


async def test_tags_and_prefixes_say_which(bench: Bench) -> None:
    for key, tag in (("feed-1", "x"), ("feed-2", "y"), ("feeds", "x")):
        await bench.put(key, tags=[tag])
    assert await bench.facade.pause(prefix="feed-") == 2
    assert await bench.facade.resume(tag="x") == 1
    assert await bench.facade.change(tag="y", description="new") == 1
    assert await bench.facade.remove(prefix="feed") == 3
    with pytest.raises(InvalidSchedule, match="does not say which"):
        await bench.facade.pause("s", tag="x")
    with pytest.raises(UnknownSchedule):
        await bench.facade.pause("s")


# Declared


async def test_declared_schedules_are_brought_retired_and_brought_back(bench: Bench) -> None:
    await bench.put("by-hand")
    await bench.facade.put_declared([made("a"), made("b")], NO_TASKS)
    assert (await bench.get("a")).declared
    await bench.facade.put_declared([made("b")], NO_TASKS)
    found = await bench.get("a")
    assert (found.state, found.next_due) == ("retired", None)
    assert (await bench.get("by-hand")).state == "active"
    await bench.go(130)
    assert await bench.ran("a") == []
    await bench.facade.put_declared([made("a"), made("b")], NO_TASKS)
    await bench.fire()
    assert (await bench.get("a")).state == "active"
    assert await bench.skipped("a") == [("paused", 60, 120, 2)]
    assert [each.what for each in await bench.facade.revisions("a")] == ["returned", "retired", "made"]


async def test_what_comes_back_with_another_rule_runs_nothing_of_the_old_one(bench: Bench) -> None:
    await bench.facade.put_declared([made("a")], NO_TASKS)
    await bench.facade.put_declared([], NO_TASKS)
    bench.clock.advance(130)
    await bench.facade.put_declared([made("a", Every("1h"))], NO_TASKS)
    await bench.fire()
    assert await bench.ran("a") == []
    assert (await bench.get("a")).state == "active"


async def test_a_pause_outlives_that_a_schedule_was_gone_from_the_code(bench: Bench) -> None:
    await bench.facade.put_declared([made("a")], NO_TASKS)
    await bench.facade.pause("a", note="moving")
    await bench.facade.put_declared([], NO_TASKS)
    await bench.facade.put_declared([made("a")], NO_TASKS)
    found = await bench.get("a")
    assert found.held is not None
    assert (found.state, found.held.note) == ("paused", "moving")


async def test_each_application_retires_its_own(bench: Bench) -> None:
    other_app = Bench(bench.db, bench.clock, "other")
    await bench.facade.put_declared([made("a")], NO_TASKS)
    await other_app.facade.put_declared([made("b")], NO_TASKS)
    assert {each.state for each in await bench.facade.list()} == {"active"}


def test_a_key_that_is_declared_twice_is_an_error() -> None:
    app = Rota("sqlite://")

    @app.schedule("s", Cron("@hourly"))
    @app.task
    def hourly() -> None: ...

    with pytest.raises(InvalidSchedule, match="is declared twice"):
        app.declare(Schedule("s", hourly.call(), Cron("@daily")))
    with pytest.raises(InvalidSchedule, match="needs a task"):
        app.schedule("t", Cron("@hourly"))(print)


async def test_a_deploy_repairs_what_was_parked(bench: Bench) -> None:
    await bench.put()
    await bench.go(60)
    await bench.work("failed", error=RunError("UnknownTask", "no"))
    await bench.facade.put_declared([], NO_TASKS)
    assert (await bench.get()).state == "parked"
    bench.clock.advance(70)
    await bench.facade.put_declared([], tasks.tasks)
    assert (await bench.get()).state == "active"
    assert await bench.skipped() == [("parked", 120, 120, 1)]


# Ask


async def test_why_says_what_came_of_an_instant(bench: Bench) -> None:
    bench.clock.advance(10)
    await bench.put()
    await bench.go(60)
    await bench.go(120)
    text, firing = await bench.why(60)
    assert firing is not None
    assert text == f"run {firing.run} stands for it: ready"
    assert "skipped: overlap, a run of the schedule was under way" in (await bench.why(120))[0]
    assert (await bench.why(180))[0].startswith("it lies ahead; the next one is ")
    assert "did not name it" in (await bench.why(70))[0]
    assert "was made later" in (await bench.why(5))[0]


async def test_why_says_who_holds_what_has_come(bench: Bench) -> None:
    await bench.put()
    bench.clock.advance(10)
    await bench.facade.pause("s", by="ann", note="moving")
    bench.clock.advance(100)
    found = "is paused by ann: moving; it is recorded as skipped when that ends"
    assert (await bench.why(60))[0] == f"the schedule {found}"
    await bench.facade.resume("s")
    assert "skipped: paused" in (await bench.why(60))[0]
    await bench.facade.pause_all(paused=True, note="moving", by="ann")
    bench.clock.advance(100)
    assert (await bench.why(180))[0] == f"everything {found}"


async def test_why_says_that_all_runs_were_made(bench: Bench) -> None:
    await bench.put(max_runs=1)
    await bench.go(60)
    bench.clock.advance(100)
    assert (await bench.why(120))[0] == "the schedule has made all the runs that it may"
    assert (await bench.facade.why("s")).text == "the schedule has made all the runs that it may"


async def test_why_does_not_count_what_the_rule_does_not_name_among_its_skips(bench: Bench) -> None:
    await bench.put()
    await bench.go(600)
    assert "skipped, with 8 others: merged" in (await bench.why(120))[0]
    assert "did not name it" in (await bench.why(121))[0]


async def test_why_says_what_is_wrong_with_what_does_not_come(bench: Bench) -> None:
    await bench.put()
    bench.clock.advance(200)
    assert "and is not yet fired: is a scheduler running?" in (await bench.facade.why("s")).text
    await bench.put("never", Cron("0 0 1 1 *"), exclude=Cron("* * * * *"))
    assert "is excluded" in (await bench.facade.why("never")).text


async def test_why_knows_the_rule_that_held_then(bench: Bench) -> None:
    await bench.put()
    await bench.go(60)
    await bench.work()
    bench.clock.advance(5)
    await bench.facade.change("s", rule=Every("7s"))
    bench.clock.advance(600)
    assert "the rule then, " in (await bench.why(42))[0]
    assert str(Every("1m")) in (await bench.why(42))[0]


async def test_why_of_what_was_removed_or_is_older_than_what_is_kept(bench: Bench) -> None:
    await bench.put()
    await bench.go(60)
    await bench.work()
    await ask(bench.db, "DELETE FROM rota_runs")
    assert (await bench.why(60))[0] == "it had its answer, which is older than what is kept"
    bench.clock.advance(5)
    await bench.facade.remove("s")
    assert (await bench.why(60))[
        0
    ] == "nothing is recorded of it; the schedule was removed at 2027-01-15 08:01:05+00:00"
    assert "did not name it" in (await bench.why(30))[0]
    bench.clock.advance(100)
    assert (await bench.why(120))[0] == "there was no such schedule then: it had been removed"
    await bench.put()
    assert "was made later" in (await bench.why(120))[0]
    assert (await bench.why(60))[0].startswith("nothing is recorded of it; the schedule was removed at ")
    with pytest.raises(UnknownSchedule):
        await bench.why(60, "never")


async def test_why_does_not_guess_the_rule_of_a_time_whose_changes_are_no_longer_kept(bench: Bench) -> None:
    await bench.put()
    for number in range(1, 105):
        bench.clock.advance(1)
        await bench.facade.change("s", rule=Every(f"{number}m"))
    bench.clock.advance(86_400)
    await bench.db.write(lambda: History(bench.db).sweep(3_600 * SECOND, 1_000))
    assert len(await bench.facade.revisions("s", limit=1_000)) == NEWEST
    assert (await bench.why(1.5))[0] == "what the schedule was then is older than what is kept"
    assert str(Every("103m")) in (await bench.why(103.5))[0]


async def test_upcoming_ends_with_the_last_run_that_may_be(bench: Bench) -> None:
    await bench.put(max_runs=3)
    await bench.go(60)
    assert [seconds(each.due) for each in await bench.facade.upcoming()] == [120, 180]


async def test_of_what_is_overdue_upcoming_shows_the_first_and_then_what_lies_ahead(bench: Bench) -> None:
    await bench.put()
    bench.clock.advance(1_000)
    assert [seconds(each.due) for each in await bench.facade.upcoming(limit=3)] == [60, 1_020, 1_080]


async def test_other_limits_of_a_schedule_leave_those_that_its_task_brings(bench: Bench) -> None:
    await bench.put(call=work.call().limited("host:own"), limits=["a"])
    await bench.facade.change("s", limits=["b"])
    found = await bench.get()
    assert (found.limits, found.call_limits) == (("b",), ("host:own",))
    await bench.go(60)
    (row,) = await bench.rows()
    assert json.loads(row["limits"]) == ["b", "host:own"]
    await bench.facade.change("s", call=work.call(1))
    assert (await bench.get()).call_limits == ()


async def test_upcoming_merges_what_is_ahead(bench: Bench) -> None:
    await bench.put("a")
    await bench.put("b", Every("90s"))
    assert [(each.key, seconds(each.due)) for each in await bench.facade.upcoming(limit=4)] == [
        ("a", 60),
        ("b", 90),
        ("a", 120),
        ("a", 180),
    ]


async def test_firings_are_paged_and_each_is_on_one_page(bench: Bench) -> None:
    await bench.put()
    for minute in (1, 2, 3):
        await bench.go(60 * minute)
    await bench.work()
    await bench.go(240)
    pages = []
    before = None
    while page := await bench.facade.firings("s", before=before, limit=1):
        pages += page
        before = page[-1].due
    assert [(each.reason, seconds(each.due)) for each in pages] == [(None, 240), ("overlap", 180), (None, 60)]


async def test_runs_for_one_instant_are_on_one_page(bench: Bench) -> None:
    await bench.put(overlap="allow", max_running=10)
    await bench.go(60)
    await bench.facade.backfill("s", at(0), at(61))
    await bench.facade.backfill("s", at(0), at(61))
    first = await bench.facade.firings("s", limit=1)
    assert [seconds(each.due) for each in first] == [60, 60, 60]
    assert len({each.run for each in first}) == 3
    assert [seconds(each.due) for each in await bench.facade.firings("s", before=first[-1].due)] == [0, 0]


async def test_a_clock_of_the_stores_says_what_lies_ahead(bench: Bench) -> None:
    assert bench.clock.now == START
    await bench.put()
    bench.clock.now = START - 1_000 * SECOND
    assert (await bench.why(60))[0].startswith("it lies ahead")


async def test_what_is_due_already_says_so_until_it_is_fired(bench: Bench) -> None:
    await bench.enter()
    await bench.put(rule=Every("6h", since="finish"))
    assert await bench.next() == 0
    await bench.fire()
    await bench.work()
    bench.clock.advance(3_600)
    await bench.facade.change("s", rule=Every("30m", since="finish"))
    assert await bench.next() == 1_800
    assert [seconds(each.due) for each in await bench.facade.upcoming()] == [1_800]


async def test_a_scheduler_says_in_its_log_how_the_schedules_are(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    await bench.facade.put_many([made("a"), made("b"), made("c")])
    await bench.facade.pause("b")
    bench.clock.advance(200)

    async def nothing() -> None: ...

    with caplog.at_level("INFO", "rota.scheduler"):
        await Scheduler(bench.db, nothing).report_once()
    assert caplog.messages == [
        "schedules: 2 active, 1 paused; 2 overdue, 0 failing; next due 2027-01-15 08:01:00+00:00"
    ]


# Editing side by side


async def test_nothing_is_overwritten_or_removed_that_somebody_else_changed(bench: Bench) -> None:
    old = (await bench.put()).version
    new = (await bench.facade.put(made(description="mine"), version=old)).version
    for late in (
        bench.facade.put(made(description="yours"), version=old),
        bench.facade.change("s", description="yours", version=old),
        bench.facade.remove("s", version=old),
    ):
        with pytest.raises(OutdatedVersion) as caught:
            await late
        assert caught.value.newest == new
    assert (await bench.get()).description == "mine"
    assert await bench.facade.remove("s", version=new) == 1


async def test_a_preview_shows_what_a_change_would_do_and_does_nothing(bench: Bench) -> None:
    before = await bench.put(rule=Every("1h"))
    found = await bench.facade.preview("s", rule=Every("10m"), description="other")
    assert (seconds(found.next_due), found.description) == (600, "other")
    assert await bench.get() == before
    assert [each.what for each in await bench.facade.revisions("s")] == ["made"]
    with pytest.raises(UnknownSchedule):
        await bench.facade.preview("none")
    with pytest.raises(InvalidSchedule, match="is nothing that a schedule has"):
        await bench.facade.preview("s", colour="red")


async def test_a_preview_tells_what_would_fire_at_once(bench: Bench) -> None:
    await bench.put(rule=Every("1d", since="finish"))
    await bench.go(1)
    await bench.work()
    bench.clock.advance(7_200)
    shorter = await bench.facade.preview("s", rule=Every("1h", since="finish"))
    longer = await bench.facade.preview("s", rule=Every("3h", since="finish"))
    assert (seconds(shorter.next_due), seconds(longer.next_due)) == (3_601, 10_801)
    assert await bench.next() == 86_401


# Lists by what people look for


async def test_schedules_are_found_by_text_in_large_and_small_letters(bench: Bench) -> None:
    await bench.put("feed-1", description="100% of the News")
    await bench.put("feed-2", description="sport")
    await bench.put("mail", call=other.call())

    async def keys(**wanted: str) -> list[str]:
        return [each.key for each in await bench.facade.list(**wanted)]  # type: ignore[arg-type]

    assert await keys(text="FEED-") == ["feed-1", "feed-2"]
    assert await keys(text="news") == ["feed-1"]
    assert await keys(text="0%") == ["feed-1"]
    assert await keys(text="%") == ["feed-1"]
    assert await keys(text="feed_1") == []
    assert await keys(text=other.name.upper()) == ["mail"]
    assert await keys(queue="mail") == ["mail"]


async def test_the_newest_firings_of_all_schedules_are_paged_and_each_is_on_one_page(bench: Bench) -> None:
    for key in ("a", "b"):
        await bench.put(key)
    for minute in (1, 2, 3):
        await bench.go(60 * minute)
    await bench.work()
    await bench.go(240)
    everything = [("b", None, 240), ("a", None, 240), *[(key, "overlap", 180) for key in "ba"]]
    everything += [("b", None, 60), ("a", None, 60)]

    async def paged(**wanted: Any) -> list[tuple[str | None, str | None, float | None]]:
        found, place = [], None
        while True:
            page, place = await bench.facade.newest_firings(**wanted, before=place, limit=1)
            if not page:
                return [(each.schedule, each.reason, seconds(each.due)) for each in found]
            found += page

    assert await paged() == everything
    assert await paged(schedule="a") == [each for each in everything if each[0] == "a"]
    assert await paged(ran=True) == [each for each in everything if each[1] is None]
    assert await paged(ran=False) == await paged(reason="overlap") == everything[2:4]
    assert await paged(reason="missed") == []


async def test_busy_minutes_are_counted_an_hour_ahead(bench: Bench) -> None:
    await bench.put("often", Every("10m"))
    await bench.put("twice-a-minute", Every("30s", start=at(3_000), end=at(3_090)))
    await bench.put("hourly", Cron("5 * * * *"))
    await bench.put("but-one", Every("20m"), exclude=[Cron("40 * * * *")])
    await bench.put("anchored", Every("15m", since="finish"))
    await bench.put("tomorrow", Cron("0 0 * * *"))
    await bench.put("held", Every("10m"))
    await bench.facade.pause("held")
    bench.clock.advance(90)
    found = await bench.facade.busy()
    assert (seconds(found.start), len(found.counts), found.complete) == (60, 60, True)
    by_minute = {number + 1: count for number, count in enumerate(found.counts) if count}
    assert by_minute == {1: 1, 5: 1, 10: 1, 20: 2, 30: 1, 40: 1, 50: 2, 51: 1, 60: 2}


async def test_those_are_pending_that_have_a_run_which_has_not_begun(bench: Bench) -> None:
    for key in ("begun", "ready", "idle"):
        await bench.put(key)
    await bench.facade.trigger("begun")
    await bench.claim()
    await bench.facade.trigger("ready")
    assert await bench.facade.pending(["begun", "ready", "idle", "none"]) == {"ready"}
    assert await bench.facade.pending([]) == set()
