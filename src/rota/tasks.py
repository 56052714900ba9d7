"""Tasks: functions that Rota may call, their options, and the registry that finds them by name."""

import inspect
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from difflib import get_close_matches
from functools import update_wrapper
from pathlib import PurePath
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar, get_args, overload

from rota.errors import InvalidArguments, InvalidData, InvalidTask, UnknownTask
from rota.limit import keys as limit_keys
from rota.model import Run
from rota.times import Retry, duration
from rota.times.choices import one_of, whole_number
from rota.times.policies import Length

P = ParamSpec("P")
R = TypeVar("R")

Priority = Literal["low", "normal", "high"] | int
OnLost = Literal["retry", "fail"]
Isolation = Literal["async", "thread", "process"]

PRIORITIES = {"low": 25, "normal": 50, "high": 75}
LEAST_PRIORITY, MOST_PRIORITY = -32_768, 32_767
MOST_LOST = 1_000
LONGEST_NAME = 200

_NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.:-]{{0,{LONGEST_NAME - 1}}}")
_ALLOWED = f"use letters, digits, _ . - and :, up to {LONGEST_NAME} characters"


def priority_number(priority: Priority) -> int:
    """Return the number that a priority stands for: low is 25, normal 50, high 75; a higher one goes first."""
    if isinstance(priority, str):
        if priority not in PRIORITIES:
            allowed = f"use {', '.join(PRIORITIES)}, or a whole number from {LEAST_PRIORITY:,} to {MOST_PRIORITY:,}"
            raise InvalidTask("priority", priority, allowed)
        return PRIORITIES[priority]
    whole_number("priority", priority, LEAST_PRIORITY, MOST_PRIORITY, InvalidTask)
    return priority


@dataclass(frozen=True, init=False)
class TaskOptions:
    """How the runs of a task are treated, unless a schedule or an enqueue says otherwise."""

    queue: str
    priority: int
    timeout: timedelta | None
    retry: Retry
    max_lost: int
    on_lost: OnLost
    isolation: Literal["process"] | None
    limits: tuple[str, ...]

    def __init__(
        self,
        *,
        queue: str = "default",
        priority: Priority = "normal",
        timeout: Length | None = None,
        retry: Retry | None = None,
        max_lost: int = 3,
        on_lost: OnLost = "retry",
        isolation: Literal["process"] | None = None,
        limits: Iterable[str] = (),
    ) -> None:
        if retry is not None and not isinstance(retry, Retry):
            raise InvalidTask("retry", retry, "use a rota.Retry")
        whole_number("max_lost", max_lost, 0, MOST_LOST, InvalidTask)
        one_of("on_lost", on_lost, get_args(OnLost), InvalidTask)
        if isolation not in (None, "process"):
            allowed = "use 'process', or leave it out: async def runs in the event loop, def in a thread"
            raise InvalidTask("isolation", isolation, allowed)
        vars(self).update(
            queue=_name("queue", queue),
            priority=priority_number(priority),
            timeout=None if timeout is None else timedelta(microseconds=duration(timeout, "timeout", least=1)),
            retry=retry or Retry(),
            max_lost=max_lost,
            on_lost=on_lost,
            isolation=isolation,
            limits=limit_keys(limits),
        )


