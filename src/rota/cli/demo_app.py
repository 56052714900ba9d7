"""What `rota demo` shows: an app with schedules of every kind; some fail, wait or overlap on purpose."""

import asyncio
import random
from datetime import timedelta

from rota import clock
from rota.app import Rota
from rota.context import current_run
from rota.errors import Invalid
from rota.limit import Limit
from rota.schedule import Schedule
from rota.tasks import named_call
from rota.times.backoff import Retry
from rota.times.calendars import Calendar
from rota.times.cron import Cron
from rota.times.intervals import Every
from rota.times.listed import At
from rota.times.policies import Adaptive, OnFailure

NAME = "demo"
HOST = "host:example.org"
_MINUTES = 10
"""For how long after the start the calendar has times."""


def demo_app(store: str) -> tuple[Rota, list[Schedule]]:
    """Return an app, and its schedules; nothing is in the store yet."""
    app = Rota(store, name=NAME)

    @app.task(name="demo.say")
    async def say(text: str) -> str:
        """Say something, and be done."""
        return text

    @app.task(name="demo.fetch")
    async def fetch(place: str) -> int:
        """Pretend to fetch a page; return how much is new on it."""
        await asyncio.sleep(random.uniform(0.1, 0.8))  # noqa: S311 (nothing secret)
        return len(place) % 5

    @app.task(name="demo.report", queue="slow")
    async def report(steps: int = 6) -> str:
        """Work for three seconds, and say how far it is; the log is kept because it takes so long."""
        me = current_run()
        for step in range(1, steps + 1):
            await asyncio.sleep(0.5)
            me.log.info("page %d of %d is written", step, steps)
            me.progress(step / steps, f"page {step}")
        return f"{steps} pages"

    @app.task(name="demo.break")
    async def break_down() -> None:
        """Fail, whatever happens."""
        current_run().log.warning("this cannot end well")
        raise RuntimeError("it fails on purpose")

    @app.task(name="demo.stumble", retry=Retry(attempts=4, first="1s", cap="4s"))
    async def stumble() -> str:
        """Fail twice, and succeed at the third attempt."""
        me = current_run()
        if me.attempt < 3:
            raise ConnectionError(f"attempt {me.attempt} finds nobody")
        return "somebody answered"

    now = clock.now()
    soon = [now + timedelta(seconds=each) for each in (5, 15, 30, 45)]
    minutes = [f"{now + timedelta(minutes=each):%H:%M}" for each in range(1, _MINUTES + 1)]
    adaptive = Adaptive(busy=3, quiet=1, floor="4s", ceiling="16s")
    back_off = OnFailure(double_from=2, cap="1m", alert_after=3)
    return app, [
        Schedule("demo.cron", say.call("every 5 s, by cron"), Cron("*/5 * * * * *")),
        Schedule("demo.every", say.call("every 4 s"), Every("4s"), tags=["intervals"]),
        Schedule("demo.anchored", fetch.call("news"), Every("6s", since="success"), tags=["intervals"]),
        Schedule("demo.calendar", say.call("each full minute"), Calendar("day", at=minutes)),
        Schedule("demo.at", say.call("at a few moments"), At(soon)),
        Schedule("demo.adaptive", fetch.call("blog"), Every("8s", since="success"), adaptive=adaptive),
        *(
            Schedule(f"demo.limited-{each}", fetch.call(f"page-{each}"), Every("3s", since="finish"), limits=[HOST])
            for each in range(1, 4)
        ),
        Schedule("demo.overlapping", report.call(8), Every("3s"), overlap="skip"),
        Schedule("demo.failing", break_down.call(), Every("2s", since="finish"), on_failure=back_off),
        Schedule("demo.retried", stumble.call(), Every("12s", since="success")),
        Schedule("demo.report", report.call(), Every("10s", since="success")),
        Schedule("demo.paused", say.call("nobody hears this"), Every("5s")),
        Schedule("demo.parked", named_call("demo.say", '{"sound": "none"}'), Every("5s")),
    ]


async def prepare(app: Rota, schedules: list[Schedule]) -> None:
    """Put it all into the store, which has nothing of others."""
    strangers = [each for each in await app.schedules.list(limit=1_000) if each.app != NAME]
    if strangers:
        allowed = "use an empty store, or leave --store out"
        raise Invalid("store", f"one with {strangers[0].key}", allowed, "has schedules that are no demo's")
    await app.limits.put(HOST, Limit(at_once=1, gap="1s"))
    await app.schedules.put_many(schedules, note="rota demo")
    await app.schedules.pause("demo.paused", note="to show how that looks", by="rota demo")
