"""Printing: text from outside is never markup and never an escape code."""

import json
import sys
from collections.abc import Sequence

import typer
from rich.console import Console


def lines(*texts: str) -> None:
    """Print lines of plain text."""
    for text in texts:
        typer.echo(safe(text))


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns; on a terminal they are cut to fit, elsewhere they are whole."""
    console = Console(highlight=False, soft_wrap=True) if sys.stdout.isatty() else None
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        line = "  ".join(safe(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        typer.echo(line[: console.width] if console else line)


def as_json(value: object) -> None:
    """Print a value as JSON."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def safe(text: str) -> str:
    """Return the text with control characters escaped, so that it cannot drive the terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
