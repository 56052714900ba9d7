"""An outage of two hours: thousands of schedules have missed it, and new work comes while they catch up.

Short as a test; all ten thousand by `scripts/soak`, which runs `python -m tests.journeys.outage sqlite|postgres`.
"""

import asyncio
import shutil
import sys
import tempfile
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

from tests.journeys import work
from tests.journeys.ledger import read, rows
from tests.journeys.processes import Crew, eventually
from tests.servers import Servers

import rota
from rota import clock
from rota.app import Rota
from rota.clock import VirtualClock
from rota.engine import claim, fire
from rota.times.moments import moment

MANY = 10_000
MINUTE = 60_000_000
DUES = [5, 15, 25, 35, 45, 55, 65, 75, 85, 95, 105, 115]
"""How many minutes before the end of the outage the schedules were due, newest first; the next is 5 minutes after."""
POLICIES: list[tuple[dict[str, Any], int, str | None]] = [
    ({"missed": "latest"}, 1, "merged"),
    ({"missed": "latest", "grace": "1m"}, 0, "missed"),
    ({"missed": "latest", "grace": "10m"}, 1, "merged"),
    ({"missed": "all", "max_missed": 3}, 3, "missed"),
    ({"missed": "all"}, 12, None),
    ({"missed": "all", "grace": "30m"}, 3, "missed"),
    ({"missed": "none"}, 0, "missed"),
    ({"missed": "none", "grace": "10m"}, 1, "missed"),
]
"""What is said of what was missed, how many of the newest run then, and what the others are skipped for."""
PROMPT = 400
"""How many are due once each, on time: half of them when the outage ends, the others in turn from then on."""
PAUSE_SECONDS = 0.05


@dataclass
class Figures:
    """What happened."""

    schedules: int
    seconds: float = 0.0
    """From the first answer to the end of all that was missed."""
    fired_in: float = 0.0
    """From the first answer to the last."""
    runs: int = 0
    skipped: int = 0
    fired: list[float] = field(default_factory=list)
    """How late the schedules fired that came due meanwhile, in seconds."""
    begun: list[float] = field(default_factory=list)
    """How late what came meanwhile began, in seconds."""
    accepting: list[float] = field(default_factory=list)
    """How long it took to enqueue them, in seconds."""
    answered_before: int = 0
    """How many schedules that had waited were answered, at most, between an instant and its firing."""
    overtaken: int = 0
    """How many runs that were catching up were taken, at most, between the making and the taking of a new one."""
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.schedules} schedules answered in {self.fired_in:.1f} s, {self.runs} runs and {self.skipped} skipped"
            f" instants, all over in {self.seconds:.1f} s; meanwhile {_times(self.fired)} to fire what came due,"
            f" {_times(self.accepting)} to enqueue, {_times(self.begun)} to begin; at most {self.answered_before}"
            f" schedules and {self.overtaken} runs went before one that was on time"
        )


def _policy(number: int) -> tuple[dict[str, Any], int, str | None]:
    return POLICIES[number % len(POLICIES)]


def _times(seconds: list[float]) -> str:
    parts = quantiles(seconds, n=100, method="inclusive") if len(seconds) > 1 else [sum(seconds)] * 99
    return f"p50 {parts[49]:.2f} s and p99 {parts[98]:.2f} s ({len(seconds)})"


