"""`/api/scheduler`: the schedules as a whole: how they are, a stop for all, and a tick from outside."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Body
from pydantic import Field

from rota.app import MOST_QUEUES, MOST_SLOTS, Rota
from rota.model import Outcome
from rota.server.auth import Operator, Reader
from rota.server.cursor import CursorText, Limit, Page, Secret
from rota.server.here import Here
from rota.server.routers.parts import Given, Length, Name, Note, Told, page, place
from rota.server.routers.schedule_models import HeldOut, next_run
from rota.times.durations import duration
from rota.times.moments import SECOND

router = APIRouter(prefix="/scheduler", tags=["scheduler"])

LONGEST_TICK = 300 * SECOND


class StatusOut(Told):
    """How the schedules of a store are, in all its processes."""

    running: bool = Field(description="Whether schedules fire: nobody paused everything, and nothing is overdue.")
    total_jobs: int = Field(description="How many schedules there are.")
    active_checks: int = Field(description="How many runs workers hold now.")
    pending_jobs: int = Field(description="How many due runs have not begun.")
    next_run: datetime | None = Field(description="The next due instant of all.")
    concurrent_limit: int = Field(description="How many runs the workers that are there may run at once.")
    paused: HeldOut | None = Field(description="Who paused everything, if somebody did.")
    counts: dict[str, int] = Field(description="How many schedules are in each state.", examples=[{"active": 42}])
    overdue: int = Field(description="How many should have been fired more than a minute ago, and were not.")
    failing: int = Field(description="How many active ones failed three times in a row or more.")


class JobOut(Told):
    """A schedule, in short."""

    id: str = Field(description="Its key.")
    name: str = Field(description="Its task.")
    next_run: datetime | None
    pending: bool = Field(description="Whether a run of it waits for its time, for room or for a worker.")


class Order(Given):
    """Why it is done."""

    note: Note = None


class TickIn(Given):
    """What to do in a tick."""

    queues: list[Name] | None = Field(
        default=None, min_length=1, max_length=MOST_QUEUES, description="Which queues to work; the tasks' own if null."
    )
    slots: int = Field(default=10, ge=1, le=MOST_SLOTS, description="How many runs at once.")
    timeout: Length = Field(default="60s", description="After this long nothing more begins; up to 5 minutes.")


_SIMPLY, _USUAL = Order(), TickIn()


class TickedOut(Told):
    """What came of a tick."""

    fired: int = Field(description="How many runs the schedules made.")
    outcomes: dict[Outcome, int] = Field(description="How many attempts ended how.")
    left: dict[str, int] = Field(description="How many due runs it left, by queue.")
    in_time: bool = Field(description="False where the time was over and something is left.")
    ok: bool = Field(description="Whether all was done in time, and nothing has failed for good.")


@router.get("/status", operation_id="get_status")
async def get_status(here: Here, _: Reader) -> StatusOut:
    """Show how the schedules are."""
    return await _status(here)


@router.get("/jobs", operation_id="list_jobs")
async def list_jobs(
    here: Here, _: Reader, secret: Secret, cursor: CursorText = None, limit: Limit = 50
) -> Page[JobOut]:
    """List the schedules by key, in short; `/api/schedules` tells more."""
    after = place(secret, cursor, "jobs")
    found = await here.schedules.list(after=str(after[0]) if after else "", limit=limit)
    pending = await here.schedules.pending(each.key for each in found)
    items = [
        JobOut(id=each.key, name=each.task, next_run=next_run(each), pending=each.key in pending) for each in found
    ]
    return page(secret, "jobs", items, limit, found[-1].key if found else None)


@router.post("/pause", operation_id="pause_everything")
async def pause_everything(here: Here, caller: Operator, order: Annotated[Order, Body()] = _SIMPLY) -> StatusOut:
    """Keep every schedule from firing, also those made later, until somebody resumes; it outlives restarts."""
    await here.pause(note=order.note, by=caller.name)
    return await _status(here)


@router.post("/resume", operation_id="resume_everything")
async def resume_everything(here: Here, caller: Operator, order: Annotated[Order, Body()] = _SIMPLY) -> StatusOut:
    """Let the schedules go on with the future, but for those that were paused alone."""
    await here.resume(note=order.note, by=caller.name)
    return await _status(here)


@router.post("/tick", operation_id="tick")
async def tick(here: Here, _: Operator, order: Annotated[TickIn, Body()] = _USUAL) -> TickedOut:
    """Fire what is due, work what is ready and due in this process, wait for it, and tell what came of it.

    For those who have a clock of their own, such as a cloud scheduler.
    """
    length = duration(order.timeout, "timeout", least=1, most=LONGEST_TICK)
    found = await here.tick(queues=order.queues, slots=order.slots, timeout=length / SECOND)
    return TickedOut.model_validate(found)


async def _status(here: Rota) -> StatusOut:
    found, queues, workers = await here.schedules.status(), await here.queues(), await here.workers()
    return StatusOut(
        running=found.paused is None and not found.overdue,
        total_jobs=sum(found.counts.values()),
        active_checks=sum(each.number for each in queues if each.state == "running"),
        pending_jobs=sum(each.due for each in queues if each.state != "running"),
        next_run=found.next_due,
        concurrent_limit=sum(each.slots for each in workers if each.left >= 0 and not each.draining),
        paused=HeldOut.of(found.paused),
        counts=found.counts,
        overdue=found.overdue,
        failing=found.failing,
    )
