"""No file says where it was written, and no test looks away."""

import ast
import re
from collections.abc import Iterator

import pytest
from tests.habits.source import dotted_names, modules, text_files

# With a letter in brackets, so that this file does not name what no file may name.
FOREIGN = {
    "a package index": re.compile(
        r"py[p]i\.org|python[h]osted\.org|(?<!no-emit-)\b(?:extra-)?index-[u]rl|find-[l]inks|/sim[p]le\b"
    ),
    "a path of one machine": re.compile(r"(?<![\w./])(?:file://)?/(?:work|root|Users/\w+|home/\w+)(?![\w-])"),
    "a folder outside": re.compile(r"\.\./[s]hared\b"),
}
LOOKING_AWAY = re.compile(
    r"(pytest|unittest)(\.\w+)*\.(skip\w*|xfail|importorskip|SkipTest|expectedFailure)", re.IGNORECASE
)


def foreign_words(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        yield from (f"line {number} names {what}" for what, pattern in FOREIGN.items() if pattern.search(line))


def looks_away(tree: ast.Module) -> list[str]:
    return [f"line {node.lineno}: {name}" for node, name in dotted_names(tree) if LOOKING_AWAY.fullmatch(name)]


def test_no_file_names_a_machine_or_an_index() -> None:
    found = {path: list(foreign_words(text)) for path, text in text_files()}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_no_test_is_skipped_or_expected_to_fail() -> None:
    found = {path: looks_away(tree) for path, tree in modules("tests").items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "--index-" + "url https://example.org/here",
        "# from https://py" + "pi.org/project/cronsim",
        "cd /" + "work/main",
        "open('/" + "root/x')",
        '"/' + 'home/somebody/x"',
        "source ../" + "shared/tools.sh",
        "file:///" + "root/x",
    ],
)
def test_a_foreign_word_is_seen(line: str) -> None:
    assert list(foreign_words(line))


@pytest.mark.parametrize(
    "line", ["https://example.org/work", "a home/away game", "docs/work.md", "/usr/lib/postgresql"]
)
def test_a_plain_word_is_not_foreign(line: str) -> None:
    assert not list(foreign_words(line))


@pytest.mark.parametrize(
    "line",
    [
        "import pytest\n@pytest.mark.skip\ndef test(): ...",
        "import pytest\n@pytest.mark.skipif(True)\ndef test(): ...",
        "import pytest as p\np.param(1, marks=p.mark.xfail)",
        "from pytest import importorskip\nimportorskip('redis')",
        "import unittest\nraise unittest.SkipTest",
    ],
)
def test_looking_away_is_seen(line: str) -> None:
    assert looks_away(ast.parse(line))
