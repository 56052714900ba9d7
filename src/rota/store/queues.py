"""Queues summed up: what is in each, how old, and who works it."""

from collections.abc import Iterable
from dataclasses import dataclass

from rota.store.reads import QueueState
from rota.store.workers import WorkerRecord


@dataclass(slots=True)
class QueueSum:
    """A lane of runs."""

    name: str
    waiting: int = 0
    """How many runs wait for their time, or for room under limits."""
    ready: int = 0
    running: int = 0
    due: int = 0
    """How many of those that have not begun are due."""
    oldest: int = 0
    """For how many microseconds the oldest of the ready ones has been due."""
    workers: int = 0
    slots: int = 0
    """How many runs its workers may run at once, of all their queues."""


def summed(states: Iterable[QueueState], workers: Iterable[WorkerRecord]) -> list[QueueSum]:
    """Return the queues by name: those that a worker works, and those with runs under way."""
    found: dict[str, QueueSum] = {}
    for state in states:
        queue = found.setdefault(state.queue, QueueSum(state.queue))
        setattr(queue, state.state, state.number)
        if state.state != "running":
            queue.due += state.due
        if state.state == "ready":
            queue.oldest = max(0, state.oldest)
    for worker in workers:
        for name in worker.queues if worker.left >= 0 else ():
            queue = found.setdefault(name, QueueSum(name))
            queue.workers += 1
            queue.slots += worker.slots
    return [found[name] for name in sorted(found)]