class Task(Generic[P, R]):
    """A named function that Rota may call, now or later, here or in another process.

    Called like the function, it is the function, and nothing is stored. `call` makes a value of the task and its
    arguments, checked against the signature and the annotations and written down at once, so that nothing wrong ever
    reaches a worker. Defaults are not written: they are applied when the run executes.
    """

    name: str
    function: Callable[P, Any]
    options: TaskOptions
    enqueuer: "Enqueuer | None"
    """The app that the task belongs to."""

    def __init__(
        self, function: Callable[P, Any], *, name: str | None = None, options: TaskOptions | None = None
    ) -> None:
        # Pydantic takes a while to import; commands that know no task do without.
        from rota.signature import Signature  # noqa: PLC0415

        itself: Any = self
        update_wrapper(itself, _checked(function), updated=())  # its own attributes might hide ours
        self.function = function
        self.name = _name("name", default_name(function) if name is None else name)
        self.options = options or TaskOptions()
        self.enqueuer = None
        self._signature = Signature(function, self.name)
        kind: Isolation = "async" if inspect.iscoroutinefunction(function) else "thread"
        self.isolation = self.options.isolation or kind
        self.limit = None if self.options.timeout is None else self.options.timeout.total_seconds()

    def call(self, /, *args: P.args, **kwargs: P.kwargs) -> "Call[R]":
        """Return the call of this task with these arguments; raise InvalidArguments where they do not fit."""
        return Call(self, self.name, self._signature.dump(args, kwargs))

    async def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Run[R]:
        """Store a run of this task with these arguments, as its options say; `app.enqueue` says it otherwise."""
        if self.enqueuer is None:
            allowed = "decorate the function with @app.task, or use app.enqueue(task.call(…))"
            raise InvalidTask("task", self.name, allowed, "belongs to no app")
        return await self.enqueuer.enqueue(self.call(*args, **kwargs))

    def load(self, args_json: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Read the arguments of a call; raise UnreadableArguments where the function does not take them."""
        return self._signature.load(args_json)

    def dump_result(self, value: object) -> str:
        """Write what the function returned; raise InvalidData where its return annotation does not describe it."""
        return self._signature.dump_result(value)

    def load_result(self, result_json: str) -> R:
        """Read what the function returned; raise InvalidData where its return annotation does not describe it."""
        return self._signature.load_result(result_json)  # type: ignore[no-any-return]  # what R is, the annotation says

    def __repr__(self) -> str:
        return f"<Task {self.name}>"


class AsyncTask(Task[P, R]):
    """A task that is an `async def`."""

    function: Callable[P, Coroutine[Any, Any, R]]

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Call the function itself."""
        return self.function(*args, **kwargs)


class PlainTask(Task[P, R]):
    """A task that is a plain `def`."""

    function: Callable[P, R]

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself."""
        return self.function(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Call(Generic[R]):
    """A task with its arguments: a value, equal to another of the same task and the same arguments."""

    task: Task[..., R] = field(compare=False, repr=False)
    name: str
    args_json: str
    limits: tuple[str, ...] = ()
    """The keys of limits that it is under beside its task's."""

    @property
    def options(self) -> TaskOptions:
        """The task's options."""
        return self.task.options

    def limited(self, *keys: str) -> "Call[R]":
        """Return the same call, under these limits too."""
        return replace(self, limits=limit_keys([*self.limits, *keys]))


def named_call(name: str, args_json: str = "{}") -> Call[Any]:
    """Return the call of a task whose code is elsewhere: its arguments are not checked, its options are not known.

    The arguments are a JSON object, by name. Whoever executes the call finds out whether they fit.
    """
    from rota.codec import MAX_DEPTH, from_text, to_text  # noqa: PLC0415 (pydantic takes a while to import)

    try:
        plain = from_text(args_json, MAX_DEPTH + 2)
    except InvalidData as error:
        raise InvalidArguments(name, None, args_json, error.allowed, error.problem) from None
    if not isinstance(plain, dict):
        raise InvalidArguments(name, None, args_json, 'use an object, such as {"feed_id": 42}', "is not an object")
    return Call(_Elsewhere(_name("task", name)), name, to_text(plain))


class _Elsewhere(Task[..., Any]):
    """Stands for a task of which only the name is known here."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.options = TaskOptions()
        self.enqueuer = None


class Enqueuer(Protocol):
    """What a task needs of its app to enqueue itself."""

    async def enqueue(self, call: Call[R], /) -> Run[R]:
        """Store a run of this call and return it."""


class Registry:
    """The tasks of an app, by name."""

    def __init__(self, enqueuer: Enqueuer | None = None) -> None:
        self._enqueuer = enqueuer
        self._tasks: dict[str, Task[..., Any]] = {}

    @property
    def enqueuer(self) -> Enqueuer | None:
        """The app that they are the tasks of."""
        return self._enqueuer

    def add(self, task: Task[..., Any], *, bind: bool = True) -> None:
        """Add a task; its name must be free, or be that of the same function, decorated again.

        Unless it is bound it belongs to no app, and may be added to several.
        """
        self.check(task)
        if bind:
            task.enqueuer = self._enqueuer
        self._tasks[task.name] = task

    def check(self, task: Task[..., Any]) -> None:
        """Refuse a task whose name is another's, or that belongs to another app."""
        known = self._tasks.get(task.name)
        if known and known.function is not task.function:
            other = f"{known.function.__module__}.{known.function.__qualname__}"
            raise InvalidTask("name", task.name, "give one of them another name=", f"is already the task {other}")
        if task.enqueuer not in (None, self._enqueuer):
            raise InvalidTask("task", task.name, "decorate the function once for each app", "belongs to another app")

    def get(self, name: str) -> Task[..., Any]:
        """Return the task of this name; raise UnknownTask where there is none."""
        try:
            return self._tasks[name]
        except KeyError:
            raise UnknownTask(name, get_close_matches(name, self._tasks)) from None

    @property
    def names(self) -> list[str]:
        """The names of all tasks, sorted."""
        return sorted(self._tasks)

    def __iter__(self) -> Iterator[Task[..., Any]]:
        return (self._tasks[name] for name in self.names)

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, name: object) -> bool:
        return name in self._tasks


