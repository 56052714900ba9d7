"""Locks: one holder at a time, changed by token alone, and fences that only grow."""

import asyncio

import pytest
from tests.stores import SECOND, START, Clock

from rota.db.database import Database
from rota.store.locks import Holding, LockStore, Released

TTL = 60 * SECOND


@pytest.fixture
def locks(db: Database) -> LockStore:
    return LockStore(db)


async def take(db: Database, locks: LockStore, token: str, name: str = "invoices") -> int | None:
    return await db.write(lambda: locks.take(name, token, f"host-{token}", TTL), single=True)


async def extend(db: Database, locks: LockStore, token: str, ttl: int = TTL) -> bool:
    return await db.write(lambda: locks.extend("invoices", token, ttl), single=True)


async def release(db: Database, locks: LockStore, token: str) -> Released | None:
    return await db.write(lambda: locks.release("invoices", token), single=True)


async def holding(db: Database, locks: LockStore) -> Holding | None:
    return await db.read(lambda: locks.holding("invoices"))


async def test_a_lock_that_is_held_is_not_given_to_another(db: Database, locks: LockStore, clock: Clock) -> None:
    assert await holding(db, locks) is None
    assert await take(db, locks, "a") == 1
    clock.advance(59.999_999)
    assert await take(db, locks, "b") is None
    assert await take(db, locks, "a") is None  # nor to its holder again
    assert await holding(db, locks) == Holding("host-a", START + TTL, 1)


async def test_locks_of_other_names_are_other_locks(db: Database, locks: LockStore) -> None:
    assert await take(db, locks, "a", "invoices") == 1
    assert await take(db, locks, "b", "reports") == 1


async def test_a_released_lock_is_free_at_once_and_its_fence_grows(db: Database, locks: LockStore) -> None:
    for fence, token in enumerate(("a", "b", "a", "c"), 1):
        assert await take(db, locks, token) == fence
        assert await release(db, locks, token) == Released(TTL, wanted=False)
        assert await holding(db, locks) is None


async def test_a_lock_ends_with_its_ttl_and_its_fence_grows(db: Database, locks: LockStore, clock: Clock) -> None:
    for fence in (1, 2, 3):
        assert await take(db, locks, f"t{fence}") == fence
        clock.advance(60)
        assert await holding(db, locks) is None


async def test_an_extended_lock_ends_so_long_from_then(db: Database, locks: LockStore, clock: Clock) -> None:
    await take(db, locks, "a")
    clock.advance(50)
    assert await extend(db, locks, "a")
    clock.advance(59)
    assert await take(db, locks, "b") is None
    assert await extend(db, locks, "a", 2 * SECOND)  # also to end sooner
    clock.advance(2)
    assert await take(db, locks, "b") == 2


async def test_a_token_of_the_past_changes_nothing(db: Database, locks: LockStore, clock: Clock) -> None:
    await take(db, locks, "a")
    clock.advance(60)
    await take(db, locks, "b")
    before = await holding(db, locks)
    assert not await extend(db, locks, "a")
    assert await release(db, locks, "a") is None
    assert await holding(db, locks) == before
    await release(db, locks, "b")
    assert not await extend(db, locks, "b")
    assert await release(db, locks, "b") is None


async def test_what_ended_and_nobody_took_is_still_its_holders(db: Database, locks: LockStore, clock: Clock) -> None:
    await take(db, locks, "a")
    clock.advance(61)
    assert await extend(db, locks, "a")
    assert await take(db, locks, "b") is None
    clock.advance(63)
    assert await release(db, locks, "a") == Released(-3 * SECOND, wanted=False)


async def test_whoever_releases_hears_whether_somebody_waits(db: Database, locks: LockStore, clock: Clock) -> None:
    assert await db.write(lambda: locks.want("invoices", 10 * SECOND)) is None
    await take(db, locks, "a")
    for wait in (10, 5):  # the longest wait counts
        found = await db.write(lambda wait=wait: locks.want("invoices", wait * SECOND))
        assert found == Holding("host-a", START + TTL, TTL)
    clock.advance(9)
    assert await release(db, locks, "a") == Released(51 * SECOND, wanted=True)
    assert await db.write(lambda: locks.want("invoices", 1)) is None
    clock.advance(1)
    await take(db, locks, "b")
    assert await release(db, locks, "b") == Released(TTL, wanted=False)


async def test_of_many_who_take_at_once_one_gets_it(db: Database, locks: LockStore) -> None:
    for fence in range(1, 6):
        found = await asyncio.gather(*(take(db, locks, f"{fence}-{n}") for n in range(20)))
        assert [each for each in found if each is not None] == [fence]
        await release(db, locks, f"{fence}-{found.index(fence)}")
