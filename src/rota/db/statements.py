"""SQL in files: named blocks, bound by name; one text for both databases, or one for each where they truly differ.

    -- name: runs.get
    SELECT … FROM rota_runs WHERE id = :id

    -- name: runs.claim @postgres
    …
    -- name: runs.claim @sqlite
    …

Many rows are arrays on PostgreSQL, one for each column. On SQLite the text is run for each row; or once, with all of
them as one JSON text, where it names `:rows`.

`:now` is never given by a caller: the database's clock decides, so the database fills it in.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

Dialect = Literal["sqlite", "postgres"]

_HEAD = re.compile(r"^-- name: ([\w.]+)(?: @(sqlite|postgres))?\s*$", re.MULTILINE)
_PARAMETER = re.compile(r"'[^']*'|--[^\n]*|(?<![:\w]):([a-z_][a-z0-9_]*)")
_MARK = {"sqlite": "?", "postgres": "$"}


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """One block in one database's words."""

    name: str
    text: str
    parameters: tuple[str, ...]
    """The names of the numbered parameters, in order."""


class Statements:
    """The blocks of one or more packages' SQL files, in the words of one database."""

    def __init__(self, packages: Iterable[str], dialect: Dialect, now: str | None) -> None:
        self._packages: tuple[str, ...] = ()
        self._dialect = dialect
        self._now = now
        self._found: dict[str, Statement] = {}
        self.include(packages)

    def include(self, packages: Iterable[str]) -> None:
        """Know the blocks of these packages too; those of a package that is known already stay as they are."""
        for package in packages:
            if package in self._packages:
                continue
            for file in sorted(files(package).iterdir(), key=lambda each: each.name):
                if file.name.endswith(".sql"):
                    self._read(file.read_text(encoding="utf-8"))
            self._packages += (package,)

    def __getitem__(self, name: str) -> Statement:
        return self._found[name]

    def on_clock(self, now: str | None) -> "Statements":
        """Return the same blocks, with this expression for `:now`."""
        return Statements(self._packages, self._dialect, now)

    def write(self, name: str, text: str) -> Statement:
        """Write a text that is in no file in the words of the same database."""
        return written(name, text, self._dialect, self._now)

    def names(self) -> list[str]:
        """Return the names of all blocks."""
        return sorted(self._found)

    def _read(self, text: str) -> None:
        heads = list(_HEAD.finditer(text))
        for head, following in zip(heads, [*heads[1:], None], strict=False):
            if head[2] not in (None, self._dialect):
                continue
            if head[1] in self._found:
                raise ValueError(f"two blocks are named {head[1]}")  # a mistake in a file, not of a user
            body = text[head.end() : following.start() if following else len(text)]
            self._found[head[1]] = written(head[1], body, self._dialect, self._now)


def written(name: str, text: str, dialect: Dialect, now: str | None) -> Statement:
    """Write a text's `:name` parameters as the database numbers them; `:now` becomes this expression, if any."""
    order: dict[str, str] = {}

    def mark(match: re.Match[str]) -> str:
        parameter = match[1]
        if not parameter:  # a string literal, which stays, or a comment
            return "" if match[0].startswith("--") else match[0]
        if parameter == "now" and now is not None:
            return now
        return order.setdefault(parameter, f"{_MARK[dialect]}{len(order) + 1}")

    body = _PARAMETER.sub(mark, text).strip()
    return Statement(name, body, tuple(order))
