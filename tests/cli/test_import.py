"""`rota import crontab`: what a crontab becomes, and that nothing is half done."""

import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from tests.servers import ROOT

from rota import cli
from rota.cli.crontab import read_crontab

PAGE = (ROOT / "docs" / "how-to" / "replace-a-crontab.md").read_text()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rota(*words: str, given: str = "") -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["rota", *words])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    return int(stopped.value.code or 0), out.getvalue(), err.getvalue()


def imported(text: str, *words: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = rota("import", "crontab", "-", "--tz", "Europe/Berlin", "--json", *words, given=text)
    return code, json.loads(out)


def only(text: str, *words: str) -> dict[str, Any]:
    code, found = imported(text, *words)
    assert (code, found["refused"]) == (0, [])
    (one,) = found["schedules"]
    return dict(one)


def keys() -> list[str]:
    return [each["key"] for each in json.loads(rota("schedules", "list", "--json")[1])]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("*/5 8-18 * * mon-fri true", "Cron('*/5 8-18 * * MON-FRI', tz='Europe/Berlin')"),
        ("\t0  3 1\t* 7   true", "Cron('0 3 1 * 7', tz='Europe/Berlin')"),
        ("@daily true", "Cron('@daily', tz='Europe/Berlin')"),
        ("@midnight true", "Cron('@midnight', tz='Europe/Berlin')"),
        ("CRON_TZ=America/New_York\n0 3 * * * true", "Cron('0 3 * * *', tz='America/New_York')"),
        ("TZ=America/New_York\n0 3 * * * true", "Cron('0 3 * * *', tz='Europe/Berlin')"),
    ],
)
def test_the_time_of_a_line_becomes_a_rule(line: str, rule: str) -> None:
    assert only(line)["rule"] == rule


@pytest.mark.parametrize(
    ("command", "program", "args", "given"),
    [
        ("backup --fast 'a b' \"c d\" e\\ f", "backup", ["--fast", "a b", "c d", "e f"], None),
        ("echo '$HOME; |'", "echo", ["$HOME; |"], None),
        ("date +\\%H", "date", ["+%H"], None),
        ("mail anna%Dear Anna,%100\\% yours", "mail", ["anna"], "Dear Anna,\n100% yours\n"),
        ("a | b", "sh", ["-c", "a | b"], None),
        ("a > b", "sh", ["-c", "a > b"], None),
        ("a && b%in", "sh", ["-c", "a && b"], "in\n"),
        ('echo "$HOME"', "sh", ["-c", 'echo "$HOME"'], None),
        ("rm *.tmp", "sh", ["-c", "rm *.tmp"], None),
        ("X=1 a", "sh", ["-c", "X=1 a"], None),
        ("cd there", "sh", ["-c", "cd there"], None),
        ("a 'b", "sh", ["-c", "a 'b"], None),
    ],
)
def test_the_command_of_a_line_becomes_a_call(command: str, program: str, args: list[str], given: str | None) -> None:
    found = only(f"@daily {command}")
    assert found["task"] == "rota.command"
    assert (found["args"]["program"], found["args"]["args"]) == (program, args)
    assert found["args"].get("input") == given
    assert any("needs a shell" in note for note in found["notes"]) == (program == "sh")


def test_settings_count_for_the_lines_below_them() -> None:
    text = (
        'MAILTO=me@x\nA = "b c"\n@daily one\nSHELL=/bin/bash\nHOME=/srv\nAPI_TOKEN=t\n@daily two | x\n# @daily three\n'
    )
    _, found = imported(text)
    one, two = found["schedules"]
    assert (one["args"]["env"], one["args"]["cwd"]) == ({"A": "b c"}, "~")
    assert two["args"]["env"] == {"A": "b c", "HOME": "/srv", "API_TOKEN": "t"}
    assert (two["args"]["cwd"], two["args"]["program"]) == ("/srv", "/bin/bash")
    assert any("no mail to me@x" in note for note in one["notes"])
    assert any("API_TOKEN is stored and shown" in note for note in two["notes"])
    assert found["allow"] == ["/bin/bash", "one"]


