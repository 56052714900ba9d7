"""The app that the processes of a journey work: each task writes down when it begins and what it has done."""

import asyncio
import os
import sqlite3
import time
from pathlib import Path

import asyncpg
from tests.journeys.clocks import turn_by
from tests.journeys.ledger import Books, note

import rota
from rota import clock
from rota.db import postgres, sqlite
from rota.engine import scheduler, sweep

STORE = os.environ.get("ROTA_STORE", "sqlite://")
BOOKS = Books(Path(os.environ.get("ROTA_JOURNEY", ".")))

if patience := os.environ.get("ROTA_JOURNEY_PATIENCE"):  # how long to wait for the store, where a test has less time
    postgres._COMMAND_SECONDS = postgres._CONNECT_SECONDS = sqlite._BUSY_SECONDS = float(patience)

if wall := os.environ.get("ROTA_JOURNEY_CLOCK"):  # a file that says by how many seconds the clock was set
    turn_by(Path(wall))

if often := os.environ.get("ROTA_JOURNEY_SWEEP"):  # how often to sweep, where a test has less time
    sweep._EVERY_SECONDS = scheduler._HEAL_SECONDS = float(often)

app = rota.Rota(STORE)

if os.environ.get("ROTA_JOURNEY_DEAF"):  # to all knocks
    app._db.listen = lambda *_: None
    app._db.unlisten = lambda *_: None

AGAIN = rota.Retry(attempts=1_000, first="100ms", cap="1s")
"""Faults pass: what they break is tried again until it works."""
OFTEN = 1_000
"""How often a run may be lost where workers are killed all the time."""


def begin() -> rota.CurrentRun:
    me = rota.current_run()
    note(BOOKS.effects, me.id, me.attempt, "begin")
    return me


def end(me: rota.CurrentRun) -> int:
    note(BOOKS.effects, me.id, me.attempt, "end")
    return me.attempt


@app.task(max_lost=OFTEN)
async def nap(seconds: float) -> int:
    me = begin()
    await asyncio.sleep(seconds)
    return end(me)


@app.task
async def idle() -> None:
    """Does nothing, and writes nothing down: for those who count runs by the thousand."""


@app.task
async def arrive() -> None:
    """Writes down when it began."""
    note(BOOKS.arrivals, rota.current_run().id, clock.micros())


@app.task(max_lost=OFTEN)
async def planned(plan: str, seconds: float) -> int:
    """Belongs to a plan that somebody made."""
    me = begin()
    await asyncio.sleep(seconds)
    return end(me)


@app.task(max_lost=OFTEN)
def threaded(seconds: float) -> int:
    me = begin()
    time.sleep(seconds)
    return end(me)


@app.task(on_lost="fail")
async def once(seconds: float) -> int:
    """Must not begin twice."""
    me = begin()
    await asyncio.sleep(seconds)
    return end(me)


@app.task(max_lost=OFTEN, retry=AGAIN)
async def flaky(times: int) -> int:
    """Fails this often."""
    me = begin()
    if me.attempt <= times:
        raise RuntimeError("not yet")
    return end(me)


@app.task(max_lost=OFTEN, retry=AGAIN)
async def own(seconds: float) -> None:
    """Writes its effect and its completion in one transaction of its own."""
    me = begin()
    await asyncio.sleep(seconds)
    row = f"INSERT INTO journey_effects VALUES ({me.id}, {me.attempt})"
    if STORE.startswith("sqlite"):
        file = sqlite3.connect(STORE.removeprefix("sqlite:///"), timeout=30, isolation_level=None)
        try:
            file.execute("BEGIN IMMEDIATE")
            file.execute(row)
            await me.complete(connection=file)
            file.execute("COMMIT")
        finally:
            file.close()
        return
    link = await asyncpg.connect(STORE, timeout=5, command_timeout=5)
    try:
        async with link.transaction():
            await link.execute(row)
            await me.complete(connection=link)
    finally:
        link.terminate()


@app.task(max_lost=1)
async def poison() -> None:
    """Kills its worker, each time."""
    begin()
    os._exit(1)


@app.task(max_lost=1)
def hungry() -> None:
    """Takes memory until somebody stops it, too slowly to hurt the machine before that."""
    begin()
    taken = []
    while True:
        taken.append(b"x" * 1_000_000)
        time.sleep(0.005)


@app.task(timeout="500ms", retry=rota.Retry(attempts=1))
async def deaf() -> None:
    """Does not listen when it is told to stop."""
    begin()
    while True:
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            continue


@app.task(timeout="500ms", retry=rota.Retry(attempts=1))
def endless() -> None:
    """A thread that never comes back."""
    begin()
    while True:
        time.sleep(0.1)


@app.task(max_lost=OFTEN)
async def blocking(seconds: float) -> int:
    """Holds up the event loop of its worker."""
    me = begin()
    time.sleep(seconds)  # noqa: ASYNC251 (that is its point)
    return end(me)
