"""A shop on FastAPI: an order and the mail that confirms it are stored together, or not at all.

uvicorn examples.fastapi_app:api
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import fastapi
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

import rota

STORE = os.environ.get("ROTA_STORE", "sqlite:///shop.db")
DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg"}

app = rota.Rota(STORE, name="shop")
kind, rest = STORE.split(":", 1)
engine = create_async_engine(f"{DRIVERS[kind]}:{rest}")
Session = async_sessionmaker(engine)


class Base(DeclarativeBase):
    """The shop's own tables, in the database of the store."""


class Order(Base):
    """What somebody wants."""

    __tablename__ = "shop_orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]


@app.task(retry=rota.Retry(attempts=5, first="10s"))
async def confirm(order: int) -> str:
    """Mail that an order has come in."""
    async with Session() as session:
        found = await session.get_one(Order, order)
    return f"mailed: {found.item}"


async def place(session: AsyncSession, item: str) -> tuple[int, int]:
    """Store an order and the run that confirms it. The caller commits."""
    order = Order(item=item)
    session.add(order)
    await session.flush()
    run = await app.enqueue(confirm.call(order.id), connection=session)
    return order.id, run.id


@asynccontextmanager
async def lifespan(_: fastapi.FastAPI) -> AsyncIterator[None]:
    """Work the queue in this process. With more to do: `async with app`, and `rota worker examples.fastapi_app:app`."""
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with app.running():
        yield
    await engine.dispose()


api = fastapi.FastAPI(lifespan=lifespan)


@api.post("/orders")
async def order(item: str) -> dict[str, int]:
    """Take an order."""
    async with Session.begin() as session:  # commits at the end, or rolls back
        made, run = await place(session, item)
        if item == "nothing":
            raise fastapi.HTTPException(422, "there is nothing to send")  # no order, and no mail
    return {"order": made, "run": run}


@api.get("/runs/{run}")
async def wait(run: int) -> dict[str, object]:
    """Wait for a run, and say what came of it."""
    ended = await app.runs.wait(run, timeout="30s")
    return {"state": ended.state, "result": await app.runs.result(run)}
