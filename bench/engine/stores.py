"""Where contestants keep their state: a fresh database, or file, for each of them in each round."""

import asyncio
import contextlib
import os
import shlex
import sqlite3
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal, Protocol

import asyncpg
from bench.engine.process import ROOT, cpu_seconds

StoreName = Literal["postgres", "sqlite"]
Synchronous = Literal["normal", "full", "own"]

_numbers = count(1)


class Store(Protocol):
    """One contestant's state, and how to look at it from outside."""

    url: str

    async def value(self, query: str) -> int:
        """Return the one number that a query finds among what is committed."""
        ...

    async def server_cpu(self) -> float:
        """Return the CPU seconds of those processes of a server that work for this store alone."""
        ...

    async def tidy(self) -> None:
        """Let the database do at once what it would do beside others' measures, after many rows were written."""
        ...


class PostgresStore:
    def __init__(self, url: str, connection: Any) -> None:
        self.url = url
        self._connection = connection

    async def value(self, query: str) -> int:
        found: int = await self._connection.fetchval(query)
        return found

    async def server_cpu(self) -> float:
        rows = await self._connection.fetch(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        return sum(cpu_seconds(row["pid"]) for row in rows)

    async def tidy(self) -> None:
        await self._connection.execute("VACUUM ANALYZE")
        await self._connection.execute("CHECKPOINT")


class SqliteStore:
    def __init__(self, path: Path, setting: str) -> None:
        self.url = f"sqlite:///{path}{setting}"
        self._path = path

    async def value(self, query: str) -> int:
        with contextlib.closing(sqlite3.connect(self._path, timeout=30)) as connection:
            found: int = connection.execute(query).fetchone()[0]
            return found

    async def server_cpu(self) -> float:
        return 0.0

    async def tidy(self) -> None:
        pass


class RedisStore:
    """Only the queue of messages is looked at, so a client library is not needed."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._password, _, where = url.removeprefix("redis://:").rpartition("@")
        self._host, _, port = where.partition("/")[0].partition(":")
        self._port = int(port)

    async def value(self, query: str) -> int:
        """Send a command whose answer is a number, or `+OK`."""
        reader, writer = await asyncio.open_connection(self._host, self._port)
        writer.write(f"AUTH {self._password}\r\n{query}\r\n".encode())
        await reader.readline()
        answer = (await reader.readline()).decode().strip()
        writer.close()
        await writer.wait_closed()
        return 0 if answer == "+OK" else int(answer.removeprefix(":"))

    async def server_cpu(self) -> float:
        return 0.0

    async def tidy(self) -> None:
        pass


@dataclass
class Stores:
    """Private servers with their data on disk, synced, and a folder for files. They end with the run."""

    folder: Path
    synchronous: Synchronous
    settings: dict[str, str]
    postgres_url: str | None
    redis_url: str | None

    @contextlib.asynccontextmanager
    async def fresh(self, name: str) -> AsyncIterator[Store]:
        """Make an empty store, and throw it away afterwards."""
        if name == "postgres":
            async with self._database() as store:
                yield store
        elif name == "redis":
            assert self.redis_url is not None
            redis = RedisStore(self.redis_url)
            await redis.value("FLUSHALL")
            yield redis
        else:
            with self.scratch() as folder:
                yield SqliteStore(folder / "bench.db", "?synchronous=full" if self.synchronous == "full" else "")

    @contextlib.asynccontextmanager
    async def _database(self) -> AsyncIterator[Store]:
        assert self.postgres_url is not None
        name = f"bench_{next(_numbers)}"
        url = f"{self.postgres_url.rpartition('/')[0]}/{name}"
        server = await asyncpg.connect(self.postgres_url)
        try:
            await server.execute(f"CREATE DATABASE {name}")
            connection = await asyncpg.connect(url)
            try:
                yield PostgresStore(url, connection)
            finally:
                await connection.close()
                await server.execute(f"DROP DATABASE {name} WITH (FORCE)")
        finally:
            await server.close()

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """Make a folder for one contestant, and throw it away afterwards."""
        with tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as folder:
            yield Path(folder)


@contextlib.asynccontextmanager
async def started(servers: set[str], synchronous: Synchronous) -> AsyncIterator[Stores]:
    """Start the servers, and make sure that what they commit is on the disk."""
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder, private(servers) as urls:
        stores = Stores(Path(folder), synchronous, {}, urls.get("postgres"), urls.get("redis"))
        stores.settings["sqlite synchronous"] = synchronous
        if stores.postgres_url:
            connection = await asyncpg.connect(stores.postgres_url)
            for name in ("server_version", "fsync", "synchronous_commit", "full_page_writes"):
                stores.settings[f"postgres {name}"] = await connection.fetchval(f"SHOW {name}")
            await connection.close()
            if {stores.settings["postgres fsync"], stores.settings["postgres synchronous_commit"]} != {"on"}:
                raise RuntimeError("PostgreSQL must run with fsync and synchronous_commit on")
        yield stores


@contextlib.contextmanager
def private(servers: set[str]) -> Iterator[dict[str, str]]:
    if not servers:
        yield {}
        return
    folder = services("new").strip()
    try:
        words = shlex.split(services("start", "--dir", folder, "--durable", *sorted(servers)))
        given = dict(word.split("=", 1) for word in words if "=" in word)
        yield {name: given[f"ROTA_TEST_{name.upper()}_URL"] for name in servers}
    finally:
        services("stop", folder)


def services(*words: str) -> str:
    done = subprocess.run(
        [ROOT / "scripts" / "services", *words], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout
