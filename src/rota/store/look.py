"""What there is to do in a store, and when something will be, for whoever goes by steps."""

from dataclasses import dataclass

from rota.db.database import Database, Operation
from rota.store.runs import RunStore
from rota.times.moments import Instant


@dataclass(frozen=True, slots=True)
class Look:
    """A store at one instant."""

    wake: Instant | None
    """When a schedule is due."""
    due: Instant | None
    """When a waiting run is."""
    rested: Instant | None
    """When a limit has room again."""
    lost: Instant | None
    """When the lease of another worker has ended."""
    ready: frozenset[str]
    """The queues with runs that are ready."""
    gone: bool
    """Whether workers had lost some of these."""
    unworked: frozenset[str]
    """The queues with runs that wait for a worker of theirs."""
    cancel: tuple[tuple[int, str], ...]
    """What the worker is to stop, and why."""

    @property
    def events(self) -> list[Instant]:
        """When something happens by itself."""
        return [each for each in (self.wake, self.due, self.rested, self.lost) if each is not None]


class Looks:
    """Looks at a database."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._runs = RunStore(database)

    def look(self, worker: str) -> Operation[Look]:
        """Look at all that concerns this worker."""
        (row,) = yield self._db.query("look.events", worker=worker)
        ready = yield self._db.query("look.queues")
        unworked = yield self._db.query("look.unworked")
        cancel = yield from self._runs.to_cancel(worker)
        return Look(
            wake=row["wake"],
            due=row["due"],
            rested=row["rested"],
            lost=None if row["lease"] is None else row["lease"] + 1,
            ready=frozenset(each["queue"] for each in ready),
            gone=any(each["lost"] for each in ready),
            unworked=frozenset(each["gate"][1:] for each in unworked),
            cancel=tuple((run, why) for run, _, why in cancel),
        )
