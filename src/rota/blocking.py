"""`rota.Blocking`: an app's calls for code without an event loop, such as scripts, Flask, Django and tasks in threads.

They are the same calls: each is handed to the event loop in which the app is open, and waited for. Where it is open in
none, that is one in a thread of its own, which all threads share.
"""

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future, wait
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar
from weakref import WeakSet

from rota.app import Rota
from rota.context import current_run
from rota.db.database import Database
from rota.db.drivers import must_be_awaited
from rota.errors import Invalid, RotaError, StoreUnavailable, WouldBlock
from rota.limits import Limits
from rota.locks import Lock
from rota.runs import Runs
from rota.schedules import Schedules
from rota.times.policies import Length

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

_LOOK_SECONDS = 1.0
"""How often to look whether the event loop is still there."""
_ALLOWED = "use a connection of sqlite3, psycopg2, psycopg 3 (psycopg.Connection) or SQLAlchemy (Connection, Session)"


class _Calls(Generic[S]):
    """Some of the calls of one part of an app."""

    def __init__(self, hands: "_Hands", name: str, part: Callable[[], S]) -> None:
        self._hands = hands
        self._name = name
        self._part = part


def _waited(method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[_Calls[S], P], T]:
    """Return the same call, which returns when it is done."""

    @wraps(method)
    def call(self: _Calls[S], /, *args: P.args, **kwargs: P.kwargs) -> T:
        name = f"await {self._name}.{method.__name__}(…)"
        work = lambda: method(self._part(), *args, **kwargs)  # noqa: E731
        return self._hands.do(name, work, kwargs.get("connection"))

    return call


class BlockingRuns(_Calls[Runs]):
    """`app.runs`, without `await`."""

    get = _waited(Runs.get)
    list = _waited(Runs.list)
    attempts = _waited(Runs.attempts)
    result = _waited(Runs.result)
    wait = _waited(Runs.wait)
    cancel = _waited(Runs.cancel)
    retry = _waited(Runs.retry)
    hours = _waited(Runs.hours)
    log = _waited(Runs.log)
    statistics = _waited(Runs.statistics)


class BlockingSchedules(_Calls[Schedules]):
    """`app.schedules`, without `await`."""

    put = _waited(Schedules.put)
    put_many = _waited(Schedules.put_many)
    change = _waited(Schedules.change)
    pause = _waited(Schedules.pause)
    resume = _waited(Schedules.resume)
    remove = _waited(Schedules.remove)
    spread = _waited(Schedules.spread)
    trigger = _waited(Schedules.trigger)
    backfill = _waited(Schedules.backfill)
    get = _waited(Schedules.get)
    list = _waited(Schedules.list)
    upcoming = _waited(Schedules.upcoming)
    firings = _waited(Schedules.firings)
    why = _waited(Schedules.why)
    revisions = _waited(Schedules.revisions)
    status = _waited(Schedules.status)
    failing = _waited(Schedules.failing)
    preview = _waited(Schedules.preview)
    pending = _waited(Schedules.pending)
    busy = _waited(Schedules.busy)
    newest_firings = _waited(Schedules.newest_firings)


class BlockingLimits(_Calls[Limits]):
    """`app.limits`, without `await`."""

    put = _waited(Limits.put)
    list = _waited(Limits.list)
    remove = _waited(Limits.remove)
    waits_for = _waited(Limits.waits_for)

    @contextlib.contextmanager
    def hold(self, key: str, *, wait: Length | None = None) -> Iterator[None]:
        """Do what `app.limits.hold` does, with a plain `with`."""
        name = f"async with {self._name}.hold(…)"
        inside = self._part().hold(key, wait=wait)
        self._hands.do(name, inside.__aenter__)
        try:
            yield
        finally:
            self._hands.do(name, lambda: inside.__aexit__(None, None, None))


