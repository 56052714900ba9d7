"""Printing: text from outside is never markup and never an escape code."""

import json

import typer


def lines(*texts: str) -> None:
    """Print lines of plain text."""
    for text in texts:
        typer.echo(safe(text))


def as_json(value: object) -> None:
    """Print a value as JSON."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def safe(text: str) -> str:
    """Return the text with control characters escaped, so that it cannot drive the terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
