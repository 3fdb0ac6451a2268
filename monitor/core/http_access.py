"""HTTP requests to other servers: secrets from files that no message shows, no redirects, bounded answers."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any, Final
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler

from monitor.core.redaction import keep_secret
from monitor.core.text import MESSAGE_LENGTH, one_line, visible

MOST_BYTES: Final = 4 << 20
HIDDEN: Final = "***"
_CHUNK: Final = 1 << 16
_MOST_SECRET: Final = 64 << 10


class AccessError(Exception):
    """A request cannot be made or answered, with a sentence for people. It never holds a secret."""


def sentence(error: object) -> str:
    """The text of an error from a driver or a server: one line, without secrets, of bounded length.

    >>> sentence("no such table:\\n  orders")
    'no such table: orders'
    """
    return visible(one_line(str(error)), MESSAGE_LENGTH)


def auth_headers(
    bearer_token_file: str | None, username: str | None, password_file: str | None
) -> dict[str, str]:
    """The header of the one way in that is configured, if any; its files are read now.

    >>> auth_headers(None, None, None)
    {}
    """
    if bearer_token_file is not None:
        return {"Authorization": f"Bearer {read_secret(bearer_token_file)}"}
    if username is not None and password_file is not None:
        pair = f"{username}:{read_secret(password_file)}"
        encoded = base64.b64encode(pair.encode()).decode()
        keep_secret(encoded, HIDDEN)
        return {"Authorization": f"Basic {encoded}"}
    return {}


def read_secret(path: str) -> str:
    """The text of a file. From now on no message shows it: a server may repeat what it refuses."""
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(_MOST_SECRET)
        text = content.decode("utf-8").strip()
    except OSError as error:
        raise AccessError(f"the file {sentence(path)} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise AccessError(f"the file {sentence(path)} is not UTF-8 text") from None
    if not text or not text.isprintable():
        raise AccessError(f"the file {sentence(path)} must hold one line of text")
    keep_secret(text, HIDDEN)
    return text


def opener() -> OpenerDirector:
    """HTTP and HTTPS alone, without redirects: a token must not go to another server."""
    opened = OpenerDirector()
    for handler in (ProxyHandler(), HTTPHandler(), HTTPSHandler()):
        opened.add_handler(handler)
    return opened


def read_within(response: Any, end: float) -> bytes:
    """The body of an answer, until this time of the monotonic clock; an error if it is too long."""
    body = bytearray()
    while part := response.read1(_CHUNK):
        body += part
        if len(body) > MOST_BYTES:
            raise AccessError(f"the answer has more than {MOST_BYTES >> 20} MiB")
        if time.monotonic() > end:
            raise TimeoutError
    return bytes(body)
