"""The collector's log: one line an event, JSON off a terminal, and no flood on repeated failure."""

import io
import json
import logging
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from collector.telemetry.log_format import LogFormat
from collector.telemetry.logs import REPEATED_EVERY_S, Repeated, configure_logs


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def root_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    silenced = [logging.getLogger(name) for name in ("clickhouse_connect", "urllib3")]
    # Another test's server may have set up uvicorn's own log in this process.
    served = [logging.getLogger(name) for name in ("uvicorn", "uvicorn.error")]
    before = [(one, one.propagate, one.level, one.disabled) for one in served]
    for one in served:
        one.propagate, one.disabled = True, False
        one.setLevel(logging.NOTSET)
    yield
    for one, propagate, level_before, disabled in before:
        one.propagate, one.disabled = propagate, disabled
        one.setLevel(level_before)
    for one in silenced:
        one.propagate = True
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def logging_to(root_as_before: None) -> Callable[[io.StringIO, LogFormat], Any]:
    def configured(stream: io.StringIO, log_format: LogFormat = "auto") -> Any:
        configure_logs(log_format, stream)
        return structlog.get_logger("test")

    return configured


def raised() -> ValueError:
    """An error with a traceback, and two lines."""
    try:
        int("two\nlines")
    except ValueError as error:
        return error
    raise AssertionError


def lines(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def test_off_a_terminal_every_event_is_one_line_of_json(logging_to: Callable[..., Any]) -> None:
    stream = io.StringIO()
    log = logging_to(stream)
    log.info("collecting", data_dir="/data")
    log.warning("not storing", error="away", exc_info=raised())
    first, second = (json.loads(line) for line in lines(stream))
    assert (first["event"], first["level"], first["data_dir"]) == ("collecting", "info", "/data")
    assert first["timestamp"].endswith("Z")
    assert "Traceback" in second["exception"]


def test_on_a_terminal_every_event_is_one_line_for_people(logging_to: Callable[..., Any]) -> None:
    stream = Terminal()
    log = logging_to(stream)
    log.warning("not storing", exc_info=raised())
    (line,) = lines(stream)
    assert "not storing" in line
    assert "ValueError: invalid literal" in line
    assert "test_logs.py:" in line


@pytest.mark.parametrize(("log_format", "is_json"), [("json", True), ("console", False)])
def test_the_setting_prevails(logging_to: Callable[..., Any], log_format: LogFormat, is_json: bool) -> None:
    stream = Terminal() if is_json else io.StringIO()
    logging_to(stream, log_format).info("collecting")
    assert lines(stream)[0].startswith("{") is is_json


def test_a_repeated_failure_is_told_once_a_minute_with_a_count() -> None:
    now = [0.0]
    repeated = Repeated(lambda: now[0])
    told = []
    for _ in range(601):
        told.append(repeated.admit("not storing: port 1234 refused"))
        now[0] += 0.2
    assert [count for count in told if count is not None] == [0, 299, 299]
    assert now[0] > 2 * REPEATED_EVERY_S


def test_a_failure_is_news_when_it_is_another_one_and_after_a_recovery(logging_to: Callable[..., Any]) -> None:
    stream = io.StringIO()
    log = logging_to(stream)
    for _ in range(3):
        log.warning("not storing", error="refused by port 1")
        log.warning("not storing", error="refused by port 2")
        log.warning("not storing", error=f"query {uuid.uuid4()} failed")
        log.warning("not storing", error="no memory")
    log.info("storing again")
    log.warning("not storing", error="refused by port 1")
    told = [json.loads(line).get("error", "") for line in lines(stream)]
    assert [re.sub("query .* failed", "query failed", one) for one in told] == [
        "refused by port 1",
        "query failed",
        "no memory",
        "",
        "refused by port 1",
    ]


def test_what_is_remembered_of_failures_has_a_bound() -> None:
    repeated = Repeated(lambda: 0.0)
    words = [f"failure {''.join(chr(97 + int(digit)) for digit in str(n))}" for n in range(3000)]
    assert all(repeated.admit(one) == 0 for one in words)
    assert repeated.admit(words[-1]) is None
    assert repeated.admit(words[0]) == 0


def test_warnings_of_libraries_come_in_the_same_form_and_do_not_flood(logging_to: Callable[..., Any]) -> None:
    stream = io.StringIO()
    logging_to(stream)
    for _ in range(50):
        logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    logging.getLogger("uvicorn.error").info("Started")
    # The driver's own word of an error that we tell; it goes nowhere.
    logging.getLogger("urllib3.connectionpool").warning("Retrying")
    (line,) = lines(stream)
    assert json.loads(line)["event"] == "Invalid HTTP request received."
