"""A worker: claims runs, executes them in its slots, settles them, and keeps its lease."""

import asyncio
import contextlib
import logging
import math
import os
import secrets
import socket
from collections import Counter, OrderedDict
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from rota import clock, tracing
from rota.context import CurrentRun, current_run
from rota.db.database import Database
from rota.engine import outcome
from rota.engine.admit import Admitter
from rota.engine.bell import Bell
from rota.engine.claim import Claimer
from rota.engine.complete import Holder, complete_on
from rota.engine.counts import Counts
from rota.engine.execute import Attempt, Executor
from rota.engine.keeping import worth_keeping
from rota.engine.progress import Progress
from rota.engine.renew import Renewer
from rota.engine.saying import Saying, end_facts, run_facts
from rota.engine.settle import Settler
from rota.engine.supervise import for_ever
from rota.engine.sweep import Sweeper
from rota.errors import InvalidData, StoreUnavailable
from rota.model import Outcome, RunError
from rota.settings import KEEP
from rota.store.runs import Claimed, RunStore, Settled
from rota.store.traces import TraceStore
from rota.store.workers import NewWorker, Renewal, WorkerStore
from rota.tasks import Registry, Task
from rota.times.moments import moment

_log = logging.getLogger("rota.worker")

_POLL_SECONDS = 1.0
"""How long an idle worker sleeps at most: knocks may get lost."""
_AGAIN_SECONDS = 1.0
_HELD_SECONDS = 1.0
"""How long a run is held that is not begun; it was taken ahead in the belief that a slot is free in an instant."""
_STRAY_SECONDS = 5.0
"""How often to look for claims that nobody here knows of: a lost one may reach the store long after its connection."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How a worker works."""

    queues: tuple[str, ...] = ("default",)
    slots: int = 10
    lease: float = 30.0
    grace: float = 30.0
    most_stuck: int = 10
    keep: int = KEEP
    """How long ended runs are kept, in microseconds."""


