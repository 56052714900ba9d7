"""Every error as problem details (RFC 9457): what is wrong, in which field, and what is allowed.

What goes wrong inside is told by a number alone, under which the log has the rest: no trace, SQL or path leaves.
"""

import logging
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from rota.errors import (
    CopyRefused,
    Invalid,
    LeaseLost,
    LockHeld,
    MissingExtra,
    OutdatedVersion,
    RotaError,
    ScheduleExists,
    SchemaTooNew,
    StoreUnavailable,
    TaskFailed,
    TimedOut,
    UnknownLimit,
    UnknownRun,
    UnknownSchedule,
    UnknownTask,
    UnknownToken,
    UnknownWorker,
    UnreadableArguments,
)

_log = logging.getLogger("rota.server")

MEDIA_TYPE = "application/problem+json"
_AGAIN_SECONDS = 2
"""After how long those are to ask again who met a store that is away."""
_MOST_ERRORS = 20

_STATUS: Mapping[type[RotaError], int] = {
    OutdatedVersion: 412,
    Invalid: 422,
    UnknownLimit: 404,
    UnknownRun: 404,
    UnknownSchedule: 404,
    UnknownTask: 404,
    UnknownToken: 404,
    UnknownWorker: 404,
    ScheduleExists: 409,
    LockHeld: 409,
    LeaseLost: 409,
    UnreadableArguments: 409,
    TaskFailed: 409,
    MissingExtra: 501,
    StoreUnavailable: 503,
    SchemaTooNew: 503,
    CopyRefused: 503,
    TimedOut: 504,
}
"""By the nearest of its classes, what an error is in HTTP; any other is a failure of the server's."""


def _title(status: int) -> str:
    return HTTPStatus(status).phrase


class FieldError(BaseModel):
    """What is wrong with one field."""

    field: str = Field(description="Which field: a name of the body, or of the query.", examples=["rule"])
    message: str = Field(description="What is wrong with it.", examples=["'61 * * * *' is not a cron expression"])
    allowed: str | None = Field(default=None, description="What would be right.", examples=["use minutes from 0 to 59"])


class Problem(BaseModel):
    """Something that was not done, and why (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "about:blank",
                    "title": "Unprocessable Content",
                    "status": 422,
                    "detail": "rule: '61 * * * *' is not allowed; use minutes from 0 to 59",
                    "errors": [{"field": "rule", "message": "is not allowed", "allowed": "use minutes from 0 to 59"}],
                }
            ]
        }
    )

    type: str = Field(
        default="about:blank", description="What kind of problem it is; the status says it all where blank."
    )
    title: str = Field(description="The status in words.")
    status: int = Field(description="The HTTP status.", ge=400, le=599)
    detail: str = Field(description="What is wrong, and what to do, in one line.")
    id: str | None = Field(default=None, description="Under this the server's log has more, where the server failed.")
    errors: list[FieldError] = Field(default=[], description="Which fields are wrong, where it is about fields.")


class Refused(Exception):
    """An answer that is a problem, raised wherever it is found."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        errors: tuple[FieldError, ...] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, detail)
        self.problem = Problem(title=_title(status), status=status, detail=detail, errors=list(errors))
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """Return it as an answer."""
        return _response(self.problem, self.headers)


def failure(error: BaseException, where: str) -> Response:
    """Answer what nobody foresaw: the log gets all of it, the caller a number to ask about."""
    number = secrets.token_hex(8)
    _log.error("%s failed; its id is %s", where, number, exc_info=error)
    detail = "the server failed; its log says more under this id"
    return _response(Problem(title=_title(500), status=500, detail=detail, id=number), {})


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe answers that are problems, for `responses=` of a route."""
    return {status: {"model": Problem, "description": _title(status)} for status in statuses}


RESPONSES = responses(400, 401, 403, 413, 422, 429, 500, 503)
"""What any route may answer; every router gets them."""


def install(api: FastAPI) -> None:
    """Let every error of the application be a problem."""
    api.add_exception_handler(Refused, _refused)
    api.add_exception_handler(RotaError, _rota_error)
    api.add_exception_handler(RequestValidationError, _not_valid)
    api.add_exception_handler(HTTPException, _http_error)


def of(error: RotaError) -> Refused | None:
    """Return what an error of Rota's is in HTTP; None where the server failed."""
    status = next((_STATUS[each] for each in type(error).__mro__ if each in _STATUS), None)
    if status is None:
        return None
    if status == 503:
        again = {"Retry-After": str(_AGAIN_SECONDS)}
        return Refused(503, "the store does not answer now; ask again soon", headers=again)
    if isinstance(error, Invalid):
        wrong = FieldError(field=error.field, message=error.problem, allowed=error.allowed)
        return Refused(status, str(error), errors=(wrong,))
    return Refused(status, str(error))


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)  # noqa: S101 (what it is registered for)
    return error.response()


async def _rota_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RotaError)  # noqa: S101 (what it is registered for)
    known = of(error)
    if known is None:
        return failure(error, f"{request.method} {request.scope['path']!r}")
    if known.problem.status >= 500:
        _log.warning("%s: %s", known.problem.title, error)
    return known.response()


async def _not_valid(_: Request, error: Exception) -> Response:
    """Answer a request that does not fit its description; what was sent is not sent back."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 (what it is registered for)
    found = tuple(_field_error(each) for each in error.errors()[:_MOST_ERRORS])
    detail = "; ".join(f"{each.field}: {each.message}" for each in found[:3])
    return Refused(422, detail or "the request does not fit", errors=found).response()


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 (what it is registered for)
    return Refused(error.status_code, str(error.detail), headers=error.headers).response()


def _field_error(found: Mapping[str, Any]) -> FieldError:
    where = [str(each) for each in found["loc"]]
    bounds = {key: value for key, value in (found.get("ctx") or {}).items() if isinstance(value, int | float | str)}
    allowed = bounds.get("expected") or ", ".join(f"{key} {value}" for key, value in bounds.items()) or None
    field = ".".join(where[1:]) if len(where) > 1 else where[0]
    return FieldError(field=field, message=str(found["msg"]), allowed=None if allowed is None else str(allowed))


def _response(problem: Problem, headers: Mapping[str, str]) -> Response:
    return Response(
        problem.model_dump_json(exclude_none=True), problem.status, headers=dict(headers), media_type=MEDIA_TYPE
    )
