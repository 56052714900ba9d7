"""`/api/statistics`: how the runs went that ended in a rolling window; the same from every server on the store."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from rota.server.auth import Reader
from rota.server.here import Here
from rota.server.routers.parts import Key, Name, Told
from rota.times.durations import duration
from rota.times.moments import DAY, SECOND

router = APIRouter(prefix="/statistics", tags=["statistics"])

LONGEST_WINDOW = 7 * DAY
"""So many runs are counted each time; hours, which are summed up once, reach further."""


class StatisticsOut(Told):
    """How it went; zeros where nothing ended."""

    total_checks: int = Field(description="How many runs succeeded or failed; a cancelled one is neither.")
    successful_checks: int
    failed_checks: int
    success_rate: float = Field(description="In percent.", examples=[97.5])
    average_duration_ms: float = Field(description="Of those that succeeded.")
    checks_per_minute: float = Field(description="Over the minutes since the oldest of them ended, at least 1.")


@router.get("", operation_id="get_statistics")
async def get_statistics(
    here: Here,
    _: Reader,
    window: Annotated[str, Query(max_length=50, description="How far back, up to 7 days.", examples=["15m"])] = "1h",
    task: Name | None = None,
    queue: Name | None = None,
    schedule: Annotated[Key | None, Query(description="The key of a schedule.")] = None,
) -> StatisticsOut:
    """Sum up the runs that ended in the last hour, or so long a window."""
    period = duration(window, "window", least=SECOND, most=LONGEST_WINDOW)
    found = await here.runs.statistics(period / SECOND, task=task, queue=queue, schedule=schedule)
    return StatisticsOut(
        total_checks=found.total,
        successful_checks=found.successful,
        failed_checks=found.failed,
        success_rate=found.success_rate,
        average_duration_ms=found.average_duration_ms,
        checks_per_minute=found.checks_per_minute,
    )
