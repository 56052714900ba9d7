"""What tasks noted about when they began."""

import asyncio
from pathlib import Path
from time import monotonic

from bench.engine.contestant import NOTE
from bench.engine.process import Process

PATIENCE = 60.0


async def delays(folder: Path, count: int, *watched: Process) -> list[float]:
    """Wait for so many notes, and return how many milliseconds after it was to begin each task began, sorted."""
    path, until = folder / "notes", monotonic() + PATIENCE
    while not path.exists() or path.stat().st_size < count * NOTE.size:
        for each in watched:
            each.check()
        if monotonic() > until:
            raise watched[0].failed()
        await asyncio.sleep(0.01)
    found = sorted((began - wanted) * 1e3 for wanted, began in NOTE.iter_unpack(path.read_bytes()))
    path.unlink()
    return found


def percentile(found: list[float], share: float) -> float:
    """Return the smallest number that at least this share is not above; `found` is sorted."""
    return found[min(len(found) - 1, int(len(found) * share))]
