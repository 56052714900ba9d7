"""`rota copy`, as a person types it."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from tests.copies import dump

from rota.app import Rota


@pytest.fixture
async def source(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/source.db"
    async with Rota(url) as app:

        @app.task(name="copied.work")
        async def work(number: int) -> None: ...

        await app.enqueue_many(work.call(number=number) for number in range(1_200))
    return url


@pytest.fixture
def target(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/target.db"


def rota(*words: str, said: str | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "rota", *words], capture_output=True, text=True, check=False, input=said or ""
    )
    return done.returncode, done.stdout, done.stderr


async def test_what_has_arrived_is_said_table_by_table(source: str, target: str) -> None:
    code, shown, error = rota("copy", source, target)
    assert (code, error) == (0, "")
    assert "rota_runs         1,200\n" in shown
    assert shown.splitlines()[-1] == f"Done and compared: 1,200 rows are in {target}."
    assert await dump(target) == await dump(source)


async def test_it_also_goes_to_postgres_and_says_so_without_the_password(source: str, postgres_database: str) -> None:
    code, shown, error = rota("copy", source, postgres_database)
    assert (code, error) == (0, "")
    assert ":…@" in shown.splitlines()[-1]
    assert await dump(postgres_database) == await dump(source)


def test_as_json(source: str, target: str) -> None:
    code, shown, _ = rota("copy", source, target, "--json")
    found = json.loads(shown)
    assert (code, found["rows"]["rota_runs"], found["before"], found["running"]) == (0, 1_200, 0, 0)


async def test_a_target_that_is_not_empty_is_emptied_only_by_who_says_so(source: str, target: str) -> None:
    assert rota("copy", source, target)[0] == 0
    before = await dump(target)
    code, shown, error = rota("copy", source, target)
    assert (code, shown) == (1, "")
    assert error == "rota: TO is not empty (rota_runs 1,200): choose another, or empty it with --replace\n"
    for said in ("", "n\n"):
        code, _, error = rota("copy", source, target, "--replace", said=said)
        assert (code, "rota_runs 1,200. Remove all of it?" in error) == (1, True)
    assert await dump(target) == before
    assert rota("copy", source, target, "--replace", said="y\n")[0] == 0
    assert rota("copy", source, target, "--replace", "--yes")[0] == 0
    assert await dump(target) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sqlite:///{here}/none.db", "{target}"), "there is no store at"),
        (("{source}", "sqlite:///{here}/none/deep.db"), "cannot be opened"),
        (("{source}", "{source}"), "the same database"),
        (("{source}", "sqlite://"), "is memory, which ends with this command"),
        (("sqlite://", "{target}"), "is memory, which ends with this command"),
        (("{source}", "mysql://me:secret@host/name"), "is no address of a store"),
        (("redis://host", "{target}"), "is no address of a store"),
        (("{source}", "postgresql://me:secret@127.0.0.1:1/name"), "PostgreSQL does not answer"),
        (("{source}", "{target}?mode=x"), "the only option is"),
        (("{empty}", "{target}"), "FROM is no store of Rota's"),
    ],
)
def test_what_is_refused_is_one_line(
    source: str, target: str, tmp_path: Path, words: tuple[str, str], said: str
) -> None:
    (tmp_path / "empty.db").touch()
    places = {"source": source, "target": target, "here": tmp_path, "empty": f"sqlite:///{tmp_path}/empty.db"}
    code, shown, error = rota("copy", *(each.format(**places) for each in words))
    assert (code, shown, error.count("\n")) == (1, "", 1)
    assert said in error
    assert "secret" not in error


@pytest.mark.parametrize(
    ("setting", "said"),
    [("role=pg_read_all_data", "permission denied"), ("default_transaction_read_only=on", "read-only transaction")],
)
def test_a_postgres_that_does_not_let_it_write_is_one_line(
    source: str, postgres_database: str, setting: str, said: str
) -> None:
    code, shown, error = rota("copy", source, f"{postgres_database}?{setting}")
    assert (code, shown, error.count("\n")) == (1, "", 1)
    assert error.startswith("rota: PostgreSQL refuses: ")
    assert said in error


def test_on_a_terminal_there_is_a_bar(source: str, target: str) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "rota", "copy", source, target]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        try:
            while more := os.read(ours, 65_536):
                shown += more
        except OSError:  # that is how a terminal says that nobody writes any more
            pass
        assert process.wait() == 0
    os.close(ours)
    assert b"2400/2400" in shown
