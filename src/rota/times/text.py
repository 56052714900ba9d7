"""Reading a rule's text form: calls of known names with texts, numbers, lists and calls. Nothing is evaluated."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from rota.errors import InvalidRule

LONGEST = 100_000
DEEPEST = 10

T = TypeVar("T")

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'[^'\\\x00-\x1f\ud800-\udfff]*'|"[^"\\\x00-\x1f\ud800-\udfff]*")
      | (?P<number>[0-9]{1,15}(?:\.[0-9]{1,9})?(?:e[0-9]{1,3})?)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<mark>[()\[\],=])
      | $)""",
    re.ASCII | re.VERBOSE,
)


def read(text: str, kinds: Mapping[str, Callable[..., T]]) -> T:
    """Read `Name(value, name=value, …)`."""
    allowed = f"use {', '.join(sorted(kinds))} with values, such as Cron('0 9 * * MON', tz='Europe/Berlin')"
    if not isinstance(text, str) or len(text) > LONGEST:
        raise InvalidRule("rule", text, allowed, "is not the text of a rule")
    try:
        return _Reader(text, kinds).whole()
    except SyntaxError:
        raise InvalidRule("rule", text, allowed, "is not the text of a rule") from None
    except TypeError as error:  # an argument that there is not, or one too few
        raise InvalidRule("rule", text, str(error).replace(".__init__()", ""), "does not fit") from None


class _Reader(Generic[T]):
    """A text, token by token."""

    def __init__(self, text: str, kinds: Mapping[str, Callable[..., T]]) -> None:
        self._kinds = kinds
        self._tokens = _tokens(text)
        self._depth = 0
        self._kind, self._token = next(self._tokens)

    def whole(self) -> T:
        """Read the one call that the whole text is."""
        found = self._call(self._take("name"))
        self._take("end")
        return found

    def _take(self, kind: str, token: str | None = None) -> str:
        if kind != self._kind or token not in (None, self._token):
            raise SyntaxError
        taken = self._token
        self._kind, self._token = next(self._tokens, ("end", ""))
        return taken

    def _at(self, mark: str) -> bool:
        return (self._kind, self._token) == ("mark", mark)

    def _call(self, name: str) -> T:
        if name not in self._kinds:
            raise SyntaxError
        positional: list[object] = []
        named: dict[str, object] = {}
        for _ in self._items("(", ")"):
            word = self._take("name") if self._kind == "name" else None
            if word is not None and self._at("="):
                self._take("mark")
                if word in named:
                    raise SyntaxError
                named[word] = self._value()
            elif named:  # a positional value after a named one
                raise SyntaxError
            else:
                positional.append(self._value(word))
        return self._kinds[name](*positional, **named)

    def _value(self, word: str | None = None) -> object:
        if word is None and self._kind == "name":
            word = self._take("name")
        if word is not None:
            return None if word == "None" else self._call(word)
        if self._kind == "text":
            return self._take("text")[1:-1]
        if self._kind == "number":
            number = self._take("number")
            return int(number) if number.isdigit() else float(number)
        return [self._value() for _ in self._items("[", "]")]

    def _items(self, opening: str, closing: str) -> Iterator[None]:
        """Go through what stands between two marks, separated by commas."""
        self._take("mark", opening)
        self._depth += 1
        if self._depth > 2 * DEEPEST:
            raise SyntaxError
        while not self._at(closing):
            yield
            if not self._at(closing):
                self._take("mark", ",")
        self._depth -= 1
        self._take("mark", closing)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            raise SyntaxError
        at = found.end()
        if found.lastgroup:
            yield found.lastgroup, found[found.lastgroup]
    yield "end", ""
