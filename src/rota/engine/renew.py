"""Renewing: a worker's lease, from a thread that no task can hold up."""

import logging
import threading
from collections.abc import Callable

from rota import clock
from rota.db.database import Database
from rota.store.workers import Renewal, WorkerStore

_log = logging.getLogger("rota.worker")


class Renewer:
    """Keeps one worker's lease, and knows by a monotonic clock whether it may still be trusted."""

    def __init__(
        self, database: Database, workers: WorkerStore, worker: str, lease: float, heard: Callable[[Renewal], None]
    ) -> None:
        self._db = database
        self._workers = workers
        self._worker = worker
        self._lease = lease
        self._heard = heard
        self._until = clock.monotonic() + lease
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rota-renew", daemon=True)

    @property
    def trusted(self) -> bool:
        """Whether the lease certainly still holds."""
        return clock.monotonic() < self._until

    def start(self) -> None:
        """Begin to renew."""
        self._thread.start()

    def stop(self) -> None:
        """Stop renewing."""
        self._stop.set()

    def run_once(self) -> Renewal:
        """Renew the lease once."""
        before = clock.monotonic()  # the lease is counted from before the question, never from after the answer
        renewal = self._db.write_from_thread(lambda: self._workers.renew(self._worker, int(self._lease * 1_000_000)))
        self._until = before + self._lease if renewal.held else before
        return renewal

    def _run(self) -> None:
        while not self._stop.wait(self._lease / 6):
            try:
                renewal = self.run_once()
            except Exception as error:  # noqa: BLE001 (whatever the store says: `trusted` tells when it becomes serious)
                _log.warning("the lease of %s was not renewed: %s", self._worker, error)
                continue
            if not self._stop.is_set():
                self._heard(renewal)
