"""A result as JSON, for `check --format json` and `history export`."""

from __future__ import annotations

import math
from typing import Any, Final

from monitor.core.json_value import iso, json_value
from monitor.core.results import Result, ResultKind, Window

_WITH_EVIDENCE: Final = (ResultKind.RULE, ResultKind.CAUSE, ResultKind.ANOMALY)


def result_as_json(recommender: str, check: str, window: Window, result: Result) -> dict[str, Any]:
    """The result as plain JSON values: times in ISO 8601 with Z, null for NaN and infinity.

    `detail` says in a sentence why the status is not `ok`. A rule also has `violations`, `threshold` and
    `evidence`, and its `value` is the violation ratio. The gap of a model's AUC also has its `threshold`. The
    cause of a gap, and an anomaly, also have `evidence`. Any other judged metric has `threshold` and `bound`,
    and `clear` if a violation ends at another value than it begins at.

    >>> from datetime import UTC, datetime, timedelta
    >>> from monitor.core.results import Status
    >>> hour = Window.of(datetime(2026, 1, 1, 10, tzinfo=UTC), timedelta(hours=1))
    >>> gini = Result(metric="gini", status=Status.NO_DATA, definition="1")
    >>> shown = result_as_json("shop", "exposure", hour, gini)
    >>> shown["window_start"], shown["metric"], shown["value"], "evidence" in shown
    ('2026-01-01T10:00:00Z', 'gini', None, False)
    """
    shown: dict[str, Any] = {
        "recommender": recommender,
        "check": check,
        "window_start": iso(window.start),
        "window_end": iso(window.end),
        "metric": result.metric,
        "labels": dict(result.labels),
        "value": _number(result.value),
        "samples": result.samples,
        "lower": _number(result.lower),
        "upper": _number(result.upper),
        "status": result.status.value,
        "detail": result.detail,
        "definition": result.definition,
    }
    if result.kind is ResultKind.RULE:
        shown["violations"] = result.violations
        shown["threshold"] = _number(result.threshold)
    elif result.kind is ResultKind.GAP:
        shown["threshold"] = _number(result.threshold)
    elif result.threshold is not None:
        shown |= {"threshold": _number(result.threshold), "bound": result.bound}
        shown |= {} if result.clear is None else {"clear": _number(result.clear)}
    if result.kind in _WITH_EVIDENCE:
        shown["evidence"] = [json_value(row) for row in result.evidence]
    return shown


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
