"""Printing: text from outside is never markup and never an escape code."""

import json
import sys
from collections.abc import Sequence

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

_BETWEEN = 2
_LEAST = 6
"""How wide a column stays at least, where it is shrunk."""
_STATES = ("state", "ended", "came of it")
"""The columns whose words have colours: what they hold is Rota's own."""
_COLOURS = {
    **dict.fromkeys(("succeeded", "active", "alive"), "green"),
    **dict.fromkeys(("failed", "parked", "silent"), "red"),
    **dict.fromkeys(("running", "ready"), "cyan"),
    **dict.fromkeys(("paused", "cancelled", "draining"), "yellow"),
    **dict.fromkeys(("waiting", "finished", "retired"), "bright_black"),
}


def lines(*texts: str) -> None:
    """Print lines of plain text."""
    for text in texts:
        typer.echo(safe(text))


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns; on a terminal the widest columns are cut to fit, elsewhere all are whole."""
    cells = [[safe(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    if not sys.stdout.isatty():
        for row in cells:
            typer.echo(_line(row, widths).plain.rstrip())
        return
    console = Console(highlight=False, markup=False, emoji=False)
    widths = _fitting(widths, console.width)
    for number, row in enumerate(cells):
        styles = [_COLOURS.get(cell, "") if head in _STATES else "" for head, cell in zip(heads, row, strict=True)]
        line = _line(row, widths, styles if number else ["bold"] * len(row))
        line.rstrip()
        console.print(line, no_wrap=True, overflow="ellipsis")


def _line(row: Sequence[str], widths: Sequence[int], styles: Sequence[str] | None = None) -> Text:
    line = Text()
    for at, (cell, width) in enumerate(zip(row, widths, strict=True)):
        part = Text(cell, style=styles[at] if styles else "")
        part.truncate(width, overflow="ellipsis", pad=True)
        line.append_text(part).append(" " * _BETWEEN)
    return line


def _fitting(widths: Sequence[int], room: int) -> list[int]:
    """Take from the widest column, again and again, until all fit, or all are narrow."""
    found = list(widths)
    while sum(found) + _BETWEEN * (len(found) - 1) > room and max(found) > _LEAST:
        found[found.index(max(found))] -= 1
    return found


def bar(*, shown: bool = True) -> Progress:
    """Return a bar for long work, on standard error where that is a terminal."""
    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    hidden = not (shown and sys.stderr.isatty())
    return Progress(*columns, console=Console(stderr=True), disable=hidden, transient=True)


def as_json(value: object) -> None:
    """Print a value as JSON; what could drive the terminal is escaped in it."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    typer.echo("".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text))


def safe(text: str) -> str:
    """Return the text with control characters escaped, so that it cannot drive the terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
