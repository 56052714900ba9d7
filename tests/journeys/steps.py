"""The steps that journeys are made of."""

from typing import Any

from tests.journeys.ledger import note, read, rows
from tests.journeys.processes import Crew, eventually

from rota.app import Rota
from rota.model import Run
from rota.tasks import Call


async def accepted(crew: Crew, client: Rota, *calls: Call[Any], **options: Any) -> list[int]:
    """Enqueue calls, and write down that they were accepted."""
    found = [(await client.enqueue(call, **options)).id for call in calls]
    for run in found:
        note(crew.books.accepted, run, "-")
    return found


async def begun(crew: Crew, *runs: int, times: int = 1) -> None:
    """Wait until each of these runs has begun so often, by what its task wrote down."""

    def have() -> bool:
        begins = [int(run) for run, _, what in read(crew.books.effects) if what == "begin"]
        return all(begins.count(run) >= times for run in runs)

    await eventually(have, what=f"begin {times} of the runs {runs}")


async def ended(client: Rota, run: int, seconds: float = 30.0) -> Run[Any]:
    """Wait for the end of a run, and return it."""
    return await client.runs.wait(run, timeout=seconds)


async def quiet(crew: Crew, seconds: float = 60.0) -> None:
    """Wait until no run is under way."""
    under_way = "SELECT 1 FROM rota_runs WHERE state IN ('waiting', 'ready', 'running') LIMIT 1"

    async def none() -> bool:
        return not await rows(crew.store, under_way)

    await eventually(none, seconds, "the end of all runs")
