"""What the monitor says of its own work, whatever a log makes it quote."""

from __future__ import annotations

import io
import json
import logging
import sys

import pytest

from monitor.service.logging import Forwarded, JsonFormatter, LimitedHandler, PlainFormatter


def record(message: str) -> logging.LogRecord:
    return logging.LogRecord("monitor", logging.WARNING, __file__, 1, "%s", (message,), None)


def test_a_quoted_name_cannot_forge_an_entry_or_control_the_terminal():
    shown = PlainFormatter().format(record("skipped a\nb\rc\x1b[2Jd\u202ee\u2028f.csv"))
    assert shown.endswith("WARNING skipped a\\nb\\rc[U+001B][2Jd[U+202E]e[U+2028]f.csv")
    assert len(shown.splitlines()) == 1


def test_a_json_entry_is_one_line_of_ascii_with_the_same_message():
    shown = JsonFormatter().format(record("a\nb\u202e"))
    assert shown.isascii()
    assert json.loads(shown)["message"] == "a\nb\u202e"


def test_the_text_of_an_exception_cannot_forge_an_entry_or_control_the_terminal_either():
    forged = "2026-01-01T00:00:00Z ERROR   all is lost"
    try:
        raise ValueError(f"a\r{forged}\x1b[2J\u2028b\n{forged}")
    except ValueError:
        failed = logging.LogRecord("monitor", logging.ERROR, __file__, 1, "failed", (), sys.exc_info())
    first, *traceback = PlainFormatter().format(failed).splitlines()
    assert first.endswith("ERROR   failed")
    assert traceback[0] == "  Traceback (most recent call last):"
    assert traceback[-2:] == [f"  ValueError: a[CR]{forged}[U+001B][2J[U+2028]b", f"  {forged}"]
    assert all(line.startswith("  ") for line in traceback)


@pytest.mark.parametrize(
    ("message", "arguments"),
    [("%(done)s: 50%%", ({"done": "a"},)), ("%s: 50%%", ("a",)), ("a: 50%", ())],
)
def test_a_record_of_another_process_reads_as_it_was_written(caplog, message, arguments):
    written = logging.LogRecord("monitor", logging.WARNING, __file__, 1, message, arguments, None)
    Forwarded.of(written).handle()
    assert caplog.messages == ["a: 50%"]


def limited(clock):
    stream = io.StringIO()
    handler = LimitedHandler(stream, clock)
    handler.setFormatter(PlainFormatter())
    logger = logging.Logger("monitor.logs")
    logger.addHandler(handler)
    return logger, handler, stream


def test_equal_warnings_are_written_20_times_a_minute_and_then_counted():
    now = [0.0]
    logger, _, stream = limited(lambda: now[0])
    for number in range(2_000):
        logger.error("cannot open %s", f"file {number}")
    assert stream.getvalue().count("cannot open") == 20
    logger.error("another fault")
    now[0] = 61
    logger.info("judged")
    lines = stream.getvalue().splitlines()
    assert [line.split(" ", 1)[1].strip() for line in lines[20:]] == [
        "ERROR   another fault",
        "ERROR   not written: 1,980 more records like this one: cannot open file 0",
        "INFO    judged",
    ]
    logger.error("cannot open %s", "file")
    assert stream.getvalue().endswith("cannot open file\n")


def test_suppressed_records_are_counted_at_the_end():
    logger, handler, stream = limited(lambda: 0.0)
    for _ in range(21):
        logger.warning("slow")
    handler.close()
    assert stream.getvalue().endswith("not written: 1 more record like this one: slow\n")


def test_info_lines_are_never_suppressed():
    logger, _, stream = limited(lambda: 0.0)
    for number in range(500):
        logger.info("judged %d", number)
    assert stream.getvalue().count("judged") == 500
