"""What a task raises to say how its run goes on."""

from datetime import timedelta

from rota.times.durations import duration

Length = str | float | timedelta


class Control(Exception):
    """A word from a task to the engine; not an error."""


class RetryLater(Control):
    """Try again after this long, whatever the back-off would say; it counts as a failed attempt."""

    def __init__(self, delay: Length, why: str = "") -> None:
        super().__init__(why or f"to be tried again after {delay}")
        self.delay = duration(delay, "delay")


class Snooze(Control):
    """Go on after this long; it counts neither as a failure nor as a success."""

    def __init__(self, delay: Length, why: str = "") -> None:
        super().__init__(why or f"snoozed for {delay}")
        self.delay = duration(delay, "delay")


class Cancel(Control):
    """End the run here, as cancelled."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why or "cancelled by its task")
