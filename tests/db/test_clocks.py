"""A store lives by its own clock, or by one that goes when it is told to."""

from rota import clock
from rota.app import Rota
from rota.clock import VirtualClock
from rota.times.moments import moment

THEN = 1_900_000_000_000_000


async def test_a_store_lives_by_a_virtual_clock_until_it_is_told_otherwise(app: Rota) -> None:
    @app.task
    def work() -> None: ...

    app.database.live_by(VirtualClock(THEN))
    assert (await work.enqueue()).created_at == moment(THEN)
    app.database.live_by(None)
    assert (await work.enqueue()).created_at < moment(THEN)


async def test_one_store_s_virtual_clock_is_not_another_s(app: Rota) -> None:
    async with Rota("sqlite://") as other:
        app.database.live_by(VirtualClock(THEN))
        assert other.database.clock.now() < moment(THEN) == app.database.clock.now()
        assert abs(other.database.clock.monotonic() - clock.monotonic()) < 60


def test_a_virtual_clock_never_goes_back() -> None:
    it = VirtualClock(THEN)
    it.set(THEN - 1)
    assert (it.micros(), it.now(), it.monotonic()) == (THEN, moment(THEN), THEN / 1_000_000)
