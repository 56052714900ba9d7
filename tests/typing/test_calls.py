"""A call is typed by its task's own signature: a type checker objects where a worker would."""

import os
import re
import subprocess
import sys
from collections import defaultdict

from tests.habits.source import ROOT

CALLS = ROOT / "tests" / "typing" / "calls.py"
OBJECTION = re.compile(r".+\.py:(?P<line>\d+): error: .+  \[(?P<rule>[\w-]+)\]")


def expected() -> dict[int, set[str]]:
    lines = enumerate(CALLS.read_text().splitlines(), 1)
    return {number: set(line.partition("# error: ")[2].split()) for number, line in lines if "# error: " in line}


def objections() -> dict[int, set[str]]:
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


def test_a_type_checker_objects_to_every_wrong_call_and_to_no_right_one() -> None:
    assert expected()
    assert objections() == expected()
