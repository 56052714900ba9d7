"""How often a caller may ask: so many requests a minute, with a fifth of them at once.

Each process counts for itself, in memory.
"""

import math
from collections import OrderedDict

from starlette.types import ASGIApp, Receive, Scope, Send

from rota import clock
from rota.server.auth import CALLER
from rota.server.problems import Refused

_MOST_CALLERS = 10_000
_LEAST_AT_ONCE = 10


class Pace:
    """Refuses callers who ask too often; others are not slowed by them."""

    def __init__(self, app: ASGIApp, a_minute: int) -> None:
        self._app = app
        self._a_second = a_minute / 60
        self._at_once = max(_LEAST_AT_ONCE, a_minute // 5)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """For each caller how many requests were left, and when that was so."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        caller = scope.get(CALLER)
        if caller is not None and (wait := self._ask(caller.name)):
            again = {"Retry-After": str(math.ceil(wait))}
            await Refused(429, f"too many requests; ask again in {math.ceil(wait)} s", headers=again).response()(
                scope, receive, send
            )
            return
        await self._app(scope, receive, send)

    def _ask(self, name: str) -> float:
        """Count a request; returns how many seconds it comes too early."""
        now = clock.monotonic()
        left, then = self._left.pop(name, (float(self._at_once), now))
        left = min(float(self._at_once), left + (now - then) * self._a_second)
        allowed = left >= 1
        self._left[name] = (left - allowed, now)
        if len(self._left) > _MOST_CALLERS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._a_second
