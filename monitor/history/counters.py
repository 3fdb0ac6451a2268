"""Counters that survive restarts: their names, and by how much results raise them.

Counters of results are raised in the transaction that stores the results.
"""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal, get_args

from sqlalchemy import Connection, Text, false, or_, select, type_coerce
from sqlalchemy.dialects import postgresql, sqlite

from monitor.core.results import VERDICTS, Kind, Result, ResultKind, Status
from monitor.history import schema
from monitor.history.snapshot import CounterKey

WINDOWS: Final = "recsys_windows_total"
CHECK_RUNS: Final = "recsys_check_runs_total"
RULE_VIOLATIONS: Final = "recsys_rule_violations_total"
RULE_JUDGED: Final = "recsys_rule_judged_total"
CORRECTIONS: Final = "recsys_corrections_total"
UNDEFINED: Final = "recsys_undefined_total"
SCHEDULED: Final = "recsys_scheduler_runs_total"
STORE_ERRORS: Final = "recsys_store_errors_total"
OF_RULES: Final = (RULE_VIOLATIONS, RULE_JUDGED)
NAMES: Final = (WINDOWS, CHECK_RUNS, *OF_RULES, CORRECTIONS, UNDEFINED, SCHEDULED, STORE_ERRORS)

RunEnd = Literal["ok", "error", "interrupted"]
"""How a run of a check ends."""
RUN_ENDS: Final[tuple[RunEnd, ...]] = get_args(RunEnd)
TurnEnd = Literal["ok", "failed", "missed", "overrun"]
"""How a scheduled turn of a recommender ends, or why there was none."""
TURN_ENDS: Final[tuple[TurnEnd, ...]] = get_args(TurnEnd)


def key(name: str, labels: Mapping[str, str]) -> CounterKey:
    """The key of a counter in a snapshot.

    >>> key("recsys_x_total", {"b": "2", "a": "1"})
    ('recsys_x_total', (('a', '1'), ('b', '2')))
    """
    return name, tuple(sorted(labels.items()))


def add(connection: Connection, increments: Mapping[CounterKey, float]) -> None:
    """Add to the counters. An increment of 0 creates a counter, so that Prometheus sees its first rise."""
    if not increments:
        return
    if any(not math.isfinite(by) or by < 0 for by in increments.values()):
        raise ValueError("a counter only rises, by a finite number")
    rows = [
        {"name": name, "labels": dict(labels), "value": float(by)}
        for (name, labels), by in sorted(increments.items())
    ]
    insert = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(schema.counters)
    columns = schema.counters.c
    connection.execute(
        insert.on_conflict_do_update(
            index_elements=[columns.name, columns.labels],
            set_={"value": columns.value + insert.excluded.value},
        ),
        rows,
    )


def read(connection: Connection, of: Collection[str] | None = None) -> dict[CounterKey, float]:
    """Every counter, or those of some recommenders: a fleet has thousands."""
    columns = schema.counters.c
    labels = type_coerce(columns.labels, Text)
    query = select(columns.name, labels, columns.value)
    if of is not None:
        own = [schema.canonical({"recommender": one})[1:-1] for one in of]
        query = query.where(or_(false(), *(labels.contains(one, autoescape=True) for one in own)))
    rows = connection.execute(query)
    return {_stored_key(name, labels): value for name, labels, value in rows}


@functools.lru_cache(maxsize=1 << 16)  # the same rows are read after each window
def _stored_key(name: str, labels: str) -> CounterKey:
    return key(name, json.loads(labels))


def of_results(
    recommender: str, results: Iterable[Result], before: Iterable[Result], *, in_maintenance: bool = False
) -> dict[CounterKey, float]:
    """The increments from the results of a window, less what its earlier results `before` added.

    A rule that was already violated in this window adds nothing: alerts watch the counter, and a correction
    must not page anybody again for the same window. Judged rows are counted like violations, so that their
    ratio is right. Slices are left out, because they count the same violations again. In maintenance soft
    rules add nothing: maintenance uses no error budget.
    """
    before, results = list(before), list(results)
    if in_maintenance:
        results = [_emptied(one) if one.labels.get("kind") == Kind.SOFT else one for one in results]
    old = _counted(recommender, before)
    fired = [one for one in before if one.status is Status.VIOLATED and one.kind is ResultKind.RULE]
    violated = set(_counted(recommender, fired))
    return {
        name: 0 if name in violated else max(0, count - old.get(name, 0))
        for name, count in _counted(recommender, results).items()
    }


def _emptied(result: Result) -> Result:
    return replace(result, violations=0, samples=0)


def _counted(recommender: str, results: Iterable[Result]) -> Counter[CounterKey]:
    counted: Counter[CounterKey] = Counter()
    for result in results:
        if "dimension" in result.labels:
            continue
        if result.kind is ResultKind.RULE:
            labels = {name: result.labels.get(name, "") for name in ("rule", "kind")}
            labels["recommender"] = recommender
            counted[key(RULE_VIOLATIONS, labels)] += result.violations or 0
            counted[key(RULE_JUDGED, labels)] += result.samples or 0
        else:  # also 0: a later window may lack the metric, and a counter must not disappear
            undefined = key(UNDEFINED, {"recommender": recommender, "metric": result.metric})
            counted[undefined] += result.status is Status.UNDEFINED
    return counted


def of_run(recommender: str, check: str, outcome: RunEnd) -> dict[CounterKey, float]:
    """One more run of a check."""
    return {
        key(CHECK_RUNS, {"recommender": recommender, "check": check, "status": one}): float(one == outcome)
        for one in RUN_ENDS
    }


def of_window(recommender: str, status: Status | None, corrected: bool) -> dict[CounterKey, float]:
    """One more window with this status (None: nothing new to count), and one more correction."""
    added = {
        key(WINDOWS, {"recommender": recommender, "status": one.value}): float(one is status)
        for one in VERDICTS
    }
    return added | {key(CORRECTIONS, {"recommender": recommender}): float(corrected)}
