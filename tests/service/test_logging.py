"""What the monitor says of its own work, whatever a log makes it quote."""

from __future__ import annotations

import json
import logging

from monitor.service.logging import JsonFormatter, PlainFormatter


def record(message: str) -> logging.LogRecord:
    return logging.LogRecord("monitor", logging.WARNING, __file__, 1, "%s", (message,), None)


def test_a_quoted_name_forges_no_entry_and_steers_no_terminal():
    shown = PlainFormatter().format(record("skipped a\nb\rc\x1b[2Jd\u202ee\u2028f.csv"))
    assert shown.endswith("WARNING skipped a\\nb\\rc[U+001B][2Jd[U+202E]e[U+2028]f.csv")
    assert len(shown.splitlines()) == 1


def test_an_entry_of_json_is_one_line_of_ascii_that_says_the_same():
    shown = JsonFormatter().format(record("a\nb\u202e"))
    assert shown.isascii()
    assert json.loads(shown)["message"] == "a\nb\u202e"
