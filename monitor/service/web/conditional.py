"""Conditional answers: a reader who has the newest version is told so, and gets no body."""

from __future__ import annotations

import hashlib
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

# A browser keeps the answer and asks each time whether it is still the newest. No proxy keeps it.
_KEPT: Final = "private, no-cache"


def conditional(request: Request, content: str | bytes, media_type: str) -> Response:
    """The content with its ETag, or 304 if the request names this ETag."""
    body = content.encode() if isinstance(content, str) else content
    # Weak: the compressed answer has other bytes.
    etag = f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": _KEPT}
    if _names(request.headers.get("if-none-match", ""), etag):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media_type, headers=headers)


def _names(header: str, etag: str) -> bool:
    """Whether the header If-None-Match names the ETag. Both are compared as weak ones.

    >>> _names('W/"a", "b"', 'W/"b"'), _names("*", 'W/"b"'), _names("", 'W/"b"')
    (True, True, False)
    """
    known = {one.strip().removeprefix("W/") for one in header.split(",")}
    return etag.removeprefix("W/") in known or "*" in known
