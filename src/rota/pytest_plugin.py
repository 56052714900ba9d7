"""Fixtures for pytest: `rota_app`, `rota_travel` and `rota_time`. What they need is imported when a test asks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import pytest

try:
    import pytest_asyncio

    async_fixture: Callable[..., Any] | None = pytest_asyncio.fixture
except ModuleNotFoundError:
    async_fixture = None

if TYPE_CHECKING:
    from rota.app import Rota
    from rota.testing import TimeTravel

_MARK = "rota(start=…, seed=…, store=…, durations=…, slots=…): how the fixture rota_time travels."


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", _MARK)


@pytest.fixture
def rota_app() -> Rota:
    """Return the app under test: override this in your conftest.py. By itself it is an empty one."""
    from rota.app import Rota  # noqa: PLC0415

    return Rota("sqlite://")


@pytest.fixture
def rota_travel(rota_app: Rota) -> Callable[..., AbstractAsyncContextManager[TimeTravel]]:
    """Return `rota.testing.travel` for the app under test: `async with rota_travel(start=…) as time`."""
    from rota.testing import travel  # noqa: PLC0415

    return lambda *args, **options: travel(rota_app, *args, **options)


if async_fixture is None:

    @pytest.fixture
    def rota_time() -> TimeTravel:
        """Say what is missing."""
        pytest.fail("the fixture rota_time needs pytest-asyncio; without it use `async with rota_travel() as time`")

else:

    @async_fixture
    async def rota_time(
        request: pytest.FixtureRequest, rota_travel: Callable[..., AbstractAsyncContextManager[TimeTravel]]
    ) -> AsyncIterator[TimeTravel]:
        """Let the app under test live by virtual time, as the mark `rota` says; yields its time."""
        mark = request.node.get_closest_marker("rota")
        options: dict[str, Any] = {} if mark is None else mark.kwargs
        async with rota_travel(**options) as time:
            yield time
