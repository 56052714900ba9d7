"""Servers for tests: those that the environment names, else private ones that `scripts/services` starts."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Literal

Name = Literal["postgres", "redis", "rabbitmq"]

ROOT = Path(__file__).resolve().parent.parent
NAMES: tuple[Name, ...] = ("postgres", "redis", "rabbitmq")


class Servers:
    """A set of private servers under one directory; each starts when somebody asks for its address."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def new(cls) -> "Servers":
        return cls(Path(_services("new").strip()))

    def url(self, name: Name) -> str:
        """Start the server if need be; several processes may ask at once."""
        exports = _services("start", "--dir", str(self.directory), name)
        settings = dict(word.split("=", 1) for word in shlex.split(exports) if "=" in word)
        return settings[variable(name)]

    def restart(self, name: Name) -> None:
        _services("restart", str(self.directory), name)

    def crash(self, name: Name) -> None:
        """Kill it; nothing is tidied up."""
        _services("crash", str(self.directory), name)

    def up(self, name: Name) -> None:
        """Start it again after a crash: same address, same data."""
        _services("up", str(self.directory), name)

    def pause(self, name: Name) -> None:
        """Freeze it: connections stay open, nothing answers."""
        _services("pause", str(self.directory), name)

    def resume(self, name: Name) -> None:
        _services("resume", str(self.directory), name)

    def stop(self) -> None:
        """Stop them all and delete the directory."""
        _services("stop", str(self.directory))


def variable(name: Name) -> str:
    """Return the environment variable that names a running server."""
    return f"ROTA_TEST_{name.upper()}_URL"


def given_url(name: Name) -> str | None:
    return os.environ.get(variable(name)) or None


def install(names: list[Name]) -> None:
    """Install what is missing, where we may; who may not is told by the test that needs it."""
    if os.geteuid() == 0:
        subprocess.run([ROOT / "scripts" / "services", "install", *names], check=False)


def psql(url: str, statement: str) -> str:
    """Run one statement and return what it gives, as text."""
    # Debian's own psql on PATH is a wrapper that takes longer than the query.
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/psql"), key=lambda path: float(path.parts[-3]))
    program = programs[-1] if programs else shutil.which("psql")
    assert program, "psql is missing; as root: apt-get install postgresql-client"
    command = [program, "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr.strip()
    return done.stdout.strip()


def _services(*words: str) -> str:
    done = subprocess.run([ROOT / "scripts" / "services", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr.strip()
    return done.stdout
