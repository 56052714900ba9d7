"""Commands whose output is full, closed, or read by nobody: one line or none, exit code 1, no traceback."""

import subprocess
import sys
from collections.abc import Callable

import pytest

COMMANDS = [["next", "* * * * *", "-n", "5"], ["next", "* * * * *", "--json"], ["--help"], ["--version"]]

Rota = Callable[..., tuple[int, str]]


@pytest.fixture
def rota() -> Rota:
    """Run a command with its output as the shell writes it; returns the exit code and the errors."""

    def run(command: list[str], redirected: str) -> tuple[int, str]:
        line = f'"$@" {redirected}'
        shell = ["bash", "-o", "pipefail", "-c", line, "bash", sys.executable, "-m", "rota", *command]
        done = subprocess.run(shell, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    return run


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_is_full_is_one_line(rota: Rota, command: list[str]) -> None:
    assert rota(command, "> /dev/full") == (1, "rota: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_is_closed_is_one_line(rota: Rota, command: list[str]) -> None:
    assert rota(command, ">&-") == (1, "rota: the output cannot be written: Bad file descriptor\n")


def test_an_output_that_nobody_reads_any_more_is_no_word(rota: Rota) -> None:
    assert rota(["next", "* * * * *", "-n", "1000"], "| head -1 > /dev/null") == (1, "")


@pytest.mark.parametrize("redirected", ["2> /dev/full", "2>&-", ">&- 2>&-", "< /dev/null 2>&-"])
def test_what_is_refused_has_its_exit_code_also_where_it_cannot_be_said(rota: Rota, redirected: str) -> None:
    assert rota(["next", "61 * * * *"], redirected) == (1, "")


def test_what_can_be_written_is_exit_code_0(rota: Rota) -> None:
    assert rota(["next", "* * * * *"], "> /dev/null") == (0, "")
