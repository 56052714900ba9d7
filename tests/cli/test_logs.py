"""What commands write about themselves: one line a record, with its run, without secrets and control characters."""

import contextlib
import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from tests.engine.test_execute import NoHost

from rota import context
from rota.cli.logs import configure_logs, formatter
from rota.errors import Invalid
from rota.logs import RunFields


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A logger whose lines can be read."""
    logger, stream = logging.getLogger("news.feeds"), io.StringIO()
    logger.handlers = [logging.StreamHandler(stream)]
    yield logger, stream
    logger.handlers = []


def lines(log: tuple[logging.Logger, io.StringIO], *, json_lines: bool = True) -> io.StringIO:
    log[0].handlers[0].setFormatter(formatter(json_lines=json_lines))
    return log[1]


def test_a_record_is_one_line_of_json_with_its_fields(log: Any) -> None:
    stream = lines(log)
    log[0].warning("feed %s is late", 42, extra={"schedule_id": "feed-42", "late": {"seconds": 3}, "nothing": None})
    (line,) = stream.getvalue().splitlines()
    found = json.loads(line)
    assert found.pop("time").endswith("+00:00")
    assert found == {
        "level": "warning",
        "component": "news.feeds",
        "msg": "feed 42 is late",
        "schedule_id": "feed-42",
        "late": {"seconds": 3},
    }


def test_a_traceback_is_in_the_same_line_and_no_control_character_gets_out(log: Any) -> None:
    stream = lines(log)
    try:
        raise LookupError("no \x1b[2J feed\nINFO forged")
    except LookupError:
        log[0].exception("a\nb\x1b\x9b\u2028[red]")
    text = stream.getvalue()
    assert text.isascii()
    assert [char for char in text if not char.isprintable()] == ["\n"]
    found = json.loads(text)
    assert found["msg"] == "a\nb\x1b\x9b\u2028[red]"
    assert "LookupError: no" in found["exception"]


def test_a_secret_gets_into_no_line(log: Any) -> None:
    for json_lines in (True, False):
        stream = lines(log, json_lines=json_lines)
        try:
            raise OSError("postgresql://news:canary@db/news")
        except OSError:
            log[0].exception("token=canary", extra={"password": "canary", "given": {"api_key": "canary"}})
        assert "canary" not in stream.getvalue()
        assert "news:…@db" in stream.getvalue().replace("\\u2026", "…")


def test_on_a_terminal_a_line_can_be_read_and_drives_nothing(log: Any) -> None:
    stream = lines(log, json_lines=False)
    log[0].warning("feed \x1b[2J late", extra={"schedule_id": "feed-42", "said": "a b"})
    text = stream.getvalue()
    assert text[13:] == 'WARNING news.feeds  feed \\x1b[2J late schedule_id=feed-42 said="a b"\n'


def test_a_line_names_the_run_that_it_was_written_in(log: Any) -> None:
    stream = lines(log)
    run = context.CurrentRun(7, "news.refresh", "default", 1, NoHost(), "feed-42")
    token = context._CURRENT.set(run)
    try:
        log[0].warning("late")
        log[0].warning("other", extra={"job_id": 9})
    finally:
        context._CURRENT.reset(token)
    first, second = map(json.loads, stream.getvalue().splitlines())
    names = {"job_id": 7, "job_name": "news.refresh", "attempt": 1, "queue": "default", "schedule_id": "feed-42"}
    assert {name: first[name] for name in names} == names
    assert second["job_id"] == 9


def test_a_format_may_name_the_fields_also_outside_of_a_run(log: Any) -> None:
    handler = log[0].handlers[0]
    handler.addFilter(RunFields())
    handler.setFormatter(logging.Formatter("%(job_id)s %(schedule_id)s %(message)s"))
    log[0].warning("hello")
    assert log[1].getvalue() == "None None hello\n"


@contextlib.contextmanager
def unconfigured(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """A process in which nobody has configured logs yet."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_what_tasks_say_through_structlog_comes_out_as_all_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    with unconfigured(monkeypatch) as stream:
        configure_logs()
        structlog.get_logger("news").info("fetched", items=3, token="canary")  # noqa: S106 (it is none)
    found = json.loads(stream.getvalue())
    assert found.pop("time")
    assert found == {"level": "info", "component": "news", "msg": "fetched", "items": 3, "token": "…"}


def test_the_level_and_the_form_can_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_LOG_LEVEL", "ERROR")
    monkeypatch.setenv("ROTA_LOG_FORMAT", "text")
    with unconfigured(monkeypatch) as stream:
        configure_logs()
        logging.getLogger("rota.worker").warning("not this")
        logging.getLogger("rota.worker").error("but this")
    assert stream.getvalue()[13:] == "ERROR   worker  but this\n"


@pytest.mark.parametrize("name", ["ROTA_LOG_LEVEL", "ROTA_LOG_FORMAT"])
def test_a_wrong_setting_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "loud")
    with pytest.raises(Invalid, match=rf"{name}: 'loud' .*use "):
        configure_logs()
