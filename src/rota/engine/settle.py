"""Settling: attempts that ended are written together, as many as came while the last write was under way."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from rota import clock
from rota.db.database import Database
from rota.engine.bell import Bell
from rota.engine.counts import Counts
from rota.errors import StoreUnavailable
from rota.model import Outcome
from rota.store.runs import RunStore, Settled

_MOST = 1_000
_AGAIN_SECONDS = 1.0


class Settler:
    """Writes how attempts ended."""

    def __init__(
        self,
        database: Database,
        runs: RunStore,
        worker: Callable[[], str],
        told: "Told",
        counts: Counts | None = None,
        became: "Callable[[Settled, Outcome], None] | None" = None,
    ) -> None:
        self._counts = Counts() if counts is None else counts
        self._db = database
        self._runs = runs
        self._worker = worker
        self._told = told
        self._became = became
        self._ended: list[tuple[str, Settled]] = []
        """With the name that the worker had: after an outage it may have come back under another one."""
        self._writing: list[Settled] = []
        self._bell = Bell()
        self._doubtful: set[tuple[int, int]] = set()
        """What was written once without an answer: it may be in the store already, by our own hand."""
        self._idle = asyncio.Event()
        self._idle.set()
        self.completed: Counter[Outcome] = Counter()
        """How those ended whose task completed them by itself: only the store knows whether that was rolled back."""
        self.fenced = 0
        """How many attempts ended that were not this worker's any more."""

    def add(self, ended: Settled) -> None:
        """Hand over an attempt that ended."""
        self._ended.append((self._worker(), ended))
        self._idle.clear()
        self._bell.ring()

    @property
    def unwritten(self) -> set[tuple[int, int]]:
        """The attempts that ended and may not be written yet: (run, attempt)."""
        return {(each.run, each.attempt) for each in (*self._writing, *(ended for _, ended in self._ended))}

    async def run_once(self) -> int:
        """Write what has ended under one name, the oldest first; returns how many attempts."""
        if not self._ended:
            return 0
        worker, batch = self._next_batch()
        del self._ended[: len(batch)]
        self._writing = batch
        began = clock.monotonic()
        try:
            plain = all(each.plain for each in batch)
            held = await self._db.write(lambda: self._runs.settle(worker, batch), single=plain)
        except BaseException:
            # Fencing makes it harmless to write what may have been written.
            self._ended[:0] = [(worker, each) for each in batch]
            self._doubtful |= {(each.run, each.attempt) for each in batch}
            raise
        finally:
            self._writing = []
        self._counts.settles.add(clock.monotonic() - began)
        fenced = sum(each.run not in held and not self._may_be_ours(each) for each in batch)
        self.fenced += fenced
        self._counts.fenced += fenced
        for each in batch:
            if each.completed:
                self._say_what_became(each, "succeeded" if each.run not in held else each.outcome)
        self._doubtful -= {(each.run, each.attempt) for each in batch}
        if not self._ended:
            self._idle.set()
        scheduled = any(each.schedule is not None for each in batch)
        if scheduled or any(each.delay is not None or each.limited for each in batch):
            self._told(scheduled=scheduled)
        return len(batch)

    def _say_what_became(self, ended: Settled, outcome: Outcome) -> None:
        self.completed[outcome] += 1
        if self._became is not None:
            self._became(ended, outcome)

    def _next_batch(self) -> tuple[str, list[Settled]]:
        """Return what one write takes: of one name, and of each run one attempt.

        An attempt whose write had no answer may still be here when the next one of its run has ended.
        """
        worker = self._ended[0][0]
        batch: dict[int, Settled] = {}
        for name, each in self._ended[:_MOST]:
            if name != worker or each.run in batch:
                break
            batch[each.run] = each
        return worker, list(batch.values())

    def _may_be_ours(self, ended: Settled) -> bool:
        """Tell whether this attempt may have been ended before by its task, or by a write whose answer was lost."""
        return ended.completed or (ended.run, ended.attempt) in self._doubtful

    async def run(self) -> None:
        """Write for ever. While the store is away, what ended is kept."""
        while True:
            if not self._ended:
                await self._bell.wait(None)
            while self._ended:
                try:
                    await self.run_once()
                except StoreUnavailable:
                    await asyncio.sleep(_AGAIN_SECONDS)

    async def settled(self) -> None:
        """Wait until all that ended is written."""
        await self._idle.wait()


class Told(Protocol):
    """Hears that something was settled that others wait for."""

    def __call__(self, *, scheduled: bool) -> None:
        """Hear it; whether runs of schedules were among it."""
