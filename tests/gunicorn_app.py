"""A web application for servers that load it once and then fork: the store is used before and after."""

import multiprocessing
import os
import threading
from typing import Any

import flask

import rota

app = rota.Rota(name="web")  # ROTA_STORE
calls = rota.Blocking(app)
web = flask.Flask(__name__)
both = multiprocessing.get_context("fork").Barrier(2)


@app.task(name="note")
def note(text: str) -> str:
    return text


loaded = calls.enqueue(note.call("loaded")).id


@web.post("/meet")
def meet() -> dict[str, Any]:
    """Enqueue, wait for another worker that does the same, and enqueue again."""
    first = calls.enqueue(note.call("before")).id
    both.wait(60)
    second = calls.enqueue(note.call("after")).id
    loops = [each.name for each in threading.enumerate()].count("rota-blocking")
    return {"worker": os.getpid(), "runs": [first, second], "loops": loops}


@web.post("/runs")
def runs() -> list[int]:
    return [each.id for each in calls.runs.list() if each.id != loaded]
