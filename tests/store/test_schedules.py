"""The verbs of a schedule's life, on each store: what fires, what is skipped and why, and what is next."""

from datetime import timedelta
from typing import Any

import pytest
from tests.scheduling import MINUTELY, Bench, at, made, other, seconds, work
from tests.stores import SECOND, START, Clock, ask

from rota.db.database import Database
from rota.errors import InvalidSchedule, UnknownSchedule
from rota.model import RunError
from rota.times import At, Cron, Every, OnFailure

SINCE_SUCCESS = Every("10m", since="success")


@pytest.fixture
def bench(db: Database, clock: Clock) -> Bench:
    return Bench(db, clock)


# Fixed series


async def test_the_first_firing_is_the_next_match_after_it_was_made(bench: Bench) -> None:
    bench.clock.advance(5)
    assert seconds((await bench.put()).next_due) == 60
    assert (await bench.go(59)).runs == 0
    assert (await bench.go(60)).runs == 1
    assert await bench.ran() == [(60, "ready")]
    assert await bench.next() == 120


async def test_the_instant_at_which_a_schedule_is_made_is_not_its_first(bench: Bench) -> None:
    await bench.put()
    assert (await bench.fire()).runs == 0
    assert await bench.next() == 60


async def test_a_run_carries_its_schedule_its_instant_and_what_made_it(bench: Bench) -> None:
    await bench.put(call=other.call(3), timeout="5s", tags=["x"])
    await bench.put("once", At(at(60)))
    await bench.put("cron", Cron("* * * * *"))
    await bench.go(61)
    (row,) = await bench.rows()
    assert (row["kind"], row["nominal"], row["queue"], row["priority"]) == ("interval", START + 60 * SECOND, "mail", 75)
    assert (row["timeout"], row["max_lost"], row["created_at"]) == (5 * SECOND, 0, START + 61 * SECOND)
    assert [row["kind"] for row in await bench.rows("once")] == ["once"]
    assert [row["kind"] for row in await bench.rows("cron")] == ["cron"]


async def test_the_runs_of_schedules_count(bench: Bench) -> None:
    await bench.put()
    for minute in (1, 2, 3):
        await bench.go(60 * minute)
        await bench.work()
    found = await bench.get()
    assert (found.run_count, found.last_outcome, found.failures) == (3, "succeeded", 0)
    assert (seconds(found.last_due), seconds(found.last_success), seconds(found.last_run)) == (180, 180, 180)


async def test_a_rule_without_further_instants_is_finished(bench: Bench) -> None:
    await bench.put(rule=At(at(60)))
    await bench.go(60)
    found = await bench.get()
    assert (found.state, found.next_due) == ("finished", None)


async def test_a_rule_whose_instants_are_all_past_is_finished_when_it_is_made(bench: Bench) -> None:
    assert (await bench.put(rule=At(at(-60)))).state == "finished"
    assert await bench.db.write(lambda: bench.store.heal(10)) == 0


async def test_max_runs_counts_what_the_rule_made_and_no_trigger(bench: Bench) -> None:
    await bench.put(max_runs=2, overlap="queue_all")
    await bench.facade.trigger("s")
    for minute in (1, 2, 3):
        await bench.go(60 * minute)
        await bench.work()
    assert [due for due, _ in await bench.ran()] == [0, 60, 120]
    assert (await bench.get()).state == "finished"


async def test_excluded_instants_are_skipped_and_say_so(bench: Bench) -> None:
    await bench.put(exclude=At(at(120)))
    for minute in (1, 2, 3):
        await bench.go(60 * minute)
        await bench.work()
    assert [due for due, _ in await bench.ran()] == [60, 180]
    assert await bench.skipped() == [("excluded", 120, 120, 1)]


async def test_why_tells_merged_from_excluded_instants_between_each_other(bench: Bench) -> None:
    await bench.put(exclude=[At(at(120)), At(at(240))])
    await bench.go(330)
    assert await bench.ran() == [(300, "ready")]
    for second, reason in ((60, "merged"), (120, "excluded"), (180, "merged"), (240, "excluded")):
        _, answer = await bench.why(second)
        assert answer is not None
        assert answer.reason == reason


async def test_a_spread_schedule_keeps_its_due_instants_and_comes_later(bench: Bench) -> None:
    await bench.put(spread="50s")
    (row,) = await ask(bench.db, "SELECT next, wake FROM rota_schedules")
    assert row["next"] == START + 60 * SECOND
    offset = (row["wake"] - row["next"]) / SECOND
    assert 0 < offset < 50
    assert (await bench.go(60 + offset - 0.01)).runs == 0
    assert (await bench.go(60 + offset)).runs == 1
    assert await bench.ran() == [(60, "ready")]


async def test_jitter_makes_the_run_when_it_is_due_and_starts_it_later(bench: Bench) -> None:
    await bench.put(jitter="50s")
    await bench.go(60)
    (row,) = await bench.rows()
    assert (row["state"], row["nominal"]) == ("waiting", START + 60 * SECOND)
    assert START + 60 * SECOND < row["due"] < START + 110 * SECOND


