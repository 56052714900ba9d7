"""`rota limits`, as a person types it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/rota.db"
    assert rota("migrate", "--store", url)[0] == 0
    return url


def rota(*words: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-m", "rota", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_limits_are_put_listed_and_removed(store: str) -> None:
    where = ("--store", store)
    assert rota("limits", "put", "host:*", "--at-once", "1", "--gap", "1s", "--keys-at-once", "3", *where)[0] == 0
    code, shown, _ = rota("limits", "list", *where)
    assert code == 0
    assert shown.splitlines() == [
        "key     at once  gap  keys at once  busy  waiting",
        "host:*  1        1 s  3             0     0",
    ]
    _, listed, _ = rota("limits", "list", "--json", *where)
    assert json.loads(listed) == [
        {"key": "host:*", "at_once": 1, "gap": 1.0, "keys_at_once": 3, "busy": 0, "waiting": 0}
    ]
    assert rota("limits", "remove", "host:*", *where)[0] == 0
    assert rota("limits", "remove", "host:*", *where) == (1, "", "rota: no limit was put under 'host:*'\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("put", "a b", "--at-once", "1"), "limit key: 'a b' is not allowed"),
        (("put", "gpu"), "limits nothing"),
        (("put", "gpu", "--gap", "1s"), "goes with at_once"),
        (("put", "gpu", "--at-once", "0"), "use a whole number from 1"),
        (("put", "gpu", "--keys-at-once", "2"), "put it under a group"),
    ],
)
def test_what_is_refused_is_one_line(store: str, words: tuple[str, ...], said: str) -> None:
    code, shown, error = rota("limits", *words, "--store", store)
    assert (code, shown, error.count("\n")) == (1, "", 1)
    assert said in error
