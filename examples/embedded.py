"""One process does it all: a server of yours, which also fires the schedules, works the queue and has Rota's API.

uvicorn examples.embedded:api              (also with --workers 4: each instant fires once)
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import fastapi

import rota

app = rota.Rota(os.environ.get("ROTA_STORE", "sqlite:///news.db"), name="news")
headlines: list[str] = []


@app.schedule("refresh", rota.Every("1s"))
@app.task
async def refresh() -> None:
    """Fetch what is new."""
    me = rota.current_run()
    headlines.append(f"news of {me.due:%H:%M:%S}")


def who(request: fastapi.Request) -> rota.Caller | None:
    """Know the users of Rota's API as your application knows its users; here by a header that a proxy sets."""
    user = request.headers.get("x-user")
    return rota.Caller(user, rota.Role.OPERATE) if user else None


@asynccontextmanager
async def lifespan(api: fastapi.FastAPI) -> AsyncIterator[None]:
    """Open what is yours, then Rota; it is left first, so that what runs has what it needs to the end."""
    headlines.append("open")
    async with app.lifespan(api):
        yield
    headlines.append("closed")


api = fastapi.FastAPI(lifespan=lifespan)
api.mount("/rota", app.web(auth=who))


@api.get("/headlines")
async def latest() -> list[str]:
    """Show what is new."""
    return headlines
