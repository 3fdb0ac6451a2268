"""Results and series made by hand, and texts that a log might hold to do harm."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from monitor.catalogue import ALL_SPECS
from monitor.core.results import Kind, Result, ResultKind, Status, Window
from monitor.history.snapshot import Point, Series

NOW = datetime(2026, 3, 9, 14, 7, tzinfo=UTC)
HOUR = timedelta(hours=1)
LAST = Window(datetime(2026, 3, 9, 13, tzinfo=UTC), datetime(2026, 3, 9, 14, tzinfo=UTC))
HOSTILE = "<script>document.title='pwned'</script>"
NASTY = (
    HOSTILE,
    '"><img src=x onerror="document.title=\'pwned\'">',
    'it\'s "quoted" & <b>bold</b>',
    "safe\u202egnp.exe",
    "two\nlines\tand\x00nul",
    "x" * 5000,
    "{{ 7 * 7 }}",
    "\ud800 lone",
    "日本語のアイテム",
)


def past(
    values: list[float | None], statuses: dict[int, Status] | None = None, half: float | None = None
) -> tuple[Point, ...]:
    """Points of the hours up to LAST, oldest first; `half` is the half of the width of their intervals."""
    first = LAST.start - HOUR * (len(values) - 1)
    found = []
    for index, value in enumerate(values):
        start = first + HOUR * index
        status = (statuses or {}).get(index, Status.OK if value is not None else Status.NO_DATA)
        ends = () if value is None or half is None else (value - half, value + half)
        found.append(Point(Window(start, start + HOUR), value, status, *ends))
    return tuple(found)


def series(
    result: Result,
    *,
    recommender: str = "shop",
    check: str = "exposure",
    standing: Status | None = None,
    hours: int = 0,
    points: tuple[Point, ...] = (),
) -> Series:
    """A series that has been as it is for so many hours."""
    return Series(
        recommender=recommender,
        check=check,
        window=LAST,
        result=result,
        evaluated_at=LAST.end + timedelta(minutes=5, seconds=12),
        standing=standing or result.status,
        since=LAST.start - HOUR * hours,
        past=points,
    )


def rule(name: str, kind: Kind = Kind.HARD, status: Status = Status.OK, **fields: Any) -> Result:
    return Result(
        kind=ResultKind.RULE,
        metric="rule",
        status=status,
        definition="1",
        labels={"rule": name, "kind": kind.value},
        threshold=fields.pop("threshold", 0.0),
        severity=fields.pop("severity", "critical"),
        **fields,
    )


def _kind(name: str, labels: Mapping[str, str]) -> ResultKind:
    if "log" in labels:
        return ResultKind.LOG
    kind = ALL_SPECS[name].kind if name in ALL_SPECS else ResultKind.METRIC
    return ResultKind.MODEL if kind is ResultKind.METRIC and "model" in labels else kind


def metric(name: str, by: str = "", status: Status = Status.OK, **fields: Any) -> Result:
    labels = {"by": by} if by else {}
    labels |= fields.pop("labels", {})
    return Result(
        kind=_kind(name, labels), metric=name, status=status, definition="1", labels=labels, **fields
    )


def evidence() -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "request_id": 880000 + index,
            "user_id": "9f86d081884c7d65",
            "ts": f"2026-03-09T13:{index:02}:11Z",
            "item_id": item,
            "position": index + 1,
            "score": None if index == 3 else 0.8173645 / (index + 1),
            "list_version": "2026-03-09T12:00:03Z",
        }
        for index, item in enumerate(NASTY)
    )
