"""Output of every command: results, notes, errors as sentences, progress, closed pipes."""

from __future__ import annotations

import codecs
import errno
import io
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import IO, NoReturn, TextIO

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from monitor.cli.interrupt import noticing, was_asked
from monitor.core.errors import ExpectedError
from monitor.core.redaction import redact
from monitor.core.text import MESSAGE_LENGTH, harmless, one_line, printable

OK, VIOLATED, USAGE, NOT_JUDGED, INTERRUPTED = 0, 1, 2, 3, 130
DEBUG_VARIABLE = "RECSYS_MONITOR_TRACEBACK"
_FIRST_YEAR, _LAST_YEAR = 1970, 2200
_DESCRIPTION_WIDTH = 50
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


_claimed: list[TextIO] = []  # the stream of results, after `claim_output`


class Listing(StrEnum):
    """The output formats of most commands."""

    TABLE = "table"
    JSON = "json"


def results() -> TextIO:
    """The stream of results: the real standard output."""
    return _claimed[-1] if _claimed else sys.stdout


class _Redacted(logging.Formatter):
    """The message and its traceback, without the secrets of the config."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def claim_output() -> None:
    """Reserve standard output for results: libraries and child processes then print to standard error.

    Great Expectations prints some of its warnings, and they must not end up in our JSON. Log records go to
    standard error too, without secrets, if the command has not configured logging.
    """
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Redacted())
    if _claimed:
        return
    sys.stdout.flush()
    own = os.dup(sys.stdout.fileno())
    _claimed.append(os.fdopen(own, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors))
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())


class _Console(Console):
    """A console whose pipe may close (`| head`) without changing the exit code."""

    @property
    def file(self) -> IO[str]:
        stream = sys.stderr if self.stderr else results()
        return getattr(stream, "rich_proxied_file", stream)  # a progress bar replaces the stream

    @file.setter
    def file(self, new: IO[str]) -> None:
        raise NotImplementedError("the streams of a command are fixed")

    def on_broken_pipe(self) -> None:
        self.quiet = True
        drop_output()


errors = _Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
out = _Console(highlight=False, emoji=False)


def drop_output(*streams: TextIO) -> None:
    """Discard all further output of some streams, by default that of results."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams or (results(),):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def write(text: str, *, newline: bool = True) -> None:
    """Write a result for a program, unchanged. It is UTF-8, as pages and XML say of themselves."""
    stream = results()
    if isinstance(stream, io.TextIOWrapper) and not _is_unicode(stream):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    stream.write(f"{text}\n" if newline else text)


@contextmanager
def printing() -> Iterator[None]:
    """A block that prints. If the pipe closes, the rest of the block is skipped."""
    try:
        yield
        results().flush()
    except BrokenPipeError:
        drop_output()


def say(text: str) -> None:
    """Print a line for people on standard output, never wrapped."""
    out.print(escape(harmless(redact(text))), soft_wrap=True)


def note(text: str) -> None:
    """Print a line for people on standard error."""
    errors.print(escape(harmless(redact(text))))


def fail(message: str, code: int = USAGE) -> NoReturn:
    """End the command with an error message."""
    errors.print(f"[bold red]error:[/] {escape(harmless(redact(message)))}")
    sys.exit(code)


@contextmanager
def progress(total: int, text: str) -> Iterator[Callable[[str], None]]:
    """A progress bar, unless standard error is piped. Call the yielded function after each step."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    count = (BarColumn(), MofNCompleteColumn()) if total else ()
    shown = TextColumn("{task.description}", markup=False)
    with Progress(SpinnerColumn(), shown, *count, TimeElapsedColumn(), console=errors, transient=True) as bar:
        task = bar.add_task(text, total=total or None)
        yield lambda step: bar.update(task, advance=1, description=printable(step[-_DESCRIPTION_WIDTH:], "?"))


def moment(text: str | None, option: str) -> datetime | None:
    """The time of an option, UTC if it has no offset."""
    if text is None:
        return None
    how = "write it as 2026-01-31 or 2026-01-31T10:00:00Z"
    try:
        given = datetime.fromisoformat(text)
        given = given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is not a time; {how}", param_hint=option) from None
    if not _FIRST_YEAR <= given.year < _LAST_YEAR:
        raise typer.BadParameter(f"{text!r} must lie between 1970 and 2199; {how}", param_hint=option)
    return given


def span(start: str | None, end: str | None, side: str = "") -> tuple[datetime | None, datetime | None]:
    """The times of --from and --to, or of a side of a comparison."""
    first, last = moment(start, side or "--from"), moment(end, side or "--to")
    if first is not None and last is not None and first >= last:
        raise typer.BadParameter(
            "must end after it begins" if side else "must be later than --from", param_hint=side or "--to"
        )
    return first, last


def prepare_streams() -> None:
    """Let a command print wherever it is started.

    Where the caller closed a stream, its text is dropped: the exit code still counts. The next file that is
    opened would take the number of the stream otherwise, and libraries would print into it. A character that
    the terminal's encoding does not have is escaped, as on standard error.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper) and (stream.errors == "strict" or not _is_unicode(stream)):
        stream.reconfigure(errors="backslashreplace")


def _is_unicode(stream: TextIO) -> bool:
    return codecs.lookup(stream.encoding).name == "utf-8"


def show_traceback() -> None:
    """Print the traceback of the error at hand, if the environment asks for it."""
    if os.environ.get(DEBUG_VARIABLE):
        errors.print(escape(redact(traceback.format_exc())))


@contextmanager
def guarded() -> Iterator[None]:
    """End every failure with a sentence that says what to do, and an exit code, never with a traceback."""
    prepare_streams()
    try:
        with noticing():
            yield
    except BrokenPipeError:
        drop_output()
        sys.exit(OK)
    except SystemExit as exc:
        if isinstance(exc.__context__, BrokenPipeError):
            drop_output(results(), sys.stderr)
            sys.exit(_code_behind(exc))
        raise
    except KeyboardInterrupt:
        note("interrupted")
        sys.exit(INTERRUPTED)
    except Exception as exc:
        if was_asked():
            note("interrupted")
            sys.exit(INTERRUPTED)
        show_traceback()
        if isinstance(exc, ExpectedError):
            fail(exc.advice)
        if isinstance(exc, OSError) and exc.errno in _NO_SPACE:
            drop_output()  # what is left of it cannot be written either
            fail(
                f"{exc.strerror}\nMake room where the command writes: its output, the state folder, or the "
                "folder of temporary files."
            )
        if isinstance(exc, OSError) and exc.filename is not None:
            fail(f"{exc.filename}: {exc.strerror}\nCheck that the path is right and that it may be written.")
        error = one_line(f"{type(exc).__name__}: {exc}")[:MESSAGE_LENGTH]
        fail(f"{error}\nThis is a bug of the monitor; {DEBUG_VARIABLE}=1 shows the traceback.", NOT_JUDGED)


def _code_behind(error: BaseException) -> int:
    """The exit code of a help (0) or a wrong usage (2) whose pipe closed; Rich ends with 1 there."""
    behind = error.__context__
    while behind is not None:
        if isinstance(code := getattr(behind, "exit_code", None), int):
            return code
        behind = behind.__context__
    return OK
