"""Arguments and results as JSON text, and back: the only serializer, and never pickle.

The law: what arrives is what was passed, equal and of the same type; what would arrive otherwise is refused when it is
passed, not when it is needed. Annotations say what JSON cannot: with `when: datetime` a datetime arrives as a datetime;
without an annotation only plain JSON data passes (text, whole numbers of 64 bits, finite floats, booleans, None, lists,
and dicts with text as keys).

Three things that are equal but not quite the same are let through: an int for a float arrives as that float; an aware
datetime keeps its wall time and its offset, but not the name of its zone; and a subclass of datetime, date, time,
timedelta, UUID or Decimal (test tools and database drivers make them) arrives as the plain one.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from reprlib import Repr
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    TypeAlias,
    Union,
    get_args,
    get_origin,
)
from uuid import UUID

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic_core import PydanticSerializationError, from_json, to_json

from rota.errors import InvalidData

MAX_BYTES = 1_000_000
"""The most that the arguments of one call, or one result, may take as JSON text in UTF-8."""

MAX_DEPTH = 64
"""How deep lists and dicts may lie in one another."""

LEAST_INT, MOST_INT = -(2**63), 2**63 - 1

Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain] | None"
"""What JSON can say by itself."""

_SCALARS = (str, int, float, bool, NoneType)
_short = Repr()
_short.maxother = _short.maxstring = 80
_WIDENED = (datetime, date, time, timedelta, UUID, Decimal)


def encode(value: object, type_: object = Any) -> str:
    """Write a value of this type as compact JSON text."""
    return to_text(_codec(type_).dump(value))


def decode(text: str, type_: object = Any) -> Any:
    """Read the value of this type that `encode` wrote."""
    return _codec(type_).load(from_text(text))


def to_text(plain: Plain) -> str:
    """Write plain JSON data as compact text, at most `MAX_BYTES` of it."""
    try:
        data = to_json(plain)
    except PydanticSerializationError as error:
        raise InvalidData("value", plain, one_line(error), "cannot be written as JSON") from None
    _check_size(len(data))
    return data.decode()


def from_text(text: str, depth: int = MAX_DEPTH) -> Plain:
    """Read plain JSON data, within the bounds that hold for writing it."""
    try:
        _check_size(len(text) if text.isascii() else len(text.encode()))
        plain: Plain = from_json(text)
    except InvalidData:
        raise
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidData("text", text, one_line(error), "is not JSON") from None
    _is_plain(plain, depth)
    return plain


class Codec:
    """How the values of one annotation become plain JSON data and come back."""

    def __init__(self, type_: object = Any) -> None:
        self.type = NoneType if type_ is None else type_
        self._anything = self.type in (Any, object)
        self._scalar = self.type if self.type in _SCALARS else None
        self._plain = _is_plain_type(self.type)
        self._adapter = _adapter(self.type)

    def dump(self, value: object) -> Plain:
        """Return the value as plain JSON data; refuse one that would not arrive as it is."""
        if self._plain and _is_plain(value):
            if self._anything or type(value) is self._scalar:
                return value  # type: ignore[return-value]  # it is plain
            checked: Plain = self._fit(value)
            if checked == value:  # not so where an int is too long for the float that it should be
                return checked
        return self._dump_other(value)

    def load(self, plain: Plain) -> Any:
        """Return the value that this JSON data stands for."""
        if self._anything or type(plain) is self._scalar:
            return plain
        if self._plain:
            return self._fit(plain)
        try:
            return self._adapter.validate_json(to_json(plain), strict=True, by_alias=True, by_name=True)
        except ValidationError as error:
            raise self._misfit(plain, error) from None
        except Exception as error:  # a type may bring code of its own
            raise InvalidData("value", plain, one_line(error), f"cannot be read as {type_name(self.type)}") from error

    def schema(self) -> dict[str, Any]:
        """Return what its JSON looks like, as a JSON schema that stands by itself; `{}` where nobody can say."""
        try:
            return self._adapter.json_schema()
        except PydanticUserError:
            return {}

    def _fit(self, value: object) -> Any:
        try:
            return self._adapter.validate_python(value, strict=True)
        except ValidationError as error:
            raise self._misfit(value, error) from None

    def _misfit(self, value: object, error: ValidationError) -> InvalidData:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        said = [f"{_place(each['loc'])}{each['msg'][:1].lower()}{each['msg'][1:]}" for each in found[:3]]
        return InvalidData("value", value, "; ".join(said), f"does not fit {type_name(self.type)}")

    def _dump_other(self, value: object) -> Plain:
        """Write, read back and compare: so the law holds whatever a type's own serializer does."""
        try:
            self._fit(value)
            written = self._adapter.dump_python(value, mode="json", by_alias=False, round_trip=True, warnings="none")
            if not _is_plain(written):
                raise InvalidData("value", value, "use a type that becomes plain data", "cannot be written as JSON")
            plain: Plain = _sets_in_order(value, written)
            changed = _difference(value, self.load(plain))
        except InvalidData:
            raise
        except Exception as error:  # a type may bring code of its own
            raise InvalidData("value", value, one_line(error), "cannot be written as JSON") from error
        if changed:
            raise _changed(value, *changed)
        return plain


