"""What becomes of new runs while runs of the schedule are under way."""

from typing import NamedTuple

from rota.times.policies import Policies


class Room(NamedTuple):
    """Of the runs that are wanted, in order: how many may start, how many then queue; the rest are skipped."""

    start: int
    queue: int = 0
    cancel: bool = False
    """The runs that are under way are to be cancelled first."""


def room(policies: Policies, under_way: int, wanted: int = 1) -> Room:
    """Decide about runs that come while so many are under way.

    Runs that are wanted together never shut each other out: they queue. Only what was under way before can.
    """
    if not wanted:
        return Room(0)
    if policies.overlap == "allow":
        free = max(0, policies.max_running - under_way)
        start = min(free, wanted)
        return Room(start, wanted - start if free else 0)
    if not under_way:
        return Room(1, wanted - 1)
    if policies.overlap == "queue_all":
        return Room(0, wanted)
    if policies.overlap == "cancel_running":
        return Room(0, wanted, cancel=True)
    if policies.overlap == "queue_one" and under_way == 1:
        return Room(0, 1)
    return Room(0)
