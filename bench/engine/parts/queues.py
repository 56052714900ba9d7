"""Queues: enqueue one by one and in bulk, drain a backlog with one worker, latency at light load."""

import asyncio
from time import monotonic

from bench.engine.parts.notes import delays, percentile
from bench.engine.plan import Queue, Sizes
from bench.engine.process import Process
from bench.engine.results import Results
from bench.engine.stores import Store, StoreName, Stores

LOOK_SECONDS = 0.02
GAP_SECONDS = 0.02
WARM = 0.1
"""The share of a backlog that is drained before the clock starts: the worker starts and warms up."""
WARM_SENT = 10


async def measure(
    stores: Stores, store_name: StoreName, queue: Queue, sizes: Sizes, wanted: set[str], results: Results
) -> None:
    """Measure one contestant once, on a fresh store."""
    async with stores.fresh(store_name) as store:
        with stores.scratch() as folder:
            async with Process(queue.name, "feed", store.url, folder) as feeder:
                await feeder.answer()
                backlog = queue.backlog(sizes.drain, stores.synchronous) if "drain" in wanted else 0
                await feeder.ask("backlog", count=backlog)
                if wanted & {"drain", "latency p50", "latency p99"}:
                    async with Process(queue.name, "work", store.url, folder) as worker:
                        if "drain" in wanted:
                            results.add("drain", store_name, queue.name, await drained(store, queue, backlog, worker))
                        if wanted & {"latency p50", "latency p99"}:
                            await feeder.ask("lightly", count=WARM_SENT, gap=GAP_SECONDS)
                            await delays(folder, WARM_SENT, worker)
                            await feeder.ask("lightly", count=sizes.sent, gap=GAP_SECONDS)
                            found = await delays(folder, sizes.sent, worker)
                            results.add("latency p50", store_name, queue.name, percentile(found, 0.5))
                            results.add("latency p99", store_name, queue.name, percentile(found, 0.99))
                for name, command in (("enqueue one by one", "one"), ("enqueue in bulk", "bulk")):
                    if name in wanted:
                        answer = await feeder.ask(command, seconds=sizes.seconds)
                        results.add(name, store_name, queue.name, answer["per_second"])


async def drained(store: Store, queue: Queue, backlog: int, worker: Process) -> float:
    """Return how many runs a second end: from when a tenth of the backlog has, until all have, as the database says."""
    begun: tuple[float, int] | None = None
    look = (monotonic(), 0)
    while look[1] < backlog:
        worker.check()
        await asyncio.sleep(LOOK_SECONDS)
        before, look = look, (monotonic(), await store.value(queue.done.format(backlog=backlog)))
        if begun is None and look[1] >= backlog * WARM:
            begun = look if look[1] < backlog else before
    assert begun is not None
    return (look[1] - begun[1]) / (look[0] - begun[0])