def type_name(type_: object) -> str:
    """Say a type as its user wrote it, or nearly."""
    if type_ is NoneType:
        return "None"
    if get_origin(type_) is Annotated:  # what checks it is nothing that its user wrote
        return type_name(get_args(type_)[0])
    return type_.__qualname__ if isinstance(type_, type) else str(type_).replace("typing.", "")


def _codec(type_: object) -> Codec:
    try:
        # Unions that differ in their order only are equal, but not the same to read.
        return _kept_codec(type_, "" if isinstance(type_, type) else repr(type_))
    except TypeError:  # an annotation that cannot be hashed
        return Codec(type_)


@lru_cache(maxsize=1_000)
def _kept_codec(type_: object, _: str) -> Codec:
    return Codec(type_)


def _adapter(type_: object) -> TypeAdapter[Any]:
    rename: Any = NewType  # Pydantic takes no settings for a dataclass or a TypedDict, but for a new name of one
    try:
        adapter = TypeAdapter[Any](
            rename("renamed", type_), config=ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
        )
        adapter.rebuild(raise_errors=True)  # or a name inside that is not defined shows only when it is used
    except PydanticSchemaGenerationError as error:
        allowed = "use plain data, datetime, UUID, Decimal, an Enum, a dataclass, a pydantic model, or lists of them"
        raise InvalidData("type", type_name(type_), allowed, "cannot be written as JSON") from error
    except Exception as error:  # a type may bring code of its own
        raise InvalidData("type", type_name(type_), one_line(error), "cannot be written as JSON") from error
    return adapter


def _is_plain_type(type_: object) -> bool:
    """Tell whether this type names plain JSON data only, so that a plain value that fits arrives as it is."""
    origin, args = get_origin(type_), get_args(type_)
    if origin is Literal:
        return all(type(each) is str for each in args)  # with numbers 1, 1.0 and True would be one
    if origin in (Union, UnionType, list):
        return all(map(_is_plain_type, args))
    if origin is dict and args:
        return args[0] is str and _is_plain_type(args[1])
    return type_ in (Any, object, list, dict, *_SCALARS)


def _is_plain(value: object, room: int = MAX_DEPTH) -> bool:
    """Tell whether a value is plain JSON data as it is; refuse data that JSON text cannot carry whole."""
    check = _PLAIN.get(type(value))
    return check is not None and check(value, room)


def _is_plain_text(value: str, _: int) -> bool:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidData("value", value, "use whole characters", "holds half of a surrogate pair") from None
    return True


def _is_plain_int(value: int, _: int) -> bool:
    if not LEAST_INT <= value <= MOST_INT:
        raise InvalidData("value", value, "use whole numbers of 64 bits, or text", "is out of range")
    return True


def _is_plain_float(value: float, _: int) -> bool:
    if not math.isfinite(value):
        raise InvalidData("value", value, "use a finite number, or None", "is not a number that JSON knows")
    return True


def _is_plain_list(value: list[object], room: int) -> bool:
    _check_depth(room)
    return all(_is_plain(each, room - 1) for each in value)


def _is_plain_dict(value: dict[object, object], room: int) -> bool:
    _check_depth(room)
    return all(type(key) is str and _is_plain(key) and _is_plain(each, room - 1) for key, each in value.items())


_PLAIN: dict[type, Callable[[Any, int], bool]] = {
    str: _is_plain_text,
    int: _is_plain_int,
    float: _is_plain_float,
    bool: lambda _value, _room: True,
    NoneType: lambda _value, _room: True,
    list: _is_plain_list,
    dict: _is_plain_dict,
}


