"""What a long-running command says about itself, on standard error: JSON lines, or readable ones on a terminal."""

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

from rota import settings
from rota.cli.output import safe
from rota.logs import add_run_fields
from rota.masking import hide_environment, masked_value

_FIRST = ("time", "level", "component", "msg")
_LAST = ("exception", "stack")


def configure_logs(usual: str = "info") -> None:
    """Write what is logged in this process, and what users' tasks say through structlog where they left it as it is."""
    hide_environment(os.environ)
    handler = logging.StreamHandler()
    handler.setFormatter(formatter(json_lines=settings.log_format(terminal=sys.stderr.isatty()) == "json"))
    logging.basicConfig(level=settings.log_level(usual).upper(), handlers=[handler])
    if not structlog.is_configured():
        structlog.configure(
            processors=[
                structlog.contextvars.merge_contextvars,
                structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
            ],
            wrapper_class=structlog.stdlib.BoundLogger,
            logger_factory=structlog.stdlib.LoggerFactory(),
        )


def formatter(*, json_lines: bool) -> logging.Formatter:
    """Return what makes lines of records: one line each as JSON, readable text else."""
    render: Processor = _as_json if json_lines else _as_text
    chain: list[Processor] = [_collected, render]
    return structlog.stdlib.ProcessorFormatter(
        processors=chain, foreign_pre_chain=[structlog.stdlib.ExtraAdder()], keep_exc_info=True, keep_stack_info=True
    )


def _collected(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Put a line together: what happened, when, who says it, in which run; then the rest. What is secret is masked."""
    record: logging.LogRecord = event.pop("_record")
    event.pop("_from_structlog")
    said = event.pop("event", "")
    exception = _exception(record, event.pop("exc_info", None))
    stack = event.pop("stack_info", None) or record.stack_info
    record.exc_info = record.exc_text = record.stack_info = None  # they are in the line: it stays one
    add_run_fields(None, "", event)
    line: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "component": record.name.removeprefix("rota."),
        "msg": said,
        **{name: value for name, value in event.items() if name not in (*_FIRST, *_LAST) and value is not None},
    }
    line |= {name: value for name, value in zip(_LAST, (exception, stack), strict=True) if value}
    return {name: masked_value(value, name) for name, value in line.items()}


def _exception(record: logging.LogRecord, given: Any) -> str | None:
    """Return the traceback, also that of a record which another process made."""
    if given is True:
        given = sys.exc_info()
    elif isinstance(given, BaseException):
        given = (type(given), given, given.__traceback__)
    if isinstance(given, tuple) and given[0] is not None:
        return logging.Formatter().formatException(given)
    return record.exc_text


def _as_json(_logger: Any, _method: str, event: EventDict) -> str:
    """Write all as one line of plain ASCII, in which control characters are escaped."""
    return json.dumps(event)


def _as_text(_logger: Any, _method: str, event: EventDict) -> str:
    """Write a line for people; text from outside cannot drive the terminal."""
    moment, level, component, said = (event.pop(name) for name in _FIRST)
    blocks = [event.pop(name) for name in _LAST if name in event]
    rest = "".join(f" {name}={_shown(value)}" for name, value in event.items())
    first = f"{moment[11:23]} {level.upper():7} {component}  {said}{rest}"
    return "\n".join([safe(first), *(safe(line) for block in blocks for line in str(block).splitlines())])


def _shown(value: object) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if any(char in text for char in ' "=') or not text else text
