"""A client: enqueues all kinds of runs until it is told to stop, and writes down what it was promised.

`python -m tests.journeys.client SEED [work]`, where with `work` it works too. What has a unique key is asked for again
until it is accepted, as a client does whose answer was lost. What has none is given up: it may be stored, and nobody
was promised anything.
"""

import asyncio
import random
import signal
import sys
from typing import Any

from tests.journeys import work
from tests.journeys.ledger import note
from tests.journeys.processes import LEASE

import rota


def calls(chance: random.Random) -> tuple[rota.Call[Any], dict[str, Any]]:
    """Choose what to enqueue, and how."""
    seconds = round(chance.uniform(0.0, 0.4), 3)
    call: rota.Call[Any] = chance.choice(
        [
            work.nap.call(seconds),
            work.nap.call(seconds * 5),
            work.threaded.call(seconds),
            work.once.call(seconds),
            work.flaky.call(chance.randint(0, 2)),
            work.own.call(seconds),
        ]
    )
    options: dict[str, Any] = {"priority": chance.choice(["low", "normal", "high"])}
    if chance.random() < 0.2:
        options["delay"] = round(chance.uniform(0.1, 2.0), 3)
    return call, options


async def enqueue(app: rota.Rota, call: rota.Call[Any], options: dict[str, Any], key: str | None) -> None:
    try:
        # Kept for an hour after its making: a run may end before the client hears that it was accepted.
        unique = {} if key is None else {"unique": key, "unique_for": "1h"}
        run = await app.enqueue(call, **options, **unique)
    except rota.StoreUnavailable:
        if key is not None:
            await asyncio.sleep(0.2)
            await enqueue(app, call, options, key)
        return
    note(work.BOOKS.accepted, run.id, key or "-")


async def opened(app: rota.Rota) -> None:
    while True:
        try:
            return await app.open()
        except rota.StoreUnavailable:
            await asyncio.sleep(0.2)


async def main(seed: int, *, works: bool) -> None:
    chance = random.Random(seed)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    app = work.app
    await opened(app)
    worker = app.worker(slots=5, lease=LEASE)
    working = asyncio.create_task(worker.run()) if works else None
    number = 0
    while not stop.is_set():
        call, options = calls(chance)
        number += 1
        key = f"{seed}-{number}" if chance.random() < 0.5 else None
        await enqueue(app, call, options, key)
        await asyncio.sleep(chance.uniform(0.0, 0.1))
    if working is not None:
        worker.stop()
        await working
    await app.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), works="work" in sys.argv))
