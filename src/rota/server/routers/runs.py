"""`/api/runs`: durable pieces of work; made, looked at, cancelled, tried again."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Request, Response
from fastapi import Path as InPath
from pydantic import Field

from rota.app import Rota
from rota.errors import Invalid
from rota.model import Run, RunState
from rota.server.auth import Operator, Reader
from rota.server.cursor import CursorText, Limit, Page, Secret
from rota.server.here import Here
from rota.server.idempotency import Once
from rota.server.problems import Refused, responses
from rota.server.routers.parts import (
    MOST_OPERATIONS,
    Given,
    Key,
    Moment,
    Name,
    Note,
    Results,
    RunId,
    Text,
    page,
    place,
    result,
    unmasked,
)
from rota.server.routers.run_models import HourOut, LogLineOut, NewRun, RunDetail, RunMade, RunOut
from rota.server.routers.schedule_models import call_of
from rota.store.hours import Hour

router = APIRouter(prefix="/runs", tags=["runs"])

RunNumber = Annotated[int, InPath(ge=1, le=2**63 - 1, description="The run's number.")]
_CANCELLED = "cancelled"


class Cancelling(Given):
    """Why a run is cancelled."""

    note: Note = None


_SIMPLY = Cancelling()


class RunOperation(Given):
    """What to do to a run."""

    op: Literal["cancel", "retry"]
    id: RunId
    note: Note = Field(default=None, description="Why it is cancelled.")

    async def do(self, here: Rota) -> None:
        """Do it."""
        if self.op == "cancel":
            await here.runs.cancel(self.id, note=self.note or _CANCELLED)
        else:
            await _tried_again(here, self.id)


class RunOperations(Given):
    """Operations on runs, done in their order."""

    operations: list[RunOperation] = Field(
        min_length=1, max_length=MOST_OPERATIONS, examples=[[{"op": "cancel", "id": 7}, {"op": "retry", "id": 8}]]
    )


@router.get("", operation_id="list_runs")
async def list_runs(
    *,
    here: Here,
    _: Reader,
    secret: Secret,
    state: RunState | None = None,
    task: Name | None = None,
    queue: Name | None = None,
    schedule: Annotated[Key | None, Query(description="The key of a schedule.")] = None,
    worker: Annotated[Text | None, Query(description="Who took it last.")] = None,
    since: Annotated[Moment | None, Query(description="Made at this moment or later.")] = None,
    until: Annotated[Moment | None, Query(description="Made before this moment.")] = None,
    text: Annotated[
        Text | None, Query(description="Text in task, schedule, unique key or error, in any letters.")
    ] = None,
    before: Annotated[int | None, Query(ge=0, le=2**62, description="Only lower numbers.")] = None,
    cursor: CursorText = None,
    limit: Limit = 50,
) -> Page[RunOut]:
    """List runs, newest first."""
    ended = place(secret, cursor, "runs")
    found = await here.runs.list(
        state=state,
        task=task,
        queue=queue,
        schedule=schedule,
        worker=worker,
        since=since,
        until=until,
        text=text,
        before=before if ended is None else int(str(ended[0])),
        limit=limit,
    )
    return page(secret, "runs", [RunOut.of(each) for each in found], limit, found[-1].id if found else None)


@router.post("", operation_id="enqueue", status_code=201, response_model=RunMade)
async def enqueue(new: NewRun, request: Request, here: Here, _: Operator, once: Once) -> Response:
    """Store a run of a registered task: once this is answered it is not lost.

    The arguments are checked by the task's signature. Ask again with the same `Idempotency-Key`, and it is made once.
    """
    unmasked("arguments", new.arguments)
    call = call_of(here, new.task, new.arguments)
    how: dict[str, Any] = {name: getattr(new, name) for name in ("at", "priority", "queue", "unique", "limits")}
    how |= {name: getattr(new, name) for name in ("delay", "unique_for") if getattr(new, name) is not None}

    def headers(run: Run[Any]) -> dict[str, str]:
        return {"Location": request.url_for("get_run", run=run.id).path}

    return await once(lambda here: here.enqueue(call, **how), RunMade.of, headers=headers)


@router.post("/bulk", operation_id="bulk_runs")
async def bulk_runs(order: RunOperations, here: Here, _: Operator) -> Results:
    """Cancel or try again up to 1,000 runs, one by one; one that fails undoes no other."""

    def work(each: RunOperation) -> Any:
        return lambda: each.do(here)

    return Results.of([await result(each.op, each.id, work(each)) for each in order.operations])


@router.get("/hours", operation_id="list_hours")
async def list_hours(
    *,
    here: Here,
    _: Reader,
    secret: Secret,
    start: Annotated[Moment | None, Query(description="From when on; the last 24 hours if left out.")] = None,
    end: Annotated[Moment | None, Query(description="Before when.")] = None,
    task: Name | None = None,
    queue: Name | None = None,
    cursor: CursorText = None,
    limit: Limit = 50,
) -> Page[HourOut]:
    """List how many runs ended in each hour, and how, oldest first; further back than single runs are kept."""
    found = sorted(await here.runs.hours(start, end, task=task, queue=queue), key=_hour)
    ended = place(secret, cursor, "hours")
    rest = [each for each in found if ended is None or _hour(each) > tuple(map(str, ended))][:limit]
    return page(secret, "hours", [HourOut.of(each) for each in rest], limit, *(_hour(rest[-1]) if rest else ()))


def _hour(found: Hour) -> tuple[str, ...]:
    return found.hour.isoformat(), found.task, found.queue, found.state


@router.get("/{run}", operation_id="get_run", name="get_run", responses=responses(404))
async def get_run(run: RunNumber, here: Here, _: Reader) -> RunDetail:
    """Show a run with its attempts and what it waits for."""
    found = await here.runs.get(run)
    return RunDetail.whole(found, await here.runs.attempts(run), await here.limits.waits_for(run))


@router.get("/{run}/log", operation_id="list_log", responses=responses(404))
async def list_log(
    run: RunNumber, here: Here, _: Reader, secret: Secret, cursor: CursorText = None, limit: Limit = 200
) -> Page[LogLineOut]:
    """Show what a run logged, oldest first, as far as it is kept: of attempts that failed or took 2 s and more."""
    await here.runs.get(run)
    last = place(secret, cursor, "log")
    start = 0 if last is None else int(str(last[0]))
    found = (await here.runs.log(run))[start : start + limit]
    return page(secret, "log", [LogLineOut.model_validate(each) for each in found], limit, start + limit)


@router.post("/{run}/cancel", operation_id="cancel_run", responses=responses(404))
async def cancel_run(run: RunNumber, here: Here, _: Operator, order: Annotated[Cancelling, Body()] = _SIMPLY) -> RunOut:
    """Cancel a run: at once where it waits, by telling its worker where it runs. One that has ended stays as it is."""
    await here.runs.cancel(run, note=order.note or _CANCELLED)
    return RunOut.of(await here.runs.get(run))


@router.post("/{run}/retry", operation_id="retry_run", responses=responses(404, 409))
async def retry_run(run: RunNumber, here: Here, _: Operator) -> RunOut:
    """Make a run that has ended ready again, with its history; 409 while it, or one of its unique key, is under way."""
    return RunOut.of(await _tried_again(here, run))


async def _tried_again(here: Rota, run: int) -> Run[Any]:
    try:
        return await here.runs.retry(run)
    except Invalid as error:
        raise Refused(409, str(error)) from None
