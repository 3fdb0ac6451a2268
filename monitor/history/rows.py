"""Results as rows of the store, and back."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Row, select

from monitor.core.json_value import json_value
from monitor.core.results import MOST_EVIDENCE, Result, ResultKind, Status
from monitor.core.text import DETAIL_LENGTH
from monitor.history import schema

log = logging.getLogger(__name__)

_NUMBERS: Final = ("value", "lower", "upper", "threshold", "clear")
BATCH: Final = 500  # ids in one IN (...)

_STORED: Final = (
    "definition", "status", "value", "samples", "lower", "upper", "detail", "violations", "threshold",
    "bound", "clear", "severity",
)  # fmt: skip
"""The fields of a result that are columns of their own."""
_COLUMN: Final = {"clear": "clear_bound"}  # where it has another name than the field

RESULT_COLUMNS: Final = (
    schema.results.c.window_id,
    schema.results.c.series_id,
    *(schema.results.c[_COLUMN.get(name, name)] for name in _STORED),
)
SERIES_COLUMNS: Final = (schema.series.c.metric, schema.series.c.labels, schema.series.c.kind)


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
    """The columns of a result in the table of results."""
    fields = {_COLUMN.get(name, name): getattr(result, name) for name in _STORED}
    return fields | {"status": result.status.value}


def result_of(row: Row[*tuple[Any, ...]], evidence: Sequence[Any] = ()) -> Result:
    """A row of RESULT_COLUMNS and SERIES_COLUMNS as a result again."""
    fields = {name: getattr(row, _COLUMN.get(name, name)) for name in _STORED}
    fields |= {"status": Status(row.status), "kind": ResultKind(row.kind)}
    return Result(metric=row.metric, labels=row.labels, evidence=tuple(evidence), **fields)


def results_of_windows(connection: Connection, ids: Sequence[int]) -> dict[int, dict[str, Result]]:
    """Window id -> series digest -> result with its evidence, in the order of metric and labels."""
    table, series = schema.results, schema.series
    found: dict[int, dict[str, Result]] = {window: {} for window in ids}
    for part in batches(ids):
        shown = evidence_of(connection, table.c.window_id.in_(part))
        query = (
            select(*RESULT_COLUMNS, *SERIES_COLUMNS, series.c.digest)
            .join_from(table, series, table.c.series_id == series.c.id)
            .where(table.c.window_id.in_(part))
        )
        rows = sorted(connection.execute(query), key=lambda row: (row.metric, schema.canonical(row.labels)))
        for row in rows:
            evidence = shown.get((row.window_id, row.series_id), ())
            found[row.window_id][row.digest] = result_of(row, evidence)
    return found


def evidence_of(connection: Connection, where: Any) -> dict[tuple[int, int], list[Any]]:
    """(window id, series id) -> rows of evidence, for the results that match."""
    table, held = schema.results, schema.evidence
    query = (
        select(held.c.window_id, held.c.series_id, held.c.content)
        .join_from(
            table, held, (held.c.window_id == table.c.window_id) & (held.c.series_id == table.c.series_id)
        )
        .where(where)
        .order_by(held.c.window_id, held.c.series_id, held.c.place)
    )
    found: dict[tuple[int, int], list[Any]] = {}
    for window, series, content in connection.execute(query):
        found.setdefault((window, series), []).append(content)
    return found


def batches(ids: Sequence[Any], size: int = BATCH) -> Iterable[Sequence[Any]]:
    """The ids in parts that fit one statement.

    >>> list(batches([1, 2, 3], 2))
    [[1, 2], [3]]
    """
    for start in range(0, len(ids), size):
        yield ids[start : start + size]
