"""Locks between real processes: one at a time, and what a killed holder had is free after its ttl."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rota import clock
from rota.app import Rota

TURNS = 15

# Adds to a number in a file, as only somebody who is alone may.
COUNT = f"""
import asyncio, pathlib, sys, rota

async def main(url, file):
    number = pathlib.Path(file)
    async with rota.Rota(url) as app:
        print("ready", flush=True)
        sys.stdin.readline()
        for _ in range({TURNS}):
            async with app.lock("number", wait="1m") as lock:
                *before, count = number.read_text().split()
                await asyncio.sleep(0)
                number.write_text(" ".join([*before, str(lock.fence), str(int(count) + 1)]))

asyncio.run(main(*sys.argv[1:]))
"""

HOLD = """
import asyncio, sys, rota

async def main(url):
    async with rota.Rota(url) as app:
        lock = app.lock("invoices", ttl="2s")
        print(await lock.acquire(), flush=True)
        sys.stdin.readline()

asyncio.run(main(sys.argv[1]))
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start processes that end with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str, *words: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", code, *words]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.communicate()


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def test_two_processes_take_turns(store: str, tmp_path: Path, start: Start) -> None:
    number = tmp_path / "number"
    number.write_text("0")
    both = [start(COUNT, store, str(number)) for _ in range(2)]
    assert [line(each) for each in both] == ["ready", "ready"]
    for each in both:
        assert each.stdin
        each.stdin.write("go\n")
        each.stdin.flush()
    assert [each.wait() for each in both] == [0, 0]
    *fences, count = map(int, number.read_text().split())
    assert count == 2 * TURNS
    assert fences == list(range(1, 2 * TURNS + 1))


async def test_what_a_killed_holder_had_is_free_after_its_ttl(store: str, start: Start) -> None:
    async with Rota(store) as app:
        began = clock.monotonic()
        holder = start(HOLD, store)
        assert line(holder) == "True"
        holder.kill()
        holder.wait()
        async with app.lock("invoices", wait="1m") as lock:
            assert lock.fence == 2
        assert clock.monotonic() - began >= 2
