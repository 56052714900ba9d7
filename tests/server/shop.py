"""An app for tests of servers in processes of their own: what it does, it writes to a file."""

import asyncio
import os
import signal
from pathlib import Path

import fastapi
from pydantic import BaseModel

import rota
from rota.app import Rota
from rota.model import Run
from rota.server.auth import Operator
from rota.server.idempotency import Once

app = rota.Rota(os.environ.get("ROTA_STORE", "sqlite:///shop.db"), name="shop")


FOLDER = Path(os.environ.get("ROTA_SHOP", "."))
"""Where it writes, and looks for what the test says."""


def note(text: str) -> None:
    with (FOLDER / "notes").open("a") as notes:
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


class Made(BaseModel):
    """What was made."""

    id: int


async def made(here: Rota) -> Run[None]:
    """Make a run; where the test says so, die between the commit and the answer."""
    run = await here.enqueue(slow.call(0))
    if (FOLDER / "die").exists():
        (FOLDER / "die").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return run


async def make(_: Operator, once: Once) -> fastapi.Response:
    return await once(made, lambda run: Made(id=run.id))


web = app.web()
web.add_api_route("/api/make", make, methods=["POST"])
api = fastapi.FastAPI(lifespan=app.lifespan)
api.mount("/rota", web)
