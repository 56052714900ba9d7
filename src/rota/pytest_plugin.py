"""Fixtures for pytest: `rota_app`, `rota_travel` and `rota_time`."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from rota.app import Rota
from rota.testing import TimeTravel, travel

Travel = Callable[..., AbstractAsyncContextManager[TimeTravel]]

_OPTIONS = ("start", "seed", "store", "durations", "slots")
_MARK = f"rota({', '.join(f'{name}=…' for name in _OPTIONS)}): how the fixture rota_time travels."
_MISSING = (
    "the fixture rota_time needs pytest-asyncio; without it use rota_travel in a function that asyncio.run runs: "
    "async with rota_travel(start=…) as time"
)


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known, and `rota_time`, as far as it can be had here."""
    config.addinivalue_line("markers", _MARK)
    config.pluginmanager.register(_with_asyncio() if _has_asyncio(config) else _Without(), "rota-time")


@pytest.fixture
def rota_app() -> Rota:
    """Return the app under test: override this in your conftest.py. By itself it is an empty one."""
    return Rota("sqlite://")


@pytest.fixture
def rota_travel(rota_app: Rota) -> Travel:
    """Return `rota.testing.travel` for the app under test: `async with rota_travel(start=…) as time`."""
    return lambda *args, **options: travel(rota_app, *args, **options)


def _has_asyncio(config: pytest.Config) -> bool:
    """Tell whether pytest-asyncio is at work: installed is not enough, it may be switched off."""
    module = sys.modules.get("pytest_asyncio.plugin")
    return module is not None and config.pluginmanager.is_registered(module)


class _Without:
    @pytest.fixture
    def rota_time(self) -> None:
        """Say what is missing."""
        pytest.fail(_MISSING, pytrace=False)


def _with_asyncio() -> object:
    import pytest_asyncio  # noqa: PLC0415 (it is there only where it is at work)

    class WithAsyncio:
        @pytest_asyncio.fixture
        async def rota_time(self, request: pytest.FixtureRequest, rota_travel: Travel) -> AsyncIterator[TimeTravel]:
            """Let the app under test live by virtual time, as the mark `rota` says; yields its time."""
            async with rota_travel(**_mark_options(request)) as time:
                yield time

    return WithAsyncio()


def _mark_options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return what the mark `rota` that is nearest to the test says; its start needs no name."""
    mark = request.node.get_closest_marker("rota")
    if mark is None:
        return {}
    wrong = [*map(repr, mark.args[1:]), *(name for name in mark.kwargs if name not in _OPTIONS)]
    if wrong or (mark.args and "start" in mark.kwargs):
        said = ", ".join(wrong) or "start, said twice,"
        pytest.fail(f"the mark rota: {said} is not allowed; use {', '.join(_OPTIONS)}", pytrace=False)
    options: dict[str, Any] = dict(zip(_OPTIONS, mark.args, strict=False)) | mark.kwargs
    return options
