"""`app.limits`: limits as an application meets them, with workers that work."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from tests.stores import until

import rota
from rota.app import Rota

LONG = "60s"


@pytest.fixture
async def two(store: str) -> AsyncIterator[tuple[Rota, Rota]]:
    """Two applications on one store, as two processes would have them."""
    async with Rota(store) as one, Rota(store) as other:
        yield one, other


class Watch:
    """Counts what is under way."""

    def __init__(self) -> None:
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.most_hosts = 0
        self.order: list[str] = []

    async def visit(self, host: str) -> None:
        self.now[host] += 1
        self.now["all"] += 1
        self.order.append(host)
        for each in (host, "all"):
            self.most[each] = max(self.most[each], self.now[each])
        busy = [key for key, number in self.now.items() if number and key != "all"]
        self.most_hosts = max(self.most_hosts, len(busy))
        for _ in range(5):
            await asyncio.sleep(0)
        self.now[host] -= 1
        self.now["all"] -= 1


async def test_workers_of_several_processes_hold_a_limit_together(two: tuple[Rota, Rota]) -> None:
    one, other = two
    watch = Watch()
    for app in two:

        @app.task(name="visit")
        async def visit(host: str) -> None:
            await watch.visit(host)

    await one.limits.put("host:*", rota.Limit(at_once=1, keys_at_once=2))
    await other.limits.put("task:visit", rota.Limit(at_once=3))
    hosts = ["a", "b", "c", "d"]
    ids = await one.enqueue_many(visit.call(host).limited(f"host:{host}") for host in hosts * 10)
    workers = [app.worker(slots=10) for app in two]
    work = [asyncio.create_task(worker.run()) for worker in workers]
    for run in ids:
        assert (await one.runs.wait(run, timeout=LONG)).state == "succeeded"
    for worker in workers:
        worker.stop()
    await asyncio.gather(*work)
    assert {host: watch.most[host] for host in hosts} == dict.fromkeys(hosts, 1)
    assert watch.most_hosts == 2
    assert await one.limits.list() == [
        rota.LimitState("host:*", rota.Limit(1, keys_at_once=2), 0, 0),
        rota.LimitState("task:visit", rota.Limit(3), 0, 0),
    ]


async def test_a_crowd_on_one_key_keeps_nobody_else_waiting(app: Rota) -> None:
    watch = Watch()

    @app.task(name="visit")
    async def visit(host: str) -> None:
        await watch.visit(host)

    await app.limits.put("host:*", rota.Limit(at_once=1, gap="1h"))
    crowd = await app.enqueue_many(visit.call("busy").limited("host:busy") for _ in range(1_000))
    others = await app.enqueue_many(visit.call(f"h{n}").limited(f"host:h{n}") for n in range(20))
    async with app.running():
        for run in (crowd[0], *others):
            assert (await app.runs.wait(run, timeout=LONG)).state == "succeeded"
    assert (await app.runs.get(crowd[1])).state == "waiting"
    assert watch.order.count("busy") == 1


async def waits_for(app: Rota, run: int, what: str) -> None:
    while await app.limits.waits_for(run) != what:  # noqa: ASYNC110 (there is no event to wait for)
        await asyncio.sleep(0)


async def test_a_run_says_what_it_waits_for(app: Rota) -> None:
    gate = asyncio.Event()

    @app.task(limits=["gpu"])
    async def train() -> None:
        await gate.wait()

    await app.limits.put("gpu", rota.Limit(at_once=1))
    first = await app.enqueue(train.call())
    second = await app.enqueue(train.call(), limits=["other"])
    assert (second.state, second.limits) == ("waiting", ("gpu", "other"))
    async with app.running():
        await waits_for(app, second.id, "gpu")
        elsewhere = await app.enqueue(train.call(), queue="elsewhere")
        await waits_for(app, elsewhere.id, "a worker of queue elsewhere")
        await until(lambda: gate._waiters)  # type: ignore[attr-defined]
        assert await app.limits.waits_for(first.id) is None
        (state,) = await app.limits.list()
        assert (state.busy, state.waiting) == (1, 1)
        gate.set()
        await app.runs.wait(second.id, timeout=LONG)


async def test_a_hold_in_a_task_goes_before_runs_that_have_not_begun(app: Rota) -> None:
    order: list[str] = []

    @app.task(name="ask")
    async def ask(host: str) -> None:
        order.append(f"run {host}")
        if host == "a":
            async with app.limits.hold("host:b", wait=LONG):
                order.append("hold b")

    await app.limits.put("host:*", rota.Limit(at_once=1))
    async with app.running():
        ids = await app.enqueue_many(ask.call(host).limited(f"host:{host}") for host in "abbb")
        for run in ids:
            await app.runs.wait(run, timeout=LONG)
    assert order.index("hold b") <= 3
    assert sorted(order) == ["hold b", "run a", "run b", "run b", "run b"]


async def test_a_hold_does_not_wait_for_its_own_run(app: Rota) -> None:
    @app.task
    async def ask_twice() -> str:
        async with app.limits.hold("host:a", wait=LONG):
            return "twice"

    await app.limits.put("host:*", rota.Limit(at_once=1, gap="10ms"))
    async with app.running():
        run = await app.enqueue(ask_twice.call(), limits=["host:a"])
        assert (await app.runs.wait(run.id, timeout=LONG)).result == '"twice"'


async def test_holds_in_a_run_of_the_same_key_go_one_at_a_time(app: Rota) -> None:
    watch = Watch()

    @app.task
    async def ask_often() -> None:
        async def once() -> None:
            async with app.limits.hold("host:a", wait=LONG):
                await watch.visit("a")

        await asyncio.gather(*(once() for _ in range(4)))

    await app.limits.put("host:*", rota.Limit(at_once=1, gap="10ms"))
    async with app.running():
        run = await app.enqueue(ask_often.call(), limits=["host:a"])
        assert (await app.runs.wait(run.id, timeout=LONG)).state == "succeeded"
    assert watch.most["a"] == 1


async def test_a_hold_that_is_cancelled_while_it_asks_leaves_nothing_behind(app: Rota) -> None:
    await app.limits.put("gpu", rota.Limit(at_once=100))

    async def held() -> None:
        async with app.limits.hold("gpu"):
            await asyncio.Event().wait()

    for _ in range(10):
        holding = asyncio.create_task(held())
        await asyncio.sleep(0)
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
    assert [each.busy for each in await app.limits.list()] == [0]


async def test_a_hold_that_is_not_granted_in_time_is_an_error_and_leaves_nothing_behind(app: Rota) -> None:
    await app.limits.put("gpu", rota.Limit(at_once=1))
    async with app.limits.hold("gpu"):
        with pytest.raises(rota.TimedOut, match="no room under gpu"):
            async with app.limits.hold("gpu", wait="10ms"):
                raise AssertionError("it was let in")
    async with app.limits.hold("gpu", wait="1s"):
        pass


async def test_what_no_limit_was_put_under_may_be_held_at_once(app: Rota) -> None:
    async with app.limits.hold("anything"), app.limits.hold("anything"):
        pass


async def test_removing_lets_in_what_waited_and_an_unknown_key_is_an_error(app: Rota) -> None:
    @app.task
    async def nothing() -> None: ...

    await app.limits.put("gpu", rota.Limit(at_once=1))
    async with app.running(), app.limits.hold("gpu"):
        run = await app.enqueue(nothing.call(), limits=["gpu"])
        await app.limits.remove("gpu")
        assert (await app.runs.wait(run.id, timeout=LONG)).state == "succeeded"
    with pytest.raises(rota.UnknownLimit, match="no limit was put under 'gpu'"):
        await app.limits.remove("gpu")


async def test_completing_in_ones_own_transaction_gives_the_room_back_with_it(store: str, app: Rota) -> None:
    import sqlite3

    import asyncpg

    @app.task
    async def effect() -> None:
        me = rota.current_run()
        if store.startswith("postgres"):
            connection = await asyncpg.connect(store)
            async with connection.transaction():
                await me.complete(connection=connection)
            await connection.close()
        else:
            with sqlite3.connect(store.removeprefix("sqlite:///"), timeout=30) as connection:
                await me.complete(connection=connection)
            connection.close()

    await app.limits.put("gpu", rota.Limit(at_once=1))
    async with app.running():
        ids = [(await app.enqueue(effect.call(), limits=["gpu"])).id for _ in range(3)]
        for run in ids:
            assert (await app.runs.wait(run, timeout=LONG)).state == "succeeded"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (rota.Limit, "limits nothing"),
        (lambda: rota.Limit(0), "at_once: 0 .* whole number from 1"),
        (lambda: rota.Limit(gap="1s"), "goes with at_once"),
        (lambda: rota.Limit(True), "at_once"),
        (lambda: rota.Limit(1, gap="-1s"), "gap"),
    ],
)
def test_a_limit_that_means_nothing_is_refused(made: object, said: str) -> None:
    with pytest.raises(rota.RotaError, match=said):
        made()  # type: ignore[operator]


@pytest.mark.parametrize("key", ["", "a b", "host:*x", "*", "a*", "é", "x" * 201, 'a"b', "a\\b", None, 7])
async def test_a_key_that_is_none_is_refused_everywhere(app: Rota, key: str) -> None:
    @app.task
    async def nothing() -> None: ...

    for refused in (
        app.limits.put(key, rota.Limit(1)),
        app.enqueue(nothing.call(), limits=[key]),
        app.limits.hold(key).__aenter__(),
    ):
        with pytest.raises(rota.Invalid, match="limit key"):
            await refused
    with pytest.raises(rota.Invalid, match="limit key"):
        app.task(name="other", limits=[key])


async def test_a_group_is_what_stands_before_the_first_colon(app: Rota) -> None:
    with pytest.raises(rota.Invalid, match=r"is no group; .* use host:\*"):
        await app.limits.put("host:eu:*", rota.Limit(1))
    with pytest.raises(rota.Invalid, match="is not a limit"):
        await app.limits.put("gpu", 5)  # type: ignore[arg-type]


async def test_keys_are_a_list_of_a_few(app: Rota) -> None:
    @app.task
    async def nothing() -> None: ...

    with pytest.raises(rota.Invalid, match=r"use a list: \['host:a'\]"):
        await app.enqueue(nothing.call(), limits="host:a")
    with pytest.raises(rota.Invalid, match="use up to 5"):
        nothing.call().limited(*"abcdef")
    with pytest.raises(rota.Invalid, match="has no keys to count"):
        await app.limits.put("host:a", rota.Limit(keys_at_once=1))
    assert nothing.call().limited("b", "a").limited("a").limits == ("a", "b")
