"""Reading a rule's text form: Python's call syntax with literals only, and nothing is ever evaluated."""

import ast
from collections.abc import Callable, Mapping
from typing import TypeVar

from rota.errors import InvalidRule, RotaError

LONGEST = 100_000

T = TypeVar("T")


def read(text: str, kinds: Mapping[str, Callable[..., T]]) -> T:
    """Read `Name(literal, name=literal, …)`, where a literal may itself be such a call."""
    allowed = f"use {', '.join(sorted(kinds))} with values, such as Cron('0 9 * * MON', tz='Europe/Berlin')"
    if not isinstance(text, str) or len(text) > LONGEST:
        raise InvalidRule("rule", text, allowed, "is not the text of a rule")
    try:
        return _build(ast.parse(text.strip(), mode="eval").body, kinds)
    except RotaError:
        raise
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise InvalidRule("rule", text, allowed, "is not the text of a rule") from None


def _build(call: ast.expr, kinds: Mapping[str, Callable[..., T]]) -> T:
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in kinds):
        raise ValueError(call)
    named = {keyword.arg: _value(keyword.value, kinds) for keyword in call.keywords if keyword.arg is not None}
    if len(named) != len(call.keywords):  # **something
        raise ValueError(call)
    return kinds[call.func.id](*(_value(argument, kinds) for argument in call.args), **named)


def _value(node: ast.expr, kinds: Mapping[str, Callable[..., T]]) -> object:
    if isinstance(node, ast.Call):
        return _build(node, kinds)
    if isinstance(node, ast.List):
        return [_value(item, kinds) for item in node.elts]
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float, type(None))):
        return node.value
    raise ValueError(node)