class Worker:
    """Works the queues until it is stopped."""

    def __init__(
        self, database: Database, tasks: Registry, settings: WorkerSettings, counts: Counts | None = None
    ) -> None:
        self._db = database
        self.tasks = tasks
        self._settings = settings
        self.runs = RunStore(database)
        self.workers = WorkerStore(database, self.runs)
        self.id = ""
        self._held: OrderedDict[Claimed, float] = OrderedDict()
        """What was claimed and has not begun, in order, and since when it is held."""
        self._running: dict[tuple[int, int], Attempt] = {}
        self._at_rest = asyncio.Event()
        """Nothing runs."""
        self._at_rest.set()
        self._quarantined: set[int] = set()
        self._bell = Bell()
        self._claiming = False
        self._stopping = False
        self._looking = False
        self._forced = False
        self.worn_out = False
        """Whether it ended because too many tasks do not stop when told to."""
        self._looked_for_strays = clock.monotonic()
        self._outcomes: Counter[Outcome] = Counter()
        self._completed: dict[tuple[int, int], tuple[Claimed, float]] = {}
        """Attempts whose task completed them by itself, and how long they took, until the store says what became."""
        self._saying = Saying(_log)
        self.measured = Counts() if counts is None else counts
        self._spawned: set[asyncio.Task[None]] = set()
        self._claimer = Claimer(
            database, self.runs, lambda: self.id, settings.queues, settings.slots, self.measured.claims
        )
        self._executor = Executor(tasks, self._context, settings.most_stuck, lambda: Holder(self.id, database.address))
        self._renewer: Renewer | None = None
        self._progress = Progress(database, self.runs, lambda: self.id, lambda: self._loop)
        self.admitter = Admitter(database, self.runs, self._tell)
        self._settler = Settler(database, self.runs, lambda: self.id, self._settled, self.measured, self._became)
        self.sweeper = Sweeper(
            database,
            self.workers,
            self._tell,
            self.admitter.bell.ring,
            lease=settings.lease,
            keep=settings.keep,
            counts=self.measured,
        )

    @property
    def outcomes(self) -> Counter[Outcome]:
        """How the attempts ended that it executed."""
        return self._outcomes + self._settler.completed

    @property
    def fenced(self) -> int:
        """How many results came too late: the run was somebody else's by then."""
        return self._settler.fenced

    @property
    def busy_threads(self) -> int:
        """How many threads are in tasks; after the end, in tasks that do not stop when told to."""
        return self._executor.busy_threads

    @property
    def busy(self) -> bool:
        """Whether anything is in its hands: asked for, held, running, or ended and not written yet."""
        return bool(self._claiming or self._held or self._running or self._settler.unwritten)

    def knock(self) -> None:
        """Hear that there are ready runs."""
        self._bell.ring()

    async def _tell(self, _ready: dict[str, int]) -> None:
        await self._db.notify("ready")

    def _settled(self, *, scheduled: bool) -> None:
        """Hear that room was given back, that a run waits again, or that a schedule's run has ended."""
        self.admitter.bell.ring()
        if scheduled:
            self._spawn(self._db.notify("schedules"))

    def heard(self, topic: str | None) -> None:
        """Hear that something changed in the store."""
        if topic is not None and topic.startswith("lock:"):  # of a user's lock: no run
            return
        if topic != "waiting":
            self._bell.ring()
        if topic in (None, "waiting"):
            self.admitter.bell.ring()
        if topic in (None, "cancel") and (self._running or self._held) and not self._looking:
            self._looking = True
            self._spawn(self._look_for_cancelled())

    async def run(self) -> None:
        """Work until `stop` is called or this is cancelled; then end in order."""
        self._loop = asyncio.get_running_loop()
        self._db.listen(self.heard)
        await self._enter()
        loops = [
            asyncio.create_task(for_ever(each)) for each in (self._settler.run, self.admitter.run, self.sweeper.run)
        ]
        try:
            await self._work()
        finally:
            self._db.unlisten(self.heard)
            await self._end(loops)

    def stop(self) -> None:
        """Take no new work; end when what runs has ended or the grace is over. A second time: end at once."""
        self._forced = self._stopping
        self._stopping = True
        self._bell.ring()
        if self._forced:
            self._cut_off()

    def _cut_off(self) -> None:
        """Stop all that runs, with nothing to settle."""
        for each in list(self._running.values()):
            each.cut()

    async def _work(self) -> None:
        while not self._stopping:
            if self._renewer is not None and not self._renewer.trusted:
                await self._lost_lease()
            self._start_held()
            free = self._settings.slots - len(self._running)
            try:
                if clock.monotonic() - self._looked_for_strays > _STRAY_SECONDS:
                    await self._hand_back_unknown()
                await self._hand_back_overdue()
                self._claiming = True  # and stays so where the answer does not come
                found = await self._claimer.run_once(free, len(self._held), quarantine=not self._quarantined)
            except StoreUnavailable as error:
                _log.warning("the store is away: %s", error)
                self._looked_for_strays = 0.0  # the answer to a claim may be lost: look as soon as it is back
                await self._bell.wait(_AGAIN_SECONDS)
                continue
            await self._learn_traces(found)
            self._held.update(dict.fromkeys(found, clock.monotonic()))
            self._claiming = False
            self._start_held()
            if not found or len(self._running) >= self._settings.slots:
                await self._bell.wait(min(_POLL_SECONDS, self._until_overdue()))
            if self._executor.worn_out:
                self.worn_out = True
                _log.error("too many tasks do not stop when told to; the worker ends so that another takes its place")
                return

    async def _learn_traces(self, claimed: list[Claimed]) -> None:
        """Learn in which traces runs were enqueued, where somebody collects spans; while the store is away, none."""
        if not tracing.is_on():
            self._executor.traces = None
            return
        found: dict[int, str] = {}
        if claimed:
            with contextlib.suppress(StoreUnavailable):
                found = await self._db.read(lambda: TraceStore(self._db).of(run.id for run in claimed))
        known = {run.id for run in self._held}
        kept = {run: trace for run, trace in (self._executor.traces or {}).items() if run in known}
        self._executor.traces = kept | found

    async def _hand_back_unknown(self) -> None:
        """Give back what a claim took whose answer was lost: the store says it is ours, and we do not know it."""
        known = {(run.id, run.attempt) for run in self._held} | set(self._running) | self._settler.unwritten
        held = await self._db.read(lambda: self.runs.held_by(self.id))
        unknown = held - known - self._settler.unwritten
        if unknown:
            await self._db.write(lambda: self.runs.hand_back(self.id, sorted(unknown)))
        self._looked_for_strays = clock.monotonic()

    async def _hand_back_overdue(self) -> None:
        """Give back what was held ahead and is not begun: what runs is long, and others may have free slots."""
        latest = clock.monotonic() - _HELD_SECONDS
        late = [run for run, since in self._held.items() if since <= latest]
        if late:
            for run in late:
                del self._held[run]
            self._claimer.learn_long()
            await self._db.write(lambda: self.runs.hand_back(self.id, [(run.id, run.attempt) for run in late]))
            await self._db.notify("ready")

    def _until_overdue(self) -> float:
        """Return in how many seconds what is held goes back, if it is not begun."""
        since = next(iter(self._held.values()), math.inf)
        return max(0.0, since + _HELD_SECONDS - clock.monotonic())

    def _start_held(self) -> None:
        while self._held and not self._stopping and len(self._running) < self._settings.slots:
            run, _ = self._held.popitem(last=False)
            if run.lost > 1:
                self._quarantined.add(run.id)
            self._at_rest.clear()
            self._saying.usual("started", "run started", run_facts, run)
            self._running[run.id, run.attempt] = self._executor.begin(run, self._ended)

    def _ended(self, attempt: Attempt, ended: Settled | None) -> None:
        """Hear how an attempt ended, and begin another."""
        run = attempt.run
        if ended is not None:
            took = attempt.seconds()
            if ended.completed:
                self._completed[run.id, run.attempt] = run, took
            else:
                self._outcomes[ended.outcome] += 1
                self._say_ended(run, ended, took)
            word = self._progress.take(run)
            self._settler.add(ended if word is None else replace(ended, progress=word))
            self._claimer.learn(took)
        self._running.pop((run.id, run.attempt), None)
        self._quarantined.discard(run.id)
        self._start_held()
        if len(self._held) <= self._claimer.low:
            self._bell.ring()
        if not self._running:
            self._at_rest.set()

    def _became(self, ended: Settled, became: Outcome) -> None:
        """Hear from the store how an attempt ended whose task completed it by itself."""
        run, took = self._completed.pop((ended.run, ended.attempt))
        known = ended if became == ended.outcome else replace(ended, outcome=became, error=None, delay=None)
        self._say_ended(run, known, took)

    def _say_ended(self, run: Claimed, ended: Settled, took: float) -> None:
        self.measured.ended(run, ended.outcome, took)
        if ended.outcome in ("failed", "retry"):
            said = "" if ended.error is None else f"{ended.error.kind}: {ended.error.message}".splitlines()[0]
            text = "run %s of %s: attempt %s: %s: %s"
            facts = {"verb": "failed" if ended.outcome == "failed" else "retried"} | end_facts(run, ended, took)
            _log.warning(text, run.id, run.task, run.attempt, ended.outcome, said, extra=facts)
        else:
            self._saying.usual("ended", "run ended", end_facts, run, ended, took)

    def _context(self, run: Claimed, task: Task[..., Any]) -> CurrentRun:
        return CurrentRun(run.id, run.task, run.queue, run.attempt, _Host(self, run, task), run.schedule, run.kind)

    async def complete(self, run: Claimed, result: str, connection: Any) -> None:
        """End a run as succeeded inside the transaction that is open on this connection."""
        current, attempt = current_run(), self._running.get((run.id, run.attempt))
        log = None if attempt is None else worth_keeping(current, "succeeded", attempt.seconds)
        ended = replace(
            outcome.returned(run, result), progress=self._progress.unwritten(run), asked=current.asked, log=log
        )
        await complete_on(connection, self._db, self.id, ended)

    def note_progress(self, run: Claimed, share: float, note: str) -> None:
        """Hear how far a run is, in whatever thread it is said."""
        self._progress.note(run, share, note)

    async def _enter(self) -> None:
        """Say that this worker is there, under a name that nobody had before."""
        name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        new = NewWorker(name, socket.gethostname(), os.getpid(), self._settings.queues, self._settings.slots)
        await self._db.write(lambda: self.workers.enter(new, int(self._settings.lease * 1_000_000)))
        self.id = name
        self._renewer = Renewer(self._db, self.workers, name, self._settings.lease, self._renewed)
        self._renewer.start()

    def _renewed(self, renewal: Renewal) -> None:
        """Hear, in the renewer's thread, what the store said."""
        with contextlib.suppress(RuntimeError):  # the event loop is closed: the worker has ended
            self._loop.call_soon_threadsafe(self._take_in, renewal)

    def _take_in(self, renewal: Renewal) -> None:
        if not renewal.held:
            self._held.clear()
            self._cut_off()
            self._bell.ring()  # the lease is not trusted any more: `_work` comes back under another name
        if renewal.draining and not self._stopping:
            self.stop()
        for run, _, why in renewal.cancel:
            self._cancel(run, why)

    def _cancel(self, run: int, why: str) -> None:
        """Stop a run, or never begin it where it is held ahead."""
        ahead = next((each for each in self._held if each.id == run), None)
        if ahead is None:
            self._executor.stop(run, why)
        else:
            del self._held[ahead]
            self._settler.add(outcome.cancelled(ahead, why))

    async def _look_for_cancelled(self) -> None:
        self._looking = False  # what is cancelled from now on is looked for again
        with contextlib.suppress(StoreUnavailable):
            for run, _, why in await self._db.read(lambda: self.runs.to_cancel(self.id)):
                self._cancel(run, why)

    async def _lost_lease(self) -> None:
        """Somebody else may have this worker's runs by now: stop them, and come back under another name."""
        if self._renewer is None:
            return
        self._renewer.stop()
        self._renewer = None
        text = "the lease of %s was lost; its runs are stopped"
        _log.warning(text, self.id, extra={"verb": "lost", "worker": self.id})
        self._held.clear()
        self._cut_off()
        await self._at_rest.wait()
        while self._renewer is None and not self._stopping:
            try:
                await self._enter()
            except StoreUnavailable:
                await self._bell.wait(_AGAIN_SECONDS)

    async def _end(self, loops: list["asyncio.Task[None]"]) -> None:
        """Give back what was not begun, wait for what runs, then give that back too."""
        with contextlib.suppress(StoreUnavailable):
            await self._db.write(lambda: self.workers.drain(self.id), single=True)
            if self._held:
                held = [(run.id, run.attempt) for run in self._held]
                self._held.clear()
                await self._db.write(lambda: self.runs.hand_back(self.id, held))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._at_rest.wait(), 0 if self._forced else self._settings.grace)
        self._cut_off()
        await self._at_rest.wait()
        with contextlib.suppress(TimeoutError, StoreUnavailable):
            async with asyncio.timeout(5):
                await self._settler.settled()
                await self._db.write(lambda: self.workers.leave(self.id))
        if self._renewer is not None:
            self._renewer.stop()
        for each in loops:
            each.cancel()
        await asyncio.gather(*loops, *self._spawned, return_exceptions=True)
        await self._progress.close()
        await self._executor.close()
        await self._db.notify("ready")  # what was given back need not wait until somebody looks by himself

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)


@dataclass(frozen=True, slots=True, eq=False)
class _Host:
    """What a run in a worker's own process may ask of it."""

    _worker: Worker
    _run: Claimed
    _task: Task[..., Any]

    def app(self) -> object:
        return self._worker.tasks.enqueuer

    def due(self) -> datetime:
        return moment(self._run.due if self._run.nominal is None else self._run.nominal)

    def previous_result(self) -> Any:
        """Read what an attempt before left behind; None where the annotation does not describe it any more."""
        try:
            return None if self._run.previous_result is None else self._task.load_result(self._run.previous_result)
        except InvalidData as error:
            _log.warning("run %s: the previous result cannot be read: %s", self._run.id, error)
            return None

    def previous_error(self) -> RunError | None:
        return RunError.read(self._run.previous_error)

    def log(self) -> "logging.LoggerAdapter[logging.Logger]":
        return logging.LoggerAdapter(_log.getChild("run"), {"job_id": self._run.id, "job_name": self._run.task})

    def note_progress(self, share: float, note: str) -> None:
        self._worker.note_progress(self._run, share, note)

    async def settle_on(self, result: Any, connection: Any) -> None:
        await self._worker.complete(self._run, self._task.dump_result(result), connection)
