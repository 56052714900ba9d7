"""The other side of `isolated`: a process that runs the tasks that its worker sends, one at a time.

It leads a process group of its own, so that it ends together with whatever its tasks have started; and it ends with its
worker, however that ends.
"""

import asyncio
import contextlib
import contextvars
import importlib
import logging
import os
import queue
import signal
import socket
import threading
from datetime import datetime
from typing import Any

from rota import context
from rota.control import Cancel, RetryLater, Snooze
from rota.db.connect import database
from rota.engine import wire
from rota.engine.complete import complete_on
from rota.engine.outcome import described_error
from rota.errors import InvalidData, UnreadableArguments
from rota.model import RunError
from rota.store.runs import Settled, Word
from rota.tasks import Task
from rota.times.moments import moment

_MOST_TEXT = 10_000


def serve(worker: socket.socket) -> None:
    """Run the tasks that the worker sends, until it is gone."""
    os.setsid()
    for each in (signal.SIGTERM, signal.SIGINT):  # who stops a service may tell all its processes; the worker decides
        signal.signal(each, lambda *_: None)
    line = _Line(worker)
    threading.Thread(target=line.listen, name="rota-line", daemon=True).start()
    while True:
        errand = line.errands.get()
        contextvars.copy_context().run(_Attempt(line, errand).run)


class _Line:
    """The line to the worker."""

    def __init__(self, worker: socket.socket) -> None:
        self._worker = worker
        self._lock = threading.Lock()
        self.errands: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def listen(self) -> None:
        """Take what the worker sends. When it is gone, end, whatever the task is doing, with all that it started."""
        with contextlib.suppress(EOFError, OSError), self._worker.makefile("rb") as file:
            while True:
                self.errands.put(wire.read(file))
        os.killpg(os.getpid(), signal.SIGKILL)

    def say(self, *words: object) -> None:
        """Say a whole message, whichever thread says it."""
        with self._lock:
            self._worker.sendall(wire.packed(words))


class _Attempt:
    """One attempt of a run, as its worker describes it."""

    def __init__(self, line: _Line, errand: dict[str, Any]) -> None:
        self._line = line
        self._errand = errand
        self._id: int = errand["id"]
        self._number: int = errand["attempt"]
        self._last_word: Word | None = None
        self._task: Task[..., Any]

    def run(self) -> None:
        """Run the task, and say how it ended."""
        try:
            self._say("returned", self._result())
        except Cancel as control:
            self._say("Cancel", str(control))
        except (RetryLater, Snooze) as control:
            self._say(type(control).__name__, control.delay / 1_000_000, str(control))
        except (InvalidData, UnreadableArguments) as error:
            self._say("refused", *_described(error))
        except BaseException as error:  # noqa: BLE001 (whatever it is, the worker tells it)
            self._say("raised", *_described(error))

    def _result(self) -> str:
        task = self._task = _task(self._errand["module"], self._errand["name"])
        current = self._current()
        context.enter(current)
        args, kwargs = task.load(self._errand["args"])
        try:
            value = task.function(*args, **kwargs)
            return task.dump_result(asyncio.run(value) if asyncio.iscoroutine(value) else value)
        finally:
            if current.asked is not None:
                self._say("asked", current.asked)

    def _current(self) -> context.CurrentRun:
        errand = self._errand
        names = (errand["task"], errand["queue"])
        return context.CurrentRun(self._id, *names, self._number, self, errand["schedule"], errand["trigger"])

    def app(self) -> object:
        """There is none in this process."""
        return None

    def due(self) -> datetime:
        """Return when the run was due."""
        return moment(self._errand["due"])

    def previous_result(self) -> Any:
        """Return what the last attempt that returned left behind."""
        return _previous(self._errand["previous_result"], self._task)

    def previous_error(self) -> RunError | None:
        """Return why the attempt before failed."""
        return RunError.read(self._errand["previous_error"])

    async def settle_on(self, result: Any, connection: Any) -> None:
        """End the run inside the transaction that is open on this connection, and tell the worker."""
        holder = self._errand["holder"]
        store = database(holder["address"], ["rota.store.sql"])
        ended = Settled(
            self._id,
            self._number,
            "succeeded",
            self._task.dump_result(result),
            progress=self._last_word,
            limited=self._errand["limited"],
            schedule=self._errand["schedule"],
            asked=context.current_run().asked,
        )
        await complete_on(connection, store, holder["worker"], ended)
        self._say("completed")

    def note_progress(self, share: float, note: str) -> None:
        """Tell the worker how far the run is."""
        self._last_word = (share, note)
        self._say("progress", share, note)

    def log(self) -> "logging.LoggerAdapter[logging.Logger]":
        """Return a log whose lines the worker writes: it is where an operator looks."""
        logger = logging.getLogger(self._errand["log"])
        logger.setLevel(self._errand["level"])
        logger.handlers = [_Forward(self)]
        logger.propagate = False
        return logging.LoggerAdapter(logger, {"run": self._id, "task": self._errand["task"]})

    def forward(self, record: logging.LogRecord) -> None:
        """Send a line of the log to the worker."""
        trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else None
        facts = {
            "levelno": record.levelno,
            "levelname": record.levelname,
            "msg": record.getMessage()[:_MOST_TEXT],
            "exc_text": trace and trace[-_MOST_TEXT:],
            "pathname": record.pathname,
            "filename": record.filename,
            "module": record.module,
            "funcName": record.funcName,
            "lineno": record.lineno,
            "process": record.process,
        }
        self._say("log", facts)

    def _say(self, kind: str, *words: object) -> None:
        """Say something about this attempt; its number tells it from what a thread of an older one may still say."""
        self._line.say(kind, self._id, self._number, *words)


class _Forward(logging.Handler):
    def __init__(self, attempt: _Attempt) -> None:
        super().__init__()
        self._attempt = attempt

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._attempt.forward(record)
        except Exception:  # noqa: BLE001 (a line of a log must not fail its task)
            self.handleError(record)


def _task(module: str, name: str) -> Task[..., Any]:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    task: Task[..., Any] = found
    return task


def _previous(result: str | None, task: Task[..., Any]) -> Any:
    return None if result is None else task.load_result(result)


def _described(error: BaseException) -> tuple[str, str, str]:
    found = described_error(error)
    return found.kind, found.message, found.traceback or ""
