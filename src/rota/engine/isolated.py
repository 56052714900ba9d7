"""Processes for tasks that must be killable: a child for each such run at a time, kept warm for the next one."""

import asyncio
import importlib
import json
import multiprocessing
import traceback
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from rota.control import Cancel, RetryLater, Snooze
from rota.errors import ChildDied, TaskFailed
from rota.tasks import Task

_SPAWN = multiprocessing.get_context("spawn")
_MOST_WARM = 4
_CONTROLS = {"Cancel": Cancel, "RetryLater": RetryLater, "Snooze": Snooze}


class Isolated:
    """Children that run tasks."""

    def __init__(self) -> None:
        self._warm: list[_Child] = []

    async def call(self, task: Task[..., Any], args_json: str) -> str:
        """Run a task in a child and return its result as JSON text; a cancelled call kills the child."""
        child = self._child()
        try:
            kind, value = await child.call(task, args_json)
        except BaseException:
            child.kill()
            raise
        if len(self._warm) < _MOST_WARM:
            self._warm.append(child)
        else:
            child.kill()
        if kind == "returned":
            return str(value[0])
        if kind == "raised":
            raise TaskFailed(*value)
        raise _CONTROLS[kind](*value)

    def _child(self) -> "_Child":
        """Return a child that is alive, warm where there is one: they may have been killed while they waited."""
        while self._warm:
            child = self._warm.pop()
            if child.alive:
                return child
            child.kill()
        return _Child()

    async def close(self) -> None:
        """End the children."""
        while self._warm:
            self._warm.pop().kill()


class _Child:
    def __init__(self) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process: BaseProcess = _SPAWN.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    async def call(self, task: Task[..., Any], args_json: str) -> tuple[str, list[Any]]:
        loop = asyncio.get_running_loop()
        answer = asyncio.Event()
        loop.add_reader(self._pipe.fileno(), answer.set)
        try:
            _say(self._pipe, task.function.__module__, task.function.__qualname__, args_json)
            await answer.wait()
            kind, *value = _hear(self._pipe)
        except (EOFError, OSError) as error:
            self._process.join(1)
            raise ChildDied(f"its process ended with exit code {self._process.exitcode}") from error
        finally:
            loop.remove_reader(self._pipe.fileno())
        return kind, value

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def kill(self) -> None:
        self._process.kill()
        self._pipe.close()


def _serve(pipe: Connection) -> None:
    """Run the tasks that come through the pipe, until it is closed."""
    while True:
        try:
            module, name, args_json = _hear(pipe)
        except EOFError:
            return
        try:
            found: Any = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
            _say(pipe, "returned", _result(found, args_json))
        except Cancel as control:
            _say(pipe, "Cancel", str(control))
        except (RetryLater, Snooze) as control:
            _say(pipe, type(control).__name__, control.delay / 1_000_000, str(control))
        except BaseException as error:  # noqa: BLE001 (whatever it is, the parent tells it)
            _say(pipe, "raised", type(error).__qualname__, str(error), "".join(traceback.format_exception(error)))


def _result(task: Task[..., Any], args_json: str) -> str:
    args, kwargs = task.load(args_json)
    value = task.function(*args, **kwargs)
    return task.dump_result(asyncio.run(value) if asyncio.iscoroutine(value) else value)


def _say(pipe: Connection, *words: str | float) -> None:
    pipe.send_bytes(json.dumps(words).encode())


def _hear(pipe: Connection) -> list[Any]:
    return list(json.loads(pipe.recv_bytes()))
