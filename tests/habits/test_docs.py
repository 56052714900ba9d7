"""The docs name all that is public: in code, as a reader would type it."""

import importlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from tests.habits.source import ROOT

from rota.cli import app

NOT_OURS = {"--help", "--install-completion", "--show-completion"}


def code_in(markdown: str) -> str:
    """Keep fenced blocks and inline code."""
    return "\n".join(re.findall(r"^```.*?^```|`[^`\n]+`", markdown, flags=re.DOTALL | re.MULTILINE))


def documents() -> dict[str, str]:
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {str(path.relative_to(ROOT)): code_in(path.read_text()) for path in paths}


def names(code: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", code) is not None


def commands(command: Any, path: str = "rota") -> Iterator[tuple[str, list[str]]]:
    """Yield each command that a user can run, with its options."""
    if command.hidden:
        return
    options = [max(each.opts, key=len) for each in command.params if each.param_type_name == "option"]
    yield path, [option for option in options if option not in NOT_OURS]
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, f"{path} {name}")


@pytest.mark.parametrize("module", ["rota", "rota.http", "rota.notify", "rota.testing", "rota.times"])
def test_every_public_name_is_documented(module: str) -> None:
    code = "\n".join(documents().values())
    public = importlib.import_module(module).__all__
    assert [name for name in public if not names(code, name)] == []


def test_every_command_is_documented_with_its_options() -> None:
    missing = []
    for command, options in commands(typer.main.get_command(app)):
        code = "\n".join(code for code in documents().values() if names(code, command))
        missing += [command] if not code else [f"{command} {option}" for option in options if not names(code, option)]
    assert missing == []


def test_every_setting_is_documented() -> None:
    code = "\n".join(documents().values())
    source = "\n".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
    settings = sorted(set(re.findall(r"\bROTA_[A-Z0-9_]*[A-Z0-9]\b", source)))
    assert [setting for setting in settings if not names(code, setting)] == []


def test_only_code_counts_as_documentation() -> None:
    code = code_in("At noon we call `Cron.next`, and\n```python\nEvery('1h')\n```\nThen Calendar rests.")
    assert [word for word in ("At", "Cron", "Every", "Calendar") if names(code, word)] == ["Cron", "Every"]


def test_an_option_is_not_found_inside_another() -> None:
    assert not names("rota next --count-all", "--count")
    assert not names("rota next-run", "rota next")
