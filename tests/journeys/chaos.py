"""Chaos: workers and clients on one store, while processes are killed and stopped and the store itself crashes.

Short as a test; long by `scripts/soak`, which runs `python -m tests.journeys.chaos sqlite|postgres SECONDS`, or with
schedules that people change meanwhile `schedules-sqlite|schedules-postgres`. What happens, and when, comes from a seed
(`ROTA_TEST_SEED` chooses it); what the processes make of it is the machine's.
"""

import asyncio
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.journeys.ledger import Findings, audit, rows, watch
from tests.journeys.plans import PlanFindings, audit_plans, watch_plans
from tests.journeys.processes import Crew, Process, eventually
from tests.journeys.steps import quiet
from tests.journeys.work import nap
from tests.servers import Servers

from rota import clock
from rota.app import Rota
from rota.errors import StoreUnavailable

QUIET_SECONDS = 90.0
"""How long the rest may take when the faults are over; far more than it should, and never the point of a test."""


def chosen_seed() -> int:
    """Return the seed that the environment names, else a new one."""
    return int(os.environ.get("ROTA_TEST_SEED") or random.SystemRandom().randrange(1_000_000))


@dataclass
class Figures:
    """What happened."""

    seed: int
    kills: int = 0
    stops: int = 0
    crashes: int = 0
    slowest_rescue: float = 0.0
    """From the kill of a worker until its last run was taken back."""
    slowest_recovery: float = 0.0
    """From the return of the store until a run that was enqueued then had ended."""
    exits: list[str] = field(default_factory=list)
    """Processes that ended although nobody had told them to."""
    findings: Findings = field(default_factory=Findings)
    plans: PlanFindings | None = None

    def __str__(self) -> str:
        found = self.findings
        plans = "" if self.plans is None else f" {self.plans},"
        return (
            f"kills {self.kills}, stops {self.stops}, crashes of the store {self.crashes}, accepted {found.accepted},"
            f" ended {found.ended}, lost {len(found.lost)}, doubled {len(found.doubled)},"
            f" slowest rescue {self.slowest_rescue:.1f} s, slowest recovery {self.slowest_recovery:.1f} s,"
            f"{plans} seed {self.seed}"
        )

    @property
    def wrong(self) -> dict[str, object]:
        """What must be empty, and is not."""
        plans = self.plans.mistakes if self.plans else []
        return self.findings.wrong | ({"exits": self.exits} if self.exits else {}) | ({"plans": plans} if plans else {})


