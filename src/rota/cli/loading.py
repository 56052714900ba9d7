"""Finding what a command works on: an app in a module, or a store."""

import asyncio
import importlib
import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Annotated, TypeVar, cast
from urllib.parse import unquote, urlsplit

import typer

from rota import settings
from rota.app import Rota, store_database
from rota.application import Application, installed
from rota.errors import Invalid, StoreUnavailable
from rota.settings import store_url

T = TypeVar("T")

Store = Annotated[str | None, typer.Option("--store", metavar="URL", help="Where the state is; else ROTA_STORE.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--store",
        "--url",
        metavar="URL",
        help="Where: a store, or a server (http://…); else ROTA_STORE or ROTA_URL.",
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Argument(
        metavar="MODULE:APP",
        help="Where the app is; without one there are Rota's own tasks, on ROTA_STORE.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_BARE = "built-in"
"""The name of an app that has no module; under the usual name it would retire what others declare."""
_ALLOWED = "use module:name, such as news.jobs:app"


def load_app(target: str | None, store: str | None = None) -> Rota:
    """Return the app that `module:name` names, or one with Rota's own tasks; on another store where one is named.

    It includes the applications that are installed.
    """
    app = Rota(store, name=_BARE) if target is None else _imported(target)
    known = {each.name for each in app.applications}
    app.include(*(each for each in installed() if each.name not in known))
    if target is not None and store is not None:
        app.move(store_database(store))
    return app


def _imported(target: str) -> Rota:
    """Import an app; the working directory is looked in first, as `python -m` does."""
    module, colon, name = target.partition(":")
    if not colon or not name or not all(part.isidentifier() for part in module.split(".")):
        raise Invalid("app", target, _ALLOWED, "does not name an app")
    sys.path.insert(0, "")
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
            raise  # the module is there, and something that it imports is not
        raise Invalid("app", target, f"there is no module {error.name} here; {_ALLOWED}", "cannot be found") from None
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Rota):
        raise Invalid("app", target, f"{module} has no Rota of that name; {_ALLOWED}", "is no app")
    return found


def existing(store: str | None, name: str = "rota", applications: Iterable[Application] | None = None) -> Rota:
    """Return an app on a store that is there; whoever only looks does not want to make one.

    It includes these applications, else those that are installed.
    """
    url = store or store_url()
    parts = urlsplit(url)
    path = unquote(parts.path)[1:]
    if parts.scheme == "sqlite" and path not in ("", ":memory:") and not Path(path).exists():
        raise StoreUnavailable(f"there is no store at {path}; make one with: rota migrate --store {url}")
    app = Rota(url, name=name)
    app.include(*(installed() if applications is None else applications))
    return app


def on_app(app: Rota, store: str | None, work: Callable[[Rota], Awaitable[T]]) -> T:
    """Do this on an app's own store, or on another one with its name and its tasks."""
    chosen = app
    if store is not None:
        chosen = existing(store, app.name, app.applications)
        chosen.tasks = app.tasks

    async def run() -> T:
        async with chosen:
            return await work(chosen)

    return asyncio.run(run())


def place(where: list[str] | None) -> str | None:
    """Return the one place that was named, by an option or a setting."""
    if where is not None and len(where) > 1:
        raise typer.BadParameter("say one place, by --store or by --url", param_hint="--store")
    if where:
        return where[0]
    server = settings.server_url()
    if server is not None and os.environ.get("ROTA_STORE"):
        allowed = "say --store or --url, or unset one of them"
        raise Invalid("ROTA_URL", "a server", allowed, "is named, and by ROTA_STORE a store")
    return server


def is_server(found: str | None) -> bool:
    """Tell a server from a store."""
    return found is not None and found.startswith(("http://", "https://"))


def on_store(where: list[str] | None, work: Callable[[Rota], Awaitable[T]]) -> T:
    """Do this on a store that is there, or on what a server offers of it."""
    found = place(where)

    async def run() -> T:
        if found is None or not is_server(found):
            async with existing(found) as app:
                return await work(app)
        from rota.cli.remote import Remote

        async with Remote(found) as server:
            return await work(cast("Rota", server))

    return asyncio.run(run())
