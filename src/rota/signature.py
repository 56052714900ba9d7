"""A task's parameters and result as JSON text: checked when it is called, read when it runs."""

import contextlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Never, NoReturn, get_type_hints

from rota.codec import MAX_DEPTH, Codec, Plain, from_text, one_line, to_text, type_name
from rota.errors import InvalidArguments, InvalidData, InvalidTask, UnreadableArguments


class Signature:
    """A task's parameters and result: how arguments are checked and written when it is called, and read when it runs.

    Arguments are one JSON object: `{"feed_id": 42}`, with what `*args` takes under `"*"` and what `**kwargs` takes
    under `"**"`. Defaults are not written: they are applied when the run executes, so that a new default holds for all
    that still waits.
    """

    def __init__(self, function: Callable[..., object], task: str) -> None:
        self.task = task
        self._named: dict[str, Codec] = {}
        self._defaults: dict[str, object] = {}
        self._positional: list[str] = []
        self._positional_only = 0
        self._rest: tuple[str, Codec] | None = None
        self._extra: tuple[str, Codec] | None = None
        hints = _hints(function, task)
        for parameter in inspect.signature(function).parameters.values():
            self._add(parameter, hints.get(parameter.name, Any))
        self._required = [name for name in self._named if name not in self._defaults]
        self._keywords = set(self._named) - set(self._positional[: self._positional_only])
        result = hints.get("return", Any)
        self._returned = f"{task}(return)"
        self._result = self._codec("return", None if result in (NoReturn, Never) else result)

    def dump(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> str:
        """Write these arguments; refuse what the function does not take."""
        named, rest, extra = self._bind(args, kwargs)
        plain: dict[str, Plain] = {}
        name: str | None = None
        try:
            for name, codec in self._named.items():
                if name in named:
                    plain[name] = codec.dump(named[name])
            if rest and self._rest:
                name, codec = self._rest
                plain["*"] = [codec.dump(each) for each in rest]
            if extra and self._extra:
                name, codec = self._extra
                plain["**"] = {key: codec.dump(each) for key, each in extra.items()}
            name = None
            return to_text(plain)
        except InvalidData as error:
            raise InvalidArguments(self.task, name, error.value, error.allowed, error.problem) from error.__cause__

    def load(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Read what `dump` wrote, perhaps before the function changed, as `args` and `kwargs` for a call."""

        def unreadable(name: str, error: InvalidData) -> Exception:
            problem = str(InvalidData(name, error.value, error.allowed, error.problem))
            return UnreadableArguments(self.task, problem)

        return self._read(text, unreadable)

    def check(self, text: str) -> str:
        """Write arguments that somebody wrote as JSON as `dump` does; refuse what the function does not take."""

        def refused(name: str, error: InvalidData) -> Exception:
            return InvalidArguments(self.task, name, error.value, error.allowed, error.problem)

        args, kwargs = self._read(text, refused)
        return self.dump(args, kwargs)

    def _read(
        self, text: str, refused: Callable[[str, InvalidData], Exception]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        name = "arguments"
        try:
            plain = from_text(text, MAX_DEPTH + 2)  # a value lies in the object, perhaps under "*" or "**"
            named, rest, extra = self._sort(plain)
            values: dict[str, Any] = {}
            for name, each in named.items():
                values[name] = self._named[name].load(each)
            args = self._by_position(values, everything=bool(rest))
            if rest and self._rest:
                name, codec = self._rest
                args += [codec.load(each) for each in rest]
            if extra and self._extra:
                name, codec = self._extra
                values |= {key: codec.load(each) for key, each in extra.items()}
        except InvalidData as error:
            raise refused(name, error) from error.__cause__
        return tuple(args), values

    def dump_result(self, value: object) -> str:
        """Write what the function returned; refuse what its return annotation does not describe."""
        try:
            return to_text(self._result.dump(value))
        except InvalidData as error:
            raise InvalidData(self._returned, error.value, error.allowed, error.problem) from error.__cause__

    def load_result(self, text: str) -> Any:
        """Read what `dump_result` wrote, perhaps before the function changed."""
        try:
            return self._result.load(from_text(text))
        except InvalidData as error:
            raise InvalidData(self._returned, error.value, error.allowed, error.problem) from error.__cause__

    def schema(self) -> dict[str, Any]:
        """Return what the arguments are, as the JSON schema of an object."""
        shapes = {name: self._shape(name, codec) for name, codec in self._named.items()}
        if self._rest:
            items = self._rest[1].schema()
            shapes["*"] = {"type": "array", "items": items, "$defs": items.pop("$defs", {})}
        if self._extra:
            values = self._extra[1].schema()
            shapes["**"] = {"type": "object", "additionalProperties": values, "$defs": values.pop("$defs", {})}
        # A definition that several shapes refer to stands once, at the root.
        definitions = {name: each for shape in shapes.values() for name, each in shape.pop("$defs", {}).items()}
        found: dict[str, Any] = {"type": "object", "properties": shapes, "required": self._required}
        found["additionalProperties"] = bool(self._extra)
        return found | ({"$defs": definitions} if definitions else {})

    def result_schema(self) -> dict[str, Any]:
        """Return what the result is, as a JSON schema."""
        return self._result.schema()

    def _shape(self, name: str, codec: Codec) -> dict[str, Any]:
        """Return what one parameter is, with its default where JSON can say it."""
        found = codec.schema()
        with contextlib.suppress(InvalidData, KeyError):
            found["default"] = codec.dump(self._defaults[name])
        return found

    def _add(self, parameter: inspect.Parameter, hint: object) -> None:
        name, kind = parameter.name, parameter.kind
        if kind is parameter.VAR_POSITIONAL:
            self._rest = f"*{name}", self._codec(f"*{name}", hint)
        elif kind is parameter.VAR_KEYWORD:
            self._extra = f"**{name}", self._codec(f"**{name}", hint)
        else:
            self._named[name] = self._codec(name, hint)
            if parameter.default is not parameter.empty:
                self._defaults[name] = parameter.default
            if kind is not parameter.KEYWORD_ONLY:
                self._positional.append(name)
            self._positional_only += kind is parameter.POSITIONAL_ONLY

    def _codec(self, name: str, hint: object) -> Codec:
        try:
            return Codec(hint)
        except InvalidData as error:
            raise InvalidTask(f"{self.task}({name})", error.value, error.allowed, error.problem) from error.__cause__

    def _bind(
        self, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> tuple[dict[str, object], tuple[object, ...], dict[str, object]]:
        """Divide what is passed as Python does: by parameter, for `*args`, for `**kwargs`."""
        named: dict[str, object] = dict(zip(self._positional, args, strict=False))
        rest = args[len(self._positional) :]
        extra: dict[str, object] = {}
        for name, value in kwargs.items():
            if name not in self._keywords:
                extra[name] = value
            elif name in named:
                raise InvalidArguments(self.task, name, value, self._takes(), "is given a second time")
            else:
                named[name] = value
        if rest and not self._rest:
            raise InvalidArguments(self.task, None, rest[0], self._takes(), "is one argument too many")
        if extra and not self._extra:
            name, value = next(iter(extra.items()))
            raise InvalidArguments(self.task, name, value, self._takes(), "is not expected")
        for name in self._required:
            if name not in named:
                raise InvalidArguments(self.task, name, _NOTHING, self._takes(), "was given")
        return named, rest, extra

    def _sort(self, plain: Plain) -> tuple[dict[str, Plain], list[Plain], dict[str, Plain]]:
        """Divide what is written in the same way, for the function as it is today."""
        if type(plain) is not dict:
            raise InvalidData("arguments", plain, "use a JSON object", "is not an object")
        named = {name: value for name, value in plain.items() if name in self._named}
        extra = {name: value for name, value in plain.items() if name not in named and name not in {"*", "**"}}
        rest, keywords = plain.get("*", []), plain.get("**", {})
        if type(rest) is not list or type(keywords) is not dict:
            raise InvalidData("arguments", plain, 'use a list under "*" and an object under "**"')
        for name, value in keywords.items():
            (named if name in self._keywords and name not in named else extra)[name] = value
        if rest and not self._rest:
            raise InvalidData("arguments", rest[0], self._takes(), "is one argument too many")
        if extra and not self._extra:
            raise InvalidData("arguments", next(iter(extra)), self._takes(), "is not expected")
        for name in self._required:
            if name not in named:
                raise InvalidData("arguments", name, self._takes(), "is missing")
        return named, rest, extra

    def _by_position(self, values: dict[str, Any], *, everything: bool) -> list[Any]:
        """Take out of the values those that a call must pass by position, or the default where there is none."""
        names = self._positional if everything else self._positional[: self._positional_only]
        return [values.pop(name) if name in values else self._defaults[name] for name in names]

    def _takes(self) -> str:
        named = [
            f"{name}: {type_name(codec.type)}{' = …' if name in self._defaults else ''}"
            for name, codec in self._named.items()
        ]
        others = [f"{name}: {type_name(codec.type)}" for name, codec in filter(None, (self._rest, self._extra))]
        return f"it takes {', '.join(named + others) or 'no arguments'}"


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


_NOTHING = _Nothing()


def _hints(function: Callable[..., object], task: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except Exception as error:  # annotations are code
        allowed = "import what annotations name where it is found when the module is loaded, not under TYPE_CHECKING"
        raise InvalidTask(task, one_line(error), allowed, "keeps its annotations from being read") from error
