"""Rota alone: a lock, and reading and writing the state of one schedule among a hundred."""

from statistics import median

from bench.engine.contestant import later
from bench.engine.plan import Sizes
from bench.engine.process import Process
from bench.engine.results import Results
from bench.engine.stores import StoreName, Stores

WORDS = {"lock and release": "lock", "read state": "read", "write state": "write"}


async def measure(stores: Stores, store_name: StoreName, sizes: Sizes, wanted: set[str], results: Results) -> None:
    """Ask a hundred schedules, and the locks beside them, on a fresh store."""
    async with stores.fresh(store_name) as store:
        with stores.scratch() as folder:
            async with Process("rota", "feed", store.url, folder) as feeder:
                await feeder.answer()
                await feeder.ask("fill", count=100, due=later())
                for name, word in WORDS.items():
                    if name in wanted:
                        taken = (await feeder.ask("ask", measure=word, count=sizes.asked))["seconds"]
                        results.add(name, store_name, "rota", median(taken) * 1e3)
