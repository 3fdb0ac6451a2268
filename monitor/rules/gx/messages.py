"""GX's exceptions, made short enough for a status page."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from monitor.core.redaction import redact
from monitor.core.text import MESSAGE_LENGTH, fit


def short_message(exception_info: Mapping[str, Any] | None) -> str | None:
    """The first failure in GX's `exception_info` in one short line, or None where nothing failed.

    GX gives either one record or one a metric; messages carry tracebacks, SQL and links.

    >>> short_message({"raised_exception": False}) is None
    True
    >>> short_message({"raised_exception": True, "exception_message": "Column x does not\\nexist"})
    'Column x does not exist'
    """
    messages = list(_messages(exception_info or {}))
    if not messages:
        return None
    # A column that is missing also fails whatever was to be counted on it: name the cause.
    messages.sort(key=lambda text: "does not exist" not in text)
    return shorten(messages[0])


def shorten(message: str) -> str:
    """One line of plain words: no SQL, no traceback, no link to a manual.

    >>> shorten('(_duckdb.BinderException) Binder Error: no such column "x"\\n\\n[SQL: SELECT 1]')
    'Binder Error: no such column "x"'
    """
    text = re.split(r"\n\s*\[SQL|\[SQL:|Traceback|\(Background on this error|\nLINE \d+:", redact(message))[0]
    text = re.sub(r"^\s*An SQL execution Exception occurred[.:]\s*(\w+: \")?", "", text)
    text = re.sub(r"^\s*\(\w*duckdb\.\w+\)\s*", "", text)
    text = " ".join(text.split())
    if text.count('"') % 2:  # GX quotes the message, and its end has just been cut off
        text = text.strip('"')
    return fit(text, MESSAGE_LENGTH)


def _messages(info: Mapping[str, Any]) -> Iterator[str]:
    if "raised_exception" in info:
        if info["raised_exception"]:
            yield str(info.get("exception_message") or "Great Expectations raised an exception")
        return
    for value in info.values():
        if isinstance(value, Mapping):
            yield from _messages(value)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint for a misspelt word, or nothing.

    >>> did_you_mean("blaklist", ["blacklist", "catalog"])
    "; did you mean 'blacklist'?"
    >>> did_you_mean("zzz", ["blacklist"])
    ''
    """
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