# Overlap


async def test_skip_lets_no_second_run_in_and_stays_scheduled(bench: Bench) -> None:
    await bench.put()
    for minute in (1, 2, 3):
        await bench.go(60 * minute)
    assert await bench.ran() == [(60, "ready")]
    assert await bench.skipped() == [("overlap", 120, 180, 2)]
    await bench.work()
    assert await bench.next() == 240
    assert (await bench.go(240)).runs == 1


async def test_queue_one_keeps_one_that_starts_when_the_other_has_ended(bench: Bench) -> None:
    await bench.put(overlap="queue_one")
    for minute in (1, 2, 3):
        await bench.go(60 * minute)
    assert await bench.ran() == [(60, "ready"), (120, "waiting")]
    assert await bench.skipped() == [("overlap", 180, 180, 1)]
    (first,) = await bench.claim()
    assert await bench.claim() == []
    await bench.end(first)
    assert [each.nominal for each in await bench.claim()] == [START + 120 * SECOND]


async def test_queue_all_runs_them_one_after_the_other_in_order(bench: Bench) -> None:
    await bench.put(overlap="queue_all")
    for minute in (1, 2, 3):
        await bench.go(60 * minute)
    order = []
    while found := await bench.claim():
        (one,) = found
        order.append(one.nominal)
        await bench.end(one)
    assert order == [START + minute * 60 * SECOND for minute in (1, 2, 3)]
    assert await bench.skipped() == []


async def test_cancel_running_starts_the_new_one_when_the_old_one_has_ended(bench: Bench) -> None:
    await bench.put(overlap="cancel_running")
    await bench.go(60)
    (old,) = await bench.claim()
    assert (await bench.go(120)).cancelled
    assert [each[0] for each in await bench.db.read(lambda: bench.runs.to_cancel("w"))] == [old.id]
    assert await bench.claim() == []
    await bench.end(old, "cancelled")
    (new,) = await bench.claim()
    assert new.nominal == START + 120 * SECOND


async def test_cancel_running_replaces_what_has_not_begun_at_once(bench: Bench) -> None:
    await bench.put(overlap="cancel_running")
    await bench.go(60)
    await bench.go(120)
    assert await bench.ran() == [(60, "cancelled"), (120, "ready")]


async def test_allow_lets_as_many_in_as_max_running(bench: Bench) -> None:
    await bench.put(overlap="allow", max_running=2)
    for minute in (1, 2, 3):
        await bench.go(60 * minute)
    assert await bench.ran() == [(60, "ready"), (120, "ready")]
    assert await bench.skipped() == [("overlap", 180, 180, 1)]


async def test_a_run_between_two_attempts_is_under_way(bench: Bench) -> None:
    await bench.put()
    await bench.go(60)
    (one,) = await bench.claim()
    await bench.end(one, "retry", delay=100 * SECOND)
    await bench.go(120)
    assert await bench.skipped() == [("overlap", 120, 120, 1)]


# Missed


async def test_latest_runs_once_for_all_that_was_missed_one_priority_lower(bench: Bench) -> None:
    await bench.put()
    await bench.go(600 + 30)
    assert await bench.ran() == [(600, "ready")]
    assert await bench.skipped() == [("merged", 60, 540, 9)]
    await bench.work()
    await bench.go(900 + 61)
    assert [row["priority"] for row in await bench.rows()] == [50, 50]
    await bench.put("hourly", Every("1h"))
    await bench.go(3_600 + 90)
    assert [row["priority"] for row in await bench.rows("hourly")] == [25]


async def test_all_runs_what_was_missed_in_order_up_to_max_missed(bench: Bench) -> None:
    await bench.put(missed="all", max_missed=3)
    await bench.go(300)
    assert await bench.ran() == [(180, "ready"), (240, "waiting"), (300, "waiting")]
    assert await bench.skipped() == [("missed", 60, 120, 2)]


async def test_none_runs_only_what_is_on_time(bench: Bench) -> None:
    await bench.put(rule=Every("1h"), missed="none")
    await bench.go(3_600 + 61)
    assert await bench.ran() == []
    assert await bench.skipped() == [("missed", 3_600, 3_600, 1)]
    await bench.go(7_200 + 59)
    assert await bench.ran() == [(7_200, "ready")]


async def test_grace_says_how_late_a_firing_may_start(bench: Bench) -> None:
    await bench.put(rule=Every("1h"), grace="5m")
    await bench.go(3_600 + 301)
    assert await bench.skipped() == [("missed", 3_600, 3_600, 1)]
    await bench.go(7_200 + 300)
    assert await bench.ran() == [(7_200, "ready")]


# Anchored intervals


