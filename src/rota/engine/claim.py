"""Claiming: take ready runs for the slots that are free, and some ahead of them while tasks are short."""

from collections.abc import Callable

from rota import clock
from rota.db.database import Database
from rota.engine.counts import SHORT, Lengths
from rota.store.runs import Claimed, RunStore

_AHEAD_SECONDS = 0.2
"""How much work to hold beside what runs: enough to be busy during a claim; more would keep it from other workers."""
_MOST_AHEAD = 500
_QUARANTINE = 2
"""A run that was lost this often is taken alone: it may be what kills its workers."""
_LOST_SECONDS = 0.5
"""How often to look for runs that were lost, where nothing else is to be done: they are few."""
_LOST_LATEST = 2.0
"""How often to look for them first, however much else is ready."""


class Claimer:
    """Takes runs for one worker."""

    def __init__(
        self,
        database: Database,
        runs: RunStore,
        worker: Callable[[], str],
        queues: tuple[str, ...],
        slots: int,
        took: Lengths | None = None,
    ) -> None:
        self._took = Lengths(SHORT) if took is None else took
        self._slots = slots
        self._db = database
        self._runs = runs
        self._worker = worker
        self._queues = queues
        self._turn = 0
        self._usual = 1.0
        self._looked_for_lost = 0.0
        self.low = 0
        """How many are held when it is time to take more: while these run, the next ones come."""

    def work(self, queues: tuple[str, ...]) -> None:
        """Take from these queues from now on."""
        self._queues = queues

    def learn(self, seconds: float) -> None:
        """Learn how long runs take here."""
        self._usual += (seconds - self._usual) * 0.1

    def learn_long(self) -> None:
        """Learn that what runs takes longer than what has ended tells: nothing is taken ahead until short runs end."""
        self._usual = max(self._usual, 2 * self._slots * _AHEAD_SECONDS)

    async def run_once(self, free: int, held: int, *, quarantine: bool, lost: bool = True) -> list[Claimed]:
        """Take runs, queue by queue, each time from another one on.

        For free slots anything; ahead of them only what was never lost, so that poison drags nobody along, and what is
        under no limit, which would be kept from others; and what was lost twice only where nothing else of the kind
        runs. What was lost comes when nothing else is there, and now and then first; not where nothing is `lost`.
        """
        worth = self._slots * _AHEAD_SECONDS / max(self._usual, 1e-6)
        ahead = max(0, min(_MOST_AHEAD, int(worth)) - held)
        self._turn += 1
        found = await self._lost(free, _LOST_LATEST, quarantine=quarantine) if lost else []
        wanted = free + ahead
        for number in range(len(self._queues)):
            queue = self._queues[(self._turn + number) % len(self._queues)]
            left = free - len(found)
            if left + ahead > 0:
                found += await self._claim(queue, max(0, left), 0, 0, ahead=ahead + min(0, left))
        if lost and not found:
            found = await self._lost(free, _LOST_SECONDS, quarantine=quarantine)
        self.low = (held + len(found)) // 2 if len(found) >= wanted else 0  # else nobody has more
        return found

    async def _lost(self, free: int, pause: float, *, quarantine: bool) -> list[Claimed]:
        """Take runs that were lost, for free slots alone, where nobody looked for so many seconds."""
        now = self._db.clock.monotonic()
        found: list[Claimed] = []
        if not free or now - self._looked_for_lost <= pause:
            return found
        self._looked_for_lost = now
        for queue in self._queues:
            if free > len(found):
                found += await self._claim(queue, free - len(found), 1, _QUARANTINE - 1)
            if free > len(found) and quarantine:
                taken = await self._claim(queue, 1, _QUARANTINE, 1_000_000)
                found += taken
                quarantine = not taken
        return found

    async def _claim(self, queue: str, most: int, lost_least: int, lost_most: int, *, ahead: int = 0) -> list[Claimed]:
        worker, began = self._worker(), clock.monotonic()
        found = await self._db.write(
            lambda: self._runs.claim(worker, queue, most, ahead=ahead, lost_least=lost_least, lost_most=lost_most),
            single=True,
        )
        self._took.add(clock.monotonic() - began)
        return found
