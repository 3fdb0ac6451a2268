"""What the monitor says of its own work, on standard error: plain for people, JSON for collectors."""

from __future__ import annotations

import json
import logging
import sys
import threading
from datetime import UTC, datetime

from monitor.report.numbers import harmless

_LIBRARIES = ("apscheduler", "great_expectations", "alembic", "uvicorn.access", "botocore", "s3fs", "fsspec")


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        content = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            content["traceback"] = self.formatException(record.exc_info)
        return json.dumps(content, ensure_ascii=True)


class PlainFormatter(logging.Formatter):
    """Time in UTC, level, message; what a log holds can neither forge a second entry nor steer a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        message = harmless(record.getMessage().replace("\n", "\\n").replace("\r", "\\r"))
        text = f"{time} {record.levelname:<7} {message}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def _thread_died(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is SystemExit or args.exc_value is None:
        return
    name = args.thread.name if args.thread else "unknown"
    logging.getLogger("monitor").critical("the thread %s died", name, exc_info=args.exc_value)


def configure(kind: str, level: str) -> None:
    """Send everything to standard error in one form; other libraries speak from warnings on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if kind == "json" else PlainFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)
    threading.excepthook = _thread_died
    # A skipped or missed run is counted and exported; a line for each would bury the rest.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
