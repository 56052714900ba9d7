"""The server only takes orders; others carry them out, as many as there is work for, here or on other machines.

uvicorn examples.separate:api
rota scheduler examples.separate:app
rota worker examples.separate:app          (as often as you like)
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import fastapi

import rota

app = rota.Rota(os.environ.get("ROTA_STORE", "sqlite:///orders.db"), name="orders")


@app.task(retry=rota.Retry(attempts=5, first="10s"))
async def confirm(item: str) -> str:
    """Mail that an order has come in."""
    return f"mailed: {item}"


@app.schedule("report", rota.Cron("0 9 * * MON-FRI", tz="Europe/Berlin"))
@app.task
async def report() -> None:
    """Say how it went."""


@asynccontextmanager
async def lifespan(_: fastapi.FastAPI) -> AsyncIterator[None]:
    """Open the store, and no more."""
    async with app:
        yield


api = fastapi.FastAPI(lifespan=lifespan)
api.mount("/rota", app.web())


@api.post("/orders")
async def order(item: str) -> dict[str, int]:
    """Take an order."""
    run = await confirm.enqueue(item)
    return {"run": run.id}
