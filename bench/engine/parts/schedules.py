"""Schedules: adding them, many due at once, and how late they are at 100 a second."""

import asyncio
from time import monotonic, time

from bench.engine.parts.notes import delays, percentile
from bench.engine.plan import Scheduler, Sizes
from bench.engine.process import Process
from bench.engine.results import Results
from bench.engine.stores import StoreName, Stores

LOOK_SECONDS = 0.01
STEP_SECONDS = 0.01
"""One firing after another, 100 a second."""


async def measure(
    stores: Stores, store_name: StoreName, scheduler: Scheduler, sizes: Sizes, wanted: set[str], results: Results
) -> None:
    """Measure one contestant once, each time on a fresh store."""
    if "firings, all due at once" in wanted:
        found = await fired(stores, scheduler, sizes)
        results.add("firings, all due at once", store_name, scheduler.name, found)
    if wanted & {"lateness p50", "lateness p99"}:
        late = await lateness(stores, scheduler, sizes)
        results.add("lateness p50", store_name, scheduler.name, percentile(late, 0.5))
        results.add("lateness p99", store_name, scheduler.name, percentile(late, 0.99))
    if scheduler.adds and wanted & {"add schedules one by one", "add schedules in bulk"}:
        async with stores.fresh(scheduler.store) as store:
            with stores.scratch() as folder:
                async with Process(scheduler.name, "feed", store.url, folder) as feeder:
                    await feeder.answer()
                    for name in ("add schedules one by one", "add schedules in bulk"):
                        if name in wanted:
                            answer = await feeder.ask(name.replace(" schedules", ""), seconds=sizes.seconds)
                            results.add(name, store_name, scheduler.name, answer["per_second"])


async def fired(stores: Stores, scheduler: Scheduler, sizes: Sizes) -> float:
    """Return how many schedules a second fire that are due at one instant: from it until all have, committed."""
    count = min(sizes.due_at_once, int(scheduler.fires * sizes.fire))
    margin = scheduler.starts + count / 5_000
    while True:
        async with stores.fresh(scheduler.store) as store:
            with stores.scratch() as folder:
                async with Process(scheduler.name, "feed", store.url, folder) as feeder:
                    await feeder.answer()
                    due = float(int(time() + margin) + 1)
                    in_time = (await feeder.ask("fill", count=count, due=due))["in_time"]
                async with Process(scheduler.name, "fire", store.url, folder) as firing:
                    await firing.answer()
                    if in_time and time() < due:
                        await asyncio.sleep(due - time())
                        begun = monotonic()
                        query = scheduler.fired.format(prefix="s", due=due)
                        while await store.value(query) < count:
                            firing.check()
                            await asyncio.sleep(LOOK_SECONDS)
                        return count / (monotonic() - begun)
        margin *= 2  # the schedules were not there, or their scheduler was not, when they were due


async def lateness(stores: Stores, scheduler: Scheduler, sizes: Sizes) -> list[float]:
    """Return how many milliseconds after it was due each run began, at 100 firings a second."""
    count = int(sizes.late / STEP_SECONDS)
    margin = scheduler.starts
    while True:
        async with stores.fresh(scheduler.store) as store:
            with stores.scratch() as folder:
                async with Process(scheduler.name, "feed", store.url, folder) as feeder:
                    await feeder.answer()
                    due = time() + margin
                    in_time = (await feeder.ask("fill", count=count, due=due, step=STEP_SECONDS))["in_time"]
                async with Process(scheduler.name, "live", store.url, folder) as living:
                    await living.answer()
                    if in_time and time() < due:
                        return await delays(folder, count, living)
        margin *= 2
