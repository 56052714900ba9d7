"""The samples of docs/how-to/in-your-own-transaction.md run as they stand, on real stores."""

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from tests.lenders import alchemy_url
from tests.servers import ROOT
from tests.stores import ask, emptied

import rota

PAGE = (ROOT / "docs" / "how-to" / "in-your-own-transaction.md").read_text()
SAMPLES = dict(re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE))


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    item: Mapped[str] = mapped_column(primary_key=True)


def names(app: rota.Rota, url: str, **more: Any) -> dict[str, Any]:
    """What the samples use without saying."""

    @app.task(name="confirm")
    async def confirm(item: str) -> str:
        return item

    known = {name: value for name, value in globals().items() if not name.startswith("_")}
    return known | {"app": app, "confirm": confirm, "url": url} | more


def sample(head: str, known: dict[str, Any]) -> dict[str, Any]:
    exec(compile(SAMPLES[head], head, "exec"), known)  # noqa: S102 (it is our own)
    return known


@pytest.fixture(params=["sqlite", "postgres"])
async def app(request: pytest.FixtureRequest, tmp_path: Path, postgres_store: str) -> AsyncIterator[rota.Rota]:
    url = f"sqlite:///{tmp_path}/shop.db"
    if request.param == "postgres":
        url = postgres_store
        await emptied(url)
    async with rota.Rota(url) as app:
        await ask(app.database, "CREATE TABLE orders (item TEXT PRIMARY KEY)")
        app.url = url  # type: ignore[attr-defined]
        yield app
        await ask(app.database, "DROP TABLE orders")


async def both_are_there(app: rota.Rota) -> None:
    assert [row[0] for row in await ask(app.database, "SELECT item FROM orders")] == ["tea"]
    assert [each.args for each in await app.runs.list()] == ['{"item":"tea"}']


postgres_alone = pytest.mark.parametrize("app", ["postgres"], indirect=True)


def test_every_sample_is_run_here() -> None:
    assert list(SAMPLES) == ["asyncpg", "psycopg 3", "SQLAlchemy", "sqlite3", "Without an event loop", "Inside a task"]
    assert len(SAMPLES) == PAGE.count("```python")


@postgres_alone
async def test_asyncpg(app: Any) -> None:
    connection = await asyncpg.connect(app.url)
    await sample("asyncpg", names(app, app.url))["order"](connection, "tea")
    await connection.close()
    await both_are_there(app)


@postgres_alone
async def test_psycopg(app: Any) -> None:
    connection = await psycopg.AsyncConnection.connect(app.url, autocommit=True)
    await sample("psycopg 3", names(app, app.url))["order"](connection, "tea")
    await connection.close()
    await both_are_there(app)


async def test_sqlalchemy(app: Any) -> None:
    driver = "asyncpg" if app.database.dialect == "postgres" else "aiosqlite"
    engine: AsyncEngine = create_async_engine(alchemy_url(app.url, driver))
    await sample("SQLAlchemy", names(app, app.url, AsyncSession=AsyncSession))["order"](engine, "tea")
    await engine.dispose()
    await both_are_there(app)


@pytest.mark.parametrize("app", ["sqlite"], indirect=True)
async def test_sqlite3(app: Any) -> None:
    connection = sqlite3.connect(app.url.removeprefix("sqlite:///"))
    await sample("sqlite3", names(app, app.url))["order"](connection, "tea")
    connection.close()
    await both_are_there(app)


async def test_without_an_event_loop(app: Any) -> None:
    driver = "psycopg" if app.database.dialect == "postgres" else "pysqlite"
    engine = sqlalchemy.create_engine(alchemy_url(app.url, driver))
    known = sample("Without an event loop", names(app, app.url, calls=rota.Blocking(app), Session=Session))
    await asyncio.to_thread(known["order"], engine, "tea")
    engine.dispose()
    await both_are_there(app)


@postgres_alone
async def test_inside_a_task(app: Any) -> None:
    await ask(app.database, "INSERT INTO orders (item) VALUES ('tea')")
    known = sample("Inside a task", names(app, app.url))
    async with app.running(scheduler=False):
        run = await known["ship"].enqueue("tea")
        assert (await app.runs.wait(run.id, timeout="1m")).state == "succeeded"
    assert await ask(app.database, "SELECT item FROM orders") == []