class Outage:
    """The outage of one store."""

    def __init__(self, crew: Crew, client: Rota, count: int) -> None:
        self._crew = crew
        self._client = client
        self._count = count
        self._end = -(-clock.micros() // 1_000_000) * 1_000_000
        self._accepted: dict[int, int] = {}
        self.figures = Figures(count)

    async def run(self) -> Figures:
        """Miss two hours, come back, and look at what was done."""
        origin = moment(self._end + 5 * MINUTE)
        await self._put(
            self._end - 120 * MINUTE,
            [
                rota.Schedule(f"late-{n}", work.idle.call(), rota.Every("10m", origin=origin), **_policy(n)[0])
                for n in range(self._count)
            ],
        )
        # One worker: what it claims, it claims one after the other, and the order can be told.
        await self._crew.working(self._crew.worker(slots=20, lease=30))
        now = clock.micros()
        dues = [now + (number - PROMPT // 2) * int(PAUSE_SECONDS * 1_000_000) for number in range(PROMPT)]
        await self._put(
            now - MINUTE // 2,
            [rota.Schedule(f"prompt-{due}", work.arrive.call(), rota.At(moment(due))) for due in dues],
        )
        self._crew.scheduler()
        over = asyncio.Event()
        meanwhile = asyncio.create_task(self._enqueue(over))
        await eventually(self._caught_up, 300)
        over.set()
        await meanwhile
        await eventually(self._idle, 60)
        await self._judge()
        return self.figures

    async def _put(self, then: int, schedules: list[rota.Schedule]) -> None:
        """Make schedules at an earlier time."""
        self._client.database.live_by(VirtualClock(then))
        await self._client.schedules.put_many(schedules)
        self._client.database.live_by(None)

    async def _enqueue(self, over: asyncio.Event) -> None:
        while not over.is_set():
            began = clock.micros()
            run = await self._client.enqueue(work.arrive.call())
            self._accepted[run.id] = clock.micros()
            self.figures.accepting.append((self._accepted[run.id] - began) / 1e6)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _caught_up(self) -> bool:
        await asyncio.sleep(0.2)
        return not await rows(
            self._crew.store,
            "SELECT 1 FROM rota_schedules WHERE key LIKE 'late%' AND through IS NULL UNION ALL SELECT 1 FROM rota_runs"
            " WHERE state IN ('waiting', 'ready', 'running') AND schedule LIKE 'late%' LIMIT 1",
        )

    async def _idle(self) -> bool:
        return not await rows(
            self._crew.store,
            "SELECT 1 FROM rota_runs WHERE state IN ('waiting', 'ready', 'running')"
            " UNION ALL SELECT 1 FROM rota_schedules WHERE key LIKE 'prompt%' AND state = 'active' LIMIT 1",
        )

    async def _judge(self) -> None:
        ask = self._crew.store
        runs = await rows(
            ask,
            "SELECT id, schedule, nominal, created_at, started_at, finished_at, priority, state FROM rota_runs",
        )
        skips = await rows(ask, "SELECT schedule, reason, first, last, count, at FROM rota_skips")
        late = [row for row in runs if row[1] and row[1].startswith("late")]
        self._judge_policies(late, skips)
        answered: dict[str, int] = {}
        for key, at in [(row[1], row[3]) for row in late] + [(row[0], row[5]) for row in skips]:
            answered[key] = min(at, answered.get(key, at))
        times = sorted(answered.values())
        first, last = times[0], times[-1]
        end = max(row[5] for row in late)
        self.figures.fired_in, self.figures.seconds = (last - first) / 1e6, (end - first) / 1e6
        prompt = [row for row in runs if row[1] and row[1].startswith("prompt") and row[2] <= last]
        self.figures.fired = [(row[3] - row[2]) / 1e6 for row in prompt if first <= row[2]]
        begun = {int(run): int(at) for run, at in read(self._crew.books.arrivals)}
        since = {row[0]: row[2] for row in runs if row[1] and row[1].startswith("prompt")} | self._accepted
        self.figures.begun = [(begun[run] - at) / 1e6 for run, at in since.items() if first <= at <= end]
        self.figures.answered_before = max(
            (bisect_left(times, fired) - bisect_left(times, due) for _, _, due, fired, *_ in prompt), default=0
        )
        claims = sorted(row[4] for row in late)
        self.figures.overtaken = max(
            (sum(self._accepted[row[0]] < at < row[4] for at in claims) for row in runs if row[0] in self._accepted),
            default=0,
        )
        if self.figures.answered_before > fire._MOST:  # half of the round that was under way, and of its own
            self.figures.wrong.append("work that was on time waited behind what was late")
        if self.figures.overtaken > claim._MOST_AHEAD:  # a worker gives back what it took ahead, and takes it again
            self.figures.wrong.append("what was catching up was begun before what was on time")

    def _judge_policies(self, late: list[Any], skips: list[Any]) -> None:
        ran: dict[str, list[int]] = {}
        for _, key, nominal, _, _, _, priority, state in late:
            ran.setdefault(key, []).append(nominal)
            if (priority, state) != (25, "succeeded"):
                self.figures.wrong.append(f"{key}: a run of priority {priority} {state}")
        skipped: dict[str, list[tuple[Any, ...]]] = {}
        for key, *rest, _ in skips:
            skipped.setdefault(key, []).append(tuple(rest))
        dues = [self._end - minutes * MINUTE for minutes in DUES]
        for n in range(self._count):
            key, (policy, most, reason) = f"late-{n}", _policy(n)
            old = dues[most:]
            wanted = [(reason, old[-1], old[0], len(old))] if old else []
            if sorted(ran.get(key, []), reverse=True) != dues[:most] or skipped.get(key, []) != wanted:
                self.figures.wrong.append(f"{key}, {policy}: ran {ran.get(key)}, skipped {skipped.get(key)}")
        self.figures.runs = len(late)
        self.figures.skipped = sum(row[4] for row in skips)


async def long_run(kind: str, count: int) -> Figures:
    """Have an outage on a store of its own."""
    folder = Path(tempfile.mkdtemp(prefix="rota-outage-"))
    servers = Servers.new() if kind == "postgres" else None
    try:
        store = servers.url("postgres") if servers else f"sqlite:///{folder}/rota.db"
        async with Rota(store) as client:
            with Crew(store, folder) as crew:
                return await Outage(crew, client, count).run()
    finally:
        shutil.rmtree(folder)
        if servers:
            servers.stop()


def main() -> None:
    kind, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else MANY
    figures = asyncio.run(long_run(kind, count))
    sys.stdout.write(f"{kind}: {figures}\n")
    if figures.wrong:
        sys.stdout.write("wrong: " + "\n".join(figures.wrong[:20]) + "\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
