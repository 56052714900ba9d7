"""Ending the process for real, where threads of tasks would keep it."""

import contextlib
import logging
import os
import sys
import threading

from rota import clock

_FLUSH_SECONDS = 1.0
_LAST_SECONDS = 5.0
"""How long threads that tasks have started themselves may take to end after the worker has."""


def leave(code: int) -> None:
    """End the process now. What was said is written, unless whoever is stuck is in the way of that too."""
    flushing = threading.Thread(target=_flush, name="rota-leave", daemon=True)
    flushing.start()
    flushing.join(_FLUSH_SECONDS)
    os._exit(code)


def leave_soon(code: int) -> None:
    """End the process in a while where threads that tasks have started themselves keep it from ending in order."""
    others = [each for each in threading.enumerate() if not each.daemon and each is not threading.main_thread()]
    watch = threading.Thread(target=_leave_unless_ended, args=(others, code), name="rota-leave", daemon=True)
    watch.start()


def _leave_unless_ended(others: list[threading.Thread], code: int) -> None:
    until = clock.monotonic() + _LAST_SECONDS
    for each in others:
        each.join(max(0.0, until - clock.monotonic()))
    if any(each.is_alive() for each in others):
        leave(code)


def _flush() -> None:
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
