"""On a terminal: tables that fit, colours that can be turned off, text that stays text, shells that complete."""

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rota.cli import output

EVIL = "\x1b[2J[red]boo[/red]\x9b2J\nsecond"
HEADS = ["key", "rule", "state"]
RULE = "Every('15m', since='success', start='2027-01-01T00:00:00+00:00')"
ROWS = [["feed-42", RULE, "failed"], ["x", EVIL, "active"]]


class Terminal(io.StringIO):
    """Where it is printed to; somebody looks at it."""

    def isatty(self) -> bool:
        return True


def shown(width: int, monkeypatch: pytest.MonkeyPatch, **env: str) -> str:
    """Return what a terminal of this width is given."""
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", terminal)
    output.table(HEADS, ROWS)
    monkeypatch.undo()
    return terminal.getvalue()


def plain(text: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()


@pytest.mark.parametrize("width", [120, 60, 40, 30])
def test_a_table_fits_its_terminal_and_wide_columns_give_way_first(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    heads, first, second = plain(shown(width, monkeypatch))
    assert max(map(len, (heads, first, second))) <= width
    assert first.startswith("feed-42  Every(")
    assert (first.split()[-1], second.split()[-1]) == ("failed", "active")
    assert ("…" in first) == (width < 100)
    assert heads.split() == HEADS


def test_what_cannot_fit_is_cut_and_still_one_line_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    found = plain(shown(8, monkeypatch))
    assert len(found) == 3
    assert max(map(len, found)) <= 8


def test_states_have_colours_on_a_terminal_and_none_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[31mfailed" in shown(120, monkeypatch)
    assert "\x1b[3" not in shown(120, monkeypatch, NO_COLOR="1")


def test_text_from_outside_is_neither_markup_nor_an_escape_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = shown(200, monkeypatch)
    assert r"\x1b[2J[red]boo[/red]\x9b2J\nsecond" in told
    assert "\x1b[2J" not in told
    output.table(HEADS, ROWS)
    output.lines(EVIL)
    output.as_json({"note": EVIL})
    piped = capsys.readouterr().out
    assert all(char.isprintable() for char in piped.replace("\n", ""))
    assert len(piped.splitlines()) == 3 + 1 + 3


def test_a_pipe_gets_whole_columns(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(HEADS, ROWS)
    assert RULE in capsys.readouterr().out


def test_wide_characters_count_as_wide(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["a", "b"], [["日本", "x"], ["abcd", "y"]])
    assert capsys.readouterr().out == "a     b\n日本  x\nabcd  y\n"


def rota(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rota", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=os.environ | env,
        stdin=subprocess.DEVNULL,
    )


def test_an_error_is_one_line_and_with_debug_also_where_it_comes_from(tmp_path: Path) -> None:
    usual = rota("runs", "list", "--store", "sqlite:///none.db", cwd=tmp_path)
    debug = rota("--debug", "runs", "list", "--store", "sqlite:///none.db", cwd=tmp_path)
    assert (usual.returncode, usual.stderr.count("\n")) == (1, 1)
    assert (debug.returncode, debug.stderr.splitlines()[-1]) == (1, usual.stderr.strip())
    assert "Traceback" in debug.stderr


def bash(program: str, cwd: Path) -> str:
    """Run a program of bash, to which `rota` is known."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = ["bash", "-c", program]
    done = subprocess.run(shell, capture_output=True, text=True, check=False, cwd=cwd, env=os.environ | {"PATH": path})
    assert done.stderr == ""
    return done.stdout


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    script = bash("rota --show-completion; :", tmp_path)  # with something behind it bash stays, to be recognised

    def offered(*words: str) -> list[str]:
        typed = f"COMP_WORDS=({' '.join(words)}) COMP_CWORD={len(words) - 1}"
        return bash(f"{script}\n{typed}\n_rota_completion rota\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"", tmp_path).split()

    assert offered("rota", "sched") == ["scheduler", "schedules"]
    assert offered("rota", "schedules", "tri") == ["trigger"]
    assert offered("rota", "runs", "list", "--st") == ["--store", "--state"]


def test_a_real_terminal_is_recognised(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/rota.db"
    assert rota("migrate", "--store", store, cwd=tmp_path).returncode == 0
    long = f"limit:{'x' * 150}"
    assert rota("limits", "put", long, "--at-once", "1", "--store", store, cwd=tmp_path).returncode == 0
    ours, theirs = pty.openpty()
    env: dict[str, Any] = os.environ | {"COLUMNS": "60", "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-m", "rota", "limits", "list", "--store", store], stdout=theirs, cwd=tmp_path, env=env
    ):
        os.close(theirs)
        seen = b""
        while chunk := _read(ours):
            seen += chunk
    os.close(ours)
    assert max(map(len, plain(seen.decode()))) <= 60
    assert long not in seen.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the other end is closed
        return b""
