"""The daemon's log on standard error: plain text for people, JSON for log collectors."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from textwrap import indent
from typing import Final, TextIO

from monitor.core.redaction import redact
from monitor.core.text import harmless, plural

_MOST_EQUAL: Final = 20
_BURST_SECONDS: Final = 60.0
_LIBRARIES = (
    "apscheduler", "great_expectations", "alembic", "uvicorn.access",
    "botocore", "aiobotocore", "s3fs", "fsspec",
)  # fmt: skip


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        content = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        if traceback := _traceback(self, record):
            content["traceback"] = traceback
        return json.dumps(content, ensure_ascii=True)


class PlainFormatter(logging.Formatter):
    """Time in UTC, level, message. Quoted text can neither forge a second entry nor control a terminal.

    Each line of a traceback is indented: the text of an exception may hold whole lines of a log.
    """

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        message = harmless(redact(record.getMessage()).replace("\n", "\\n").replace("\r", "\\r"))
        text = f"{at} {record.levelname:<7} {message}"
        traceback = indent(harmless(_traceback(self, record)), "  ")
        return f"{text}\n{traceback}" if traceback else text


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """The traceback of a record, which came as text if another process made the record; else empty."""
    if record.exc_info:
        return redact(formatter.formatException(record.exc_info))
    return redact(record.exc_text or "")


@dataclass(slots=True)
class _Burst:
    """Equal records: the first one, its time, and their number."""

    first: logging.LogRecord
    began: float
    count: int = 0


class LimitedHandler(logging.StreamHandler[TextIO]):
    """Writes equal warnings and errors at most 20 times a minute, then their number.

    Records are equal if they have the same logger, level and unformatted message. The number of suppressed
    records is written before the next record after the minute, or at the end.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self._clock = clock
        self._bursts: dict[tuple[str, int, str], _Burst] = {}

    def emit(self, record: logging.LogRecord) -> None:
        now = self._clock()
        self._sum_up([key for key, one in self._bursts.items() if now - one.began >= _BURST_SECONDS])
        if record.levelno >= logging.WARNING:
            key = (record.name, record.levelno, str(record.msg))
            burst = self._bursts.setdefault(key, _Burst(record, now))
            burst.count += 1
            if burst.count > _MOST_EQUAL:
                return
        super().emit(record)

    def close(self) -> None:
        """Write the numbers of suppressed records, and close."""
        with self.lock or nullcontext():
            self._sum_up(list(self._bursts))
        super().close()

    def _sum_up(self, keys: Iterable[tuple[str, int, str]]) -> None:
        for key in keys:
            burst = self._bursts.pop(key)
            if (more := burst.count - _MOST_EQUAL) > 0:
                first = burst.first
                text = f"not written: {plural(more, 'more record')} like this one: {first.getMessage()}"
                super().emit(
                    logging.LogRecord(
                        first.name, first.levelno, first.pathname, first.lineno, text, None, None
                    )
                )


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A record on its way from a process to the one that writes the log."""

    name: str
    level: int
    message: str
    arguments: tuple[str | int | float | datetime | None, ...]
    created: float
    traceback: str

    @classmethod
    def of(cls, record: logging.LogRecord) -> Forwarded:
        """The record in types that every process can read. Equal records stay equal: see `LimitedHandler`."""
        given = record.args if isinstance(record.args, tuple) else ()
        plain = tuple(
            one if isinstance(one, str | int | float | datetime | None) else str(one) for one in given
        )
        message = str(record.msg)
        if record.args and not given:  # a mapping
            message, plain = record.getMessage(), ()
        formatter = logging.Formatter()
        traceback = formatter.formatException(record.exc_info) if record.exc_info else record.exc_text or ""
        return cls(record.name, record.levelno, message, plain, record.created, redact(traceback))

    def handle(self) -> None:
        """Log it here."""
        logger = logging.getLogger(self.name)
        if logger.isEnabledFor(self.level):
            record = logger.makeRecord(self.name, self.level, "", 0, self.message, self.arguments, None)
            record.created, record.exc_text = self.created, self.traceback or None
            logger.handle(record)


class _ForwardingHandler(logging.Handler):
    def __init__(self, send: Callable[[Forwarded], None]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._send(Forwarded.of(record))
        except Exception:
            self.handleError(record)


def forward_to(send: Callable[[Forwarded], None], level: int) -> None:
    """Send every record of this process to the one that writes the log."""
    _install(_ForwardingHandler(send), level)


def _thread_died(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is SystemExit or args.exc_value is None:
        return
    name = args.thread.name if args.thread else "unknown"
    logging.getLogger("monitor").critical("the thread %s died", name, exc_info=args.exc_value)


def configure(kind: str, level: str) -> None:
    """Log everything to standard error in one format; libraries only from warnings on."""
    handler = LimitedHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if kind == "json" else PlainFormatter())
    _install(handler, level.upper())


def _install(handler: logging.Handler, level: int | str) -> None:
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)
    threading.excepthook = _thread_died
    # Missed runs are counted and exported. A line for each would bury the other lines.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
