"""The machine's clock, as processes see it that share it, and somebody who sets it."""

from datetime import timedelta
from pathlib import Path

from rota import clock

_MICROS, _NOW = clock.micros, clock.now


def turn_by(wall: Path) -> None:
    """Have this process's clock go wrong by as many seconds as a file says, from now on and whenever that changes."""
    clock.micros = lambda: _MICROS() + int(wall.read_text()) * 1_000_000
    clock.now = lambda: _NOW() + timedelta(seconds=int(wall.read_text()))


def turn_back() -> None:
    """Have this process's clock go right."""
    clock.micros, clock.now = _MICROS, _NOW


def set_clock(wall: Path, seconds: int) -> None:
    """Set the clock of all at once: nobody reads half a number."""
    new = wall.with_suffix(".new")
    new.write_text(str(seconds))
    new.replace(wall)
