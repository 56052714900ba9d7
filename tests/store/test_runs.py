"""The verbs of a run's life, on each database: what each changes, and what it must leave alone."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.stores import SECOND, START, Clock, ask, claim, claim_one, ended, get, new, on_clock, put, settle

from rota.db.database import Database
from rota.model import Outcome, RunError
from rota.store.runs import Claimed, NewRun, RunStore
from rota.times.moments import moment

WRONG = RunError("ValueError", "no such feed", "Traceback …")


async def attempts(db: Database, run: int) -> list[tuple[int, Outcome]]:
    found = await db.read(lambda: RunStore(db).attempts(run))
    return [(each.number, each.outcome) for each in found]


async def unique(db: Database, key: str, *, within: float = 0) -> Any:
    asked = new(unique=key, unique_for=round(within * SECOND))
    return await db.write(lambda: RunStore(db).insert_unique(asked))


# Enqueue


async def test_a_run_that_is_due_is_ready_at_once(db: Database) -> None:
    run = await put(db, task="feeds.refresh", args='{"feed":42}', queue="feeds", priority=75)
    assert (run.task, run.args, run.queue, run.priority) == ("feeds.refresh", '{"feed":42}', "feeds", 75)
    assert (run.state, run.attempt, run.lost, run.created) == ("ready", 0, 0, True)
    assert run.due == run.created_at == moment(START)
    assert await get(db, run.id) == await get(db, run.id)
    assert (await get(db, run.id)).created is False


@pytest.mark.parametrize(
    ("when", "state", "due"),
    [
        ({}, "ready", 0),
        ({"delay": 5 * SECOND}, "waiting", 5),
        ({"at": START + 7 * SECOND}, "waiting", 7),
        ({"at": START - 7 * SECOND}, "ready", -7),
        ({"at": START}, "ready", 0),
        ({"at": START + SECOND, "delay": SECOND}, "waiting", 2),
    ],
)
async def test_a_run_for_later_waits(db: Database, when: dict[str, int], state: str, due: int) -> None:
    for run in (await put(db, **when), await get(db, (await many(db, [new(**when)]))[0])):
        assert run.state == state
        assert run.due == moment(START) + timedelta(seconds=due)


async def many(db: Database, runs: list[NewRun]) -> list[int]:
    return await db.write(lambda: RunStore(db).insert(runs))


async def test_many_runs_get_ids_in_the_order_they_were_given(db: Database) -> None:
    before = await put(db)
    ids = await many(db, [new(f"task.{n}", args=f'{{"n":{n}}}', priority=n % 3) for n in range(500)])
    assert ids == sorted(set(ids))
    assert ids[0] > before.id
    assert [(await get(db, ids[n])).task for n in (0, 1, 250, 499)] == ["task.0", "task.1", "task.250", "task.499"]


async def test_many_runs_at_once_from_several_places_keep_their_own_ids(db: Database) -> None:
    lots = await asyncio.gather(*(many(db, [new(f"lot.{lot}")] * 50) for lot in range(8)))
    for lot, ids in enumerate(lots):
        assert {(await get(db, run)).task for run in ids} == {f"lot.{lot}"}


async def test_no_runs_are_no_runs(db: Database) -> None:
    assert await claim(db) == []
    assert await settle(db, "w", []) == set()


async def test_there_is_no_run_under_a_number_that_was_never_given(db: Database) -> None:
    assert await db.read(lambda: RunStore(db).get(404)) is None


# Admit


async def test_a_waiting_run_is_admitted_when_its_time_has_come(db: Database, runs: RunStore, clock: Clock) -> None:
    run = await put(db, delay=5 * SECOND)
    clock.advance(4.999_999)
    assert await db.write(lambda: runs.admit(10)) == {}
    assert await claim(db) == []
    clock.advance(0.000_001)
    assert await db.write(lambda: runs.admit(10)) == {"default": 1}
    assert (await get(db, run.id)).state == "ready"


async def test_admission_counts_by_queue_and_takes_the_longest_due_first(
    db: Database, runs: RunStore, clock: Clock
) -> None:
    late = await put(db, delay=3 * SECOND, queue="a")
    early = await put(db, delay=1 * SECOND, queue="b")
    middle = await put(db, delay=2 * SECOND, queue="b")
    clock.advance(10)
    assert await db.write(lambda: runs.admit(2)) == {"b": 2}
    assert [(await get(db, run.id)).state for run in (early, middle, late)] == ["ready", "ready", "waiting"]
    assert await db.write(lambda: runs.admit(2)) == {"a": 1}


async def test_the_next_due_run_says_how_long_to_sleep(db: Database, runs: RunStore, clock: Clock) -> None:
    assert await db.read(runs.next_due) == (None, False)
    await put(db, delay=9 * SECOND)
    await put(db, delay=5 * SECOND)
    await put(db)
    assert await db.read(runs.next_due) == (5 * SECOND, False)
    clock.advance(6)
    assert await db.read(runs.next_due) == (-1 * SECOND, False)


# Claim


async def test_a_claim_makes_a_run_this_workers_for_one_attempt(db: Database) -> None:
    run = await put(db, args='{"feed":42}')
    (held,) = await claim(db, "w1")
    assert (held.id, held.attempt, held.args, held.failures, held.lost) == (run.id, 1, '{"feed":42}', 0, 0)
    assert (held.previous_result, held.previous_error, held.limited) == (None, None, False)
    now = await get(db, run.id)
    assert (now.state, now.worker, now.attempt) == ("running", "w1", 1)
    assert now.started_at == moment(START)


async def test_runs_are_claimed_by_priority_then_by_due_then_by_number(db: Database) -> None:
    places = [(50, 0), (25, 0), (75, 0), (50, -5), (50, 0), (75, 0), (-1, -99)]
    ids = [(await put(db, priority=priority, at=START + due * SECOND)).id for priority, due in places]
    expected = [ids[n] for n in (2, 5, 3, 0, 4, 1, 6)]
    assert [held.id for held in await claim(db)] == expected


async def test_priority_holds_from_claim_to_claim(db: Database) -> None:
    for priority in (10, 30, 20, 30):
        await put(db, priority=priority)
    assert [(await claim_one(db)).priority for _ in range(4)] == [30, 30, 20, 10]


async def test_a_claim_takes_no_more_than_asked_and_from_its_queue_alone(db: Database) -> None:
    for _ in range(5):
        await put(db, queue="a")
    await put(db, queue="b")
    assert len(await claim(db, queue="a", most=3)) == 3
    assert len(await claim(db, queue="a", most=3)) == 2
    assert len(await claim(db, queue="b", most=3)) == 1


async def test_two_workers_never_hold_the_same_run(db: Database, store: str, clock: Clock) -> None:
    ids = await many(db, [new()] * 300)
    other = await on_clock(store, clock)

    async def drain(database: Database, name: str) -> list[int]:
        mine: list[int] = []
        while found := await claim(database, name, 7):
            mine += [each.id for each in found]
        return mine

    held = await asyncio.gather(*(drain(each, f"w{n}") for n, each in enumerate([db, other] * 3)))
    await other.close()
    assert sorted(run for mine in held for run in mine) == ids


async def test_a_claim_can_leave_out_runs_that_were_lost(db: Database) -> None:
    fresh, lost = await put(db), await put(db)
    await ask(db, "UPDATE rota_runs SET lost = 2 WHERE id = :id", id=lost.id)
    assert [each.id for each in await claim(db, lost=(0, 0))] == [fresh.id]
    assert await claim(db, lost=(1, 1)) == []
    assert [(each.id, each.lost) for each in await claim(db, lost=(2, 9))] == [(lost.id, 2)]


# Settle


async def test_a_success_keeps_its_result_and_needs_no_attempt_row(db: Database, clock: Clock) -> None:
    await put(db)
    held = await claim_one(db)
    clock.advance(3)
    assert await settle(db, "w", [ended(held, "succeeded", result="42")]) == {held.id}
    run = await get(db, held.id)
    assert (run.state, run.result, run.error, run.under_way) == ("succeeded", "42", None, False)
    assert run.finished_at == moment(START) + timedelta(seconds=3)
    assert await attempts(db, held.id) == []


@pytest.mark.parametrize(("outcome", "state"), [("failed", "failed"), ("cancelled", "cancelled")])
async def test_an_end_without_a_result_keeps_its_error(db: Database, outcome: Outcome, state: str) -> None:
    await put(db)
    held = await claim_one(db)
    assert await settle(db, "w", [ended(held, outcome, error=WRONG)]) == {held.id}
    run = await get(db, held.id)
    assert (run.state, run.error, run.finished_at) == (state, WRONG, moment(START))
    assert await attempts(db, held.id) == [(1, outcome)]


@pytest.mark.parametrize(("outcome", "failures"), [("retry", 1), ("snoozed", 0)])
async def test_a_run_that_goes_on_waits_again(
    db: Database, runs: RunStore, clock: Clock, outcome: Outcome, failures: int
) -> None:
    await put(db)
    held = await claim_one(db)
    clock.advance(1)
    assert await settle(db, "w", [ended(held, outcome, delay=10 * SECOND, error=WRONG)]) == {held.id}
    run = await get(db, held.id)
    assert (run.state, run.finished_at, run.due) == ("waiting", None, moment(START) + timedelta(seconds=11))
    clock.advance(10)
    assert await db.write(lambda: runs.admit(1)) == {"default": 1}
    again = await claim_one(db, "w2")
    assert (again.id, again.attempt, again.failures) == (held.id, 2, failures)
    assert RunError.read(again.previous_error) == WRONG
    assert await settle(db, "w2", [ended(again, "succeeded", result="1")]) == {held.id}
    assert await attempts(db, held.id) == [(1, outcome), (2, "succeeded")]
    assert (await get(db, held.id)).error is None


async def test_an_attempt_row_says_who_when_and_why(db: Database, runs: RunStore, clock: Clock) -> None:
    await put(db)
    held = await claim_one(db, "w7")
    clock.advance(2)
    await settle(db, "w7", [ended(held, "failed", error=WRONG)])
    (found,) = await db.read(lambda: runs.attempts(held.id))
    assert (found.worker, found.error) == ("w7", WRONG)
    assert found.finished_at - found.started_at == timedelta(seconds=2)


def as_another_attempt(held: Claimed) -> Any:
    return ended(held, "succeeded", result="2").__class__(held.id, held.attempt + 1, "succeeded", "2")


@pytest.mark.parametrize("wrong", ["worker", "attempt", "run"])
async def test_whoever_does_not_hold_the_run_changes_nothing(db: Database, wrong: str) -> None:
    await put(db)
    held = await claim_one(db, "w1")
    before = await get(db, held.id)
    late = ended(held, "failed", error=WRONG)
    if wrong == "attempt":
        late = as_another_attempt(held)
    if wrong == "run":
        late = late.__class__(held.id + 1, held.attempt, "failed", error=WRONG)
    assert await settle(db, "w2" if wrong == "worker" else "w1", [late]) == set()
    assert await get(db, held.id) == before
    assert await attempts(db, held.id) == []


@pytest.mark.parametrize("first", ["succeeded", "failed", "cancelled", "retry", "snoozed"])
@pytest.mark.parametrize("second", ["succeeded", "failed", "cancelled", "retry", "snoozed"])
async def test_an_attempt_ends_once(db: Database, first: Outcome, second: Outcome) -> None:
    await put(db)
    held = await claim_one(db)
    delays = {"retry": 5, "snoozed": 5}
    assert await settle(db, "w", [ended(held, first, delay=delays.get(first))]) == {held.id}
    after = await get(db, held.id)
    assert await settle(db, "w", [ended(held, second, result="9", delay=delays.get(second))]) == set()
    assert await get(db, held.id) == after
    assert await attempts(db, held.id) == ([] if first == "succeeded" else [(1, first)])


async def test_a_batch_settles_what_is_held_and_leaves_the_rest(db: Database) -> None:
    for _ in range(6):
        await put(db)
    held = await claim(db, "w1", 4)
    foreign = await claim(db, "w2", 2)
    outcomes: list[Outcome] = ["succeeded", "failed", "retry", "cancelled"]
    batch = [ended(run, how, delay=0 if how == "retry" else None) for run, how in zip(held, outcomes, strict=True)]
    late = [ended(run, "failed") for run in foreign]
    assert await settle(db, "w1", [late[0], *batch, late[1]]) == {run.id for run in held}
    states = [(await get(db, run.id)).state for run in (*held, *foreign)]
    assert states == ["succeeded", "failed", "waiting", "cancelled", "running", "running"]


async def test_a_result_outlives_a_later_attempt_without_one(db: Database, runs: RunStore) -> None:
    await put(db)
    held = await claim_one(db)
    await settle(db, "w", [ended(held, "succeeded", result='"first"')])
    await db.write(lambda: runs.retry(held.id))
    again = await claim_one(db)
    assert again.previous_result == '"first"'
    await settle(db, "w", [ended(again, "failed", error=WRONG)])
    assert (await get(db, held.id)).result == '"first"'


# Hand back


async def test_what_was_handed_back_is_as_if_it_had_never_been_claimed(db: Database, runs: RunStore) -> None:
    before = await put(db)
    held = await claim_one(db)
    await db.write(lambda: runs.hand_back("w", [(held.id, held.attempt)]))
    after = await get(db, held.id)
    assert (after.state, after.attempt, after.worker, after.started_at, after.lost) == ("ready", 0, None, None, 0)
    assert after.due == before.due
    assert await attempts(db, held.id) == []
    assert (await claim_one(db, "w2")).attempt == 1


async def test_only_the_holder_can_hand_back(db: Database, runs: RunStore) -> None:
    await put(db)
    held = await claim_one(db)
    for name, pair in (("other", (held.id, 1)), ("w", (held.id, 2)), ("w", (held.id + 1, 1))):
        await db.write(lambda name=name, pair=pair: runs.hand_back(name, [pair]))
    assert (await get(db, held.id)).state == "running"
    await settle(db, "w", [ended(held, "succeeded", result="1")])
    await db.write(lambda: runs.hand_back("w", [(held.id, held.attempt)]))
    assert (await get(db, held.id)).state == "succeeded"


async def test_a_cancelled_run_that_is_handed_back_is_not_begun_by_another(db: Database, runs: RunStore) -> None:
    await put(db)
    held = await claim_one(db)
    await db.write(lambda: runs.cancel(held.id, "enough"))
    await db.write(lambda: runs.hand_back("w", [(held.id, held.attempt)]))
    run = await get(db, held.id)
    assert (run.state, run.cancel, run.finished_at) == ("cancelled", "enough", moment(START))


# Cancel


@pytest.mark.parametrize("when", [{}, {"delay": 60 * SECOND}, {"limits": ("host:x",)}])
async def test_a_run_that_nobody_holds_is_cancelled_at_once(db: Database, runs: RunStore, when: dict[str, Any]) -> None:
    run = await put(db, **when)
    assert await db.write(lambda: runs.cancel(run.id, "not needed")) == "cancelled"
    now = await get(db, run.id)
    assert (now.state, now.cancel, now.finished_at) == ("cancelled", "not needed", moment(START))
    assert await claim(db) == []


async def test_the_worker_of_a_running_run_hears_that_it_is_to_stop(db: Database, runs: RunStore) -> None:
    await put(db)
    await put(db)
    held, other = await claim(db)
    assert await db.read(lambda: runs.to_cancel("w")) == []
    assert await db.write(lambda: runs.cancel(held.id, "enough")) == "running"
    assert await db.read(lambda: runs.to_cancel("w")) == [(held.id, 1, "enough")]
    assert await db.read(lambda: runs.to_cancel("other")) == []
    await settle(db, "w", [ended(held, "cancelled"), ended(other, "succeeded")])
    assert await db.read(lambda: runs.to_cancel("w")) == []
    assert (await get(db, held.id)).state == "cancelled"


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        ("succeeded", "succeeded"),
        ("failed", "failed"),
        ("retry", "cancelled"),
        ("snoozed", "cancelled"),
        ("cancelled", "cancelled"),
    ],
)
async def test_a_run_to_be_cancelled_may_end_but_not_go_on(
    db: Database, runs: RunStore, outcome: Outcome, state: str
) -> None:
    await put(db)
    held = await claim_one(db)
    await db.write(lambda: runs.cancel(held.id, "enough"))
    await settle(db, "w", [ended(held, outcome, delay=5 if outcome in ("retry", "snoozed") else None)])
    run = await get(db, held.id)
    assert (run.state, run.finished_at) == (state, moment(START))


async def test_what_has_ended_cannot_be_cancelled(db: Database, runs: RunStore) -> None:
    await put(db)
    held = await claim_one(db)
    await settle(db, "w", [ended(held, "failed", error=WRONG)])
    before = await get(db, held.id)
    assert await db.write(lambda: runs.cancel(held.id, "too late")) is None
    assert await db.write(lambda: runs.cancel(404, "nobody")) is None
    assert await get(db, held.id) == before


# Retry


@pytest.mark.parametrize("outcome", ["succeeded", "failed", "cancelled"])
async def test_an_ended_run_can_be_tried_again_with_its_history(
    db: Database, runs: RunStore, clock: Clock, outcome: Outcome
) -> None:
    await put(db, queue="feeds")
    (held,) = await claim(db, queue="feeds")
    await settle(db, "w", [ended(held, outcome, error=None if outcome == "succeeded" else WRONG)])
    clock.advance(60)
    assert await db.write(lambda: runs.retry(held.id)) == "feeds"
    run = await get(db, held.id)
    assert (run.state, run.finished_at, run.cancel, run.lost) == ("ready", None, None, 0)
    assert run.due == moment(START) + timedelta(seconds=60)
    (again,) = await claim(db, queue="feeds")
    assert (again.id, again.attempt, again.failures) == (held.id, 2, 0)
    await settle(db, "w", [ended(again, "failed", error=WRONG)])
    assert await attempts(db, held.id) == [*([] if outcome == "succeeded" else [(1, outcome)]), (2, "failed")]


async def test_a_run_that_was_cancelled_before_it_began_can_be_tried(db: Database, runs: RunStore) -> None:
    run = await put(db, delay=60 * SECOND)
    await db.write(lambda: runs.cancel(run.id, "oops"))
    assert await db.write(lambda: runs.retry(run.id)) == "default"
    held = await claim_one(db)
    assert held.attempt == 1
    assert await db.read(lambda: runs.to_cancel("w")) == []


async def test_a_run_under_way_is_not_tried_again(db: Database, runs: RunStore) -> None:
    waiting, ready = await put(db, delay=SECOND), await put(db)
    for run in (waiting, ready):
        assert await db.write(lambda run=run: runs.retry(run.id)) is None
    held = await claim_one(db)
    assert await db.write(lambda: runs.retry(held.id)) is None
    assert await db.write(lambda: runs.retry(404)) is None
    assert (await get(db, waiting.id)).state == "waiting"


async def test_a_run_is_not_tried_again_while_another_of_its_key_is_under_way(db: Database, runs: RunStore) -> None:
    first = await unique(db, "feed-42")
    await db.write(lambda: runs.cancel(first.id, "oops"))
    second = await unique(db, "feed-42")
    assert second.created
    assert await db.write(lambda: runs.retry(first.id)) is None
    assert (await get(db, first.id)).state == "cancelled"
    await db.write(lambda: runs.cancel(second.id, "done"))
    assert await db.write(lambda: runs.retry(first.id)) == "default"


# Unique keys


async def test_a_key_has_one_run_while_one_is_under_way(db: Database, runs: RunStore, clock: Clock) -> None:
    first = await unique(db, "feed-42")
    assert first.created
    for _ in range(2):
        twin = await unique(db, "feed-42")
        assert (twin.id, twin.created) == (first.id, False)
    held = await claim_one(db)
    assert (await unique(db, "feed-42")).id == first.id
    await settle(db, "w", [ended(held, "retry", delay=SECOND)])
    assert (await unique(db, "feed-42")).id == first.id
    clock.advance(1)
    await db.write(lambda: runs.admit(1))
    await settle(db, "w", [ended(await claim_one(db), "succeeded", result="1")])
    later = await unique(db, "feed-42")
    assert later.created
    assert later.id != first.id


async def test_keys_do_not_know_each_other(db: Database) -> None:
    assert (await unique(db, "a")).created
    assert (await unique(db, "b")).created
    assert (await put(db)).created


async def test_a_key_can_have_one_run_in_a_period(db: Database, clock: Clock) -> None:
    first = await unique(db, "digest", within=60)
    await settle(db, "w", [ended(await claim_one(db), "succeeded")])
    clock.advance(59)
    twin = await unique(db, "digest", within=60)
    assert (twin.id, twin.created, twin.state) == (first.id, False, "succeeded")
    assert (await unique(db, "digest", within=30)).created
    clock.advance(60)
    assert not (await unique(db, "digest", within=60)).created  # it is still under way
    await settle(db, "w", [ended(await claim_one(db), "succeeded")])
    assert (await unique(db, "digest", within=60)).created


async def test_many_who_enqueue_one_key_at_once_make_one_run(db: Database, store: str, clock: Clock) -> None:
    other = await on_clock(store, clock)
    found = await asyncio.gather(*(unique(each, "feed-42") for each in [db, other] * 15))
    await other.close()
    assert len({run.id for run in found}) == 1
    assert [run.created for run in found].count(True) == 1


# Progress


async def test_progress_is_noted_by_the_holder_alone(db: Database, runs: RunStore) -> None:
    await put(db)
    held = await claim_one(db)
    assert await db.write(lambda: runs.progress("w", held.id, 1, 0.5, "half"))
    assert not await db.write(lambda: runs.progress("other", held.id, 1, 0.9, "not mine"))
    assert not await db.write(lambda: runs.progress("w", held.id, 2, 0.9, "not yet"))
    assert (await get(db, held.id)).progress == (0.5, "half")
    await settle(db, "w", [ended(held, "succeeded")])
    assert not await db.write(lambda: runs.progress("w", held.id, 1, 1.0, "late"))