def test_a_system_crontab_names_users() -> None:
    found = only("17 * * * *  www-data  run-parts /etc/cron.hourly", "--system")
    assert (found["args"]["program"], found["args"]["args"]) == ("run-parts", ["/etc/cron.hourly"])
    assert "cron ran it as www-data" in found["notes"][0]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("@reboot start", "service manager"),
        ("61 * * * * x", "minute: '61'"),
        ("@sometimes x", "@sometimes"),
        ("* * * *", "not a time"),
        ("@daily", "not a time"),
        ("CRON_TZ=Mars/Base\n@daily x", "Mars/Base"),
        ("0~30 * * * * x", "minute"),
        ("@daily x\x1b[2J\n@reboot y\x1b[2J", "service manager"),
    ],
)
def test_what_cannot_be_a_schedule_is_refused_and_nothing_is_made(line: str, reason: str) -> None:
    rota("migrate")
    code, found = imported(f"@daily fine\n{line}", "--apply")
    assert (code, found["applied"]) == (1, None)
    assert reason in found["refused"][0]["reason"]
    assert keys() == []
    code, out, err = rota("import", "crontab", "-", given=line)
    assert code == 1
    assert "\x1b" not in out + err
    code, found = imported(f"@daily fine\n{line}", "--apply", "--skip-refused")
    assert code == 0
    assert found["applied"]["made"] == len(keys()) > 0


def test_nothing_is_made_before_it_is_applied_and_a_second_time_changes_nothing() -> None:
    rota("migrate")
    again = ("import", "crontab", "mine", "--tz", "UTC", "--apply")
    Path("mine").write_text("@daily one\n@hourly two 'a b'\n@hourly one\n")
    code, out, err = rota("import", "crontab", "mine", "--tz", "UTC")
    assert (code, err) == (0, "")
    assert "workers need ROTA_ALLOW_COMMANDS=one,two" in out
    assert out.endswith("3 would be schedules; nothing was made yet: --apply\n")
    assert keys() == []
    assert rota(*again)[1].endswith("3 made, 0 changed, 0 as they were\n")
    before = keys()
    assert len(set(before)) == 3
    assert rota(*again)[1].endswith("0 made, 0 changed, 3 as they were\n")
    Path("mine").write_text("@weekly one\n@hourly two 'a b'\n@hourly one\n")
    assert rota(*again)[1].endswith("0 made, 1 changed, 2 as they were\n")
    assert keys() == before
    (listed, *_) = json.loads(rota("schedules", "list", "--tag", "crontab", "--json")[1])
    assert listed["task"] == "rota.command"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere",), "cannot be read"),
        ((".",), "cannot be read"),
        (("-", "--prefix", "a b"), "key: 'a b'"),
        (("-", "--tz", "Mars/Base"), "Mars/Base"),
    ],
)
def test_what_is_wrong_is_one_line(words: tuple[str, ...], said: str) -> None:
    code, _, err = rota("import", "crontab", *words, given="@daily x")
    assert code == 1
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("text", ["@daily x\n" * 1_001, "#" * 1_000_001, "@daily \0"])
def test_a_crontab_has_bounds(text: str) -> None:
    assert rota("import", "crontab", "-", given=text)[0] == 1


def test_keys_differ_where_user_or_command_does() -> None:
    text = "@daily root a\n@daily anna a\n@daily root a b\n@daily root /x/a\n"
    found = [each.key for each in read_crontab(text, "UTC", "c", system=True).entries]
    assert len(set(found)) == 4
    assert all(re.fullmatch(r"c:a-[0-9a-f]{8}", each) for each in found)


def test_the_how_to_works_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "crontab").write_text((ROOT / "examples" / "crontab").read_text())
    (tmp_path / "notes.txt").write_text("b\na\n")
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) == 4
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shown = ""
    for block in blocks:
        done = subprocess.run(
            ["bash", "-euc", block],
            cwd=tmp_path,
            env={"PATH": path, "HOME": str(tmp_path), "TZ": "UTC"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        shown += done.stdout
    assert "4 made, 0 changed, 0 as they were" in shown
    assert "0 fired; 4 succeeded" in shown
    assert (tmp_path / "backup.log").read_text()
