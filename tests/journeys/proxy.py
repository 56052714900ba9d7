"""A door between Rota and its PostgreSQL that a test can make slow, shut, or treacherous."""

import asyncio
import random
import re
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

_PREPARED = re.compile(rb"P....(__asyncpg_stmt_\w+__)\0([^\0]+)\0", re.DOTALL)
_EXECUTED = re.compile(rb"B....\0(__asyncpg_stmt_\w+__)\0", re.DOTALL)

_LATE_SECONDS = 2.0
"""Longer than anybody waits before he looks whether what he asked for has happened."""


class Proxy:
    """Passes bytes on, as badly as it is told to."""

    def __init__(self, url: str, seed: int = 0) -> None:
        self._url = urlsplit(url)
        self._chance = random.Random(seed)
        self._open = asyncio.Event()
        self._open.set()
        self._pairs: set[_Pair] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self.delay = 0.0
        """Seconds before each chunk goes to the server: what a slow database feels like."""
        self.lose_answers = 0.0
        """How likely an answer is thrown away and its connection cut: what was asked for did happen."""
        self.late = 0.0
        """How likely a connection is cut under a question that still reaches the server, a moment later."""
        self.late_once: bytes | None = None
        """So it goes with the next question that has these words in it."""
        self.lose_once: bytes | None = None
        """The answer to the next question with these words is thrown away, and its connection cut."""
        self.harmed = 0
        """How many connections were cut so."""

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._listener is not None
        self._listener.close()
        self._open.set()
        for pair in tuple(self._pairs):
            pair.close()
        if self._serving:
            await asyncio.wait(self._serving)

    @property
    def url(self) -> str:
        """The store's address through this door."""
        assert self._listener is not None
        credentials, _, _ = self._url.netloc.rpartition("@")
        port = self._listener.sockets[0].getsockname()[1]
        return self._url._replace(netloc=f"{credentials}@127.0.0.1:{port}").geturl()

    def hang(self) -> None:
        """Be a black hole: connections stay, nothing passes."""
        self._open.clear()

    def resume(self) -> None:
        """Let pass what waits."""
        self._open.set()

    def forget(self) -> None:
        """Never pass anything on those connections again, and do not say so; new ones are served."""
        for pair in self._pairs:
            pair.forgotten = True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.current_task()
        assert serving is not None
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        await self._open.wait()
        try:
            back, forth = await asyncio.open_connection(self._url.hostname, self._url.port)
        except OSError:
            writer.close()
            return
        pair = _Pair(writer, forth)
        self._pairs.add(pair)
        try:
            await asyncio.gather(self._ask(reader, forth, pair), self._answer(back, writer, pair))
        except OSError:
            pass
        finally:
            pair.close()
            self._pairs.discard(pair)

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pair: "_Pair") -> None:
        while data := await reader.read(65_536):
            await self._open.wait()
            await asyncio.sleep(self.delay)
            if pair.forgotten:
                continue
            if pair.asks(data, self.late_once) or self._chance.random() < self.late:
                self.harmed += 1
                self.late_once = None
                pair.deaf = True
                pair.client.close()
                await asyncio.sleep(_LATE_SECONDS)
            if self.lose_once is not None and self.lose_once in data:
                self.lose_once = None
                pair.cut = True
            writer.write(data)
            await writer.drain()
        if not pair.forgotten:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pair: "_Pair") -> None:
        while data := await reader.read(65_536):
            await self._open.wait()
            if pair.deaf or pair.forgotten:
                continue
            if pair.cut or self._chance.random() < self.lose_answers:
                self.harmed += 1
                break
            writer.write(data)
            await writer.drain()
        if not pair.forgotten:
            writer.close()


class _Pair:
    """The two sides of one connection."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client = client
        self.server = server
        self.deaf = False
        self.cut = False
        self.forgotten = False
        self._statements: dict[bytes, bytes] = {}

    def asks(self, data: bytes, words: bytes | None) -> bool:
        """Tell whether a statement with these words is executed: its text comes once, and then only its name."""
        self._statements.update(_PREPARED.findall(data))
        executed = _EXECUTED.search(data)
        return words is not None and executed is not None and words in self._statements.get(executed[1], b"")

    def close(self) -> None:
        for each in (self.client, self.server):
            with suppress(RuntimeError):  # the event loop is closed
                each.close()
