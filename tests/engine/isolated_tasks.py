"""Tasks that run in processes of their own; a child imports them by name."""

import os
import threading

from rota.app import Rota
from rota.control import Cancel, RetryLater, Snooze

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
