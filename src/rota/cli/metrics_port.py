"""`--metrics-port`: a worker or a scheduler that Prometheus can ask."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Annotated

import typer

from rota.app import Rota
from rota.errors import Invalid

MetricsPort = Annotated[
    int | None,
    typer.Option("--metrics-port", help="Serve /metrics on this port, for who brings a token.", min=1, max=65_535),
]
MetricsHost = Annotated[str, typer.Option("--metrics-host", help="On which address /metrics is served.")]


@contextlib.asynccontextmanager
async def measured(app: Rota, host: str, port: int | None) -> AsyncIterator[None]:
    """Serve the metrics of an app while this is entered, where a port is given."""
    if port is None:
        yield
        return
    import uvicorn

    from rota.server.metrics import metrics_alone

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Leave the signals alone: they are for the command."""
            yield

    try:
        door = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise Invalid(
            "--metrics-port", f"{host}:{port}", os.strerror(error.errno or 0), "cannot be listened on"
        ) from None
    server = Server(uvicorn.Config(metrics_alone(app), log_config=None, access_log=False, lifespan="off"))
    serving = asyncio.create_task(server.serve([door]))
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)
