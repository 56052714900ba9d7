"""`/api/task-types`: the registered tasks, and what they take."""

import inspect
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import Field

from rota.server.auth import Reader
from rota.server.cursor import CursorText, Limit, Page, Secret
from rota.server.here import Here
from rota.server.problems import responses
from rota.server.routers.parts import NAME, Json, Seconds, Told, page, place, seconds
from rota.server.routers.schedule_models import RetryOut
from rota.tasks import LONGEST_NAME, Isolation, OnLost, Task

router = APIRouter(prefix="/task-types", tags=["task types"])


class OptionsOut(Told):
    """How the runs of a task are treated, unless a schedule or an enqueue says otherwise."""

    queue: str
    priority: int
    timeout: Seconds | None
    retry: RetryOut
    max_lost: int = Field(description="How often a run whose worker was lost starts again.")
    on_lost: OnLost
    isolation: Isolation = Field(description="Where it runs.")
    limits: list[str]


class TaskOut(Told):
    """A function that Rota may call."""

    name: str = Field(examples=["news.refresh"])
    description: str = Field(description="What its function says of itself.")
    arguments: dict[str, Json] = Field(
        description="The JSON schema of its arguments.",
        examples=[{"type": "object", "properties": {"feed_id": {"type": "integer"}}, "required": ["feed_id"]}],
    )
    result: dict[str, Json] = Field(description="The JSON schema of its result.")
    options: OptionsOut

    @classmethod
    def of(cls, task: Task[..., Any]) -> "TaskOut":
        """Tell of a task."""
        own = task.options
        retry = {name: getattr(own.retry, name) for name in ("attempts", "factor", "jitter")}
        options = OptionsOut(
            queue=own.queue,
            priority=own.priority,
            timeout=seconds(own.timeout),
            retry=RetryOut(**retry, first=own.retry.first.total_seconds(), cap=own.retry.cap.total_seconds()),
            max_lost=own.max_lost,
            on_lost=own.on_lost,
            isolation=task.isolation,
            limits=list(own.limits),
        )
        told = {"arguments": task.schema(), "result": task.result_schema()}
        return cls(name=task.name, description=inspect.getdoc(task.function) or "", options=options, **told)


@router.get("", operation_id="list_task_types")
async def list_task_types(
    here: Here, _: Reader, secret: Secret, cursor: CursorText = None, limit: Limit = 50
) -> Page[TaskOut]:
    """List the tasks that are registered here, by name."""
    after = place(secret, cursor, "task types")
    names = [name for name in here.tasks.names if after is None or name > str(after[0])][:limit]
    items = [TaskOut.of(here.tasks.get(name)) for name in names]
    return page(secret, "task types", items, limit, names[-1] if names else None)


@router.get("/{name}", operation_id="get_task_type", responses=responses(404))
async def get_task_type(
    name: Annotated[str, InPath(max_length=LONGEST_NAME, pattern=NAME)], here: Here, _: Reader
) -> TaskOut:
    """Show a task that is registered here."""
    return TaskOut.of(here.tasks.get(name))
