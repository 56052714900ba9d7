"""`/api/schedules`, continued: pause, resume, trigger, back-fill; one schedule, or many at once."""

from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Body, Response
from pydantic import Field, model_validator

from rota.app import Rota
from rota.errors import Invalid
from rota.server.auth import Caller, Operator
from rota.server.here import Here
from rota.server.idempotency import Once
from rota.server.problems import Refused, responses
from rota.server.routers.parts import MOST_OPERATIONS, Given, Key, Length, Moment, Note, Results, Text, result
from rota.server.routers.schedule_models import Change, CountOut, Definition, ScheduleOut, TriggeredOut, check_pace
from rota.server.routers.schedules import FOUND, ScheduleKey, tag
from rota.store.schedule_rows import Triggered

router = APIRouter(prefix="/schedules", tags=["schedules"])


class Why(Given):
    """Why it is done."""

    note: Note = None


class Pause(Why):
    """Why, and until when."""

    until: Moment | None = Field(default=None, description="When it ends by itself; null: when somebody resumes.")


class Range(Why):
    """A range of the past."""

    start: Moment = Field(description="From this moment on.")
    end: Moment = Field(description="Before this moment.")


class Selected(Why):
    """All schedules with a tag, or whose key begins so: one of the two."""

    tag: Key | None = None
    prefix: Annotated[Text, Field(min_length=1)] | None = Field(default=None, description="How the key begins.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.tag is None) == (self.prefix is None):
            raise ValueError("say which schedules: by tag, or by prefix, one of them")
        return self

    @property
    def which(self) -> dict[str, Any]:
        """What the verbs of `Schedules` take."""
        return {"tag": self.tag, "prefix": self.prefix}


class SelectedPause(Selected, Pause):
    """All schedules with a tag, or whose key begins so; why, and until when."""


class Spreading(Selected):
    """All schedules with a tag, or whose key begins so, and over how long."""

    window: Length = "1h"


Nothing = Annotated[Why, Body()]
_SIMPLY, _PAUSED = Why(), Pause()


# One


@router.post("/{schedule}/pause", operation_id="pause_schedule", responses=responses(404) | FOUND)
async def pause_schedule(
    key: ScheduleKey, here: Here, caller: Operator, response: Response, order: Annotated[Pause, Body()] = _PAUSED
) -> ScheduleOut:
    """Keep a schedule from firing, perhaps until a moment; what passes meanwhile is recorded as skipped."""
    await here.schedules.pause(key, note=order.note, by=caller.name, until=order.until)
    return await _told(here, key, response)


@router.post("/{schedule}/resume", operation_id="resume_schedule", responses=responses(404) | FOUND)
async def resume_schedule(
    key: ScheduleKey, here: Here, caller: Operator, response: Response, order: Nothing = _SIMPLY
) -> ScheduleOut:
    """Let a schedule go on with the future."""
    await here.schedules.resume(key, note=order.note, by=caller.name)
    return await _told(here, key, response)


@router.post(
    "/{schedule}/trigger",
    operation_id="trigger_schedule",
    status_code=201,
    response_model=TriggeredOut,
    responses=responses(404, 409),
)
async def trigger_schedule(key: ScheduleKey, caller: Operator, once: Once, order: Nothing = _SIMPLY) -> Response:
    """Run a schedule now, beside its rule, as its overlap policy lets it; 409 names the run that keeps it out."""
    return await once(lambda here: here.schedules.trigger(key, note=order.note, by=caller.name), triggered)


@router.post(
    "/{schedule}/backfill",
    operation_id="backfill_schedule",
    status_code=201,
    response_model=TriggeredOut,
    responses=responses(404, 409),
)
async def backfill_schedule(key: ScheduleKey, order: Range, caller: Operator, once: Once) -> Response:
    """Run the due instants of a past range once more, in order, as the overlap policy lets them; up to 10,000."""
    return await once(
        lambda here: here.schedules.backfill(key, order.start, order.end, note=order.note, by=caller.name), triggered
    )


def triggered(found: Triggered) -> TriggeredOut:
    """Tell of runs that were made; refuse where the overlap policy let none in."""
    if found.run is None:
        raise Refused(409, f"no run: its overlap policy lets none in while run {found.blocker} is under way")
    return TriggeredOut.model_validate(found)


async def _told(here: Rota, key: str, response: Response) -> ScheduleOut:
    found = await here.schedules.get(key)
    response.headers.update(tag(found))
    return ScheduleOut.of(found)


# Many, by tag or prefix


@router.post("/pause", operation_id="pause_schedules")
async def pause_schedules(order: SelectedPause, here: Here, caller: Operator) -> CountOut:
    """Pause all schedules with a tag or a prefix; says how many were not paused before."""
    count = await here.schedules.pause(**order.which, note=order.note, by=caller.name, until=order.until)
    return CountOut(count=count)


@router.post("/resume", operation_id="resume_schedules")
async def resume_schedules(order: Selected, here: Here, caller: Operator) -> CountOut:
    """Resume all schedules with a tag or a prefix; says how many were held."""
    return CountOut(count=await here.schedules.resume(**order.which, note=order.note, by=caller.name))


@router.post("/remove", operation_id="remove_schedules")
async def remove_schedules(order: Selected, here: Here, caller: Operator) -> CountOut:
    """Remove all schedules with a tag or a prefix; says how many."""
    return CountOut(count=await here.schedules.remove(**order.which, note=order.note, by=caller.name))


@router.post("/spread", operation_id="spread_schedules")
async def spread_schedules(order: Spreading, here: Here, caller: Operator) -> CountOut:
    """Spread what runs next of all with a tag or a prefix evenly over a window from now on; says how many.

    It concerns active intervals that count from the last run, with none under way.
    """
    count = await here.schedules.spread(**order.which, window=order.window, note=order.note, by=caller.name)
    return CountOut(count=count)


@router.post("/trigger", operation_id="trigger_schedules")
async def trigger_schedules(order: Selected, here: Here, caller: Operator) -> Results:
    """Run all schedules with a tag or a prefix now, up to 1,000, each as its overlap policy lets it."""
    found = await here.schedules.list(**order.which, limit=MOST_OPERATIONS)
    if len(found) == MOST_OPERATIONS:
        allowed = f"use one that less than {MOST_OPERATIONS:,} have"
        raise Invalid("tag" if order.tag else "prefix", order.tag or order.prefix, allowed, "is of too many schedules")
    return Results.of([await result("trigger", each.key, _trigger(here, each.key, order, caller)) for each in found])


def _trigger(here: Rota, key: str, order: Why, caller: Caller) -> Any:
    async def work() -> None:
        triggered(await here.schedules.trigger(key, note=order.note, by=caller.name))

    return work


# Many, one by one


class _Operation(Given):
    key: Key


class PutOperation(_Operation):
    """Make a schedule, or let it be as this says; with `create`, make it only."""

    op: Literal["put"]
    create: bool = False
    version: int | None = Field(default=None, ge=1, le=2**53, description="Only where it still is of this version.")
    schedule: Definition

    async def do(self, here: Rota, caller: Caller) -> None:
        """Do it."""
        schedule = self.schedule.schedule(here, self.key)
        how: dict[str, Any] = {"create": self.create, "version": self.version, "note": self.schedule.note}
        await here.schedules.put(schedule, **how, by=caller.name)


class ChangeOperation(_Operation):
    """Change what is named, and keep the rest."""

    op: Literal["change"]
    version: int | None = Field(default=None, ge=1, le=2**53, description="Only where it still is of this version.")
    change: Change

    async def do(self, here: Rota, caller: Caller) -> None:
        """Do it."""
        values, known = self.change.named(here), await here.schedules.get(self.key)
        if {"rule", "exclude"} & set(values):
            check_pace(here, values.get("rule", known.rule), values.get("exclude", known.policies.exclude))
        how: dict[str, Any] = {"version": self.version, "last_success": self.change.last_success, **values}
        await here.schedules.change(self.key, note=self.change.note, by=caller.name, **how)


class PauseOperation(_Operation, Pause):
    """Pause it."""

    op: Literal["pause"]

    async def do(self, here: Rota, caller: Caller) -> None:
        """Do it."""
        await here.schedules.pause(self.key, note=self.note, by=caller.name, until=self.until)


class OrderOperation(_Operation, Why):
    """Resume it, run it now, or remove it."""

    op: Literal["resume", "trigger", "remove"]

    async def do(self, here: Rota, caller: Caller) -> None:
        """Do it."""
        if self.op == "trigger":
            await _trigger(here, self.key, self, caller)()
        else:
            verb = here.schedules.resume if self.op == "resume" else here.schedules.remove
            await verb(self.key, note=self.note, by=caller.name)


Operation = Annotated[PutOperation | ChangeOperation | PauseOperation | OrderOperation, Field(discriminator="op")]


class Operations(Given):
    """Operations on schedules, done in their order."""

    operations: list[Operation] = Field(
        min_length=1,
        max_length=MOST_OPERATIONS,
        examples=[[{"op": "pause", "key": "feed-42", "note": "moving"}, {"op": "trigger", "key": "report"}]],
    )


@router.post("/bulk", operation_id="bulk_schedules")
async def bulk_schedules(order: Operations, here: Here, caller: Operator) -> Results:
    """Do up to 1,000 things to schedules, one by one; what came of each is told, and one that fails undoes no other."""

    def work(each: Any) -> Any:
        return lambda: each.do(here, caller)

    return Results.of([await result(each.op, each.key, work(each)) for each in order.operations])
