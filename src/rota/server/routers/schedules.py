"""`/api/schedules`: durable rules for calls; made, changed, removed and looked at."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi import Path as InPath

from rota.app import Rota
from rota.errors import Invalid, UnknownSchedule
from rota.schedule import LONGEST_KEY
from rota.server.auth import Operator, Reader
from rota.server.cursor import CursorText, Limit, Page, Secret
from rota.server.here import Here
from rota.server.idempotency import Once
from rota.server.problems import Refused, responses
from rota.server.routers.parts import KEY, Key, Moment, Name, Note, Text, page, place
from rota.server.routers.schedule_models import (
    Change,
    Definition,
    FiringOut,
    NewSchedule,
    RevisionOut,
    ScheduleOut,
    Upcoming,
    WhyOut,
    check_pace,
)
from rota.store.schedule_reads import FiringsPlace, ScheduleState, State

router = APIRouter(prefix="/schedules", tags=["schedules"])

ScheduleKey = Annotated[str, InPath(alias="schedule", max_length=LONGEST_KEY, pattern=KEY, description="The key.")]
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=100,
        description="The ETag of the version that you looked at: where somebody changed it since, nothing is done.",
        examples=['"3"'],
    ),
]
_ETAG = re.compile(r'(?:W/)?"([0-9]{1,18})"')
_TAGGED = {"headers": {"ETag": {"description": "The version.", "schema": {"type": "string"}}}}
MADE: dict[int | str, dict[str, Any]] = {201: {"model": ScheduleOut, **_TAGGED}}
FOUND: dict[int | str, dict[str, Any]] = {200: _TAGGED}


def tag(found: ScheduleState) -> dict[str, str]:
    """Return the header that says which version this is."""
    return {"ETag": f'"{found.version}"'}


async def wanted_version(here: Rota, key: str, match: str | None) -> int | None:
    """Return which version is to be changed; None where any may be."""
    if match is None:
        return None
    if match.strip() == "*":
        try:
            await here.schedules.get(key)
        except UnknownSchedule as error:
            raise Refused(412, str(error)) from None
        return None
    found = _ETAG.fullmatch(match.strip())
    if found is None:
        raise Invalid("If-Match", match, 'use one ETag as it is, such as "3", or *', "is no ETag of a schedule")
    return int(found[1])


@router.get("", operation_id="list_schedules")
async def list_schedules(
    *,
    here: Here,
    _: Reader,
    secret: Secret,
    state: State | None = None,
    task: Name | None = None,
    queue: Name | None = None,
    app: Annotated[Text | None, Query(description="The name of the app that it belongs to.")] = None,
    tag: Key | None = None,
    prefix: Annotated[Text | None, Query(description="How the key begins.")] = None,
    text: Annotated[Text | None, Query(description="Text in key, task or description, in any letters.")] = None,
    after: Annotated[Text, Query(description="Only keys behind this one.")] = "",
    cursor: CursorText = None,
    limit: Limit = 50,
) -> Page[ScheduleOut]:
    """List schedules by key."""
    ended = place(secret, cursor, "schedules")
    found = await here.schedules.list(
        state=state,
        task=task,
        queue=queue,
        app=app,
        tag=tag,
        prefix=prefix,
        text=text,
        after=str(ended[0]) if ended else after,
        limit=limit,
    )
    items = [ScheduleOut.of(each) for each in found]
    return page(secret, "schedules", items, limit, found[-1].key if found else None)


@router.post(
    "", operation_id="create_schedule", status_code=201, response_model=ScheduleOut, responses=responses(409) | MADE
)
async def create_schedule(new: NewSchedule, request: Request, here: Here, caller: Operator, once: Once) -> Response:
    """Make a schedule; 409 where its key is taken. Ask again with the same `Idempotency-Key`, and it is made once."""
    schedule = new.schedule(here, new.key)

    def headers(found: ScheduleState) -> dict[str, str]:
        return tag(found) | {"Location": request.url_for("get_schedule", schedule=found.key).path}

    return await once(
        lambda here: here.schedules.put(schedule, create=True, note=new.note, by=caller.name),
        ScheduleOut.of,
        headers=headers,
    )


@router.get("/{schedule}", operation_id="get_schedule", name="get_schedule", responses=responses(404) | FOUND)
async def get_schedule(key: ScheduleKey, here: Here, _: Reader, response: Response) -> ScheduleOut:
    """Show a schedule; its ETag is its version."""
    found = await here.schedules.get(key)
    response.headers.update(tag(found))
    return ScheduleOut.of(found)


@router.put("/{schedule}", operation_id="put_schedule", responses=responses(412) | FOUND)
async def put_schedule(
    key: ScheduleKey, new: Definition, here: Here, caller: Operator, response: Response, match: IfMatch = None
) -> ScheduleOut:
    """Make a schedule, or let the one under this key be as this says: what is left out has its usual value.

    What exists keeps its pause and, where the rule stays, its next due instant.
    """
    schedule = new.schedule(here, key)
    version = await wanted_version(here, key, match)
    try:
        found = await here.schedules.put(schedule, version=version, note=new.note, by=caller.name)
    except UnknownSchedule as error:
        raise Refused(412, str(error)) from None
    response.headers.update(tag(found))
    return ScheduleOut.of(found)


@router.patch("/{schedule}", operation_id="change_schedule", responses=responses(404, 412) | FOUND)
async def change_schedule(
    key: ScheduleKey, change: Change, here: Here, caller: Operator, response: Response, match: IfMatch = None
) -> ScheduleOut:
    """Change what is named, and keep the rest; so with the parts of `retry`, `on_failure` and `adaptive`."""
    values = change.named(here)
    known = await here.schedules.get(key)
    if {"rule", "exclude"} & set(values):
        check_pace(here, values.get("rule", known.rule), values.get("exclude", known.policies.exclude))
    version = await wanted_version(here, key, match)
    await here.schedules.change(
        key, note=change.note, by=caller.name, version=version, last_success=change.last_success, **values
    )
    found = await here.schedules.get(key)
    response.headers.update(tag(found))
    return ScheduleOut.of(found)


@router.delete("/{schedule}", operation_id="remove_schedule", status_code=204, responses=responses(404, 412))
async def remove_schedule(
    key: ScheduleKey,
    here: Here,
    caller: Operator,
    match: IfMatch = None,
    note: Annotated[Note, Query(description="Why; it is kept.")] = None,
) -> Response:
    """Remove a schedule: what waits is cancelled, what runs ends, the history stays."""
    version = await wanted_version(here, key, match)
    await here.schedules.remove(key, version=version, note=note, by=caller.name)
    return Response(status_code=204)


# What came of it, and what will


@router.get("/{schedule}/upcoming", operation_id="list_upcoming", responses=responses(404))
async def list_upcoming(key: ScheduleKey, here: Here, _: Reader, limit: Limit = 10) -> Page[Upcoming]:
    """Show the next due instants, as far as they are known now; of what is overdue, the oldest comes first."""
    found = await here.schedules.upcoming(key, limit=limit)
    return Page[Upcoming](items=[Upcoming.model_validate(each) for each in found])


@router.get("/{schedule}/firings", operation_id="list_schedule_firings")
async def list_schedule_firings(
    key: ScheduleKey,
    here: Here,
    _: Reader,
    secret: Secret,
    before: Annotated[Moment | None, Query(description="Only those due before; then by due, and in one page.")] = None,
    cursor: CursorText = None,
    limit: Limit = 50,
) -> Page[FiringOut]:
    """Show due instants and what came of them, newest first; also of a schedule that was removed."""
    if before is not None:
        earlier = await here.schedules.firings(key, before=before, limit=limit)
        return Page[FiringOut](items=[FiringOut.of(each) for each in earlier])
    ended = place(secret, cursor, "firings")
    found, end = await here.schedules.newest_firings(
        schedule=key, before=None if ended is None else FiringsPlace(*map(int, map(str, ended))), limit=limit
    )
    return page(secret, "firings", [FiringOut.of(each) for each in found], limit, end.run, end.skip)


@router.get("/{schedule}/revisions", operation_id="list_revisions")
async def list_revisions(
    key: ScheduleKey,
    here: Here,
    _: Reader,
    secret: Secret,
    before: Annotated[int | None, Query(ge=0, le=2**53, description="Only lower versions.")] = None,
    cursor: CursorText = None,
    limit: Limit = 50,
) -> Page[RevisionOut]:
    """Show who changed a schedule, when, what and why, newest first; also of one that was removed."""
    ended = place(secret, cursor, "revisions")
    version = before if ended is None else int(str(ended[0]))
    found = await here.schedules.revisions(key, before=version, limit=limit)
    last = found[-1].version if found else None
    return page(secret, "revisions", [RevisionOut.of(each) for each in found], limit, last)


@router.get("/{schedule}/why", operation_id="why", responses=responses(404))
async def why(
    key: ScheduleKey,
    here: Here,
    _: Reader,
    at: Annotated[Moment | None, Query(description="A due instant; now if left out.")] = None,
) -> WhyOut:
    """Say what came of a due instant, and why; or what the schedule does now, and why."""
    found = await here.schedules.why(key, at=at)
    firing = None if found.firing is None else FiringOut.of(found.firing)
    return WhyOut(key=found.key, at=found.at, text=found.text, firing=firing)
