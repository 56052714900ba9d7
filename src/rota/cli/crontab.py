"""Reading a crontab: what each of its lines would be as a schedule of `rota.command`."""

import hashlib
import re
import shlex
from collections import Counter
from dataclasses import dataclass, field

from rota.builtin.command import loads_code
from rota.errors import Invalid, RotaError
from rota.times.cron import Cron

MOST_BYTES = 1_000_000
MOST_ENTRIES = 1_000
"""So many schedules are made in one transaction."""

_SETTING = re.compile(r"""(["']?)([A-Za-z_][A-Za-z0-9_]*)\1\s*=\s*(.*?)\s*""")
_NOT_PASSED = frozenset({"CONTENT_TRANSFER_ENCODING", "CONTENT_TYPE", "CRON_TZ", "MAILFROM", "MAILTO", "SHELL"})
_SECRET = re.compile(r"PASS|SECRET|TOKEN|KEY|CREDENTIAL", re.IGNORECASE)
_SHELL = re.compile(r"""[|&;<>()$`*?\[\]{}~!#\n]|^\s*[A-Za-z_][A-Za-z0-9_]*=""")
_BUILT_INTO_SHELLS = frozenset(
    {".", ":", "[", "cd", "command", "eval", "exec", "exit", "export", "for", "if", "set", "source", "test", "trap"}
) | frozenset({"type", "ulimit", "umask", "unset", "until", "wait", "while"})
_REBOOT = "cron runs it when the machine starts, which no rule can say: let the system's service manager start it"


@dataclass
class Entry:
    """A line that can be a schedule."""

    line: int
    key: str
    rule: Cron
    command: str
    """As the crontab has it."""
    program: str
    args: list[str]
    env: dict[str, str]
    cwd: str
    input: str | None
    notes: list[str]

    def call(self) -> dict[str, object]:
        """Return the arguments of the task."""
        found: dict[str, object] = {"program": self.program, "args": self.args, "cwd": self.cwd}
        return found | ({"env": self.env} if self.env else {}) | ({} if self.input is None else {"input": self.input})


@dataclass
class Refused:
    """A line that cannot, and why."""

    line: int
    text: str
    reason: str


@dataclass
class Crontab:
    """What was read."""

    entries: list[Entry] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)

    @property
    def programs(self) -> list[str]:
        """The programs that must be allowed."""
        return sorted({each.program for each in self.entries})


class _Reader:
    def __init__(self, zone: str, prefix: str, *, system: bool) -> None:
        self.found = Crontab()
        self._zone = zone
        self._prefix = prefix
        self._system = system
        self._settings: dict[str, str] = {}
        self._keys: Counter[str] = Counter()

    def read(self, number: int, line: str) -> None:
        text = line.strip()
        if not text or text.startswith("#"):
            return
        setting = _SETTING.fullmatch(text)
        if setting is not None:
            self._settings[setting[2]] = _unquoted(setting[3])
            return
        try:
            self.found.entries.append(self._entry(number, text))
        except RotaError as error:
            reason = error.allowed if isinstance(error, Invalid) and error.field == "line" else str(error)
            self.found.refused.append(Refused(number, text, reason))

    def _entry(self, number: int, text: str) -> Entry:
        when, user, command = self._parts(text)
        if when == "@reboot":
            raise Invalid("line", text, _REBOOT)
        rule = Cron(when, tz=self._settings.get("CRON_TZ") or self._zone)
        run, given = _input(command)
        shell = self._settings.get("SHELL", "sh")
        notes = self._notes(user)
        words = _words(run)
        if words is None:
            words = [shell, "-c", run]
            notes.append(f"needs a shell: runs as {shell} -c, so {shell} must be allowed, and with it everything")
        elif "PATH" in self._settings and "/" not in words[0]:
            notes.append(f"{words[0]} is looked for in the worker's PATH, not in the crontab's")
        passed = {name: value for name, value in self._settings.items() if name not in _NOT_PASSED}
        env = {name: value for name, value in passed.items() if not loads_code(name)}
        notes += [
            f"{name} is not passed on, since it decides what else is run"
            for name in passed
            if name not in {*env, "PATH"}
        ]
        cwd = self._settings.get("HOME", "~")
        return Entry(number, self._key(user, command), rule, command, words[0], words[1:], env, cwd, given, notes)

    def _parts(self, text: str) -> tuple[str, str | None, str]:
        """Divide a line: when, as whom, what."""
        count = (1 if text.startswith("@") else 5) + self._system
        words = text.split(None, count)
        if len(words) <= count:
            shape = "a user and a command" if self._system else "a command"
            raise Invalid("line", text, f"it is not a time by five fields or @daily and the like, and {shape}")
        *when, command = words
        user = when.pop() if self._system else None
        return " ".join(when).removeprefix("-"), user, command

    def _notes(self, user: str | None) -> list[str]:
        notes = [] if user is None else [f"runs as the worker's user; cron ran it as {user}"]
        if self._settings.get("MAILTO"):
            notes.append(f"no mail to {self._settings['MAILTO']}: what it writes is kept with the run")
        if "TZ" in self._settings:
            notes.append("TZ goes to the command; when it runs is by CRON_TZ, or the machine's zone")
        secret = [name for name in self._settings if name not in _NOT_PASSED and _SECRET.search(name)]
        notes += [f"{name} is stored and shown with the schedule; name a ROTA_SECRET_… instead" for name in secret]
        return notes

    def _key(self, user: str | None, command: str) -> str:
        """Return a key that stays the same while the command does, so that a new time changes the schedule."""
        first = command.split(None, 1)[0].rpartition("/")[2]
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", first)[:40].strip("-.") or "command"
        digest = hashlib.sha256(f"{user or ''}\0{command}".encode()).hexdigest()[:8]
        key = f"{self._prefix}:{name}-{digest}"
        self._keys[key] += 1
        return key if self._keys[key] == 1 else f"{key}-{self._keys[key]}"


def read_crontab(text: str, zone: str, prefix: str, *, system: bool) -> Crontab:
    """Read a crontab; with `system` its lines name a user before the command."""
    if len(text.encode()) > MOST_BYTES or "\0" in text:
        raise Invalid("crontab", f"{len(text)} characters", f"use text of up to {MOST_BYTES:,} bytes", "is no crontab")
    reader = _Reader(zone, prefix, system=system)
    for number, line in enumerate(text.split("\n"), 1):
        reader.read(number, line)
    if len(reader.found.entries) > MOST_ENTRIES:
        count = f"{len(reader.found.entries)} lines"
        raise Invalid("crontab", count, f"up to {MOST_ENTRIES:,} are imported together; divide it", "are too many")
    return reader.found


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _input(command: str) -> tuple[str, str | None]:
    """Divide a command at its first %: what comes behind is its input, where each further % is a new line."""
    parts = [part.replace("\\%", "%") for part in re.split(r"(?<!\\)%", command)]
    return parts[0].rstrip(), "\n".join(parts[1:]) + "\n" if len(parts) > 1 else None


def _words(command: str) -> list[str] | None:
    """Return program and arguments of a command that needs no shell, or None."""
    if _SHELL.search(re.sub(r"'[^']*'", "", command)):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    return words if words and words[0] and words[0] not in _BUILT_INTO_SHELLS else None
