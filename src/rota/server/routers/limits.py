"""`/api/limits`: caps on how many runs go at once, and at what pace."""

from typing import Annotated

from fastapi import APIRouter, Response
from fastapi import Path as InPath
from pydantic import Field

from rota.app import Rota
from rota.errors import UnknownLimit
from rota.limit import MOST_AT_ONCE, Limit
from rota.server.auth import Operator, Reader
from rota.server.cursor import CursorText, Page, Secret
from rota.server.cursor import Limit as Most
from rota.server.here import Here
from rota.server.problems import responses
from rota.server.routers.parts import Given, Length, Seconds, Told, page, place
from rota.store.limits import LimitState

router = APIRouter(prefix="/limits", tags=["limits"])

LimitName = Annotated[
    str,
    InPath(
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="A key such as `host:example.org`, `task:NAME` or `queue:NAME`, or a group such as `host:*`.",
    ),
]


class LimitIn(Given):
    """A limit: at least one of the two numbers."""

    at_once: int | None = Field(default=None, ge=1, le=MOST_AT_ONCE, description="How many runs of a key at once.")
    gap: Length = Field(default=0, description="The pause after the end of one of a key; goes with `at_once`.")
    keys_at_once: int | None = Field(
        default=None, ge=1, le=MOST_AT_ONCE, description="How many different keys of a group at once."
    )


class LimitOut(Told):
    """A limit, and how it is used."""

    key: str = Field(examples=["host:*"])
    at_once: int | None
    gap: Seconds
    keys_at_once: int | None
    busy: int = Field(description="How many runs and holds have room under it now.")
    waiting: int = Field(description="How many due runs wait for room under it.")

    @classmethod
    def of(cls, found: LimitState) -> "LimitOut":
        """Tell of a limit."""
        limit = found.limit
        return cls(
            key=found.key,
            at_once=limit.at_once,
            gap=limit.gap.total_seconds(),
            keys_at_once=limit.keys_at_once,
            busy=found.busy,
            waiting=found.waiting,
        )


@router.get("", operation_id="list_limits")
async def list_limits(
    here: Here, _: Reader, secret: Secret, cursor: CursorText = None, limit: Most = 50
) -> Page[LimitOut]:
    """List the limits by key."""
    after = place(secret, cursor, "limits")
    found = [each for each in await here.limits.list() if after is None or each.key > str(after[0])][:limit]
    return page(secret, "limits", [LimitOut.of(each) for each in found], limit, found[-1].key if found else None)


@router.get("/{key:path}", operation_id="get_limit", responses=responses(404))
async def get_limit(key: LimitName, here: Here, _: Reader) -> LimitOut:
    """Show a limit."""
    return await _limit(here, key)


@router.put("/{key:path}", operation_id="put_limit")
async def put_limit(key: LimitName, new: LimitIn, here: Here, _: Operator) -> LimitOut:
    """Put a limit in force at once, everywhere; what is under way already is counted, not stopped."""
    await here.limits.put(key, Limit(new.at_once, gap=new.gap, keys_at_once=new.keys_at_once))
    return await _limit(here, key)


@router.delete("/{key:path}", operation_id="remove_limit", status_code=204, responses=responses(404))
async def remove_limit(key: LimitName, here: Here, _: Operator) -> Response:
    """Take a limit out of force."""
    await here.limits.remove(key)
    return Response(status_code=204)


async def _limit(here: Rota, key: str) -> LimitOut:
    for each in await here.limits.list():
        if each.key == key:
            return LimitOut.of(each)
    raise UnknownLimit(key)
