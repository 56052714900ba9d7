"""Chaos: workers and clients on one store, while processes are killed and stopped and the store itself crashes.

Short as a test; long by `scripts/soak`, which runs `python -m tests.journeys.chaos sqlite|postgres SECONDS`. What
happens, and when, comes from a seed (`ROTA_TEST_SEED` chooses it); what the processes make of it is the machine's.
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
from tests.journeys.processes import Crew, Process
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

    def __str__(self) -> str:
        found = self.findings
        return (
            f"kills {self.kills}, stops {self.stops}, crashes of the store {self.crashes}, accepted {found.accepted},"
            f" ended {found.ended}, lost {len(found.lost)}, doubled {len(found.doubled)},"
            f" slowest rescue {self.slowest_rescue:.1f} s, slowest recovery {self.slowest_recovery:.1f} s,"
            f" seed {self.seed}"
        )

    @property
    def wrong(self) -> dict[str, object]:
        """What must be empty, and is not."""
        return self.findings.wrong | ({"exits": self.exits} if self.exits else {})


class Chaos:
    """One chaotic while on one store."""

    def __init__(self, crew: Crew, seed: int, servers: Servers | None) -> None:
        self._crew = crew
        self._chance = random.Random(seed)
        self._servers = servers
        self._workers: list[Process] = []
        self._clients: list[Process] = []
        self._stopped: dict[Process, asyncio.Task[None]] = {}
        self._killed: dict[int, float] = {}
        self._recovering: set[asyncio.Task[None]] = set()
        self.figures = Figures(seed)

    async def run(self, seconds: float, *, workers: int = 3, clients: int = 2, crashes: int = 0) -> Figures:
        """Do harm for this long, with so many crashes of the store at least; then rest, and compare the books."""
        self._workers = [self._crew.worker() for _ in range(workers)]
        self._clients = [self._crew.client(self._chance.randrange(10**9)) for _ in range(clients)]
        await self._crew.working(*self._workers)
        harms: list[Callable[[], Awaitable[None]]] = [self._kill_worker] * 6 + [self._stop_worker] * 3
        harms += [self._kill_client] * 2 + ([self._crash_store] if self._servers else [])
        until = clock.monotonic() + seconds
        while clock.monotonic() < until:
            await asyncio.sleep(self._chance.uniform(0.05, 1.5))
            self._look_for_exits()
            if not self.figures.exits:
                await self._chance.choice(harms)()
        while self.figures.crashes < crashes:
            await self._crash_store()
        await self._rest()
        return self.figures

    async def _kill_worker(self) -> None:
        victim = self._chance.choice(self._workers)
        thaw = self._stopped.pop(victim, None)
        if thaw is not None:
            thaw.cancel()
        victim.kill()
        self._killed[victim.pid] = clock.micros() / 1_000_000
        self.figures.kills += 1
        self._workers[self._workers.index(victim)] = self._crew.worker()

    async def _stop_worker(self) -> None:
        victim = self._chance.choice(self._workers)
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

    async def _kill_client(self) -> None:
        victim = self._chance.choice(self._clients)
        victim.kill()
        self.figures.kills += 1
        self._clients[self._clients.index(victim)] = self._crew.client(self._chance.randrange(10**9))

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

    def _look_for_exits(self, *processes: Process) -> None:
        for number, each in enumerate(self._workers):
            if each.gone and not each.said("working "):  # it found no store when it began: its supervisor tries again
                self._workers[number] = self._crew.worker()
        for each in processes or (*self._workers, *self._clients):
            if each.gone and each.name not in " ".join(self.figures.exits):
                self.figures.exits.append(f"{each.name}: {each.log.read_text()[-2_000:]}")

    async def _rest(self) -> None:
        for thaw in tuple(self._stopped.values()):
            await thaw
        await asyncio.gather(*self._recovering)
        self._look_for_exits()
        for each in self._clients:
            each.signal(signal.SIGTERM)
        for each in self._clients:
            assert await each.exit_code() in (0, -signal.SIGTERM), each.log.read_text()
        await quiet(self._crew, QUIET_SECONDS)
        self._look_for_exits(*self._workers)
        self.figures.findings = await audit(self._crew.store, self._crew.books)
        self.figures.slowest_rescue = await self._slowest_rescue()

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
    servers = Servers.new() if kind == "postgres" else None
    try:
        folder = Path(tempfile.mkdtemp(prefix="rota-chaos-"))  # kept where something is wrong: the logs tell what
        store = servers.url("postgres") if servers else f"sqlite:///{folder}/rota.db"
        async with Rota(store):
            await watch(store)
        with Crew(store, folder, hurry=False) as crew:
            figures = await Chaos(crew, seed, servers).run(seconds)
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
