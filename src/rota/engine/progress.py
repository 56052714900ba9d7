"""Progress: how far runs say they are. The last word of each is written, not every one."""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from rota.db.database import Database
from rota.errors import StoreUnavailable
from rota.store.runs import Claimed, RunStore, Word

_log = logging.getLogger("rota.worker")

_EVERY_SECONDS = 0.5
"""How often the word of a run is written at most; the first one is written at once."""


class Progress:
    """Writes what runs say: of each run one word at a time, in the order in which they were said.

    What is not written when the attempt ends is written with its end. A word that is not confirmed counts as not
    written; one that comes late is fenced like all that an attempt says.
    """

    def __init__(
        self,
        database: Database,
        runs: RunStore,
        worker: Callable[[], str],
        loop: Callable[[], asyncio.AbstractEventLoop],
    ) -> None:
        self._db = database
        self._runs = runs
        self._worker = worker
        self._loop = loop
        self._words: dict[tuple[int, int], Word] = {}
        self._writing: dict[tuple[int, int], asyncio.Task[None]] = {}

    def note(self, run: Claimed, share: float, note: str) -> None:
        """Hear a word of a run, in whatever thread it is said."""
        self._words[run.id, run.attempt] = (share, note)
        with contextlib.suppress(RuntimeError):  # the event loop is closed: the worker has ended
            self._loop().call_soon_threadsafe(lambda: self._begin(run.id, run.attempt))

    def unwritten(self, run: Claimed) -> Word | None:
        """Return the last word of an attempt if it may not be written yet."""
        return self._words.get((run.id, run.attempt))

    def take(self, run: Claimed) -> Word | None:
        """Return the last word of an attempt that has ended, for whoever writes its end."""
        return self._words.pop((run.id, run.attempt), None)

    async def close(self) -> None:
        """Write no more."""
        writing = list(self._writing.values())
        for each in writing:
            each.cancel()
        await asyncio.gather(*writing, return_exceptions=True)

    def _begin(self, run: int, attempt: int) -> None:
        if (run, attempt) not in self._writing and (run, attempt) in self._words:
            task = asyncio.get_running_loop().create_task(self._write(run, attempt))
            self._writing[run, attempt] = task
            task.add_done_callback(lambda _: self._writing.pop((run, attempt)))

    async def _write(self, run: int, attempt: int) -> None:
        """Write words of a run until there is no new one, or it is not this worker's any more."""
        while (word := self._words.get((run, attempt))) is not None:
            try:
                held = await self._write_once(run, attempt, word)
            except StoreUnavailable:
                held = True
            except Exception:  # noqa: BLE001 (it is logged whole)
                _log.exception("the progress of run %s was not written", run)
                held = False
            else:
                if self._words.get((run, attempt)) is word:
                    del self._words[run, attempt]
            if not held:
                self._words.pop((run, attempt), None)
            await asyncio.sleep(_EVERY_SECONDS)

    async def _write_once(self, run: int, attempt: int, word: Word) -> bool:
        worker = self._worker()
        return await self._db.write(lambda: self._runs.progress(worker, run, attempt, *word), single=True)
