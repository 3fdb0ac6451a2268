"""Secrets of the config, taken out of every message before it is cut, kept or shown.

A driver, a server or a library may repeat a password or a token in the text of its error. The config is
read once and its secrets are known to the whole process, as its logging is.
"""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, quote_plus

LEAST: Final = 8
"""Characters that a secret must have: a shorter text, such as `shop`, is also a word of many messages."""


class _Known:
    """Each form of a secret with what stands in its place. Replaced as a whole, for other threads read it."""

    def __init__(self, shown: Mapping[str, str]) -> None:
        self.shown = shown
        longest_first = sorted(shown, key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")


_known = [_Known({})]
_lock = threading.Lock()


def keep_secret(value: str, shown: str) -> None:
    """Show `shown` instead of this value in every message from now on, for as long as the process runs."""
    if len(value) < LEAST:
        return
    forms = (
        value, repr(value)[1:-1], json.dumps(value)[1:-1],
        quote(value, safe=""), quote_plus(value), html.escape(value),
    )  # fmt: skip
    with _lock:
        if all(_known[0].shown.get(form) == shown for form in forms):
            return
        _known[0] = _Known({**_known[0].shown, **dict.fromkeys(forms, shown)})


def known_secrets() -> dict[str, str]:
    """Each form of the secrets of this process with what is shown in its place."""
    return dict(_known[0].shown)


def keep_secrets_of(shown: Mapping[str, str]) -> None:
    """Hide the `known_secrets` of another process too."""
    with _lock:
        _known[0] = _Known({**_known[0].shown, **shown})


def redact(text: str) -> str:
    """The text without the secrets.

    >>> keep_secret("doctest-secret", "${TOKEN}")
    >>> redact("no such key: doctest-secret")
    'no such key: ${TOKEN}'
    """
    known = _known[0]
    return known.pattern.sub(lambda match: known.shown[match[0]], text)
