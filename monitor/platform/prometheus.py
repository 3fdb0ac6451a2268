"""Totals from a Prometheus: one range query for each total, with a step of a day, at the end of each day."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from http.client import HTTPException
from typing import Any, Final
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import Request
from zoneinfo import ZoneInfo

from monitor.core.http_access import AccessError, auth_headers, opener, read_within, sentence
from monitor.platform.answers import Answer, QueryError
from monitor.platform.days import day_of
from monitor.settings.platform import PrometheusSystem

_DAY_SECONDS: Final = 86_400
_PATH: Final = "/api/v1/query_range"


def fetch_prometheus(
    system: PrometheusSystem, totals: Sequence[str], days: Sequence[date], zone: ZoneInfo, timeout: timedelta
) -> Answer:
    """The totals of these days. A failure is an answer with an error, never a 0."""
    end = time.monotonic() + timeout.total_seconds()
    found: dict[date, dict[str, Any]] = {}
    try:
        headers = auth_headers(system.bearer_token_file, system.username, system.password_file)
        ends = {int(day_of(day, zone).end.timestamp()): day for day in days}
        for total in totals:
            for run in _runs(sorted(ends)):
                for moment, value in _values(system, total, run, headers, end).items():
                    if moment in ends:
                        found.setdefault(ends[moment], {})[total] = value
    except (AccessError, QueryError) as error:
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
    with opener().open(request, timeout=left) as response:
        body = read_within(response, end)
        code = response.status
    try:
        content = json.loads(body)
        state = content["status"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise QueryError(f"{total}: the answer with code {code} is not that of a Prometheus") from None
    if state != "success":
        raise QueryError(f"{total}: {sentence(content.get('error') or f'the answer has code {code}')}")
    return _series(total, content)


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
