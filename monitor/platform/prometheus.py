"""Totals from a Prometheus: one range query for each total, with a step of a day, at the end of each day."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request
from zoneinfo import ZoneInfo

from monitor.core.redaction import keep_secret
from monitor.platform.answers import Answer, QueryError, sentence
from monitor.platform.days import day_of
from monitor.settings.platform import PrometheusSystem

MOST_BYTES: Final = 4 << 20
_CHUNK: Final = 1 << 16
_MOST_SECRET: Final = 64 << 10
_DAY_SECONDS: Final = 86_400
_HIDDEN: Final = "***"
_PATH: Final = "/api/v1/query_range"


def fetch_prometheus(
    system: PrometheusSystem, totals: Sequence[str], days: Sequence[date], zone: ZoneInfo, timeout: timedelta
) -> Answer:
    """The totals of these days. A failure is an answer with an error, never a 0."""
    end = time.monotonic() + timeout.total_seconds()
    found: dict[date, dict[str, Any]] = {}
    try:
        headers = _headers(system)
        ends = {int(day_of(day, zone).end.timestamp()): day for day in days}
        for total in totals:
            for run in _runs(sorted(ends)):
                for moment, value in _values(system, total, run, headers, end).items():
                    if moment in ends:
                        found.setdefault(ends[moment], {})[total] = value
    except QueryError as error:
        return Answer(error=str(error))
    except (OSError, HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        slow = isinstance(reason, TimeoutError)
        why = f"no answer within {timeout.total_seconds():g} s" if slow else sentence(reason)
        return Answer(error=f"{sentence(system.url)} cannot be asked: {why}")
    return Answer(found)


def _runs(moments: Sequence[int]) -> Iterator[list[int]]:
    """The moments in runs of whole days: a change of the clocks begins a new one."""
    run: list[int] = []
    for moment in moments:
        if run and moment - run[-1] != _DAY_SECONDS:
            yield run
            run = []
        run.append(moment)
    if run:
        yield run


def _headers(system: PrometheusSystem) -> dict[str, str]:
    if system.bearer_token_file is not None:
        return {"Authorization": f"Bearer {_secret(system.bearer_token_file)}"}
    if system.username is not None and system.password_file is not None:
        pair = f"{system.username}:{_secret(system.password_file)}"
        encoded = base64.b64encode(pair.encode()).decode()
        keep_secret(encoded, _HIDDEN)
        return {"Authorization": f"Basic {encoded}"}
    return {}


def _secret(path: str) -> str:
    """The text of a file. From now on no message shows it: a server may repeat what it refuses."""
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(_MOST_SECRET)
        text = content.decode("utf-8").strip()
    except OSError as error:
        raise QueryError(f"the file {sentence(path)} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise QueryError(f"the file {sentence(path)} is not UTF-8 text") from None
    if not text or not text.isprintable():
        raise QueryError(f"the file {sentence(path)} must hold one line of text")
    keep_secret(text, _HIDDEN)
    return text


def _opener() -> OpenerDirector:
    """HTTP and HTTPS alone, without redirects: a token must not go to another server."""
    opener = OpenerDirector()
    for handler in (ProxyHandler(), HTTPHandler(), HTTPSHandler()):
        opener.add_handler(handler)
    return opener


def _values(
    system: PrometheusSystem, total: str, moments: Sequence[int], headers: dict[str, str], end: float
) -> dict[int, Any]:
    """The values at these moments by moment."""
    form = urlencode(
        {"query": system.queries[total], "start": moments[0], "end": moments[-1], "step": _DAY_SECONDS}
    ).encode()
    kind = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    request = Request(f"{system.url}{_PATH}", data=form, headers={**headers, **kind})  # noqa: S310
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    with _opener().open(request, timeout=left) as response:
        body = _read(response, end)
        code = response.status
    try:
        content = json.loads(body)
        state = content["status"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise QueryError(f"{total}: the answer with code {code} is not that of a Prometheus") from None
    if state != "success":
        raise QueryError(f"{total}: {sentence(content.get('error') or f'the answer has code {code}')}")
    return _series(total, content)


def _read(response: Any, end: float) -> bytes:
    body = bytearray()
    while part := response.read1(_CHUNK):
        body += part
        if len(body) > MOST_BYTES:
            raise QueryError(f"the answer has more than {MOST_BYTES >> 20} MiB")
        if time.monotonic() > end:
            raise TimeoutError
    return bytes(body)


def _series(total: str, content: Any) -> dict[int, Any]:
    try:
        data = content["data"]
        if data["resultType"] != "matrix":
            raise QueryError(f"{total}: the query gives a {sentence(data['resultType'])}, not a series")
        series = data["result"]
        if len(series) > 1:
            raise QueryError(f"{total}: the query gives {len(series):,} series; write sum(...) around it")
        return {round(float(at)): value for one in series for at, value in one["values"]}
    except (TypeError, KeyError, ValueError, OverflowError):
        raise QueryError(f"{total}: the answer is not that of a Prometheus") from None