class Chaos:
    """One chaotic while on one store."""

    def __init__(self, crew: Crew, seed: int, servers: Servers | None) -> None:
        self._crew = crew
        self._chance = random.Random(seed)
        self._servers = servers
        self._workers: list[Process] = []
        self._schedulers: list[Process] = []
        self._clients: list[Process] = []
        self._stopped: dict[Process, asyncio.Task[None]] = {}
        self._killed: dict[int, float] = {}
        self._recovering: set[asyncio.Task[None]] = set()
        self.figures = Figures(seed)

    async def run(
        self,
        seconds: float,
        *,
        workers: int = 3,
        clients: int = 2,
        schedulers: int = 0,
        planners: int = 0,
        crashes: int = 0,
    ) -> Figures:
        """Do harm for this long, with so many crashes of the store at least; then rest, and compare the books."""
        self._workers = [self._crew.worker() for _ in range(workers)]
        self._schedulers = [self._crew.scheduler() for _ in range(schedulers)]
        self._clients = [self._crew.client(self._number()) for _ in range(clients)]
        self._clients += [self._crew.planner(self._number()) for _ in range(planners)]
        await self._crew.working(*self._workers)
        harms: list[Callable[[], Awaitable[None]]] = [self._kill_worker] * 6 + [self._stop] * 3
        harms += [self._kill_client] * 2 + ([self._crash_store] if self._servers else [])
        harms += ([self._kill_scheduler] * 3 + [self._stop] * 3) if schedulers else []
        until = clock.monotonic() + seconds
        while clock.monotonic() < until:
            await asyncio.sleep(self._chance.uniform(0.05, 1.5))
            self._look_for_exits()
            if not self.figures.exits:
                await self._chance.choice(harms)()
        while self.figures.crashes < crashes:
            await self._crash_store()
        await self._rest(planned=planners > 0)
        return self.figures

    def _number(self) -> int:
        return self._chance.randrange(10**9)

    async def _kill_worker(self) -> None:
        victim = self._kill(self._workers)
        self._killed[victim.pid] = clock.micros() / 1_000_000
        self._workers.append(self._crew.worker())

    async def _kill_scheduler(self) -> None:
        self._kill(self._schedulers)
        self._schedulers.append(self._crew.scheduler())

    async def _kill_client(self) -> None:
        planner = self._kill(self._clients).name.startswith("planner")
        self._clients.append((self._crew.planner if planner else self._crew.client)(self._number()))

    def _kill(self, crowd: list[Process]) -> Process:
        victim = self._chance.choice(crowd)
        crowd.remove(victim)
        thaw = self._stopped.pop(victim, None)
        if thaw is not None:
            thaw.cancel()
        victim.kill()
        self.figures.kills += 1
        return victim

    async def _stop(self) -> None:
        victim = self._chance.choice([*self._workers, *self._schedulers])
        if victim in self._stopped:
            return
        seconds = self._chance.uniform(0.2, 2.5 * self._crew.lease)

        async def thaw() -> None:
            await asyncio.sleep(seconds)
            del self._stopped[victim]
            victim.signal(signal.SIGCONT)

        victim.signal(signal.SIGSTOP)
        self._stopped[victim] = asyncio.create_task(thaw())
        self.figures.stops += 1

    async def _crash_store(self) -> None:
        assert self._servers is not None
        await asyncio.to_thread(self._servers.crash, "postgres")
        await asyncio.sleep(self._chance.uniform(0.0, 1.5 * self._crew.lease))
        await asyncio.to_thread(self._servers.up, "postgres")
        self.figures.crashes += 1
        recovering = asyncio.create_task(self._recovery())
        self._recovering.add(recovering)
        recovering.add_done_callback(self._recovering.discard)

    async def _recovery(self) -> None:
        """Measure how long it takes until work goes on; whoever is killed meanwhile makes it longer."""
        began = clock.monotonic()
        try:
            async with Rota(self._crew.store) as app:
                run = await app.enqueue(nap.call(0), priority=1_000)
                await app.runs.wait(run.id, timeout=QUIET_SECONDS)
        except StoreUnavailable:  # crashed again: the next one measures
            return
        self.figures.slowest_recovery = max(self.figures.slowest_recovery, clock.monotonic() - began)

    def _look_for_exits(self) -> None:
        for crowd, start, word in (
            (self._workers, self._crew.worker, "working "),
            (self._schedulers, self._crew.scheduler, "firing; "),
        ):
            for number, each in enumerate(crowd):
                if each.gone and not each.said(word):  # it found no store when it began: its supervisor tries again
                    crowd[number] = start()
        for each in (*self._workers, *self._schedulers, *self._clients):
            if each.gone and each.name not in " ".join(self.figures.exits):
                self.figures.exits.append(f"{each.name}: {each.log.read_text()[-2_000:]}")

    async def _rest(self, *, planned: bool) -> None:
        for thaw in tuple(self._stopped.values()):
            await thaw
        await asyncio.gather(*self._recovering)
        self._look_for_exits()
        for each in self._clients:
            each.signal(signal.SIGTERM)
        for each in self._clients:
            assert await each.exit_code() in (0, -signal.SIGTERM), each.log.read_text()
        self._clients.clear()
        if planned:
            await self._all_go_on()
        await quiet(self._crew, QUIET_SECONDS)
        self._look_for_exits()
        self.figures.findings = await audit(self._crew.store, self._crew.books)
        self.figures.slowest_rescue = await self._slowest_rescue()
        if planned:
            self.figures.plans = await audit_plans(self._crew.store, self._crew.books, self._chance)

    async def _all_go_on(self) -> None:
        """Resume all schedules, wait until each has answered an instant that came after, and hold them."""
        async with Rota(self._crew.store) as app:
            for each in await app.schedules.list(state="paused"):
                await app.schedules.resume(each.key)
            since = clock.micros()
            late = f"SELECT 1 FROM rota_schedules WHERE through IS NULL OR through < {since}"

            async def none() -> bool:
                return not await rows(self._crew.store, late)

            await eventually(none, QUIET_SECONDS, "an answer from every schedule")
            await app.schedules.pause(prefix="fixed")
            await app.schedules.pause(prefix="anchored")

    async def _slowest_rescue(self) -> float:
        """Worker names hold the process number, so the store tells when the runs of a killed one were taken back."""
        taken = await rows(self._crew.store, "SELECT worker, finished_at FROM rota_attempts WHERE outcome = 'lost'")
        waits = [
            at / 1_000_000 - self._killed[pid]
            for name, at in taken
            if (pid := int(name.split("-")[-2])) in self._killed
        ]
        return max(waits, default=0.0)


async def long_run(kind: str, seconds: float) -> tuple[Figures, Path]:
    """Run chaos on a store of its own."""
    seed = chosen_seed()
    servers = Servers.new() if kind.endswith("postgres") else None
    planned = kind.startswith("schedules-")
    crowd = {"workers": 3, "clients": 0, "schedulers": 3, "planners": 3} if planned else {}
    try:
        folder = Path(tempfile.mkdtemp(prefix="rota-chaos-"))  # kept where something is wrong: the logs tell what
        store = servers.url("postgres") if servers else f"sqlite:///{folder}/rota.db"
        async with Rota(store):
            await watch(store)
            if planned:
                await watch_plans(store)
        with Crew(store, folder, hurry=False) as crew:
            figures = await Chaos(crew, seed, servers).run(seconds, **crowd)
        if not figures.wrong:
            shutil.rmtree(folder)
        return figures, folder
    finally:
        if servers:
            servers.stop()


def main() -> None:
    kind, seconds = sys.argv[1], float(sys.argv[2])
    figures, folder = asyncio.run(long_run(kind, seconds))
    sys.stdout.write(f"{kind}: {figures}\n")
    if figures.wrong:
        sys.stdout.write(f"wrong: {figures.wrong}\nthe logs are in {folder}; again: ROTA_TEST_SEED={figures.seed}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
