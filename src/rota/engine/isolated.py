"""Processes for tasks that must be killable: a child for each such run at a time, kept warm for the next one."""

import asyncio
import atexit
import contextlib
import logging
import multiprocessing
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import asdict
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

from rota.context import CurrentRun
from rota.control import Cancel, RetryLater, Snooze
from rota.engine import child, wire
from rota.engine.complete import Holder
from rota.engine.keeping import keep
from rota.errors import ChildDied, TaskFailed
from rota.store.runs import Claimed
from rota.tasks import Task

_SPAWN = multiprocessing.get_context("spawn")
_MOST_WARM = 4
_CONTROLS = {"Cancel": Cancel, "RetryLater": RetryLater, "Snooze": Snooze}
_DYING_SECONDS = 5.0
"""How long to wait for a process that was killed or hung up: the system may be slow to end it."""


class Refused(TaskFailed):
    """The arguments or the result of a task in a process of its own cannot be read or written."""


class Isolated:
    """Children that run tasks."""

    def __init__(self, holder: Callable[[], Holder]) -> None:
        self._holder = holder
        self._children: set[_Child] = set()
        self._warm: list[_Child] = []

    async def call(self, task: Task[..., Any], run: Claimed, current: CurrentRun, trace: str | None = None) -> str:
        """Run a task in a child and return its result as JSON text; a cancelled call kills the child."""
        child = await self._child()
        try:
            kind, value = await child.call(_errand(task, run, current, self._holder()) | {"trace": trace}, current)
        except BaseException:
            child.kill()
            raise
        if len(self._warm) < _MOST_WARM:
            self._warm.append(child)
        else:
            child.kill()
        if kind == "returned":
            return str(value[0])
        if kind == "refused":
            raise Refused(*value)
        if kind == "raised":
            raise TaskFailed(*value)
        raise _CONTROLS[kind](*value)

    async def _child(self) -> "_Child":
        """Return a child that is alive, warm where there is one: they may have been killed while they waited."""
        while self._warm:
            child = self._warm.pop()
            if child.alive:
                return child
            child.kill()
        child = await _Child.start(self._children.discard)
        self._children.add(child)
        return child

    async def close(self) -> None:
        """End the children."""
        self._warm.clear()
        await asyncio.gather(*(each.end() for each in self._children))


class _Child:
    """A process, the line to it, and what it still has to say when it ends."""

    def __init__(
        self,
        process: BaseProcess,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        ended: Callable[["_Child"], None],
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._ended = ended
        self._gone = asyncio.Event()
        self._watch = _watched(process)
        asyncio.get_running_loop().add_reader(self._watch, self._has_ended)
        atexit.register(self._kill)  # where nobody closes in order; it does not listen to a gentle word

    @classmethod
    async def start(cls, ended: Callable[["_Child"], None]) -> "_Child":
        """Start a process; `ended` is called when it has ended."""
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_connection(sock=ours)
            process = _SPAWN.Process(target=child.serve, args=(theirs,), daemon=True)
            process.start()
        return cls(process, reader, writer, ended)

    async def call(self, errand: dict[str, Any], current: CurrentRun) -> tuple[str, list[Any]]:
        """Have a task run; hear what it says until it has ended, however much, and wait for it outside of the loop."""
        try:
            self._writer.write(wire.packed(errand))
            await self._writer.drain()
            while True:
                kind, run, attempt, *words = await wire.hear(self._reader)
                if (run, attempt) != (current.id, current.attempt):
                    continue  # by a thread that an attempt before left behind
                if kind == "progress":
                    current.host.note_progress(*words)
                elif kind == "completed":
                    current.completed = True
                elif kind == "asked":
                    (current.asked,) = words
                elif kind == "log":
                    _write_log(current, *words)
                else:
                    return kind, words
        except (EOFError, OSError) as error:
            await self.gone()
            code = self._process.exitcode
            raise ChildDied(
                "its process hung up" if code is None else f"its process ended with exit code {code}"
            ) from error

    @property
    def alive(self) -> bool:
        """Whether it still runs, as the system says now: the event loop may not have heard."""
        return not self._gone.is_set() and not wait([self._watch], 0)

    async def gone(self) -> None:
        """Wait until the process has ended, but not for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DYING_SECONDS):
                await self._gone.wait()

    async def end(self) -> None:
        """End the process, and wait until nothing is left of it."""
        self.kill()
        await self.gone()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def kill(self) -> None:
        """End the process and all that its tasks have started."""
        self._writer.transport.abort()
        if not self._gone.is_set():
            self._kill()

    def _kill(self) -> None:
        self._kill_group()
        self._process.kill()  # it may not have got as far as to lead its group

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid or 0, signal.SIGKILL)

    def _has_ended(self) -> None:
        """Take note that the process has ended; what it has started ends too, and then so does the line."""
        asyncio.get_running_loop().remove_reader(self._watch)
        os.close(self._watch)
        self._kill_group()  # before the process is waited for: until then nobody else can have its number
        self._process.join()
        atexit.unregister(self._kill)
        self._gone.set()
        self._ended(self)


def _errand(task: Task[..., Any], run: Claimed, current: CurrentRun, holder: Holder) -> dict[str, Any]:
    """Say all that a child has to know of an attempt."""
    return {
        "module": task.function.__module__,
        "name": task.function.__qualname__,
        "args": run.args,
        "id": run.id,
        "task": run.task,
        "queue": run.queue,
        "attempt": run.attempt,
        "limited": run.limited,
        "due": run.due if run.nominal is None else run.nominal,
        "schedule": run.schedule,
        "trigger": run.kind,
        "previous_result": None if current.previous_result is None else run.previous_result,
        "previous_error": run.previous_error,
        "log": current.log.logger.name,
        "level": current.log.getEffectiveLevel(),
        "root_level": logging.getLogger().getEffectiveLevel(),
        "holder": asdict(holder),
    }


def _write_log(current: CurrentRun, facts: dict[str, Any], shown: bool) -> None:
    """Take in a line of a child's log: keep it, and write it where the child does not."""
    record = logging.makeLogRecord(facts)
    keep(current, record)
    logger = logging.getLogger(record.name)
    if not shown and logger.isEnabledFor(record.levelno):
        logger.handle(record)


def _watched(process: BaseProcess) -> int:
    """Return something that can be read when the process has ended, whoever else has inherited its files."""
    try:
        return os.pidfd_open(process.pid or 0)
    except (AttributeError, OSError):  # not on this system
        return os.dup(process.sentinel)
