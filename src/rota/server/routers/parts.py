"""What the models and routes of several nouns share: lengths, moments, priorities, pages, results one by one."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, WithJsonSchema

from rota.errors import Invalid, RotaError
from rota.limit import MOST_KEYS
from rota.masking import STANDS_IN
from rota.model import RunError
from rota.schedule import LONGEST_KEY
from rota.server import cursor
from rota.server.cursor import Page, Value
from rota.server.problems import Problem, Refused, of
from rota.tasks import LEAST_PRIORITY, LONGEST_NAME, MOST_PRIORITY
from rota.times.durations import LONGEST
from rota.times.moments import SECOND

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

MOST_OPERATIONS = 1_000
_TEXT = r"^[^\x00]*$"

KEY = r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$"
NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.:-]*$"

Text = Annotated[str, Field(max_length=200, pattern=_TEXT)]
"""Text to look for."""
Key = Annotated[str, Field(min_length=1, max_length=LONGEST_KEY, pattern=KEY, examples=["feed-42"])]
"""A schedule's key, or a tag."""
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, pattern=NAME)]
"""A name of a task or a queue."""
LimitKey = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[!-~]+$", examples=["host:example.org"])]
LimitKeys = Annotated[list[LimitKey], Field(max_length=MOST_KEYS)]
RunId = Annotated[int, Field(ge=1, le=2**63 - 1)]
Length = Annotated[
    Annotated[float, Field(strict=True, ge=0, le=LONGEST // SECOND, allow_inf_nan=False)]
    | Annotated[str, Field(max_length=50)],
    Field(
        description="A length of time: seconds, or text such as `45s`, `90m`, `1h30m`, `2d`, `PT1H30M`.",
        examples=["15m", 900],
    ),
]
Seconds = Annotated[float, Field(description="Seconds.", examples=[900])]
Moment = Annotated[
    AwareDatetime, Field(description="A moment: ISO 8601 with an offset.", examples=["2027-01-31T09:00:00+01:00"])
]
Priority = Annotated[
    Literal["low", "normal", "high"] | Annotated[int, Field(strict=True, ge=LEAST_PRIORITY, le=MOST_PRIORITY)],
    Field(description="`low` is 25, `normal` 50, `high` 75; a higher one goes first.", examples=["high", 60]),
]
Note = Annotated[
    str | None, Field(max_length=1_000, pattern=_TEXT, description="Why; it is kept.", examples=["moving to Berlin"])
]
Json = Annotated[Any, WithJsonSchema({"description": "Any JSON."})]
Arguments = Annotated[
    dict[str, Json],
    Field(description="The arguments by name, as the task's signature wants them.", examples=[{"feed_id": 42}]),
]


class Given(BaseModel):
    """What somebody sends: a name that nobody knows is refused."""

    model_config = ConfigDict(extra="forbid")


class Told(BaseModel):
    """What somebody is told, from a record of Rota's."""

    model_config = ConfigDict(from_attributes=True)


class ErrorOut(Told):
    """What went wrong in an attempt."""

    kind: str = Field(description="The class of the error.", examples=["TimeoutError"])
    message: str
    traceback: str | None = None

    @classmethod
    def of(cls, found: RunError | None) -> "ErrorOut | None":
        """Tell of an error, if there is one."""
        return None if found is None else cls.model_validate(found)


class Result(BaseModel):
    """What came of one operation of many."""

    op: str = Field(description="What was to be done.", examples=["pause"])
    key: str = Field(description="To what: the schedule's key, or the run's number.", examples=["feed-42"])
    ok: bool = Field(description="Whether it was done.")
    problem: Problem | None = Field(default=None, description="Why it was not done.")


class Results(BaseModel):
    """What came of many operations, in their order. Each stands for itself: one that fails undoes no other."""

    done: int = Field(description="How many were done.")
    failed: int = Field(description="How many were not.")
    results: list[Result]

    @classmethod
    def of(cls, results: list[Result]) -> "Results":
        """Count them."""
        done = sum(each.ok for each in results)
        return cls(done=done, failed=len(results) - done, results=results)


async def result(op: str, key: object, work: Callable[[], Awaitable[object]]) -> Result:
    """Do one operation of many, and tell what came of it."""
    try:
        await work()
    except RotaError as error:
        refused = of(error)
        if refused is None:
            raise
        return Result(op=op, key=str(key), ok=False, problem=refused.problem)
    except Refused as refused:
        return Result(op=op, key=str(key), ok=False, problem=refused.problem)
    return Result(op=op, key=str(key), ok=True)


# Pages


def place(secret: bytes, text: str | None, noun: str) -> list[Value] | None:
    """Return where a page of this list begins; None for the first. The cursor of another list is refused."""
    if text is None:
        return None
    found = cursor.decode(secret, text)
    if found[0] != noun:
        raise Refused(400, f"cursor: this is a cursor of {found[0]}; use the next of a page of {noun}")
    return found[1:]


def page(secret: bytes, noun: str, items: Sequence[M], limit: int, *last: Value) -> Page[M]:
    """Return a page that ends at this place; it is the last one where it is not full."""
    following = cursor.encode(secret, [noun, *last]) if len(items) >= limit else None
    return Page(items=list(items), next=following)


# Values


def seconds(found: timedelta | None) -> float | None:
    """Return a length in seconds."""
    return None if found is None else found.total_seconds()


def unmasked(field: str, plain: Any) -> None:
    """Refuse data in which a mask stands for a secret: it would take the secret's place."""
    if plain == STANDS_IN:
        raise Invalid(field, plain, "send the value itself, or PATCH without the arguments", "is a mask over a secret")
    for each in plain.values() if isinstance(plain, dict) else plain if isinstance(plain, list) else ():
        unmasked(field, each)
