"""`rota.command` as a task: run a program that the operator allows, without a shell."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import IO

from rota import clock, settings
from rota.builtin.secrets import Secrets
from rota.errors import CommandFailed, Invalid, TimedOut
from rota.times.durations import duration
from rota.times.moments import SECOND

MOST_KEPT = 10_000
_TERM_SECONDS = 0.5
"""How long a program that was told to end may take; the worker itself waits a second for a task."""
_DRAIN_SECONDS = 1.0
"""How long to wait for output that something outside of the program's group holds open."""
_INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")
"""What a program gets of the worker's environment; the rest may be secret."""

_LOADS_CODE = re.compile(
    r"(?i)(LD_|DYLD_|BASH_|PYTHON|PERL|RUBY|GIT_|NODE_|JAVA_|JDK_|_JAVA|GCONV_|PHP|LUA|TCL|AWK|MALLOC_|GLIBC_)"
    r"|(ENV|PATH|IFS|SHELLOPTS|PS4|PROMPT_COMMAND|EDITOR|VISUAL|PAGER|LESSOPEN|CLASSPATH|CDPATH|HOSTALIASES)$"
)


@dataclass(frozen=True)
class Ended:
    """What came of a program."""

    code: int
    seconds: float
    bytes: int
    output: str
    """The end of what it wrote, to standard output and standard error together."""


async def run_command(
    program: str,
    args: list[str] | None = None,
    env: dict[str, str] | None = None,
    cwd: str | None = None,
    input: str | None = None,  # noqa: A002
    timeout: str | None = None,
) -> Ended:
    """Run a program that `ROTA_ALLOW_COMMANDS` names, with these arguments; it has failed where its code is not 0.

    Values of `env` may name secrets, as in `{ROTA_SECRET_SHOP}`. When it ends, is cancelled or takes longer than the
    `timeout`, all that it started in its process group is killed.
    """
    path, known = allowed_program(program), Secrets()
    for name in env or {}:
        if loads_code(name):
            allowed = "set it in a program of the operator's own that sets it and runs this one"
            raise Invalid("env", name, allowed, "would let the program run something else")
    given = {name: known.fill(value) for name, value in (env or {}).items()}
    limit = None if timeout is None else duration(timeout, "timeout", least=1) / SECOND
    begun = clock.monotonic()
    async with _listening() as (kept, line):
        with tempfile.TemporaryFile() as file:
            file.write((input or "").encode())
            file.seek(0)
            try:
                process = await asyncio.create_subprocess_exec(
                    path,
                    *(args or []),
                    stdin=file,
                    stdout=line,
                    stderr=line,
                    cwd=None if cwd is None else os.path.expanduser(cwd),  # noqa: ASYNC240, PTH111 (it asks no disk)
                    env={name: value for name in _INHERITED if (value := os.environ.get(name))} | given,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise CommandFailed(program, None, str(getattr(error, "strerror", None) or error)) from None
        line.close()
        try:
            async with asyncio.timeout(limit):
                await process.wait()
        except TimeoutError:
            raise TimedOut(f"{program} took longer than {limit:g} s; all of it was killed") from None
        finally:
            await _kill(process)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(kept.over.wait(), _DRAIN_SECONDS)
    output = known.mask(kept.text())
    if process.returncode:
        raise CommandFailed(program, process.returncode, output)
    return Ended(process.returncode or 0, round(clock.monotonic() - begun, 3), kept.bytes, output)


def loads_code(name: str) -> bool:
    """Tell whether a variable of this name makes programs load or run other code, whatever is allowed by name."""
    return _LOADS_CODE.match(name) is not None


def allowed_program(program: str) -> str:
    """Return where a program is, if the operator allows it under just this name."""
    if program not in settings.allow_commands():
        allowed = "the operator allows programs in ROTA_ALLOW_COMMANDS, by name or path, with commas between"
        raise Invalid("program", program, allowed, "is not allowed here")
    found = shutil.which(program) if os.path.isabs(program) or "/" not in program else None  # noqa: PTH117
    if found is None:
        raise Invalid("program", program, "use a name in the PATH of the worker, or a whole path", "is not there")
    return found


@contextlib.asynccontextmanager
async def _listening() -> AsyncIterator[tuple["_Tail", IO[bytes]]]:
    """Give a line to write to, and who hears it.

    It is not the process's own as asyncio sees it, who would wait for all that hold the line before a process is over.
    """
    hears, writes = os.pipe()
    with os.fdopen(hears, "rb", 0) as source, os.fdopen(writes, "wb", 0) as line:
        transport, kept = await asyncio.get_running_loop().connect_read_pipe(_Tail, source)
        try:
            yield kept, line
        finally:
            transport.close()


async def _kill(process: Process) -> None:
    """End a program with all of its group: by a word at first, if it still runs."""
    if process.returncode is None:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _TERM_SECONDS)
    _signal(process, signal.SIGKILL)
    await process.wait()


def _signal(process: Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


class _Tail(asyncio.Protocol):
    """The end of what a program writes."""

    def __init__(self) -> None:
        self.bytes = 0
        self.over = asyncio.Event()
        self._kept = b""

    def data_received(self, data: bytes) -> None:
        """Keep the end of it."""
        self.bytes += len(data)
        self._kept = (self._kept + data)[-MOST_KEPT:]

    def connection_lost(self, _: Exception | None) -> None:
        """Hear that nobody writes any more."""
        self.over.set()

    def text(self) -> str:
        """Return it as text that any store keeps."""
        return self._kept.decode(errors="replace").replace("\0", "�")
