"""`rota.Application`: what an application brings to the app that includes it, as one value."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rota import limit
from rota.errors import Invalid
from rota.limit import Limit
from rota.model import Finding
from rota.schedule import Schedule
from rota.tasks import Task

if TYPE_CHECKING:  # whoever brings none of these does not wait for them
    from importlib.metadata import EntryPoint

    from fastapi import APIRouter
    from prometheus_client.metrics_core import Metric
    from typer import Typer

_GROUP = "rota.applications"
"""Where packages say which applications they bring."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of an application, with its place in the navigation."""

    title: str
    path: str
    """Where it is, such as `/shelf`."""

    def __post_init__(self) -> None:
        if not self.title or not self.title.isprintable():
            raise Invalid("title", self.title, "use words")
        if not re.fullmatch(r"/[a-z0-9/_-]*", self.path):
            raise Invalid("path", self.path, "use a path of lower-case letters, digits, - and _, such as /shelf")


@dataclass(frozen=True, slots=True)
class Application:
    """What an application brings. All of it but the name may be left out."""

    name: str
    """Lower-case letters, digits and `_`. Its tables are named for it: `NAME`, or `NAME_…`."""
    migrations: str | None = None
    """The package of the SQL files that make its tables, one block a migration: `-- name: 0001_books`."""
    statements: Sequence[str] = ()
    """The packages of the SQL files with its statements, one block each: `-- name: shelf.add`."""
    tasks: Sequence[Task[..., Any]] = ()
    """Made by `@rota.task`, so that they belong to no app yet."""
    schedules: Sequence[Schedule] = ()
    """Declared like those of `@app.schedule`."""
    limits: Mapping[str, Limit] = field(default_factory=dict)
    """Put by a scheduler when it starts, where nobody has put another under the same key."""
    routes: "APIRouter | None" = None
    """Under `/api` of the server; `request.app.state.rota` is the app."""
    commands: "Typer | None" = None
    """On the command line, as `rota NAME …`, where the application is installed."""
    pages: Sequence[Page] = ()
    metrics: "Callable[[Any], Awaitable[Iterable[Metric]]] | None" = None
    """Given the app, returns metrics for Prometheus, from the store."""
    not_copied: Sequence[str] = ()
    """Those of its tables of which `rota copy` takes nothing along, because they speak of living processes."""
    doctor: Callable[[Any], Awaitable[Iterable[Finding]]] | None = None
    """Given the app, returns what `rota doctor` should say."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name) or self.name == "rota":
            allowed = "use up to 40 lower-case letters, digits and _, from a letter on, and not rota"
            raise Invalid("name", self.name, allowed)
        for part, kind in (("tasks", Task), ("schedules", Schedule), ("pages", Page), ("statements", str)):
            found = getattr(self, part)
            wrong = [found] if isinstance(found, str) else [each for each in found if not isinstance(each, kind)]
            if wrong:
                raise Invalid(part, wrong[0], f"use a list of {kind.__name__}", "does not belong there")
            object.__setattr__(self, part, tuple(found))
        keys = [each.key for each in self.schedules]
        if len(set(keys)) < len(keys):
            raise Invalid("schedules", keys, "declare each key once", "has a key twice")
        for key, limited in self.limits.items():
            limit.pattern(key, limited)


def named() -> "list[EntryPoint]":
    """Return where the applications are that are installed beside Rota, by name."""
    from importlib.metadata import entry_points  # noqa: PLC0415 (it takes a while to import)

    return sorted(entry_points(group=_GROUP), key=lambda each: each.name)


def installed() -> tuple[Application, ...]:
    """Return the applications that are installed beside Rota, by name."""
    return tuple(map(load, named()))


def load(entry: "EntryPoint") -> Application:
    """Return the application that an entry point names."""
    try:
        found = entry.load()
    except Exception as error:
        allowed = f"repair or uninstall it: {type(error).__name__}: {error}"
        raise Invalid(f"entry point {_GROUP}", entry.name, allowed, "cannot be loaded") from error
    if not isinstance(found, Application) or found.name != entry.name:
        allowed = f"let {entry.value} be a rota.Application of that name"
        raise Invalid(f"entry point {_GROUP}", entry.name, allowed, "names no application")
    return found