def _check_depth(room: int) -> None:
    if not room:
        allowed = f"use at most {MAX_DEPTH} lists and dicts in one another"
        raise InvalidData("value", "the data", allowed, "lie too deep or in a circle")


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        allowed = f"use at most {MAX_BYTES:,}: keep the data elsewhere and pass its key"
        raise InvalidData("value", f"{size:,} bytes of JSON", allowed, "are too many")


def _difference(sent: object, arrived: object) -> tuple[object, object] | None:
    """Return the first part that would not arrive as it was sent, with what would arrive in its place."""
    if type(sent) is not type(arrived):
        return None if _is_widened(sent, arrived) else (sent, arrived)
    parts, others = _parts(sent), _parts(arrived)
    if parts is None or others is None:
        return None if _is_same(sent, arrived) else (sent, arrived)
    if parts.keys() != others.keys():
        return sent, arrived
    return next(filter(None, (_difference(part, others[key]) for key, part in parts.items())), None)


def _parts(value: object) -> dict[object, object] | None:
    """Return what a value consists of, under keys that are equal on both sides; None for one without parts."""
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    if isinstance(value, dict):
        return {_key(key): (key, each) for key, each in value.items()}
    if isinstance(value, (set, frozenset)):
        return {_key(each): each for each in value}
    if isinstance(value, BaseModel):
        own: dict[object, object] = {name: getattr(value, name) for name in type(value).model_fields}
        own.update(value.__pydantic_extra__ or {})
        own.update(value.__pydantic_private__ or {})
        return own
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return None


def _key(value: object) -> object:
    # In the hour that a clock change repeats, a datetime is never equal to one of another zone.
    return value.isoformat() if isinstance(value, datetime) else value


def _is_same(sent: object, arrived: object) -> bool:
    if isinstance(sent, (datetime, time)) and isinstance(arrived, (datetime, time)):
        zones = (sent.tzinfo is None) == (arrived.tzinfo is None) and sent.utcoffset() == arrived.utcoffset()
        return zones and sent.replace(tzinfo=None) == arrived.replace(tzinfo=None)
    return bool(sent == arrived)


def _is_widened(sent: object, arrived: object) -> bool:
    """Tell whether a value would arrive as an equal one of a wider type that stands for it well."""
    if type(arrived) is float:
        return type(sent) is int and sent == arrived
    return type(arrived) in _WIDENED and isinstance(sent, type(arrived)) and _is_same(sent, arrived)


def _changed(value: object, part: object, arrived: object) -> InvalidData:
    if type(part) is type(arrived):
        problem = f"would arrive with {_short.repr(arrived)} in place of {_short.repr(part)}"
        return InvalidData("value", value, "annotate it with a type that restores it", problem)
    here, there = type_name(type(part)), type_name(type(arrived))
    problem = f"is of type {here}" if part is value else f"holds {_short.repr(part)}, of type {here},"
    return InvalidData(
        "value", value, f"annotate it as {here}, or pass {there}", f"{problem} and would arrive as {there}"
    )


def _sets_in_order(value: object, plain: Any) -> Any:
    """Give sets an order, so that the same arguments are the same text in every process."""
    if type(plain) is list and isinstance(value, (list, tuple, set, frozenset)):
        items = [_sets_in_order(*pair) for pair in zip(value, plain, strict=True)]
        return sorted(items, key=to_json) if isinstance(value, (set, frozenset)) else items
    if type(plain) is dict and isinstance(value, dict):
        # A TypedDict may be written in another order; keys that are not text are written as text.
        parts = value if plain.keys() <= value.keys() else dict(zip(plain, value.values(), strict=True))
        return {key: _sets_in_order(parts[key], each) for key, each in plain.items()}
    if type(plain) is dict and (is_dataclass(value) or isinstance(value, BaseModel)):
        return {key: _sets_in_order(getattr(value, key, None), each) for key, each in plain.items()}
    return plain


def _place(steps: Iterable[int | str]) -> str:
    path = ".".join(map(str, steps))
    return f"at {path}: " if path else ""


def one_line(error: Exception) -> str:
    """Say an error in one short line."""
    text = str(error).partition("\n")[0] or type(error).__name__
    return text if len(text) <= 200 else f"{text[:199]}…"
