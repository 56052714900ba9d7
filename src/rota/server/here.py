"""The Rota that a request is for."""

from typing import Annotated

from fastapi import Depends, Request

from rota.app import Rota


def _here(request: Request) -> Rota:
    found: Rota = request.app.state.rota
    return found


Here = Annotated[Rota, Depends(_here)]
"""The Rota of the request, as a parameter of a route."""
