"""A server on a port of this machine, in a thread of its own, with an event loop of its own."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import uvicorn

from rota.app import Rota


@dataclass(frozen=True)
class Live:
    """Where a server listens, and the token of an admin."""

    url: str
    token: str


@contextlib.contextmanager
def live(app: Rota) -> Iterator[Live]:
    """Serve an app until this is left."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app.web(), log_level="warning", lifespan="off", timeout_graceful_shutdown=5))
    tokens: list[str] = []
    ready = threading.Event()

    async def serve() -> None:
        async with app:
            tokens.append((await app.tokens.create("tests", "admin")).token)
            ready.set()
            await server.serve(sockets=[listening])

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait()
    try:
        yield Live(f"http://127.0.0.1:{listening.getsockname()[1]}", tokens[0])
    finally:
        server.should_exit = True
        thread.join()
