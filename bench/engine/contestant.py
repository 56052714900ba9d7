"""What every contestant is: a process that does as it is told, and answers with a line of JSON.

    python -m bench.engine.contestants.NAME ROLE URL

| role | does |
|---|---|
| feed | makes the tables, says that it is ready, then does what each line of its input asks |
| work | works the queue until it is ended |
| fire | fires the schedules until it is ended, and says when it has begun |
| live | fires and works, in the fewest processes that the contestant allows |

Only the standard library is used here: this file runs in every environment.
"""

import asyncio
import json
import os
import random
import struct
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic, time
from typing import Any

NOTE = struct.Struct("dd")
"""What a task notes: when it was to begin, and when it did."""
CHUNK = 50_000
"""How many schedules to think of at once."""


def note(wanted: float, now: float) -> None:
    """Keep when a task began: appended by one system call, so that several may do it at once."""
    where = os.open(os.environ["ROTA_BENCH_NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(where, NOTE.pack(wanted, now))
    os.close(where)


def note_sent(sent: float) -> None:
    """Note how long after it was sent a task began; the clock is the same in all processes of a machine."""
    note(sent, monotonic())


def note_due(due: float) -> None:
    """Note how late a task began."""
    note(due, time())


def synchronous() -> str | None:
    """Return how SQLite is to sync, or None for the contestant's own way."""
    found = os.environ.get("ROTA_BENCH_SYNCHRONOUS", "normal")
    return None if found == "own" else found


class Contestant:
    """What a contestant can do; each does what it is known for."""

    batch = 1_000
    """How many to enqueue, or to schedule, in one call."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def open(self) -> None:
        """Make the tables, and connect."""

    async def enqueue(self, sent: float | None) -> None:
        """Enqueue one task, and return when it is committed: one that does nothing, or notes when it was sent."""
        raise NotImplementedError

    async def enqueue_many(self, count: int) -> None:
        """Enqueue so many tasks that do nothing, in the fastest way there is."""
        raise NotImplementedError

    async def work(self) -> None:
        """Work the queue until the process is ended."""
        raise NotImplementedError

    async def put(self, key: str, due: float) -> None:
        """Add an hourly schedule that is due then for the first time, and return when it is committed."""
        raise NotImplementedError

    async def put_many(self, dues: dict[str, float]) -> None:
        """Add many, in the fastest way there is for a user."""
        raise NotImplementedError

    async def fill(self, dues: dict[str, float]) -> None:
        """Add many, in any way: it is not measured."""
        await self.put_many(dues)

    async def fire(self, url: str, begun: Callable[[], None]) -> None:
        """Fire what is due until the process is ended."""
        raise NotImplementedError

    async def live(self, url: str, begun: Callable[[], None]) -> None:
        """Fire what is due and run it, until the process is ended."""
        raise NotImplementedError

    async def ask(self, measure: str, count: int) -> list[float]:
        """Return how long each of so many operations took, in seconds."""
        raise NotImplementedError


def say(**words: Any) -> None:
    print(json.dumps(words), flush=True)


def speak(kind: type[Contestant], run: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run) -> None:
    """Play the role that the command line names."""
    role, url = sys.argv[1:3]
    contestant = kind(url)
    roles: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
        "feed": lambda: feed(contestant),
        "work": contestant.work,
        "fire": lambda: contestant.fire(url, lambda: say(begun=True)),
        "live": lambda: contestant.live(url, lambda: say(begun=True)),
    }
    if role != "feed":
        threading.Thread(target=end_with_runner, daemon=True).start()
    run(roles[role]())


def end_with_runner() -> None:
    """End when the input does: whoever started this is gone, however that ended."""
    sys.stdin.read()
    os._exit(0)


async def feed(contestant: Contestant) -> None:
    await contestant.open()
    say(ready=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        answer = await COMMANDS[command.pop("do")](contestant, **command)
        say(**answer)


async def one_by_one(contestant: Contestant, seconds: float) -> dict[str, Any]:
    async def once(_: int) -> int:
        await contestant.enqueue(None)
        return 1

    return await pace(once, seconds)


async def in_bulk(contestant: Contestant, seconds: float, batch: int | None = None) -> dict[str, Any]:
    size = batch or contestant.batch

    async def once(_: int) -> int:
        await contestant.enqueue_many(size)
        return size

    return await pace(once, seconds)


async def schedules_one_by_one(contestant: Contestant, seconds: float) -> dict[str, Any]:
    async def once(number: int) -> int:
        await contestant.put(f"one-{number}", later())
        return 1

    return await pace(once, seconds)


async def schedules_in_bulk(contestant: Contestant, seconds: float, batch: int | None = None) -> dict[str, Any]:
    size = batch or contestant.batch

    async def once(number: int) -> int:
        await contestant.put_many({f"bulk-{number}-{each}": later() for each in range(size)})
        return size

    return await pace(once, seconds)


async def pace(once: Callable[[int], Awaitable[int]], seconds: float) -> dict[str, Any]:
    """Do it for a tenth of the time to warm up, then for the time; return how many a second were done in it."""
    number = done = 0
    warm = monotonic() + seconds / 10
    while not number or monotonic() < warm:
        await once(number)
        number += 1
    begun = now = monotonic()
    while not done or now < begun + seconds:
        done += await once(number)
        number += 1
        now = monotonic()
    return {"per_second": done / (now - begun)}


async def backlog(contestant: Contestant, count: int) -> dict[str, Any]:
    """Enqueue exactly so many."""
    while count:
        size = min(count, contestant.batch)
        await contestant.enqueue_many(size)
        count -= size
    return {}


async def lightly(contestant: Contestant, count: int, gap: float) -> dict[str, Any]:
    """Enqueue one at a time, with a random pause of `gap` on average, so that nobody's polling falls into step."""
    chance = random.Random(7)
    for _ in range(count):
        await contestant.enqueue(monotonic())
        await asyncio.sleep(gap * chance.uniform(0.5, 1.5))
    return {}


async def fill(contestant: Contestant, count: int, due: float, step: float = 0.0, prefix: str = "s") -> dict[str, Any]:
    """Add so many schedules, the first due then, each of the others a step later; says whether that was in time."""
    for first in range(0, count, CHUNK):
        numbers = range(first, min(first + CHUNK, count))
        await contestant.fill({f"{prefix}-{number}": due + number * step for number in numbers})
    return {"in_time": time() < due}


async def ask(contestant: Contestant, measure: str, count: int) -> dict[str, Any]:
    return {"seconds": await contestant.ask(measure, count)}


def later() -> float:
    """Some whole hour of tomorrow: nothing fires while schedules are added."""
    return time() // 3600 * 3600 + 86_400


COMMANDS: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
    "one": one_by_one,
    "bulk": in_bulk,
    "backlog": backlog,
    "lightly": lightly,
    "add one by one": schedules_one_by_one,
    "add in bulk": schedules_in_bulk,
    "fill": fill,
    "ask": ask,
}
