"""`rota.times` is arithmetic and nothing else; one module of all reads the time."""

import ast
import re
from collections.abc import Iterator

import pytest
from tests.habits.source import dotted_names, modules

PURE = re.compile(
    r"(__future__|abc|ast|bisect|calendar|collections|cronsim|dataclasses|datetime|difflib|enum|fractions|functools"
    r"|hashlib|itertools|math|operator|re|types|typing|zoneinfo|rota\.errors|rota\.times)(\..+)?"
)
IMPURE = re.compile(r"__import__|compile|eval|exec|input|open|print|.+\.(now|today|utcnow)")
CLOCKS = re.compile(
    r"datetime\.datetime\.(now|today|utcnow)|datetime\.date\.today"
    r"|time\.(time|monotonic|perf_counter|process_time|thread_time|clock_gettime)(_ns)?"
    r"|time\.(asctime|ctime|gmtime|localtime|strftime)"
    r"|(.+\.)?\w*loop\.time",
    re.IGNORECASE,
)


def impurities(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported = [[alias.name] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported = [[str(node.module), f"{node.module}.{alias.name}"] for alias in node.names]
        else:
            continue
        for names in imported:
            if not any(map(PURE.fullmatch, names)):
                yield f"line {node.lineno}: imports {names[-1]}"
    for node, name in dotted_names(tree):
        if IMPURE.fullmatch(name):
            yield f"line {node.lineno}: uses {name}"


def clock_reads(tree: ast.Module) -> list[str]:
    return [f"line {node.lineno}: {name}" for node, name in dotted_names(tree) if CLOCKS.fullmatch(name)]


def test_times_imports_and_calls_nothing_but_arithmetic() -> None:
    found = {path: list(impurities(tree)) for path, tree in modules("src/rota/times").items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_only_the_clock_reads_the_time() -> None:
    found = {path: clock_reads(tree) for path, tree in modules("src").items()}
    assert {path for path, lines in found.items() if lines} <= {"src/rota/clock.py"}, found


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "import rota.clock",
        "from rota import clock",
        "from rota.clock import now",
        "from . import cron",
        "open('x')",
        "print(1)",
        "from datetime import datetime as d; d.now()",
        "date.today()",
    ],
)
def test_an_impurity_is_seen(line: str) -> None:
    assert list(impurities(ast.parse(line)))


@pytest.mark.parametrize(
    "line", ["import rota.times.cron", "from rota import errors", "from collections.abc import Set"]
)
def test_arithmetic_is_pure(line: str) -> None:
    assert not list(impurities(ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    [
        "import time; time.time()",
        "import time as t; wait(clock=t.monotonic)",
        "from time import perf_counter_ns as tick; tick()",
        "import datetime; datetime.datetime.now()",
        "from datetime import datetime as d; d.utcnow()",
        "from datetime import date; date.today()",
        "loop.time()",
        "self.event_loop.time()",
        "import asyncio; asyncio.get_running_loop().time()",
    ],
)
def test_a_read_of_the_time_is_seen(line: str) -> None:
    assert clock_reads(ast.parse(line))


@pytest.mark.parametrize("line", ["import time; time.sleep(1)", "clock.now()", "moment.time()"])
def test_not_every_word_about_time_reads_it(line: str) -> None:
    assert not clock_reads(ast.parse(line))
