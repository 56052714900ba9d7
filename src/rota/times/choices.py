"""Values out of a few."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from rota.errors import Invalid, InvalidRule

T = TypeVar("T")


def one_of(field: str, value: object, allowed: Sequence[str], error: type[Invalid] = InvalidRule) -> None:
    """Refuse a value that is not one of these words."""
    if not isinstance(value, str) or value not in allowed:
        raise error(field, value, f"use {', '.join(allowed[:-1])} or {allowed[-1]}")


def whole_number(field: str, value: object, least: int, most: int, error: type[Invalid] = InvalidRule) -> None:
    """Refuse a value that is not a whole number between these two."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise error(field, value, f"use a whole number from {least:,} to {most:,}")


def some(field: str, values: Iterable[T], most: int, error: type[Invalid] = InvalidRule) -> list[T]:
    """Return the values as a list that is neither empty nor too long."""
    try:
        found = list(values)
    except TypeError:
        raise error(field, values, "use one value or a list of them", "is not a list") from None
    if not 1 <= len(found) <= most:
        raise error(field, f"{len(found):,} values", f"use 1 to {most:,}", "are too many" if found else "are too few")
    return found


def sendable(text: object) -> bool:
    """Tell whether something is text that both databases can keep: without NUL, and without half characters."""
    return (
        isinstance(text, str) and "\0" not in text and (text.isascii() or text.encode(errors="ignore").decode() == text)
    )
