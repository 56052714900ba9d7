"""Hearing of other processes' writes: from the kernel, and without it."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tests.stores import ask, opened

from rota.db.watch import Watch

WRITE = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text('more')"
COMMIT = "import sys, sqlite3; c = sqlite3.connect(sys.argv[1]); c.execute('INSERT INTO notes VALUES (1)'); c.commit()"


def other_process(code: str, path: Path) -> None:
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)


async def test_a_write_of_another_process_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("some")
    watch = Watch.on(str(file))
    assert watch is not None
    assert not await watch.written(0)
    await asyncio.to_thread(other_process, WRITE, file)
    assert await watch.written(20)
    assert not await watch.written(0)
    watch.close()


async def test_a_file_that_is_not_there_cannot_be_watched(tmp_path: Path) -> None:
    assert Watch.on(str(tmp_path / "nothing")) is None


@pytest.mark.parametrize("told", [True, False])
async def test_a_commit_of_another_process_is_heard_with_and_without_the_kernel(
    tmp_path: Path, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.db.sqlite._ANYWAY_SECONDS", 1_000.0)
    if not told:
        monkeypatch.setattr(Watch, "on", lambda _: None)
    db = await opened(f"sqlite:///{tmp_path}/notes.db")
    await ask(db, "CREATE TABLE notes (id INTEGER)")
    for _ in range(3):
        heard = asyncio.Event()
        listener = lambda _, heard=heard: heard.set()  # noqa: E731
        await asyncio.sleep(0.1)  # what this process wrote itself is heard by now
        db.listen(listener)
        await asyncio.to_thread(other_process, COMMIT, tmp_path / "notes.db")
        await asyncio.wait_for(heard.wait(), 20)
        db.unlisten(listener)
    await db.close()
