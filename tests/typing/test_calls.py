"""A call is typed by its task's own signature: type checkers object where a worker would."""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from tests.habits.source import ROOT

CALLS = ROOT / "tests" / "typing" / "calls.py"
OBJECTION = re.compile(r".+\.py:(?P<line>\d+): error: .+  \[(?P<rule>[\w-]+)\]")


def expected() -> dict[int, set[str]]:
    lines = enumerate(CALLS.read_text().splitlines(), 1)
    return {number: set(line.partition("# error: ")[2].split()) for number, line in lines if "# error: " in line}


def objections_of_mypy() -> dict[int, set[str]]:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", str(CALLS)]
    environment = os.environ | {"MYPYPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    found = defaultdict(set)
    for line in done.stdout.splitlines():
        if ": note: " not in line:
            said = OBJECTION.fullmatch(line)
            assert said, line
            found[int(said["line"])].add(said["rule"])
    assert not done.stderr, done.stderr
    return dict(found)


def lines_that_pyright_objects_to(folder: Path) -> set[int]:
    settings = folder / "settings.json"
    settings.write_text(
        json.dumps({"include": [str(CALLS)], "extraPaths": [str(ROOT / "src")], "typeCheckingMode": "strict"})
    )
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(settings)]
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    said = json.loads(done.stdout)
    assert said["summary"]["filesAnalyzed"] == 1
    return {each["range"]["start"]["line"] + 1 for each in said["generalDiagnostics"] if each["severity"] == "error"}


def test_mypy_objects_to_every_wrong_call_and_to_no_right_one() -> None:
    assert expected()
    assert objections_of_mypy() == expected()


def test_pyright_objects_to_the_same_lines(tmp_path: Path) -> None:
    assert lines_that_pyright_objects_to(tmp_path) == set(expected())
