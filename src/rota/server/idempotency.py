"""`Idempotency-Key`: whoever makes something may ask again, and it is made once.

A route that makes something takes `once: Once`, and returns `await once(effect, answer)`:

    @router.post("", status_code=201, response_model=RunOut)
    async def enqueue(new: NewRun, here: Here, caller: Operator, once: Once) -> Response:
        return await once(lambda here: here.enqueue(new.call(here)), RunOut.of)

`effect` works with the Rota that it is given, and with no other; it is one call that writes once and returns what was
written, such as `enqueue`, `enqueue_many`, `schedules.put`, `trigger` or `backfill`. `answer` makes the body of that,
and is called inside the transaction, so it may only compute. An error is not kept: it has changed nothing.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Request
from pydantic import BaseModel
from starlette.responses import Response

from rota.app import Rota
from rota.db.database import Work
from rota.db.joined import joined
from rota.server.auth import Known
from rota.server.here import Here
from rota.server.problems import FieldError, Refused
from rota.store.idempotency import Answer, Idempotency, KeyTaken

T = TypeVar("T")

KEY = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
"""A header that says that this was answered before, and nothing was done now."""

_Key = Annotated[
    str | None,
    Header(
        alias=KEY,
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="The same answer for 24 hours to who asks again with it, and no second effect.",
    ),
]


class _Once:
    """Does something once for a key, where there is one."""

    def __init__(self, here: Rota, key: str | None, request: str) -> None:
        self._here = here
        self._key = key
        self._request = request

    async def __call__(
        self,
        effect: Callable[[Rota], Awaitable[T]],
        answer: Callable[[T], BaseModel],
        *,
        status: int = 201,
        headers: Callable[[T], Mapping[str, str]] = lambda _: {},
    ) -> Response:
        """Do it, or answer as before."""

        def told(found: T) -> Answer:
            return Answer(status, headers(found), answer(found).model_dump_json(by_alias=True))

        if self._key is None:
            return _response(told(await effect(self._here)))
        return await self._before(self._key) or await self._now(self._key, effect, told)

    async def _before(self, key: str) -> Response | None:
        found = await self._here.database.read(lambda: Idempotency(self._here.database).get(key))
        if found is None:
            return None
        if found.request != self._request:
            wrong = FieldError(
                field=KEY, message="was used for another request", allowed="use a new key for a new request"
            )
            raise Refused(422, f"{KEY}: {wrong.message}; {wrong.allowed}", errors=(wrong,))
        return _response(found, again=True)

    async def _now(self, key: str, effect: Callable[[Rota], Awaitable[T]], told: Callable[[T], Answer]) -> Response:
        kept = Idempotency(self._here.database)
        wrote: list[Any] = []

        def along(work: Work[T]) -> Work[T]:
            if wrote:
                raise RuntimeError("an effect under a key writes once")
            wrote.append(None)
            return lambda: kept.once(key, self._request, work, told)

        try:
            found = await effect(self._here.beside(joined(self._here.database, along)))
        except KeyTaken:
            before = await self._before(key)
            if before is None:  # the other one failed at the very end
                raise Refused(409, f"{KEY}: a request with this key is under way; ask again") from None
            return before
        if not wrote:
            raise RuntimeError("an effect under a key writes with the Rota that it is given")
        return _response(told(found))


async def _once(request: Request, here: Here, caller: Known, idempotency_key: _Key = None) -> _Once:
    parts = [request.method, request.url.path, request.url.query, hashlib.sha256(await request.body()).hexdigest()]
    key = None if idempotency_key is None else _digest([caller.name, idempotency_key])
    return _Once(here, key, _digest(parts))


Once = Annotated[_Once, Depends(_once)]
"""Makes something once for a key, as a parameter of a route."""


def _digest(parts: list[str]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _response(told: Answer, *, again: bool = False) -> Response:
    headers = {**told.headers, **({REPLAYED: "true"} if again else {})}
    return Response(told.body, told.status, headers=headers, media_type="application/json")
