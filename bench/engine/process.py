"""A contestant as the runner sees it: a process to start, to ask, to look at and to end."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 900.0
"""How many seconds an answer may take before the run is given up."""


class Failed(Exception):
    """A contestant ended, or did not answer; with the last of what it had to say."""


def interpreter(name: str) -> str:
    """Return the Python that a contestant runs in; Rota runs in this one."""
    return sys.executable if name == "rota" else str(ROOT / f".venv-peer-{name}" / "bin" / "python")


class Process:
    """A contestant in one role. It ends with this context, together with all that it started."""

    def __init__(self, name: str, role: str, url: str, folder: Path) -> None:
        self._command = [interpreter(name), "-m", f"bench.engine.contestants.{name}", role, url]
        self._title = f"{name}, {role}"
        self._folder = folder
        self._log = folder / f"{name}-{role}.log"

    async def __aenter__(self) -> Self:
        variables = {"ROTA_BENCH_NOTES": str(self._folder / "notes"), "ROTA_BENCH_FOLDER": str(self._folder)}
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=64 * 1024 * 1024,
                cwd=ROOT,
                env={**os.environ, **variables},
                start_new_session=True,
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()

    async def ask(self, do: str, **words: Any) -> dict[str, Any]:
        """Say what to do, and return the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **words}).encode() + b"\n")
        return await self.answer()

    async def answer(self) -> dict[str, Any]:
        """Return the next line of JSON; a library may print others."""
        assert self._process.stdout is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while line := await self._process.stdout.readline():
                    if line.startswith(b"{"):
                        found: dict[str, Any] = json.loads(line)
                        return found
        raise self.failed()

    def check(self) -> None:
        """Raise if it has ended."""
        if self._process.returncode is not None:
            raise self.failed()

    def failed(self) -> Failed:
        said = self._log.read_text(errors="replace").splitlines()[-15:]
        return Failed("\n".join([f"{self._title} gave no answer", *said]))

    @property
    def pid(self) -> int:
        return self._process.pid

    def resident(self) -> float:
        """Return how much memory it has, in MiB."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and all its threads, to the microsecond; 0 where it has ended."""
    found = 0
    with contextlib.suppress(OSError):
        for each in Path(f"/proc/{pid}/task").iterdir():
            found += int((each / "schedstat").read_text().split()[0])
    return found / 1e9
