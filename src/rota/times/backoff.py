"""How long to wait before a failed run is tried again."""

from dataclasses import dataclass
from datetime import timedelta

from rota.errors import InvalidPolicy
from rota.times.choices import whole_number
from rota.times.durations import duration
from rota.times.moments import micros
from rota.times.policies import Length
from rota.times.spread import spread_offset

MOST_ATTEMPTS = 1_000
MOST_FACTOR = 100


@dataclass(frozen=True, init=False)
class Retry:
    """How often a run is tried, and how long it waits in between: `first`, then `factor` times longer, up to a cap.

    Jitter spreads each wait by that fraction to both sides, within zero and the cap, so that runs that failed together
    do not come back together. Where a wait falls is decided by a hash: unlike for every run and attempt, alike on
    every machine.
    """

    attempts: int
    first: timedelta
    factor: float
    cap: timedelta
    jitter: float

    def __init__(
        self,
        attempts: int = 1,
        *,
        first: Length = "1s",
        factor: float = 2.0,
        cap: Length = "1h",
        jitter: float = 0.1,
    ) -> None:
        whole_number("attempts", attempts, 1, MOST_ATTEMPTS, InvalidPolicy)
        least, most = duration(first, "first"), duration(cap, "cap")
        if most < least:
            raise InvalidPolicy("cap", cap, "use one that is not below first", "is below first")
        vars(self).update(
            attempts=attempts,
            first=timedelta(microseconds=least),
            factor=_number("factor", factor, 1, MOST_FACTOR),
            cap=timedelta(microseconds=most),
            jitter=_number("jitter", jitter, 0, 1),
        )

    def delay(self, attempt: int, key: str) -> int | None:
        """Return the microseconds to wait after this attempt (the first is 1) failed; None when none is left."""
        whole_number("attempt", attempt, 1, 2**31, InvalidPolicy)
        if attempt >= self.attempts:
            return None
        cap = micros(self.cap)
        try:
            wait = min(cap, round(micros(self.first) * self.factor ** (attempt - 1)))
        except OverflowError:  # past any cap, but nothing grows from nothing
            wait = cap if self.first else 0
        reach = round(wait * self.jitter)  # never more than the wait itself
        earliest, latest = wait - reach, min(cap, wait + reach)
        return earliest + spread_offset(f"{key}#{attempt}", latest - earliest + 1)


def _number(field: str, value: object, least: int, most: int) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:  # NaN too
        raise InvalidPolicy(field, value, f"use a number from {least} to {most}")
    return float(value)
