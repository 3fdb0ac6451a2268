"""The page of one rule: its verdict, its counts and its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from monitor.core.results import Status, rank
from monitor.core.text import visible
from monitor.history.counters import RULE_VIOLATIONS
from monitor.history.snapshot import RecommenderState, Series, Snapshot
from monitor.report import numbers, rows
from monitor.report.frame import frame
from monitor.report.runbooks import runbook_address
from monitor.report.views import RulePage

_UNJUDGED: Final[Mapping[Status, str]] = {
    Status.ERROR: "The rule could not run in this window, so there is no evidence for or against it.",
    Status.NO_DATA: "There was nothing to judge in this window.",
    Status.UNDEFINED: "The rule does not apply to this log, so no row was judged.",
}


def rule_page(
    snapshot: Snapshot, recommender: str, rule: str, now: datetime, docs_url: str = ""
) -> RulePage | None:
    """The page of a rule, None if there is no such rule. Runbook paths are below `docs_url`."""
    state = next((s for s in snapshot.recommenders if s.name == recommender), None)
    if state is None:
        return None
    series = rule_series(state, rule)
    info = next((i for i in state.rules if i.rule == rule), None)
    if series is not None:
        row = rows.rule_row(series, now)
    elif info is not None:
        row = rows.pending_row(recommender, info)
    else:
        return None
    source = rows.evidence_source(series) if series else None
    columns, cells = evidence_table(source.result.evidence if source else ())
    runbook = runbook_address(info.runbook, docs_url) if info else ""
    kind = info.kind.value if info is not None else series.result.labels.get("kind", "") if series else ""
    return RulePage(
        frame=frame(snapshot, now),
        recommender=visible(state.name),
        recommender_href=rows.recommender_href(state.name),
        row=row,
        kind=visible(kind),
        severity=visible(series.result.severity) if series else "",
        description=visible(info.description, 2000) if info else "",
        owner=visible(info.owner) if info else "",
        runbook=runbook,
        runbook_path="" if info is None or runbook else visible(info.runbook),
        window=numbers.window(series.window) if series else "",
        evaluated=rows.moment(series.evaluated_at, now) if series else None,
        definition=visible(series.result.definition) if series else "",
        evidence_window=numbers.window(source.window) if source and cells else "",
        evidence_is_older=bool(source and series and source.window != series.window),
        columns=columns,
        rows=cells,
        total=_total(snapshot, recommender, rule),
        empty=_empty(series),
    )


def rule_series(state: RecommenderState, rule: str) -> Series | None:
    """The rule's series. If the rule is also judged by slice, the worst one."""
    of_rule = (s for s in state.series if rows.is_rule(s.result) and s.result.labels.get("rule") == rule)
    return min(of_rule, key=lambda series: rank(series.standing), default=None)


def evidence_table(
    evidence: Sequence[Mapping[str, Any]],
) -> tuple[tuple[str, ...], tuple[tuple[str | None, ...], ...]]:
    """The columns of all rows, and the cells of each row: texts, None without a value."""
    keys = list(dict.fromkeys(key for row in evidence for key in row))
    cells = tuple(
        tuple(None if row.get(key) is None else visible(row[key]) for key in keys) for row in evidence
    )
    return tuple(visible(key) for key in keys), cells


def _total(snapshot: Snapshot, recommender: str, rule: str) -> str:
    own = {("recommender", recommender), ("rule", rule)}
    totals = [
        value
        for (family, pairs), value in snapshot.counters.items()
        if family == RULE_VIOLATIONS and own <= set(pairs)
    ]
    return numbers.count(sum(totals)) if totals else ""


def _empty(series: Series | None) -> str:
    if series is None:
        return "No window has been judged by this rule yet."
    result = series.result
    if result.evidence:
        return ""
    if result.status in _UNJUDGED:
        return _UNJUDGED[result.status]
    if result.violations:
        return "Rows violate the rule, but none was kept as evidence."
    if result.status is Status.LATE:
        return "No row so far violates the rule, but rows of this window may be missing."
    if series.standing is Status.VIOLATED:
        return "No row of the last window violates the rule; it stays violated until a window clears it."
    return "No row of this window violates the rule."
