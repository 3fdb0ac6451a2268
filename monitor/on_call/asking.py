"""One HTTP request to Alertmanager or a robot: its answer, or why there is none."""

from __future__ import annotations

import time
from http.client import HTTPException
from urllib.error import URLError
from urllib.request import Request

from monitor.core.http_access import AccessError, opener, read_within, sentence


def answer_of(name: str, request: Request, timeout: float) -> tuple[int, bytes]:
    """The code and the body of the answer, within so many seconds in all.

    Args:
        name: of the server, in messages.
        request: to an address that is checked already.
        timeout: in seconds.

    Raises AccessError, with a sentence such as `wecom cannot be reached: no answer within 10 s`.
    """
    end = time.monotonic() + timeout
    try:
        with opener().open(request, timeout=timeout) as response:
            return response.status, read_within(response, end)
    except (OSError, HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        is_slow = isinstance(reason, TimeoutError)
        why = f"no answer within {timeout:g} s" if is_slow else sentence(reason)
        raise AccessError(f"{name} cannot be reached: {why}") from None