async def test_an_anchored_interval_that_never_ran_is_due_at_once(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    assert (await bench.fire()).runs == 1
    assert await bench.ran() == [(0, "ready")]
    assert await bench.next() is None


@pytest.mark.parametrize(("since", "due"), [("success", 625), ("finish", 625), ("start", 610)])
async def test_an_anchored_interval_counts_from_the_last_run(bench: Bench, since: Any, due: float) -> None:
    await bench.put(rule=Every("10m", since=since))
    await bench.go(10)
    (one,) = await bench.claim()
    bench.clock.advance(15)
    await bench.end(one)
    assert await bench.next() == due


async def test_after_a_failure_it_counts_from_the_failed_run(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    await bench.work()
    await bench.go(600)
    await bench.work("failed")
    found = await bench.get()
    assert (seconds(found.next_due), seconds(found.last_success), found.failures) == (1_200, 0, 1)
    assert found.last_error is not None
    assert found.last_error.kind == "Broken"


async def test_overdue_means_now(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    await bench.work()
    await bench.go(7_200)
    assert await bench.ran() == [(0, "succeeded"), (600, "ready")]
    assert [row["priority"] for row in await bench.rows()] == [50, 25]


async def test_an_anchored_interval_has_no_next_while_a_run_is_under_way(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    (one,) = await bench.claim()
    await bench.go(5_000)
    assert (await bench.get()).next_due is None
    await bench.end(one)
    assert await bench.next() == 5_600


async def test_a_last_success_set_by_hand_counts_at_once(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    await bench.work()
    bench.clock.advance(60)
    await bench.facade.change("s", last_success=at(50))
    assert await bench.next() == 650
    assert (await bench.facade.revisions("s"))[0].what == "last success"


@pytest.mark.parametrize("since", ["success", "finish", "start"])
async def test_a_run_cancelled_while_it_waits_is_not_made_again_at_once(bench: Bench, since: Any) -> None:
    await bench.put(rule=Every("10m", since=since))
    await bench.fire()
    await bench.work()
    await bench.go(600)
    bench.clock.advance(5)
    (_, waiting) = await bench.rows()
    await bench.db.write(lambda: bench.runs.cancel(waiting["id"], "enough"))
    assert (await bench.fire()).runs == 0
    assert await bench.next() == 1_205
    assert (await bench.get()).last_outcome == "cancelled"


async def test_the_first_run_cancelled_before_it_began_is_not_made_again_at_once(bench: Bench) -> None:
    await bench.put(rule=Every("10m", since="start"))
    await bench.fire()
    (waiting,) = await bench.rows()
    await bench.db.write(lambda: bench.runs.cancel(waiting["id"], "enough"))
    assert (await bench.fire()).runs == 0
    assert await bench.next() == 600


async def test_a_run_that_is_handed_back_cancelled_moves_its_schedule(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    (one,) = await bench.claim()
    await bench.db.write(lambda: bench.runs.cancel(one.id, "enough"))
    await bench.db.write(lambda: bench.runs.hand_back("w", [(one.id, one.attempt)]))
    assert await bench.ran() == [(0, "cancelled")]
    assert await bench.next() == 600


async def test_a_run_lost_too_often_fails_and_moves_its_schedule(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    for _ in range(4):
        assert len(await bench.claim()) == 1
        await bench.die()
    found = await bench.get()
    assert (found.failures, found.last_outcome, seconds(found.next_due)) == (1, "failed", 600)
    assert found.last_error is not None
    assert found.last_error.kind == "Lost"


async def test_a_run_lost_once_is_still_under_way(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    await bench.claim()
    await bench.die()
    assert await bench.next() is None
    assert await bench.ran() == [(0, "ready")]


async def test_a_run_retried_by_hand_counts_again(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    (number,) = await bench.work("failed")
    bench.clock.advance(10)
    await bench.db.write(lambda: bench.runs.retry(number))
    assert await bench.next() is None
    await bench.work()
    found = await bench.get()
    assert (seconds(found.next_due), found.failures) == (610, 0)


async def test_a_run_retried_by_hand_waits_for_the_one_under_way(bench: Bench) -> None:
    await bench.put()
    await bench.go(60)
    (number,) = await bench.work("failed")
    await bench.go(120)
    (current,) = await bench.claim()
    await bench.db.write(lambda: bench.runs.retry(number))
    assert await bench.claim() == []
    await bench.end(current)
    assert [each.id for each in await bench.claim()] == [number]


async def test_a_late_word_from_a_lost_worker_moves_nothing(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    (old,) = await bench.claim()
    await bench.die()
    (new,) = await bench.claim("other")
    assert await bench.end(old) == set()
    assert await bench.next() is None
    bench.clock.advance(7)
    await bench.end(new, name="other")
    assert await bench.next() == 607


# Failures


async def test_failures_double_the_interval_and_one_success_restores_it(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS, on_failure=OnFailure(double_from=2, cap="30m"))
    waits = []
    for outcome in ("failed", "failed", "failed", "failed", "succeeded"):
        due = await bench.next()
        await bench.go(due or 0)
        await bench.work(outcome)  # type: ignore[arg-type]
        waits.append((await bench.next() or 0) - (due or 0))
    assert waits == [600, 1_200, 1_800, 1_800, 600]
    assert (await bench.get()).rule == SINCE_SUCCESS


async def test_a_failing_cron_backs_off_and_says_so(bench: Bench) -> None:
    await bench.put(on_failure=OnFailure(double_from=1))
    await bench.go(60)
    await bench.work("failed")
    assert await bench.next() == 180
    await bench.go(180)
    assert await bench.skipped() == [("backing off", 120, 120, 1)]
    assert [due for due, _ in await bench.ran()] == [60, 180]


async def test_the_next_of_a_failing_series_is_one_that_it_does_not_back_off_from(bench: Bench) -> None:
    await bench.put(on_failure=OnFailure(double_from=1))
    await bench.go(60)
    await bench.work("failed")
    await bench.go(180)
    assert await bench.next() == 300
    await bench.work()
    assert await bench.next() == 240


async def test_too_many_failures_pause_the_schedule_and_say_why(bench: Bench) -> None:
    await bench.put(on_failure=OnFailure(pause_after=2))
    for minute in (1, 2):
        await bench.go(60 * minute)
        await bench.work("failed")
    found = await bench.get()
    assert found.held is not None
    assert (found.state, found.held.by, found.held.note) == ("paused", "rota", "failed 2 times in a row")
    assert (await bench.facade.revisions("s"))[0].what == "paused"
    await bench.facade.resume("s")
    assert (await bench.get()).failures == 0


async def test_a_cancelled_run_is_neither_a_failure_nor_a_success(bench: Bench) -> None:
    await bench.put()
    await bench.go(60)
    await bench.work("failed")
    await bench.go(120)
    await bench.work("cancelled")
    assert (await bench.get()).failures == 1


# What a run asks for


async def test_run_next_names_an_instant_and_skips_those_before_it(bench: Bench) -> None:
    await bench.put()
    await bench.go(60)
    await bench.work(asked=150 * SECOND)
    assert await bench.next() == 210
    await bench.go(210)
    assert [due for due, _ in await bench.ran()] == [60, 210]
    assert await bench.skipped() == [("backing off", 120, 180, 2)]
    await bench.work()
    assert await bench.next() == 240


async def test_run_next_moves_an_anchored_interval(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    await bench.work(asked=30 * SECOND)
    assert await bench.next() == 30
    await bench.go(30)
    await bench.work()
    assert await bench.next() == 630


async def test_run_next_stays_inside_the_bounds_of_the_rule(bench: Bench) -> None:
    await bench.put(rule=Every("10m", since="success", end=at(900)))
    await bench.fire()
    await bench.work(asked=5_000 * SECOND)
    assert await bench.next() == 900


# Edits


async def test_an_unchanged_rule_keeps_its_next_due(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    await bench.work()
    bench.clock.advance(100)
    await bench.put(rule=SINCE_SUCCESS, description="other", priority="high")
    found = await bench.get()
    assert (seconds(found.next_due), found.description, found.priority, found.version) == (600, "other", 75, 2)


async def test_a_put_that_changes_nothing_leaves_no_trace(bench: Bench) -> None:
    await bench.put()
    await bench.put()
    assert (await bench.get()).version == 1
    assert len(await bench.facade.revisions("s")) == 1


@pytest.mark.parametrize(("interval", "due"), [("5m", 300), ("20m", 1_200)])
async def test_a_changed_interval_counts_at_once_from_the_same_anchor(bench: Bench, interval: str, due: float) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    await bench.work()
    bench.clock.advance(100)
    await bench.facade.change("s", rule=Every(interval, since="success"))
    assert await bench.next() == due


async def test_a_longer_interval_moves_what_was_overdue(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    await bench.work()
    bench.clock.advance(900)
    await bench.facade.change("s", rule=Every("20m", since="success"))
    assert await bench.next() == 1_200
    assert len(await bench.ran()) == 1


async def test_a_run_under_way_goes_on_and_then_uses_the_new_interval(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    (one,) = await bench.claim()
    await bench.facade.change("s", rule=Every("20m", since="success"))
    assert await bench.next() is None
    await bench.end(one)
    assert await bench.next() == 1_200


async def test_a_changed_cron_begins_after_now(bench: Bench) -> None:
    await bench.put()
    await bench.go(60)
    await bench.work()
    bench.clock.advance(30)
    await bench.facade.change("s", rule=Every("15s"))
    assert await bench.next() == 105
    await bench.go(105)
    assert await bench.skipped() == []
    assert [due for due, _ in await bench.ran()] == [60, 105]


async def test_what_was_due_under_the_old_rule_is_answered_under_it(bench: Bench) -> None:
    await bench.put()
    bench.clock.advance(150)
    await bench.facade.change("s", rule=Every("7s"))
    assert await bench.ran() == [(120, "ready")]
    assert await bench.skipped() == [("merged", 60, 60, 1)]


@pytest.mark.parametrize("everything", [False, True])
async def test_what_was_due_under_the_old_rule_of_a_paused_schedule_was_paused(bench: Bench, everything: bool) -> None:
    await bench.put()
    if everything:
        await bench.facade.pause_all(paused=True, note=None, by=None)
    else:
        await bench.facade.pause("s")
    bench.clock.advance(120)
    await bench.facade.change("s", rule=Every("1h"))
    assert (await bench.get()).state == ("active" if everything else "paused")
    assert await bench.ran() == []
    assert await bench.skipped() == [("paused", 60, 120, 2)]
    await bench.go(130)
    if everything:
        await bench.facade.pause_all(paused=False, note=None, by=None)
    else:
        await bench.facade.resume("s")
    await bench.fire()
    assert await bench.ran() == []
    assert await bench.next() == 3_600


async def test_a_changed_policy_counts_at_once(bench: Bench) -> None:
    await bench.put()
    await bench.facade.change("s", exclude=At(at(60)))
    assert await bench.next() == 120
    assert (await bench.facade.revisions("s"))[0].changes["policies"][0] == "{}"


async def test_a_finished_schedule_goes_on_where_its_rule_does(bench: Bench) -> None:
    await bench.put(rule=At(at(60)))
    await bench.go(60)
    await bench.work()
    await bench.put(rule=At([at(60), at(120)]))
    assert (await bench.get()).state == "active"
    await bench.go(120)
    assert [due for due, _ in await bench.ran()] == [60, 120]


async def test_a_rule_that_becomes_an_interval_never_runs_an_instant_twice(bench: Bench) -> None:
    await bench.put()
    await bench.go(60)
    await bench.work()
    await bench.go(120)
    await bench.work()
    await bench.facade.change("s", rule=Every("1m", since="success"))
    await bench.facade.change("s", last_success=at(0))
    bench.clock.advance(1)
    found = await bench.fire()
    assert (found.runs, found.lost) == (1, 0)
    assert len({due for due, _ in await bench.ran()}) == 3


# Hold


async def test_a_paused_schedule_does_not_fire_and_says_who_why_and_until_when(bench: Bench) -> None:
    await bench.put()
    await bench.facade.pause("s", by="ann", note="moving", until=at(150))
    found = await bench.get()
    assert found.held is not None
    assert (found.state, found.held.by, found.held.note) == ("paused", "ann", "moving")
    assert (seconds(found.held.since), seconds(found.held.until), seconds(found.next_due)) == (0, 150, 180)
    assert (await bench.go(120)).runs == 0


async def test_a_pause_ends_by_itself_and_what_passed_is_recorded(bench: Bench) -> None:
    await bench.put()
    await bench.facade.pause("s", until=at(150))
    await bench.go(150)
    assert (await bench.get()).state == "active"
    await bench.go(180)
    assert await bench.skipped() == [("paused", 60, 120, 2)]
    assert await bench.ran() == [(180, "ready")]


async def test_a_pause_whose_end_has_come_is_over_also_where_nothing_was_due(bench: Bench) -> None:
    await bench.put(rule=Every("1h"))
    await bench.facade.pause("s", until=at(30))
    await bench.go(30)
    found = await bench.get()
    assert (found.state, seconds(found.next_due)) == ("active", 3_600)
    assert (await bench.fire()).schedules == 0


async def test_resuming_goes_on_with_the_future_and_records_what_passed(bench: Bench) -> None:
    await bench.put()
    await bench.facade.pause("s")
    assert (await bench.go(130)).schedules == 0
    assert await bench.facade.resume("s") == 1
    assert await bench.skipped() == [("paused", 60, 120, 2)]
    assert await bench.ran() == []
    assert await bench.next() == 180
    assert await bench.facade.resume("s") == 0


async def test_an_interval_resumed_is_due_now_where_it_would_have_been(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    await bench.work()
    await bench.facade.pause("s")
    bench.clock.advance(1_000)
    await bench.facade.resume("s")
    assert await bench.skipped() == [("paused", 600, 600, 1)]
    assert await bench.ran() == [(0, "succeeded"), (1_000, "ready")]


async def test_a_run_that_ends_while_its_schedule_is_paused_leaves_it_paused(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    (one,) = await bench.claim()
    await bench.facade.pause("s")
    await bench.end(one)
    found = await bench.get()
    assert (found.state, found.next_due) == ("paused", None)


async def test_everything_pauses_and_resumes(bench: Bench) -> None:
    await bench.put()
    await bench.facade.pause_all(paused=True, note=None, by=None)
    assert (await bench.go(130)).schedules == 0
    assert await bench.db.read(bench.store.next_wake) is None
    await bench.facade.pause_all(paused=False, note=None, by=None)
    await bench.fire()
    assert await bench.skipped() == [("paused", 60, 120, 2)]
    await bench.go(180)
    assert await bench.ran() == [(180, "ready")]


async def test_what_passed_while_everything_was_paused_stays_paused_whatever_ends_first(bench: Bench) -> None:
    await bench.put(overlap="queue_all")
    await bench.go(60)
    (one,) = await bench.claim()
    await bench.facade.pause_all(paused=True, note=None, by=None)
    bench.clock.advance(100)
    await bench.facade.pause_all(paused=False, note=None, by=None)
    bench.clock.advance(1)
    await bench.end(one)
    await bench.fire()
    assert await bench.skipped() == [("paused", 120, 120, 1)]
    assert [due for due, _ in await bench.ran()] == [60]


async def test_nothing_fires_while_everything_is_paused_not_even_what_is_resumed(bench: Bench) -> None:
    await bench.put()
    await bench.facade.pause("s")
    await bench.facade.pause_all(paused=True, note=None, by=None)
    bench.clock.advance(120)
    await bench.facade.resume("s")
    assert await bench.ran() == []
    bench.clock.advance(60)
    await bench.facade.pause_all(paused=False, note=None, by=None)
    await bench.fire()
    assert [due for due, _ in await bench.ran()] in ([], [180])
    assert sum(each[3] for each in await bench.skipped()) + len(await bench.ran()) == 3


# Trigger, back-fill, remove


async def test_a_trigger_runs_now_and_leaves_the_rule_alone(bench: Bench) -> None:
    await bench.put()
    bench.clock.advance(10)
    found = await bench.facade.trigger("s", by="ann", note="please")
    assert (found.blocker, await bench.ran(), await bench.next()) == (None, [(10, "ready")], 60)
    assert [row["kind"] for row in await bench.rows()] == ["manual"]
    revision = (await bench.facade.revisions("s"))[0]
    assert (revision.what, revision.by, revision.note) == ("triggered", "ann", "please")


async def test_a_trigger_names_the_run_that_keeps_it_out(bench: Bench) -> None:
    await bench.put()
    first = await bench.facade.trigger("s")
    second = await bench.facade.trigger("s")
    assert (second.run, second.blocker) == (None, first.run)
    assert len(await bench.ran()) == 1


async def test_a_queued_trigger_waits_for_the_run_that_it_names(bench: Bench) -> None:
    await bench.put(overlap="queue_one")
    first = await bench.facade.trigger("s")
    second = await bench.facade.trigger("s")
    assert second.run is not None
    assert second.blocker == first.run
    assert await bench.work() == [first.run]
    assert await bench.work() == [second.run]


async def test_a_trigger_of_an_interval_moves_its_next(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    await bench.work()
    bench.clock.advance(100)
    await bench.facade.trigger("s")
    assert await bench.next() is None
    await bench.work()
    assert await bench.next() == 700


async def test_a_paused_schedule_may_be_triggered(bench: Bench) -> None:
    await bench.put()
    await bench.facade.pause("s")
    assert (await bench.facade.trigger("s")).run is not None
    await bench.work()
    assert (await bench.get()).state == "paused"


async def test_a_backfill_runs_a_past_range_in_order(bench: Bench) -> None:
    await bench.put(exclude=At(at(-60)))
    found = await bench.facade.backfill("s", at(-180), at(1))
    assert found.count == 3
    order = []
    while claimed := await bench.claim():
        order += [each.nominal for each in claimed]
        await bench.end(claimed[0])
    assert order == [START - 180 * SECOND, START - 120 * SECOND, START]
    assert {row["kind"] for row in await bench.rows()} == {"backfill"}


async def test_a_backfill_may_run_an_instant_once_more(bench: Bench) -> None:
    await bench.put()
    await bench.go(60)
    await bench.work()
    await bench.facade.backfill("s", at(60), at(61))
    assert await bench.ran() == [(60, "succeeded"), (60, "ready")]


async def test_a_backfill_says_how_many_the_overlap_policy_let_in(bench: Bench) -> None:
    await bench.put(overlap="queue_one")
    await bench.facade.trigger("s")
    assert (await bench.facade.backfill("s", at(-180), at(1))).count == 1
    assert (await bench.facade.backfill("s", at(-180), at(1))).count == 0


async def test_removing_cancels_what_waits_lets_what_runs_end_and_keeps_history(bench: Bench) -> None:
    await bench.put(overlap="queue_all", tags=["x"])
    await bench.go(60)
    (running,) = await bench.claim()
    await bench.go(120)
    assert await bench.facade.remove("s", by="ann") == 1
    assert await bench.ran() == [(60, "running"), (120, "cancelled")]
    await bench.end(running)
    assert await bench.ran() == [(60, "succeeded"), (120, "cancelled")]
    assert [each.what for each in await bench.facade.revisions("s")] == ["removed", "made"]
    assert len(await bench.facade.firings("s")) == 2
    with pytest.raises(UnknownSchedule):
        await bench.get()
    assert (await bench.go(180)).schedules == 0


async def test_a_removed_interval_is_not_rescheduled_by_its_last_run(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.fire()
    (one,) = await bench.claim()
    await bench.facade.remove("s")
    await bench.end(one)
    assert await ask(bench.db, "SELECT * FROM rota_schedules") == []
    assert await ask(bench.db, "SELECT * FROM rota_tags") == []


async def test_versions_go_on_where_a_key_is_used_again(bench: Bench) -> None:
    await bench.put()
    await bench.facade.remove("s")
    assert (await bench.put()).version == 3
    assert [each.version for each in await bench.facade.revisions("s")] == [3, 2, 1]


# Once


async def test_a_firing_that_another_instance_made_is_not_made_again(bench: Bench) -> None:
    await bench.put()
    await ask(
        bench.db,
        "INSERT INTO rota_runs (task, queue, state, priority, due, args, max_lost, created_at, schedule, kind, nominal)"
        " VALUES ('t', 'default', 'succeeded', 50, 0, '{}', 3, 0, 's', 'cron', :nominal)",
        nominal=START + 60 * SECOND,
    )
    found = await bench.go(60)
    assert (found.runs, found.lost) == (0, 1)
    assert await bench.ran() == [(60, "succeeded")]
    assert (await bench.get()).run_count == 0
    assert await bench.next() == 120


async def test_an_interval_whose_firing_another_made_goes_on(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await ask(
        bench.db,
        "INSERT INTO rota_runs (task, queue, state, priority, due, args, max_lost, created_at, schedule, kind, nominal)"
        " VALUES ('t', 'default', 'succeeded', 50, 0, '{}', 3, 0, 's', 'interval', :nominal)",
        nominal=START,
    )
    assert (await bench.fire()).lost == 1
    bench.clock.advance(1)
    assert (await bench.fire()).runs == 1


async def test_what_was_answered_is_not_answered_again(bench: Bench) -> None:
    await bench.put()
    await bench.go(60)
    assert (await bench.fire()).schedules == 0
    bench.clock.now = START + 30 * SECOND  # a clock that was set back
    await bench.work()
    assert (await bench.fire()).runs == 0
    assert (await bench.go(60)).runs == 0
    assert (await bench.go(120)).runs == 1


async def test_what_was_answered_stays_so_when_a_held_schedule_gets_another_rule(bench: Bench) -> None:
    await bench.put()
    await bench.go(60)
    await bench.work()
    bench.clock.now = START + 30 * SECOND  # a clock that was set back
    await bench.facade.pause("s")
    await bench.put(rule=Every("30s"))
    await bench.facade.resume("s")
    again = await bench.go(60)
    assert (again.runs, again.skips, again.lost) == (0, 0, 0)
    assert (await bench.go(90)).runs == 1
    assert await bench.skipped() == []


async def test_what_was_answered_stays_so_where_the_rule_changes_in_a_pause_and_the_clock_was_set_back(
    bench: Bench,
) -> None:
    await bench.put()
    await bench.go(60)
    await bench.work()
    await bench.facade.pause("s")
    bench.clock.now = START + 30 * SECOND
    await bench.facade.change("s", rule=Every("20s"))
    await bench.facade.resume("s")
    found = await bench.go(80)
    assert (found.runs, found.lost) == (1, 0)
    assert [due for due, _ in await bench.ran()] == [60, 80]
    assert await bench.skipped() == []


# Skips


async def test_only_neighbouring_skips_are_one(bench: Bench) -> None:
    await bench.put()
    await bench.go(60)
    await bench.go(120)
    await bench.go(180)
    await bench.work()
    await bench.go(240)
    await bench.go(300)
    assert await bench.skipped() == [("overlap", 120, 180, 2), ("overlap", 300, 300, 1)]


async def test_skips_of_different_reasons_are_two(bench: Bench) -> None:
    await bench.put()
    await bench.go(60)
    await bench.go(120)
    await bench.facade.pause("s")
    bench.clock.advance(70)
    await bench.facade.resume("s")
    assert await bench.skipped() == [("overlap", 120, 120, 1), ("paused", 180, 180, 1)]


async def test_a_backfill_of_what_lies_ahead_is_refused(bench: Bench) -> None:
    await bench.put()
    with pytest.raises(InvalidSchedule, match=r"lies ahead; use a range that is past"):
        await bench.facade.backfill("s", at(-120), at(61))
    assert await bench.ran() == []


async def test_more_runs_for_a_finished_schedule_are_those_of_the_future(bench: Bench) -> None:
    await bench.put(max_runs=1, missed="all")
    await bench.go(60)
    await bench.work()
    bench.clock.advance(600)
    await bench.facade.change("s", max_runs=3)
    assert (await bench.fire()).schedules == 0
    assert await bench.next() == 720
    assert await bench.skipped() == []


async def test_every_revision_is_a_version(bench: Bench) -> None:
    await bench.put(overlap="allow", max_running=9)
    await bench.go(60)
    await bench.facade.trigger("s")
    await bench.facade.backfill("s", at(-60), at(1))
    await bench.facade.pause("s")
    await bench.facade.resume("s")
    await bench.facade.change("s", description="other")
    newest = (await bench.facade.revisions("s"))[0].version
    assert (await bench.get()).version == newest == 6
    assert await bench.facade.change("s", description="newer", version=newest) == 1


async def test_a_pause_or_a_success_in_the_wrong_direction_is_refused(bench: Bench) -> None:
    await bench.put()
    with pytest.raises(InvalidSchedule, match=r"until: .* is past; use a moment that lies ahead"):
        await bench.facade.pause("s", until=at(0))
    with pytest.raises(InvalidSchedule, match=r"last_success: .* lies ahead; use a moment that is past"):
        await bench.facade.change("s", last_success=at(1))
    assert (await bench.get()).state == "active"
    assert len(await bench.facade.revisions("s")) == 1


# Parked


@pytest.mark.parametrize("kind", ["UnknownTask", "UnreadableArguments"])
async def test_a_call_that_does_not_resolve_parks_its_schedule(bench: Bench, kind: str) -> None:
    await bench.put()
    await bench.go(60)
    (number,) = await bench.work("failed", error=RunError(kind, "no"))
    found = await bench.get()
    assert found.held is not None
    assert (found.state, found.held.reason) == ("parked", "parked")
    assert found.held.note == f"run {number} could not be called: {kind}"
    assert (await bench.go(180)).schedules == 0
    await bench.facade.resume("s")
    assert await bench.skipped() == [("parked", 120, 120, 1)]
    assert [due for due, _ in await bench.ran()] == [60, 180]


async def test_one_that_is_finished_by_a_run_that_could_not_be_called_is_parked_and_can_be_repaired(
    bench: Bench,
) -> None:
    await bench.put(rule=At(at(60)))
    await bench.go(60)
    assert (await bench.get()).state == "finished"
    await bench.work("failed", error=RunError("UnknownTask", "no"))
    assert (await bench.get()).state == "parked"
    await bench.facade.resume("s")
    assert (await bench.get()).state == "finished"
    await bench.facade.trigger("s")
    assert [due for due, _ in await bench.ran()] == [60, 60]


# Heal


async def test_an_active_schedule_with_no_next_and_no_run_is_healed(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.put("whole")
    await bench.fire()
    await ask(bench.db, "DELETE FROM rota_runs")
    assert await bench.db.write(lambda: bench.store.heal(10)) == 1
    bench.clock.advance(1)
    assert (await bench.fire()).runs == 1
    assert await bench.db.write(lambda: bench.store.heal(10)) == 0


async def test_the_default_of_what_late_means_is_a_minute(bench: Bench) -> None:
    await bench.put(rule=Every("1h"), overlap="allow")
    await bench.go(3_660)
    assert [row["priority"] for row in await bench.rows()] == [50]
    assert timedelta(seconds=60) == MINUTELY.interval
    assert made().call.name == work.name


async def test_after_the_clock_was_set_back_a_schedule_goes_on_and_what_ran_is_not_run_again(bench: Bench) -> None:
    await bench.put(overlap="allow", max_running=9)
    await bench.go(60)
    assert (await bench.go(3660)).runs == 1  # the clock leaps: one run for the hour
    bench.clock.advance(-3570)
    assert await bench.db.write(lambda: bench.store.heal(10)) == 1
    assert await bench.next() == 120
    assert await bench.db.write(lambda: bench.store.heal(10)) == 0
    assert [(await bench.go(second)).runs for second in (120, 3600, 3660, 3720)] == [1, 1, 0, 1]
    assert sorted(await bench.ran()) == [(second, "ready") for second in (60, 120, 3600, 3660, 3720)]
    assert (await bench.get()).run_count == 5


async def test_after_the_clock_was_set_back_an_interval_counts_from_then(bench: Bench) -> None:
    await bench.put(rule=SINCE_SUCCESS)
    await bench.go(3600)
    await bench.work()
    bench.clock.advance(-3600)
    assert await bench.db.write(lambda: bench.store.heal(10)) == 1
    assert await bench.next() == 600


async def test_a_clock_that_was_set_back_a_little_is_waited_for(bench: Bench) -> None:
    await bench.put()
    await bench.go(60)
    bench.clock.advance(-59)
    assert await bench.db.write(lambda: bench.store.heal(10)) == 0
    assert await bench.next() == 120


async def test_skips_before_and_after_a_run_are_not_written_as_one(bench: Bench) -> None:
    await bench.put(overlap="queue_one", missed="all")
    await bench.go(60)
    (first,) = await bench.claim()
    await bench.go(120)
    await bench.go(180)  # one runs, and one is queued
    await bench.end(first)
    await bench.go(360)  # the first of three is queued
    assert [due for due, _ in await bench.ran()] == [60, 120, 240]
    assert await bench.skipped() == [("overlap", 180, 180, 1), ("overlap", 300, 360, 2)]


@pytest.mark.parametrize("reads", range(12))
async def test_an_instant_that_comes_while_the_rule_is_changed_belongs_to_one_of_the_rules(
    bench: Bench, clock: Clock, reads: int
) -> None:
    """Time goes on while a verb works: here by a millisecond each time that somebody asks for it."""
    await bench.put(rule=Every("1m"))
    clock.now = START + 60 * SECOND - 1_000 * reads - 500

    def going() -> int:
        clock.now += 1_000
        return clock.now

    bench.db.now = going
    await bench.put(rule=Every("1h"))
    bench.db.now = clock
    (row,) = await ask(bench.db, "SELECT since FROM rota_schedules")
    was_due = row["since"] >= START + 60 * SECOND
    assert await bench.ran() == ([(60, "ready")] if was_due else [])
