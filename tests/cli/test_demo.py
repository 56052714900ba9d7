"""`rota demo`: something to look at within seconds; it ends when told to, and leaves nothing behind."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

KINDS = {"cron", "every", "anchored", "calendar", "at", "adaptive", "overlapping", "failing", "retried", "report"}
MORE = {"limited-1", "limited-2", "limited-3", "paused", "parked"}


def demo(folder: Path, *words: str) -> "subprocess.Popen[str]":
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ROTA_")}
    return subprocess.Popen(
        [sys.executable, "-m", "rota", "demo", "--port", "0", *words],
        cwd=folder,
        env=clean | {"TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_something_of_every_kind_moves_within_seconds(tmp_path: Path) -> None:
    with demo(tmp_path) as process:
        try:
            assert process.stdout is not None
            said = ""
            while "rota doctor" not in said:
                line = process.stdout.readline()
                assert line, said
                said += line
            found = re.search(r"export ROTA_URL=(\S+) ROTA_TOKEN=(\S+)", said)
            assert found, said
            asyncio.run(lively(found[1], {"Authorization": f"Bearer {found[2]}"}))
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=60)
            assert (process.returncode, "Traceback" in rest) == (0, False), rest
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []


async def lively(url: str, headers: dict[str, str]) -> None:
    """Wait until all has happened that the demo is to show, and look again whenever something changes."""
    async with httpx2.AsyncClient(base_url=f"{url}/api/", headers=headers, timeout=60) as asking:
        async with asking.stream("GET", "stream") as stream:
            async for line in stream.aiter_lines():
                if line.startswith("event: ") and await all_shown(asking):
                    break
        (report, *_) = await look(asking, "runs", schedule="demo.report", state="succeeded")
        lines = await look(asking, f"runs/{report['id']}/log")
        assert lines[0]["message"] == "page 1 of 6 is written"


async def look(asking: httpx2.AsyncClient, path: str, **query: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await asking.get(path, params=query)).json()["items"]
    return items


async def all_shown(asking: httpx2.AsyncClient) -> bool:
    schedules = {each["key"]: each for each in await look(asking, "schedules")}
    assert schedules.keys() == {f"demo.{each}" for each in KINDS | MORE}
    moved = {key for key, each in schedules.items() if each["last_outcome"] is not None}
    skips = {each["reason"] for each in await look(asking, "firings", ran=False)}
    fine = schedules.keys() - {"demo.paused", "demo.parked", "demo.calendar"} <= moved
    held = (schedules["demo.paused"]["state"], schedules["demo.parked"]["state"]) == ("paused", "parked")
    return fine and held and "overlap" in skips and schedules["demo.failing"]["failures"] > 1


def test_it_ends_by_itself_and_keeps_what_is_in_a_store_that_was_named(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/demo.db"
    with demo(tmp_path, "--for", "1s", "--store", store) as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".db"] == ["demo.db"]


@pytest.mark.parametrize(("words", "told"), [(("--for", "soon"), "--for: 'soon'"), (("--for", "0s"), "--for: '0s'")])
def test_what_is_no_length_is_refused(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    with demo(tmp_path, *words) as process:
        said, _ = process.communicate(timeout=60)
    assert (process.returncode, said.count("\n"), told in said) == (1, 1, True), said


def test_a_store_with_schedules_of_others_is_left_alone(tmp_path: Path) -> None:
    store = ("--store", f"sqlite:///{tmp_path}/own.db")
    for words in (("migrate",), ("schedules", "add", "mine", "refresh", "@daily")):
        subprocess.run([sys.executable, "-m", "rota", *words, *store], check=True, capture_output=True)
    with demo(tmp_path, *store) as process:
        said, _ = process.communicate(timeout=60)
    assert (process.returncode, "no demo's" in said) == (1, True), said
