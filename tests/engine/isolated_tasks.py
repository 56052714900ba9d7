"""Tasks that run in processes of their own; a child imports them by name."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import threading
from pathlib import Path
from typing import Any

import asyncpg

import rota
from rota.app import Rota
from rota.context import current_run
from rota.control import Cancel, RetryLater, Snooze
from rota.times.backoff import Retry

app = Rota("sqlite://")


@app.task(isolation="process")
def add(left: int, right: int) -> int:
    return left + right


@app.task(isolation="process")
async def add_later(left: int, right: int) -> int:
    return left + right


@app.task(isolation="process")
def which() -> int:
    return os.getpid()


@app.task(isolation="process")
def wrong() -> None:
    raise LookupError("no such feed")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise LookupError("no words")


@app.task(isolation="process")
def unspeakable() -> None:
    raise Unspeakable


@app.task(isolation="process")
def leave() -> None:
    raise SystemExit(3)


@app.task(isolation="process")
def die() -> None:
    os._exit(7)


@app.task(isolation="process", timeout="1s")
def hang() -> None:
    threading.Event().wait()


@app.task(isolation="process")
def hang_for_ever() -> None:
    threading.Event().wait()


@app.task(isolation="process")
def control(kind: str) -> None:
    raise {"retry": RetryLater("30s", "busy"), "snooze": Snooze("1h"), "cancel": Cancel("gone")}[kind]


@app.task(isolation="process")
def about_itself() -> list[Any]:
    me = current_run()
    return [me.id, me.task, me.queue, me.attempt, me.key, me.due.isoformat()]


@app.task(isolation="process", retry=Retry(attempts=2, first=0))
def learn() -> list[Any]:
    me = current_run()
    if me.attempt == 1:
        raise LookupError("no")
    return [me.attempt, me.previous_result, me.previous_error and me.previous_error.message]


@app.task(isolation="process")
def speak() -> None:
    me = current_run()
    me.log.info("I am %s", me.key)
    me.log.debug("not asked for")
    try:
        raise LookupError("no such feed")
    except LookupError:
        me.log.exception("and yet")


def wait_at(gate: str) -> None:
    """Wait until somebody writes a line into this fifo."""
    with Path(gate).open() as line:
        assert line.readline()


@app.task(isolation="process")
async def progress(gate: str) -> None:
    current_run().progress(0.4, "nearly half")
    await asyncio.to_thread(wait_at, gate)


@app.task(isolation="process", retry=Retry(attempts=2, first=0))
async def pay(store: str, gate: str, trouble: str) -> str:
    """Have an effect and complete the run together, with some trouble in the first attempt."""
    me = current_run()
    first = me.attempt == 1
    if first and trouble == "late":
        me.progress(0.1)
        await asyncio.to_thread(wait_at, gate)
    if store.startswith("postgres"):
        await _pay_postgres(store, rolled_back=first and trouble == "rolled back")
    else:
        await _pay_sqlite(store, rolled_back=first and trouble == "rolled back")
    if trouble == "died":
        os._exit(9)
    return "not what was completed"


async def _pay_postgres(store: str, *, rolled_back: bool) -> None:
    connection = await asyncpg.connect(store)
    try:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("INSERT INTO effects VALUES (1)")
        await current_run().complete(f"by attempt {current_run().attempt}", connection=connection)
        await (transaction.rollback() if rolled_back else transaction.commit())
    finally:
        await connection.close()


async def _pay_sqlite(store: str, *, rolled_back: bool) -> None:
    connection = sqlite3.connect(store.removeprefix("sqlite:///"), timeout=30, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO effects VALUES (1)")
        await current_run().complete(f"by attempt {current_run().attempt}", connection=connection)
        connection.execute("ROLLBACK" if rolled_back else "COMMIT")
    finally:
        connection.close()


RETRIED = Retry(attempts=5, first=0)


@app.task(isolation="process", retry=RETRIED)
def no_json() -> Any:
    return object()


@app.task(isolation="process", retry=RETRIED)
def not_as_annotated() -> int:
    return "seven"  # type: ignore[return-value]


@app.task(isolation="process", retry=RETRIED)
def too_large() -> str:
    return "x" * 2_000_000


@app.task(isolation="process")
def is_told_to_end() -> str:
    for each in (signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), each)
    return "goes on"


@app.task(isolation="process")
def echo(text: str) -> str:
    return text


@app.task(isolation="process")
def breed(fifo: str) -> None:
    """Start another process, and be busy; both hold the fifo open while they live."""
    line = os.open(fifo, os.O_WRONLY)
    subprocess.Popen(["sleep", "1000"], pass_fds=[line])
    os.write(line, b"begun\n")
    while True:
        pass


@app.task(isolation="process", timeout="2s", name="breed_in_vain")
def breed_in_vain(fifo: str) -> None:
    breed.function(fifo)


@app.task(isolation="process")
def orphan(fifo: str) -> None:
    """Die, and leave another process behind that holds all files open."""
    line = os.open(fifo, os.O_WRONLY)
    subprocess.Popen(["sleep", "1000"], close_fds=False, pass_fds=[])
    os.write(line, b"begun\n")
    os._exit(7)


@rota.task(name="alone", isolation="process")
def alone() -> str:
    """Belong to no app, and ask for one."""
    try:
        return rota.current_app().name
    except rota.Invalid as error:
        return str(error)
