"""An app for tests of servers in processes of their own: what it does, it writes to a file."""

import asyncio
import os
from pathlib import Path

import fastapi

import rota

app = rota.Rota(os.environ.get("ROTA_STORE", "sqlite:///shop.db"), name="shop")


def note(text: str) -> None:
    with Path("notes").open("a") as notes:
        notes.write(f"{text}\n")


@app.schedule("each-second", rota.Every("1s"))
@app.task(name="shop.tick")
async def tick() -> None:
    note(f"tick {rota.current_run().due.isoformat()}")


@app.task(name="shop.slow", queue="slow")
async def slow(seconds: float) -> None:
    note("slow began")
    await asyncio.sleep(seconds)
    note("slow ended")


api = fastapi.FastAPI(lifespan=app.lifespan)
api.mount("/rota", app.web())
