"""What the docs show is what happens: every sample runs, and every link leads somewhere."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.habits.source import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BY_NAME = {str(page.relative_to(ROOT)): page for page in PAGES}


def blocks(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def commands() -> list[tuple[str, list[str], list[str]]]:
    """Each sample of a `rota` command: where it stands, its words, and what it shows."""
    found = []
    for name, page in BY_NAME.items():
        for block in blocks(page, "console"):
            first, *shown = block.splitlines()
            words = shlex.split(first.removeprefix("$ "), comments=True)
            if words[0] == "rota" or (words[0] == "scripts/serve" and len(words) > 1):
                found.append((f"{name}: {first}", words[1:], shown))
    return found


def timeless(line: str) -> str:
    """A line without its distance from now."""
    without = re.sub(r" +(in [0-9].*|\S+.* ago)$", "", line.rstrip())
    return re.sub(r'"in_seconds": -?\d+', '"in_seconds": N', without)


@pytest.mark.parametrize("name", BY_NAME)
def test_python_samples_show_what_happens(name: str) -> None:
    code = "\n".join(blocks(BY_NAME[name], "pycon"))
    sample = doctest.DocTestParser().get_doctest(code, {"__name__": "__main__"}, name, name, 0)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(sample).failed == 0


@pytest.mark.parametrize(("words", "shown"), [each[1:] for each in commands()], ids=[each[0] for each in commands()])
def test_command_samples_show_what_happens(words: list[str], shown: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "rota", *words], capture_output=True, text=True, check=False)
    assert list(map(timeless, (done.stdout + done.stderr).splitlines())) == list(map(timeless, shown))


@pytest.mark.parametrize("name", BY_NAME)
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", BY_NAME[name].read_text()):
        if not target.startswith("http"):
            file, _, anchor = target.partition("#")
            page = (BY_NAME[name].parent / file).resolve() if file else BY_NAME[name]
            assert page.exists(), target
            heads = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE) if anchor else []
            anchors = {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}
            assert not anchor or anchor in anchors, target
