"""Results to record, and the way into a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from monitor.core.results import Result, ResultKind, Status, Window
from monitor.history.counters import key
from monitor.history.record import CheckRun, Recorded
from monitor.history.store import Store
from tests.history.conftest import hour

NOON = datetime(2026, 1, 2, 12, 0, 0, 123456, tzinfo=UTC)


Dump = Callable[[Store], dict[str, list[Any]]]


def rule(name: str, violations: int, samples: int = 100, **more: Any) -> Result:
    return Result(
        kind=ResultKind.RULE,
        metric="rule",
        status=Status.VIOLATED if violations else Status.OK,
        definition="1",
        labels={"rule": name, "kind": "hard"},
        value=violations / samples,
        samples=samples,
        violations=violations,
        threshold=0.0,
        severity="critical",
        evidence=tuple({"item_id": f"i{n}", "place": n} for n in range(min(violations, 20))),
        **more,
    )


COVERAGE = Result(
    metric="coverage",
    status=Status.OK,
    definition="1",
    labels={"by": "pv"},
    value=1 / 3,
    samples=2**40,
    lower=0.1,
    upper=0.9000000000000001,
    bound="min",
    threshold=0.2,
)


def record(
    store: Store,
    window: Window,
    results: Sequence[Result],
    *,
    recommender: str = "shop",
    check: str = "rules",
    fingerprint: str = "a",
    rows: int = 1,
    evaluated_at: datetime = NOON,
    **run: Any,
) -> Recorded:
    """Record the window of one check; `run` are the other fields of its `CheckRun`."""
    runs = [CheckRun(check=check, results=results, **run)]
    return store.record_window(
        recommender, window, runs, fingerprint=fingerprint, rows=rows, evaluated_at=evaluated_at
    )


def put(
    store: Store, results: list[Result], number: int = 0, fingerprint: str = "a", **more: Any
) -> Recorded:
    given = {"rows": 100, "seconds": 0.5} | more
    return record(store, hour(number), results, fingerprint=fingerprint, **given)


def counted(store: Store, name: str, **labels: str) -> float:
    return store.counters()[key(name, {"recommender": "shop", **labels})]
