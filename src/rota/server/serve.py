"""A server as one process: HTTP, the scheduler and a worker, until it is told to stop."""

import asyncio
import contextlib
import errno
import ipaddress
import signal
import socket
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any

import uvicorn
from fastapi import FastAPI, Request

from rota import settings
from rota.app import Rota
from rota.engine.worker import Worker
from rota.errors import Invalid
from rota.server.auth import Caller, Role
from rota.server.hosts import HERE
from rota.server.stream import Streams

_BACKLOG = 2_048
_HTTP_SECONDS = 10
"""How long requests may take that are under way when the server is told to stop."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What a server is to do."""

    host: str = "127.0.0.1"
    port: int = 8080
    auth: bool = True
    scheduler: bool = True
    worker: bool = True
    slots: int = 10
    grace: str = "30s"


@dataclass(frozen=True, slots=True)
class Started:
    """What there is to say about a server that listens now."""

    address: str
    first_token: str | None
    """The admin token that was made just now, where there never was one."""


async def serve(
    app: Rota,
    serving: Serving,
    started: Callable[[Started], None],
    before: Callable[[], Awaitable[None]] | None = None,
) -> Worker | None:
    """Serve until SIGTERM or SIGINT; then nothing new begins, and what runs has the grace. A second signal ends that.

    `before` is done in the open store, when the port is taken and before anything else. Returns the worker, which may
    have ended by itself because too many of its tasks do not.
    """
    listener = _listener(serving)
    try:
        async with app:
            if before is not None:
                await before()
            first = await _admit(app, serving) if serving.auth else None
            names = [*HERE, serving.host, *settings.hosts()] if _is_loopback(listener) else settings.hosts()
            web = app.web(auth=None if serving.auth else _anybody, hosts=names)
            server = _Server(_config(web))
            worker = app.worker(queues=app.own_queues(), slots=serving.slots, grace=serving.grace)
            scheduler = app.scheduler()
            stopping = False

            def stop() -> None:
                nonlocal stopping
                streams: Streams = web.state.streams
                streams.close()
                server.should_exit, server.force_exit = True, stopping
                scheduler.stop()
                worker.stop()
                stopping = True

            async def going(part: Coroutine[Any, Any, None]) -> None:
                """Run a part of it. A worker that was told to drain ends alone; where another part ends, all do."""
                try:
                    await part
                except BaseException:
                    stop()
                    raise
                if not stopping and (part is serving_http or worker.worn_out):
                    stop()

            serving_http = server.serve([listener])
            parts = [serving_http]
            parts += [scheduler.run()] if serving.scheduler else []
            parts += [worker.run()] if serving.worker else []
            with _signals(stop):
                started(Started(_address(listener), first))
                await asyncio.gather(*map(going, parts))
            return worker if serving.worker else None
    finally:
        listener.close()


async def _admit(app: Rota, serving: Serving) -> str | None:
    """See that somebody can get in, and beyond this machine only who was let in before."""
    given = settings.token()
    if given is None and not _only_here(serving.host) and not settings.insecure() and not await _any_token(app):
        raise Invalid(
            "host",
            serving.host,
            "make a token first, with rota tokens create NAME --role admin, or set ROTA_TOKEN",
            "is beyond this machine, and nobody has a token",
        )
    return None if given is not None else await app.tokens.create_first()


async def _any_token(app: Rota) -> bool:
    return any(each.revoked_at is None for each in await app.tokens.list())


async def _anybody(_: Request) -> Caller:
    return Caller("anybody", Role.ADMIN)


def _listener(serving: Serving) -> socket.socket:
    """Take the port before anything else is done."""
    if not serving.auth and not _only_here(serving.host) and not settings.insecure():
        allowed = "listen on 127.0.0.1, or let everybody in by ROTA_INSECURE=1"
        raise Invalid("host", serving.host, allowed, "is beyond this machine, and there is no auth")
    try:
        found = socket.getaddrinfo(serving.host, serving.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)  # by its protocol asyncio knows to send at once (TCP_NODELAY)
    except OSError as error:
        raise Invalid("host", serving.host, "use an address of this machine", "cannot be found") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)  # who comes early waits
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            allowed = "stop what listens there, or use another --port (0 for any that is free)"
            raise Invalid("port", serving.port, allowed, f"is in use on {serving.host}") from None
        if error.errno == errno.EACCES:
            raise Invalid("port", serving.port, "use one from 1024 on", "is not for everybody to listen on") from None
        raise Invalid("host", serving.host, "use an address of this machine", "is none of this machine") from None
    return listener


def _is_loopback(listener: socket.socket) -> bool:
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def _only_here(host: str) -> bool:
    """Tell whether an address is for this machine alone."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return True  # it cannot be listened on, and that is what is said
    return all(ipaddress.ip_address(each[4][0]).is_loopback for each in found)


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _config(web: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        web,
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_HTTP_SECONDS,
    )


class _Server(uvicorn.Server):
    """Leaves signals to us: they are for the worker too."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


@contextlib.contextmanager
def _signals(stop: Callable[[], None]) -> Generator[None, None, None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for each in numbers:
        loop.add_signal_handler(each, stop)
    try:
        yield
    finally:
        for each in numbers:
            loop.remove_signal_handler(each)
