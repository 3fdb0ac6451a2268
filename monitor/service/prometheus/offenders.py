"""The values that occur most often in the evidence of a violated rule, so that an alert can name them."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Final

from monitor.core.columns import ITEM_ID, MODEL, SCENE
from monitor.core.results import ResultKind
from monitor.core.text import visible_evidence
from monitor.history.snapshot import RecommenderState
from monitor.service.prometheus.families import OFFENDERS
from monitor.service.prometheus.states import Labels, is_slice, label

COLUMNS: Final = (ITEM_ID, SCENE, MODEL)  # no user: an alert leaves the company's network
RECENT: Final = timedelta(days=1)  # an alert on a hard rule looks back so far


def add_offenders(values: dict[Labels, float], state: RecommenderState, now: datetime) -> None:
    """For each rule with a recent violation, the most frequent values of its evidence, with their rows.

    A verdict may clear before it is scraped, so the violation counts, not the current verdict.
    """
    for series in state.series:
        violation = series.violation
        if series.result.kind is not ResultKind.RULE or is_slice(series.result) or series.excused:
            continue
        if violation is None or violation.window.end < now - RECENT:
            continue
        rule = series.result.labels.get("rule", "")
        for column in COLUMNS:
            rows = (row.get(column) for row in violation.result.evidence)
            found = Counter(visible_evidence(value) for value in rows if value not in (None, ""))
            # By name where the rows are equal, so that the same evidence gives the same series.
            most = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:OFFENDERS]
            for value, count in most:
                values[label(state.name), label(rule), column, label(value)] = float(count)
