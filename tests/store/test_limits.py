"""Limits: who is let in, in which order, and what is given back."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.stores import SECOND, Clock, ask, claim, ended, get, new, put, settle, worker

from rota.db.database import Database
from rota.errors import Invalid
from rota.limit import Limit
from rota.model import Run
from rota.store.admission import Admission, Admitted
from rota.store.limits import LimitStore
from rota.store.runs import Claimed, RunStore
from rota.store.workers import NewWorker, WorkerStore

Admit = Callable[[], Awaitable[Admitted]]


@pytest.fixture
def limits(db: Database) -> LimitStore:
    return LimitStore(db)


@pytest.fixture
async def admit(db: Database, workers: WorkerStore) -> Admit:
    """Admits once, in a store with a worker of the default queue."""
    await db.write(lambda: workers.enter(worker("w"), 10**15))

    async def once() -> Admitted:
        return await db.write(lambda: Admission(db).admit(1_000))

    return once


async def limit(db: Database, key: str, *args: Any, **more: Any) -> None:
    await db.write(lambda: LimitStore(db).put(key, Limit(*args, **more)))


async def named(db: Database, *keys: str, **more: Any) -> Run[Any]:
    return await put(db, new(limits=tuple(sorted(keys)), **more))


async def states(db: Database, *runs: Run[Any]) -> list[str]:
    return [(await get(db, run.id)).state for run in runs]


async def finish(db: Database, *claimed: Claimed) -> None:
    await settle(db, "w", [ended(each, "succeeded", result="1", limited=each.limited) for each in claimed])


async def test_a_key_lets_in_as_many_as_its_limit_says_in_order(db: Database, admit: Admit) -> None:
    await limit(db, "gpu", 2)
    low = await named(db, "gpu", priority=25)
    usual = [await named(db, "gpu") for _ in range(2)]
    high = await named(db, "gpu", priority=75)
    assert await states(db, low, *usual, high) == ["waiting"] * 4
    assert (await admit()).ready == {"default": 2}
    assert await states(db, low, *usual, high) == ["waiting", "ready", "waiting", "ready"]
    first, second = await claim(db)
    assert (first.id, second.id) == (high.id, usual[0].id)
    assert first.limited
    assert (await admit()).ready == {}
    await finish(db, first)
    assert (await admit()).ready == {"default": 1}
    assert await states(db, low, usual[1]) == ["waiting", "ready"]


async def test_each_key_of_a_group_has_the_limit_for_itself(db: Database, admit: Admit) -> None:
    await limit(db, "host:*", 1)
    a, again, b = [await named(db, each) for each in ("host:a", "host:a", "host:b")]
    assert (await admit()).ready == {"default": 2}
    assert await states(db, a, again, b) == ["ready", "waiting", "ready"]


async def test_a_keys_own_limit_goes_before_its_groups(db: Database, admit: Admit) -> None:
    await limit(db, "host:*", 1)
    await limit(db, "host:big", 3)
    for each in ("host:big", "host:small"):
        for _ in range(4):
            await named(db, each)
    assert (await admit()).ready == {"default": 4}


async def test_the_gap_counts_from_the_end_of_the_last_one(db: Database, admit: Admit, clock: Clock) -> None:
    await limit(db, "host:*", 1, gap="1s")
    runs = [await named(db, "host:a") for _ in range(3)]
    await admit()
    clock.advance(5)  # however long it runs
    await finish(db, *(await claim(db)))
    assert await admit() == Admitted({}, SECOND)
    clock.advance(0.999_999)
    assert await admit() == Admitted({}, 1)
    assert await states(db, *runs) == ["succeeded", "waiting", "waiting"]
    clock.advance(0.000_001)
    assert (await admit()).ready == {"default": 1}


async def test_a_clock_that_is_set_back_does_not_lengthen_a_pause(db: Database, admit: Admit, clock: Clock) -> None:
    await limit(db, "gpu", 1, gap="1s")
    await named(db, "gpu")
    await named(db, "gpu")
    await admit()
    await finish(db, *(await claim(db)))
    clock.advance(-3_600)
    await ask(db, "UPDATE rota_runs SET due = 0")
    await db.write(LimitStore(db).sweep)
    clock.advance(1)
    assert (await admit()).ready == {"default": 1}


async def test_a_shorter_gap_counts_at_once_from_then(db: Database, admit: Admit, clock: Clock) -> None:
    await limit(db, "gpu", 1, gap="1h")
    await named(db, "gpu")
    await named(db, "gpu")
    await admit()
    await finish(db, *(await claim(db)))
    await limit(db, "gpu", 1, gap="2s")
    assert (await admit()).ready == {}
    clock.advance(2)
    assert (await admit()).ready == {"default": 1}


async def test_only_so_many_keys_of_a_group_are_busy_at_once(db: Database, admit: Admit) -> None:
    await limit(db, "host:*", 2, keys_at_once=2)
    runs = {name: await named(db, name) for name in ("host:a", "host:b", "host:c")}
    more = await named(db, "host:a")
    assert (await admit()).ready == {"default": 3}
    assert await states(db, *runs.values(), more) == ["ready", "ready", "waiting", "ready"]
    a, b, again = await claim(db)
    await finish(db, a)
    assert (await admit()).ready == {}  # its second run keeps a busy
    await finish(db, again)
    assert (await admit()).ready == {"default": 1}
    assert b.id == runs["host:b"].id


async def test_a_run_waits_for_all_its_keys_and_keeps_none_meanwhile(db: Database, admit: Admit) -> None:
    await limit(db, "a", 1)
    await limit(db, "b", 1)
    both = await named(db, "a", "b")
    await admit()
    (first,) = await claim(db)
    assert first.id == both.id
    second = await named(db, "a", "b")
    only_b = await named(db, "b")
    await finish(db, first)
    await admit()
    (running,) = await claim(db)
    assert running.id == second.id
    only_a = await named(db, "a")
    await finish(db, running)
    assert (await admit()).ready == {"default": 2}
    assert await states(db, only_a, only_b) == ["ready", "ready"]


async def test_a_limit_of_a_task_or_a_queue_concerns_runs_that_name_nothing(
    db: Database, workers: WorkerStore, admit: Admit
) -> None:
    await db.write(lambda: workers.enter(NewWorker("s", "host", 1, ("slow",), 1), 10**15))
    await limit(db, "task:check", 1)
    await limit(db, "queue:slow", 2)
    free = await put(db, new("other"))
    checks = [await put(db, new("check")) for _ in range(2)]
    slow = [await put(db, new("other", queue="slow")) for _ in range(3)]
    assert await states(db, free, *checks, *slow) == ["ready"] + ["waiting"] * 5
    assert (await admit()).ready == {"default": 1, "slow": 2}
    assert await states(db, *checks, *slow) == ["ready", "waiting", "ready", "ready", "waiting"]


async def test_many_at_once_are_stored_behind_limits_too(db: Database, runs: RunStore, admit: Admit) -> None:
    await limit(db, "task:check", 1)
    await db.write(lambda: runs.insert([new("check"), new("other"), new("other", limits=("gpu",))]))
    found = await ask(db, "SELECT state FROM rota_runs ORDER BY id")
    assert [row[0] for row in found] == ["waiting", "ready", "waiting"]
    assert (await admit()).ready == {"default": 2}


async def test_a_run_that_names_a_key_without_a_limit_is_ready(db: Database, admit: Admit) -> None:
    run = await named(db, "host:a")
    assert run.state == "ready"
    await limit(db, "other", 1)
    assert (await get(db, run.id)).state == "waiting"
    assert (await admit()).ready == {"default": 1}
    (found,) = await claim(db)
    assert not found.limited


async def test_a_limit_that_is_put_later_counts_what_is_under_way(db: Database, admit: Admit) -> None:
    await put(db, new("check"))
    (running,) = await claim(db)
    ready = await put(db, new("check"))
    await limit(db, "task:check", 1)
    assert (await get(db, ready.id)).state == "waiting"
    assert (await admit()).ready == {}
    await settle(db, "w", [ended(running, "succeeded", result="1")])  # who claimed it before knows of no limit
    assert (await admit()).ready == {"default": 1}


async def test_a_limit_that_is_changed_or_removed_counts_at_once(
    db: Database, admit: Admit, limits: LimitStore
) -> None:
    await limit(db, "gpu", 1)
    for _ in range(6):
        await named(db, "gpu")
    assert (await admit()).ready == {"default": 1}
    await limit(db, "gpu", 3)
    assert (await admit()).ready == {"default": 2}
    await limit(db, "gpu", 1)
    assert (await admit()).ready == {}
    assert await db.write(lambda: limits.remove("gpu"))
    assert not await db.write(lambda: limits.remove("gpu"))
    assert await db.write(lambda: RunStore(db).admit(10)) == {"default": 3}


@pytest.mark.parametrize("outcome", ["succeeded", "failed", "cancelled", "retry", "snoozed"])
async def test_however_an_attempt_ends_its_room_is_given_back(db: Database, admit: Admit, outcome: Any) -> None:
    await limit(db, "gpu", 1)
    await named(db, "gpu")
    waiting = await named(db, "gpu")
    await admit()
    (run,) = await claim(db)
    delay = 60 * SECOND if outcome in ("retry", "snoozed") else None
    assert await settle(db, "w", [ended(run, outcome, delay=delay, limited=True)]) == {run.id}
    assert (await admit()).ready == {"default": 1}
    assert (await get(db, waiting.id)).state == "ready"


async def test_a_late_result_gives_nothing_back(db: Database, admit: Admit) -> None:
    await limit(db, "gpu", 1)
    await named(db, "gpu")
    await named(db, "gpu")
    await admit()
    (run,) = await claim(db)
    assert await settle(db, "somebody", [ended(run, "succeeded", result="1", limited=True)]) == set()
    assert (await admit()).ready == {}


async def test_a_run_whose_worker_was_lost_keeps_its_room_until_it_ends(
    db: Database, workers: WorkerStore, admit: Admit, clock: Clock
) -> None:
    await limit(db, "gpu", 1)
    await db.write(lambda: workers.enter(worker("dead"), SECOND))
    one = await named(db, "gpu", max_lost=1)
    other = await named(db, "gpu")
    await admit()
    await claim(db, "dead")
    clock.advance(2)
    assert await db.write(workers.sweep) == {"default": 1}
    assert (await admit()).ready == {}
    await db.write(lambda: workers.enter(worker("dead"), SECOND))
    await claim(db, "dead")
    clock.advance(2)
    assert await db.write(workers.sweep) == {}
    assert await states(db, one, other) == ["failed", "waiting"]
    assert (await admit()).ready == {"default": 1}


async def test_a_cancelled_run_makes_room_before_and_after_it_was_let_in(
    db: Database, runs: RunStore, admit: Admit
) -> None:
    await limit(db, "gpu", 1, gap="1h")
    first, second, third = [await named(db, "gpu") for _ in range(3)]
    await admit()
    await db.write(lambda: runs.cancel(second.id, "no"))
    await db.write(lambda: runs.cancel(first.id, "no"))
    assert (await admit()).ready == {"default": 1}  # it never began: there is no pause after it
    assert await states(db, first, second, third) == ["cancelled", "cancelled", "ready"]


async def test_a_run_that_is_tried_again_waits_for_room_again(db: Database, runs: RunStore, admit: Admit) -> None:
    await limit(db, "gpu", 1)
    first = await named(db, "gpu")
    await admit()
    await finish(db, *(await claim(db)))
    second = await named(db, "gpu")
    await admit()
    await db.write(lambda: runs.retry(first.id))
    assert await states(db, first, second) == ["waiting", "ready"]
    assert (await admit()).ready == {}


async def test_limited_runs_are_not_claimed_ahead(db: Database, runs: RunStore, admit: Admit) -> None:
    await limit(db, "gpu", 10)
    limited = [await named(db, "gpu") for _ in range(3)]
    free = [await put(db) for _ in range(3)]
    await admit()
    found = await db.write(lambda: runs.claim("w", "default", 1, ahead=10, lost_least=0, lost_most=9))
    assert [each.id for each in found] == [limited[0].id, *(each.id for each in free)]


async def test_a_line_that_nobody_works_keeps_nobody_waiting(db: Database, workers: WorkerStore, admit: Admit) -> None:
    await limit(db, "gpu", 1)
    nobodys = await named(db, "gpu", queue="slow")
    ours = await named(db, "gpu")
    assert (await admit()).ready == {"default": 1}
    assert await states(db, nobodys, ours) == ["waiting", "ready"]
    assert await db.read(lambda: LimitStore(db).gate_of(nobodys.id)) == "!slow"
    await finish(db, *(await claim(db)))
    await db.write(lambda: workers.enter(NewWorker("s", "host", 1, ("slow",), 1), 10**15))
    assert (await admit()).ready == {"slow": 1}


async def test_an_admission_that_nobody_claims_gives_way_to_others(
    db: Database, workers: WorkerStore, limits: LimitStore, admit: Admit, clock: Clock
) -> None:
    await db.write(lambda: workers.enter(NewWorker("s", "host", 1, ("busy",), 1), 10**15))
    await limit(db, "gpu", 1)
    stuck = await named(db, "gpu", queue="busy", priority=90)
    await admit()
    clock.advance(61)
    assert not await db.write(limits.sweep)  # nobody else wants it
    other = await named(db, "gpu")
    await admit()
    assert await db.write(limits.sweep)
    assert (await admit()).ready == {"default": 1}
    assert await states(db, stuck, other) == ["waiting", "ready"]
    await finish(db, *(await claim(db)))
    assert (await admit()).ready == {"busy": 1}


async def test_a_thousand_runs_behind_one_key_cost_the_others_nothing(
    db: Database, runs: RunStore, admit: Admit, monkeypatch: pytest.MonkeyPatch
) -> None:
    await limit(db, "host:*", 1)
    await db.write(lambda: runs.insert([new(limits=("host:slow",))] * 1_000))
    while (await admit()).wait == 0:
        pass
    await named(db, "host:quick")
    read: list[int] = []
    many: Any = db.many

    def counted(name: str, columns: tuple[str, ...], rows: Any, /, **more: Any) -> Any:
        read.append(len(rows))
        return many(name, columns, rows, **more)

    monkeypatch.setattr(db, "many", counted)
    assert (await admit()).ready == {"default": 1}
    assert max(read) <= 3


async def test_a_line_whose_keys_are_never_free_together_is_let_in_all_the_same(db: Database, admit: Admit) -> None:
    """Others keep one of the two keys busy at any moment; the run that needs both must not wait for ever."""
    await limit(db, "a", 1)
    await limit(db, "b", 1)
    await named(db, "a")
    await named(db, "b")
    await admit()
    held = {"a": None, "b": None} | {("a" if n == 0 else "b"): each for n, each in enumerate(await claim(db))}
    both = await named(db, "a", "b")
    for turn in range(40):
        key = "ab"[turn % 2]
        await named(db, key)
        if held[key] is not None:
            await finish(db, held[key])
            held[key] = None
        await admit()
        for each in await claim(db):
            if each.id == both.id:
                return
            held[key] = each
    raise AssertionError("it starved")


async def test_a_line_of_many_keys_keeps_each_as_it_becomes_free(db: Database, admit: Admit) -> None:
    """Of four keys three are always busy in turn: the line gets them one after the other."""
    for key in "abcd":
        await limit(db, key, 1)
        await named(db, key)
    await admit()
    held = {"abcd"[number]: each for number, each in enumerate(await claim(db))}
    many = await named(db, *"abcd")
    for turn in range(60):
        key = "abcd"[turn % 4]
        await named(db, key)
        if key in held:
            await finish(db, held.pop(key))
        await admit()
        for each in await claim(db):
            if each.id == many.id:
                return
            held[key] = each
    raise AssertionError("it starved")


async def test_a_line_that_is_cancelled_gives_up_what_it_keeps_though_its_gate_is_shut(
    db: Database, runs: RunStore, admit: Admit
) -> None:
    await limit(db, "a", 1)
    await limit(db, "b", 1)
    await named(db, "b")
    await admit()
    await claim(db)
    both = await named(db, "a", "b")
    await admit()
    await ask(db, "UPDATE rota_lines SET passed = 9, gate = ''")
    await admit()
    only = await named(db, "a")
    await admit()
    assert await states(db, both, only) == ["waiting", "waiting"]
    await db.write(lambda: runs.cancel(both.id, "no"))
    await admit()
    await admit()
    assert await states(db, both, only) == ["cancelled", "ready"]


async def test_a_worker_that_is_told_to_stop_has_nothing_let_in_for_it(
    db: Database, workers: WorkerStore, admit: Admit
) -> None:
    await db.write(lambda: workers.enter(NewWorker("s", "host", 1, ("slow",), 1), 10**15))
    await limit(db, "gpu", 1)
    slow = await named(db, "gpu", queue="slow")
    await db.write(lambda: workers.drain("s"))
    ours = await named(db, "gpu")
    assert (await admit()).ready == {"default": 1}
    assert await states(db, slow, ours) == ["waiting", "ready"]


async def test_what_gave_way_once_is_not_kept_out_for_ever(
    db: Database, workers: WorkerStore, limits: LimitStore, admit: Admit, clock: Clock
) -> None:
    await db.write(lambda: workers.enter(NewWorker("s", "host", 1, ("busy",), 1), 10**15))
    await limit(db, "gpu", 1)
    late = await named(db, "gpu", queue="busy")
    await admit()
    for _ in range(3):
        await named(db, "gpu")
    await admit()
    clock.advance(61)
    await db.write(limits.sweep)
    await admit()
    await finish(db, *(await claim(db)))
    await admit()
    assert await states(db, late) == ["ready"]  # it is older than the others


async def test_a_put_that_changes_nothing_disturbs_nobody(db: Database, admit: Admit) -> None:
    await limit(db, "gpu", 1)
    await named(db, "gpu")
    await named(db, "gpu")
    await admit()
    before = await ask(db, "SELECT line, gate FROM rota_lines")
    await limit(db, "gpu", 1)
    assert [tuple(row) for row in await ask(db, "SELECT line, gate FROM rota_lines")] == [tuple(row) for row in before]


async def test_what_a_line_keeps_is_given_back_when_its_run_is_cancelled(
    db: Database, runs: RunStore, admit: Admit
) -> None:
    await limit(db, "a", 1)
    await limit(db, "b", 1)
    both = await named(db, "a", "b")
    await admit()
    await ask(db, "UPDATE rota_lines SET passed = 9")
    assert await states(db, both) == ["ready"]
    (running,) = await claim(db)
    waiting = await named(db, "a", "b")
    await admit()
    await ask(db, "UPDATE rota_lines SET passed = 9, gate = 'a'")
    await finish(db, running)
    b = await named(db, "b", priority=99)
    await admit()
    (busy,) = await claim(db)
    assert busy.id == b.id
    other = await named(db, "a")
    assert (await admit()).ready == {}  # the line keeps a
    await db.write(lambda: runs.cancel(waiting.id, "no"))
    await finish(db, busy)
    await admit()
    await admit()
    assert await states(db, other) == ["ready"]


async def test_limits_are_listed_with_their_use(db: Database, limits: LimitStore, admit: Admit) -> None:
    await limit(db, "host:*", 1, gap="1s")
    await limit(db, "host:big", 2)
    for each in ("host:a", "host:a", "host:b", "host:big"):
        await named(db, each)
    await admit()
    found = await db.read(limits.list)
    assert [(each.key, each.limit, each.busy, each.waiting) for each in found] == [
        ("host:*", Limit(1, gap="1s"), 2, 1),
        ("host:big", Limit(2), 1, 0),
    ]


async def test_there_may_be_only_so_many_limits(db: Database, limits: LimitStore, monkeypatch: Any) -> None:
    monkeypatch.setattr("rota.store.limits.MOST_LIMITS", 2)
    await limit(db, "a", 1)
    await limit(db, "b", 1)
    await limit(db, "a", 2)
    with pytest.raises(Invalid, match=r"would be number 3.*host:\*|host:\*.*"):
        await limit(db, "c", 1)
    assert [each.key for each in await db.read(limits.list)] == ["a", "b"]


# Room for tasks that ask from within


async def test_a_hold_takes_room_and_gives_it_back(db: Database, limits: LimitStore, admit: Admit) -> None:
    await limit(db, "gpu", 1)
    asked = await db.write(lambda: limits.ask("gpu", None, None, SECOND))
    assert asked.granted
    run = await named(db, "gpu")
    assert (await admit()).ready == {}
    assert not (await db.write(lambda: limits.ask("gpu", None, None, SECOND))).granted
    await db.write(lambda: limits.release("gpu", asked, began=True))
    assert (await admit()).ready == {}  # the other hold asked before the run was let in
    assert (await get(db, run.id)).state == "waiting"


async def test_holds_go_in_the_order_in_which_they_asked(
    db: Database, limits: LimitStore, admit: Admit, clock: Clock
) -> None:
    await limit(db, "gpu", 1, gap="1s")
    first, second, third = [await db.write(lambda: limits.ask("gpu", None, None, 99 * SECOND)) for _ in range(3)]
    assert (first.granted, second.granted, third.granted) == (True, False, False)
    await db.write(lambda: limits.release("gpu", first, began=True))
    clock.advance(0.5)
    assert not (await db.write(lambda: limits.ask("gpu", second.hold, None, SECOND))).granted  # the pause
    clock.advance(0.5)
    assert not (await db.write(lambda: limits.ask("gpu", third.hold, None, SECOND))).granted
    assert (await db.write(lambda: limits.ask("gpu", second.hold, None, SECOND))).granted


async def test_a_hold_whose_process_died_gives_its_room_back(
    db: Database, limits: LimitStore, admit: Admit, clock: Clock
) -> None:
    await limit(db, "gpu", 1)
    await db.write(lambda: limits.ask("gpu", None, None, 30 * SECOND))
    await db.write(lambda: limits.ask("gpu", None, None, 30 * SECOND))  # and one that waits
    await named(db, "gpu")
    await admit()
    clock.advance(31)
    assert await db.write(limits.sweep)
    assert (await admit()).ready == {"default": 1}


async def test_in_a_run_of_the_same_key_a_hold_waits_for_the_pause_alone(
    db: Database, limits: LimitStore, admit: Admit, clock: Clock
) -> None:
    await limit(db, "host:*", 1, gap="1s")
    run = await named(db, "host:a")
    await admit()
    await claim(db)
    asked = await db.write(lambda: limits.ask("host:a", None, run.id, SECOND))
    assert (asked.granted, asked.own is None) == (False, False)
    clock.advance(1)
    assert (await db.write(lambda: limits.ask("host:a", asked.hold, run.id, SECOND))).granted
    await db.write(lambda: limits.release("host:a", asked, began=True))


async def test_a_hold_that_stops_asking_lets_the_runs_in(db: Database, limits: LimitStore, admit: Admit) -> None:
    await limit(db, "gpu", 1)
    first = await db.write(lambda: limits.ask("gpu", None, None, SECOND))
    second = await db.write(lambda: limits.ask("gpu", None, None, SECOND))
    run = await named(db, "gpu")
    await admit()
    await db.write(lambda: limits.release("gpu", first, began=True))
    await admit()
    await db.write(lambda: limits.release("gpu", second, began=False))
    await admit()
    assert await states(db, run) == ["ready"]
