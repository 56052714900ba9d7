"""What a task logs, for as long as its attempt goes on: bounded, the first lines and the newest, a mark between."""

import json
import logging
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime

from rota.masking import masked

MOST_LINES = 100
MOST_TEXT = 32_000
"""How many lines and characters are kept of the beginning, and as many of the end."""
LONGEST_LINE = 8_000


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a task logged, kept with its run; or the mark between the first lines and the newest."""

    attempt: int
    at: datetime | None
    level: str
    logger: str
    message: str
    left_out: int = 0
    """Of the mark: how many lines are not there."""


_Line = tuple[float, str, str, str]


class KeptLog:
    """The lines of one attempt."""

    def __init__(self) -> None:
        self._first: list[_Line] = []
        self._newest: deque[_Line] = deque()
        self._room = MOST_TEXT
        self._used = 0
        self._left_out = 0
        self._closed = False

    def add(self, record: logging.LogRecord) -> None:
        """Take in what was logged, in whatever thread; what comes after the end is of no interest."""
        if self._closed:
            return
        line = (record.created, record.levelname, record.name, _message(record))
        length = len(line[-1])
        if self._room >= length and len(self._first) < MOST_LINES and not self._newest:
            self._room -= length
            self._first.append(line)
            return
        self._newest.append(line)
        self._used += length
        while len(self._newest) > MOST_LINES or self._used > MOST_TEXT:
            self._used -= len(self._newest.popleft()[-1])
            self._left_out += 1

    def close(self) -> None:
        """Take in no more."""
        self._closed = True

    def text(self) -> str:
        """Write it as the store keeps it, without what is secret; the mark is a number."""
        first, newest = ([_written(each) for each in part] for part in (tuple(self._first), tuple(self._newest)))
        return json.dumps([*first, *([self._left_out] if self._left_out else []), *newest])

    @staticmethod
    def read(attempt: int, text: str) -> list[LogLine]:
        """Read what the store keeps."""
        return [_read(attempt, each) for each in json.loads(text)]


def _message(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
    except Exception:  # noqa: BLE001 (arguments that do not fit: whoever writes the line complains)
        text = str(record.msg)
    trace = record.exc_text
    if record.exc_info and record.exc_info[0] is not None:
        trace = logging.Formatter().formatException(record.exc_info)
    text = text[:LONGEST_LINE]
    return f"{text}\n{trace[-LONGEST_LINE:]}" if trace else text


def _written(line: _Line) -> list[object]:
    created, level, logger, message = line
    return [round(created * 1_000_000), level, logger, masked(message)]


def _read(attempt: int, each: int | list[object]) -> LogLine:
    if isinstance(each, int):
        lines = "1 line was" if each == 1 else f"{each:,} lines were"
        return LogLine(attempt, None, "", "", f"… {lines} left out …", each)
    at, level, logger, message = each
    return LogLine(
        attempt, datetime.fromtimestamp(int(str(at)) / 1_000_000, UTC), str(level), str(logger), str(message)
    )