class Decorator(Protocol):
    """What makes a function a task."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[P, R], /) -> PlainTask[P, R]: ...


class TaskDecorator:
    """Gives an app `@app.task` and `@app.task(timeout="30s")`; what they make is in `tasks`."""

    tasks: Registry

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def task(self, function: Callable[P, R], /) -> PlainTask[P, R]: ...
    @overload
    def task(
        self,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        priority: Priority = "normal",
        timeout: Length | None = None,
        retry: Retry | None = None,
        max_lost: int = 3,
        on_lost: OnLost = "retry",
        isolation: Literal["process"] | None = None,
        limits: Iterable[str] = (),
    ) -> Decorator: ...
    def task(
        self, function: Callable[..., Any] | None = None, /, *, name: str | None = None, **options: Any
    ) -> Task[..., Any] | Decorator:
        """Make a function a task of this app, under its own name or another, perhaps with options."""
        made = TaskOptions(**options)

        def decorate(function: Callable[..., Any], /) -> Any:
            kind = AsyncTask if inspect.iscoroutinefunction(function) else PlainTask
            task: Task[..., Any] = kind(function, name=name, options=made)
            self.tasks.add(task)
            return task

        return decorate if function is None else decorate(function)


class _Nobodys(Registry):
    """Keeps nothing."""

    def add(self, task: Task[..., Any], *, bind: bool = True) -> None:
        """Leave a task alone."""


class _Unbound(TaskDecorator):
    """Makes tasks that belong to no app."""

    tasks = _Nobodys()


task = _Unbound().task
"""Makes a function a task of no app yet, as `app.task` does: for applications, which any number of apps may include."""


def default_name(function: Callable[..., object]) -> str:
    """Return the name that a function has as a task: its module and its qualified name, as in `news.feeds.refresh`.

    What a program runs as its main module is named for how it was started, so that another process that imports it
    finds the same names: after `python -m news.feeds` it is `news.feeds.refresh`, after `python news/feeds.py` it is
    `feeds.refresh`, and in a shell it is `__main__.refresh`. A function inside another is named without `<locals>`.
    """
    module, scope = function.__module__, getattr(inspect.unwrap(function), "__globals__", {})
    if module in ("__main__", "__mp_main__"):  # the second in processes that multiprocessing spawns
        spec = scope.get("__spec__")
        file = scope.get("__file__", "<stdin>")
        module = spec.name if spec else "__main__" if file.startswith("<") else PurePath(file).stem
    return f"{module}.{function.__qualname__.replace('<locals>.', '')}"


def _checked(function: Callable[P, R]) -> Callable[P, R]:
    if not inspect.isfunction(function):
        raise InvalidTask("task", function, "use a function, made by def or async def", "is not a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidTask("task", function.__qualname__, "return the result instead of yielding it", "is a generator")
    return function


def _name(field: str, value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidTask(field, value, _ALLOWED)
    return value