class BlockingLock(_Calls[Lock]):
    """A `rota.Lock`, without `await`; for one thread at a time."""

    acquire = _waited(Lock.acquire)
    extend = _waited(Lock.extend)
    release = _waited(Lock.release)

    def __init__(self, hands: "_Hands", make: Callable[[], Lock], where: Callable[[], Database]) -> None:
        super().__init__(hands, "app.lock(…)", self._here)
        self._make, self._where = make, where
        self._lock, self._made_for = make(), where()

    def _here(self) -> Lock:
        """Return the lock; in a process that was forked since, another: what was taken is the other process's."""
        if self._made_for is not self._where():
            self._lock, self._made_for = self._make(), self._where()
        return self._lock

    @property
    def name(self) -> str:
        """Its name."""
        return self._here().name

    @property
    def fence(self) -> int:
        """The number of the last acquisition; 0 before the first."""
        return self._here().fence

    @property
    def held(self) -> bool:
        """Whether the lock is certainly this holder's now, by this machine's monotonic clock; asks nobody."""
        return self._here().held

    def __enter__(self) -> Self:
        self._hands.do("async with app.lock(…)", lambda: self._here().__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hands.do("async with app.lock(…)", lambda: self._here().__aexit__(kind, error, trace))


class Blocking(_Calls[Rota]):
    """The calls of an app, without `await`; threads may share one.

    `with` opens the store at once and closes it at the end; without, the first call opens it, and the end of the
    process closes it. A process that was forked begins anew by itself.
    """

    enqueue = _waited(Rota.enqueue)
    enqueue_many = _waited(Rota.enqueue_many)
    pause = _waited(Rota.pause)
    resume = _waited(Rota.resume)
    workers = _waited(Rota.workers)
    drain = _waited(Rota.drain)
    queue_sums = _waited(Rota.queue_sums)
    queues = _waited(Rota.queues)

    def __init__(self, app: Rota) -> None:
        super().__init__(_Hands(app), "app", lambda: app)
        self.runs = BlockingRuns(self._hands, "app.runs", lambda: app.runs)
        self.schedules = BlockingSchedules(self._hands, "app.schedules", lambda: app.schedules)
        self.limits = BlockingLimits(self._hands, "app.limits", lambda: app.limits)

    def lock(self, name: str, *, ttl: Length = "60s", wait: Length | None = None) -> BlockingLock:
        """Return a lock for `with`, which takes it, after so long a `wait` at most where another holds it."""
        app = self._part()
        return BlockingLock(self._hands, lambda: app.lock(name, ttl=ttl, wait=wait), lambda: app.database)

    def complete(self, result: Any = None, *, connection: Any) -> None:
        """Do what `current_run().complete` does, in a task that is a plain `def`."""
        work = lambda: current_run().complete(result, connection=connection)  # noqa: E731
        self._hands.do("await rota.current_run().complete(…)", work, connection)

    def open(self) -> None:
        """Open the store, and bring its tables up to date, unless the app is open already."""
        self._hands.loop("async with app")

    def close(self) -> None:
        """Close the store, if it was opened here; the next call opens it again."""
        self._hands.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Hands:
    """Hands calls to an event loop in which an app is open."""

    def __init__(self, app: Rota) -> None:
        self._app = app
        self._home: _Home | None = None
        _ALL.add(self)

    def do(self, name: str, work: Callable[[], Coroutine[Any, Any, T]], connection: Any = None) -> T:
        if connection is not None:
            return self._do_here(name, work, connection)
        loop = self.loop(name)

        async def told() -> T:
            found = await work()
            await self._app.told()  # this process may end as soon as the call returns
            return found

        return _result(asyncio.run_coroutine_threadsafe(told(), loop), loop)

    def loop(self, name: str) -> asyncio.AbstractEventLoop:
        """Return the event loop in which the app is open; open it where it is not."""
        _refuse_in_loop(name)
        with _DOOR:
            found = self._app.loop
            if found is None:
                self._home = _Home(self._app)
                found = self._home.loop
                _OPENED.add(self)
        return found

    def close(self) -> None:
        with _DOOR:
            self._close()

    def will_fork(self) -> None:
        """Close what must not be open then; calls that other threads have under way hear of it."""
        if not self._app.database.may_fork:
            with contextlib.suppress(RotaError):
                self._close()

    def _close(self) -> None:
        home, self._home = self._home, None
        _OPENED.discard(self)
        if home is not None:
            home.close()

    def forked(self) -> None:
        """Leave all that belongs to the process that this one was forked from."""
        _LEFT.append(self._home)
        self._home = None
        _OPENED.discard(self)
        self._app.begin_anew()

    def _do_here(self, name: str, work: Callable[[], Coroutine[Any, Any, T]], connection: Any) -> T:
        """Run a call on the caller's connection, in the caller's thread. The store is not opened for that.

        To open it means to write, and on SQLite the caller's transaction may keep everybody else from writing.
        """
        _refuse_in_loop(name)
        if must_be_awaited(connection):
            raise Invalid("connection", connection, _ALLOWED, "would have to be awaited")
        coroutine = work()
        try:
            coroutine.send(None)
        except StopIteration as stop:
            found: T = stop.value
            return found
        raise AssertionError(name)  # on such a connection nothing is ever waited for


class _Home:
    """A thread with an event loop in which an app is open."""

    def __init__(self, app: Rota) -> None:
        self._app = app
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="rota-blocking", daemon=True)
        self._thread.start()
        try:
            self._do(app.__aenter__())
        except BaseException:
            self._stop()
            raise

    def close(self) -> None:
        try:
            self._do(self._app.__aexit__())
        finally:
            self._stop()

    def _do(self, coroutine: Coroutine[Any, Any, object]) -> None:
        _result(asyncio.run_coroutine_threadsafe(coroutine, self.loop), self.loop)

    def _stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


_DOOR = threading.Lock()
"""One at a time opens, closes or forks: what is half open could not be left alone."""
_ALL: "WeakSet[_Hands]" = WeakSet()
_OPENED: set[_Hands] = set()
"""Those that have something to close, also when nobody else knows them any more."""
_LEFT: list[object] = []
"""What belongs to the process that this one was forked from. It is kept, since to let it go might close it."""


def _will_fork() -> None:
    _DOOR.acquire()
    for each in tuple(_ALL):
        each.will_fork()


def _forked() -> None:
    for each in tuple(_ALL):
        each.forked()
    _DOOR.release()


def _close_all() -> None:
    for each in tuple(_ALL):
        each.close()


os.register_at_fork(before=_will_fork, after_in_parent=_DOOR.release, after_in_child=_forked)
atexit.register(_close_all)


def _refuse_in_loop(name: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise WouldBlock(name)


def _result(future: Future[T], loop: asyncio.AbstractEventLoop) -> T:
    """Wait for what was handed to an event loop, as long as there is one."""
    try:
        while not wait([future], _LOOK_SECONDS).done:
            if loop.is_closed():
                raise StoreUnavailable("the store was closed meanwhile")
        return future.result()
    except CancelledError as error:
        raise StoreUnavailable("the store was closed meanwhile") from error
    except BaseException:  # Ctrl-C, say: nobody waits for it any more
        future.cancel()
        raise
