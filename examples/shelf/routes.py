"""The shelf over HTTP, under /api of whichever server includes it."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request

import rota
from examples.shelf.lending import lend

routes = APIRouter(prefix="/shelf", tags=["shelf"])


def _here(request: Request) -> rota.Rota:
    found: rota.Rota = request.app.state.rota
    return found


Here = Annotated[rota.Rota, Depends(_here)]


@routes.get("")
async def list_books(here: Here) -> list[dict[str, Any]]:
    """List the books."""
    return [{name: row[name] for name in row.keys()} for row in await here.database.fetch("shelf.list")]  # noqa: SIM118


@routes.post("", status_code=201)
async def add_book(here: Here, title: str) -> dict[str, int]:
    """Put a book on the shelf."""
    (row,) = await here.database.execute("shelf.add", title=title)
    return {"book": row["id"]}


@routes.post("/{book}/lend")
async def lend_book(here: Here, book: int, person: str, days: int = 14) -> dict[str, int]:
    """Lend a book."""
    run = await lend(here, book, person, timedelta(days=days))
    if run is None:
        raise HTTPException(409, "there is no such book on the shelf")
    return {"run": run.id}
