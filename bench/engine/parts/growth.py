"""What many schedules cost that are not due: start-up, idle CPU, memory, and the time of a tick."""

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic, time

from bench.engine.contestant import later
from bench.engine.plan import SCHEDULERS, Scheduler, Sizes
from bench.engine.process import Process, cpu_seconds
from bench.engine.results import Results
from bench.engine.stores import Store, StoreName, Stores

LOOK_SECONDS = 0.005
START_SECONDS = 0.3
SETTLE_SECONDS = 0.5
"""How long a scheduler has to calm down after its start."""


@dataclass(frozen=True)
class Filled:
    """A store with so many schedules, for all rounds."""

    store_name: StoreName
    scheduler: Scheduler
    schedules: int
    store: Store
    folder: Path
    feeder: Process


@dataclass(frozen=True)
class Idling:
    """A scheduler that has nothing to do, and the CPU seconds that it and its server had used before."""

    filled: Filled
    process: Process
    before: float

    async def used(self) -> float:
        return await cpu(self.filled, self.process) - self.before


async def measure(
    stores: Stores,
    store_names: list[StoreName],
    peers: bool,
    sizes: Sizes,
    wanted: set[str],
    results: Results,
) -> None:
    """Fill a store for each contestant and size, then look at one after another, round by round."""
    async with contextlib.AsyncExitStack() as stack:
        filled = [
            await fill(stack, stores, name, scheduler, schedules)
            for name in store_names
            for scheduler in SCHEDULERS[name]
            for schedules in sizes.schedules
            if scheduler.adds and schedules <= scheduler.most and (peers or scheduler.name == "rota")
        ]
        for number in range(sizes.rounds):
            start = number % len(filled)
            order = [*filled[start:], *filled[:start]]
            if wanted & {"start-up", "idle CPU", "memory"}:
                await idle(order, number, sizes, wanted, results)
            for each in order:
                if "tick over 100" in wanted and each.scheduler.name == "rota":
                    taken = (await each.feeder.ask("ask", measure="tick", count=sizes.ticks))["seconds"]
                    results.add("tick over 100", each.store_name, "rota", median(taken) * 1e3, each.schedules)


async def fill(
    stack: contextlib.AsyncExitStack, stores: Stores, name: StoreName, scheduler: Scheduler, schedules: int
) -> Filled:
    store = await stack.enter_async_context(stores.fresh(scheduler.store))
    folder = stack.enter_context(stores.scratch())
    feeder = await stack.enter_async_context(Process(scheduler.name, "feed", store.url, folder))
    await feeder.answer()
    await feeder.ask("fill", count=schedules, due=later(), step=1.0)
    await store.tidy()
    return Filled(name, scheduler, schedules, store, folder, feeder)


async def idle(filled: list[Filled], number: int, sizes: Sizes, wanted: set[str], results: Results) -> None:
    """Start one scheduler after another, then look at all of them together: none has anything to do."""
    async with contextlib.AsyncExitStack() as stack:
        idling = []
        for each in filled:
            process, seconds = await start(stack, each, f"first{number}")
            idling.append((each, process))
            if "start-up" in wanted:
                results.add("start-up", each.store_name, each.scheduler.name, seconds * 1e3, each.schedules)
        await asyncio.sleep(SETTLE_SECONDS)
        begun = monotonic()
        watched = [Idling(each, process, await cpu(each, process)) for each, process in idling]
        if "idle CPU" in wanted:
            await asyncio.sleep(sizes.idle)
        for each in watched:
            place = (each.filled.store_name, each.filled.scheduler.name)
            if "idle CPU" in wanted:
                used = await each.used() * 1e3 / (monotonic() - begun)
                results.add("idle CPU", *place, used, each.filled.schedules)
            if "memory" in wanted:
                results.add("memory", *place, each.process.resident(), each.filled.schedules)


async def start(stack: contextlib.AsyncExitStack, each: Filled, prefix: str) -> tuple[Process, float]:
    """Start a scheduler while one schedule is due; returns how many seconds later that has fired, committed."""
    due = time() + START_SECONDS
    await each.feeder.ask("fill", count=1, due=due, prefix=prefix)
    await asyncio.sleep(max(0.0, due - time()))
    query = each.scheduler.fired.format(prefix=prefix, due=due)
    begun = monotonic()
    process = await stack.enter_async_context(Process(each.scheduler.name, "fire", each.store.url, each.folder))
    while not await each.store.value(query):
        process.check()
        await asyncio.sleep(LOOK_SECONDS)
    return process, monotonic() - begun


async def cpu(each: Filled, process: Process) -> float:
    return cpu_seconds(process.pid) + await each.store.server_cpu()
