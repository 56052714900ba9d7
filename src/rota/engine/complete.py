"""Completing: a task ends its own run, inside its own transaction."""

from dataclasses import dataclass
from typing import Any

from rota.db.borrowed import run_on
from rota.db.database import Database
from rota.errors import LeaseLost
from rota.store.runs import RunStore, Settled


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the runs, and in which store: all that another process of his needs to complete one."""

    worker: str
    address: str


async def complete_on(connection: Any, database: Database, worker: str, ended: Settled) -> None:
    """Settle a run on its task's connection; raise LeaseLost where it is not this worker's any more."""
    store = RunStore(database)
    if not await run_on(connection, database, lambda: store.settle(worker, [ended])):
        raise LeaseLost(ended.run)
