"""Real servers on loopback for those who call: they answer as a test says, and count who came."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import cast

LOOPBACK = ["127.0.0.0/8"]
"""For clients that may call these servers."""


@dataclass
class Asked:
    """A request that has arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    """What a test knows of its server."""

    port: int
    asked: list[Asked] = field(default_factory=list)
    hits: int = 0
    """How many connections there were, with or without a request."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when whoever called has hung up."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def reply(body: bytes = b"hello", status: str = "200 OK", **headers: str) -> Answer:
    """Answer with this, and hang up."""

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in named.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)

    return answer


@asynccontextmanager
async def serving(answer: Answer | None = None, tls: SSLContext | None = None) -> AsyncIterator[Server]:
    """Serve on a port of loopback while this is entered."""
    chosen = answer or reply()
    server = Server(0)
    meeting: set[asyncio.Task[None]] = set()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.hits += 1
        meeting.add(cast("asyncio.Task[None]", asyncio.current_task()))
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            asked = await _read(reader)
            server.asked.append(asked)
            await chosen(asked, writer)
            await writer.drain()
        server.ended.set()
        writer.close()
        with suppress(OSError, asyncio.CancelledError):
            await writer.wait_closed()

    listening = await asyncio.start_server(meet, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for each in meeting:
            each.cancel()
        await asyncio.gather(*meeting, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(method, target, headers, body)
