"""Results as the store keeps them, and back."""

from __future__ import annotations

import logging
import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, select

from monitor.core.json_value import json_value
from monitor.core.results import MOST_EVIDENCE, Result, ResultKind, Status
from monitor.core.text import DETAIL_LENGTH
from monitor.history import schema
from monitor.history.packing import FIELDS, WindowResults, unpack

log = logging.getLogger(__name__)

_NUMBERS: Final = ("value", "lower", "upper", "threshold", "clear")
BATCH: Final = 500  # ids in one IN (...)


def sanitize_result(result: Result) -> Result:
    """The result as it is stored: finite numbers, bounded evidence of plain JSON values.

    A NaN or infinite number is a mistake of the check: the result becomes an `error` that says so, and the
    rest of the window is stored.
    """
    numbers: dict[str, Any] = {name: _float(getattr(result, name)) for name in _NUMBERS}
    wrong = [f"{name} {value}" for name, value in numbers.items() if not _finite(value)]
    if wrong:
        log.warning("%s %s gave %s", result.metric, dict(result.labels), ", ".join(wrong))
        detail = f"the check gave {', '.join(wrong)}, which is no number that can be judged or kept"
        result = replace(result, status=Status.ERROR, detail=detail)
        numbers |= dict.fromkeys(("value", "lower", "upper"))
        numbers |= {name: value if _finite(value) else None for name, value in numbers.items()}
    return replace(
        result,
        **numbers,
        labels={str(name): str(value) for name, value in result.labels.items()},
        samples=None if result.samples is None else int(result.samples),
        violations=None if result.violations is None else int(result.violations),
        detail=schema.safe_text(result.detail)[:DETAIL_LENGTH],
        evidence=tuple(json_value(row) for row in result.evidence[:MOST_EVIDENCE]),
    )


def _finite(value: float | None) -> bool:
    return value is None or math.isfinite(value)


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def series_digest(result: Result) -> str:
    """The key of a series among those of its check."""
    return schema.value_digest([result.metric, dict(result.labels)])


def by_series(results: Iterable[Result]) -> dict[str, Result]:
    """Sanitized results by series. A series that is given twice is an error: either could be right."""
    kept: dict[str, Result] = {}
    for result in map(sanitize_result, results):
        name = series_digest(result)
        if name in kept:
            log.warning("%s %s was given twice", result.metric, dict(result.labels))
        kept[name] = result if name not in kept else _twice(result)
    return kept


def _twice(result: Result) -> Result:
    return Result(
        kind=result.kind,
        metric=result.metric,
        labels=result.labels,
        definition=result.definition,
        status=Status.ERROR,
        detail="the check gave this result twice",
    )


def stored_fields(result: Result) -> dict[str, Any]:
    """The fields of a result that are stored by window."""
    return {name: getattr(result, name) for name in FIELDS} | {"status": result.status.value}


class StoredSeries(NamedTuple):
    """What the results of a series share."""

    metric: str
    labels: dict[str, str]
    kind: ResultKind
    digest: str


def series_by_id(connection: Connection, ids: Iterable[int]) -> dict[int, StoredSeries]:
    """These series, in the order of metric and labels."""
    columns = schema.series.c
    query = select(columns.id, columns.metric, columns.labels, columns.kind, columns.digest)
    found = {
        number: StoredSeries(metric, labels, ResultKind(kind), digest)
        for part in batches(sorted(set(ids)))
        for number, metric, labels, kind, digest in connection.execute(query.where(columns.id.in_(part)))
    }
    return dict(sorted(found.items(), key=lambda one: (one[1].metric, schema.canonical(one[1].labels))))


def window_results(connection: Connection, ids: Sequence[int]) -> dict[int, WindowResults]:
    """Window id -> its results by field, quicker than as objects."""
    columns = schema.results.c
    found = {number: WindowResults([], {}) for number in ids}
    for part in batches(ids):
        query = select(columns.window_id, columns.content).where(columns.window_id.in_(part))
        found |= {number: unpack(content) for number, content in connection.execute(query)}
    return found


def results_of_windows(
    connection: Connection, ids: Sequence[int], wanted: Container[int] | None = None
) -> dict[int, dict[int, Result]]:
    """Window id -> series id -> result with its evidence, in the order of metric and labels.

    `wanted` are the ids of the only series to return; None: all.
    """
    stored = window_results(connection, ids)
    if wanted is not None:
        stored = {number: results.of(wanted) for number, results in stored.items()}
    series = series_by_id(connection, {number for results in stored.values() for number in results.series})
    evidence = evidence_of(connection, ids)
    found: dict[int, dict[int, Result]] = {}
    for window, results in stored.items():
        rows = zip(*(results.column(name) for name in FIELDS), strict=True)
        by_id = dict(zip(results.series, rows, strict=True))
        found[window] = {
            number: _result(one, by_id[number], evidence.get((window, number), ()))
            for number, one in series.items()
            if number in by_id
        }
    return found


def _result(series: StoredSeries, row: Sequence[Any], evidence: Sequence[Any]) -> Result:
    fields = dict(zip(FIELDS, row, strict=True))
    fields["status"] = Status(fields["status"])
    return Result(
        metric=series.metric, labels=series.labels, kind=series.kind, evidence=tuple(evidence), **fields
    )


def evidence_of(connection: Connection, ids: Sequence[int]) -> dict[tuple[int, int], list[Any]]:
    """(window id, series id) -> rows of evidence, of these windows."""
    held = schema.evidence.c
    found: dict[tuple[int, int], list[Any]] = {}
    for part in batches(ids):
        query = select(held.window_id, held.series_id, held.content).where(held.window_id.in_(part))
        for window, series, content in connection.execute(
            query.order_by(held.window_id, held.series_id, held.place)
        ):
            found.setdefault((window, series), []).append(content)
    return found


def batches(ids: Sequence[Any], size: int = BATCH) -> Iterable[Sequence[Any]]:
    """The ids in parts that fit one statement.

    >>> list(batches([1, 2, 3], 2))
    [[1, 2], [3]]
    """
    for start in range(0, len(ids), size):
        yield ids[start : start + size]
