"""The page of one rule: what it says, what it counted, and the rows that it found."""

from __future__ import annotations

from datetime import datetime
from pathlib import PurePosixPath
from urllib.parse import quote, urlsplit

from monitor.history.snapshot import RecommenderState, RuleInfo, Series, Snapshot, Violation
from monitor.history.standing import is_worse
from monitor.report import numbers, rows
from monitor.report.page import frame
from monitor.report.views import RulePage
from monitor.results import Status


def rule_page(
    snapshot: Snapshot, recommender: str, rule: str, now: datetime, docs_url: str = ""
) -> RulePage | None:
    """The evidence of a rule, None where there is no such rule; runbook paths are below `docs_url`."""
    state = next((s for s in snapshot.recommenders if s.name == recommender), None)
    if state is None:
        return None
    series = _series(state, rule)
    info = next((i for i in state.rules if i.rule == rule), None)
    if series is not None:
        row = rows.rule_row(series, now)
    elif info is not None:
        row = rows.pending_row(recommender, info)
    else:
        return None
    source = _source(series)
    columns, cells = _table(source)
    runbook = _web_address(info, docs_url)
    kind = info.kind.value if info is not None else series.result.labels.get("kind", "") if series else ""
    return RulePage(
        frame=frame(snapshot, now),
        recommender=numbers.visible(state.name),
        recommender_href=rows.recommender_href(state.name),
        row=row,
        kind=numbers.visible(kind),
        severity=numbers.visible(series.result.severity) if series else "",
        description=numbers.visible(info.description, 2000) if info else "",
        owner=numbers.visible(info.owner) if info else "",
        runbook=runbook,
        runbook_path="" if info is None or runbook else numbers.visible(info.runbook),
        window=numbers.window(series.window) if series else "",
        evaluated=rows.moment(series.evaluated_at, now) if series else None,
        definition=numbers.visible(series.result.definition) if series else "",
        evidence_window=numbers.window(source.window) if source and cells else "",
        evidence_is_older=bool(source and series and source.window != series.window),
        columns=columns,
        rows=cells,
        total=_total(snapshot, recommender, rule),
        empty=_empty(series),
    )


def _series(state: RecommenderState, rule: str) -> Series | None:
    """The rule's series; the worst one, should a rule be judged by slice as well."""
    found: Series | None = None
    for series in state.series:
        matches = rows.is_rule(series.result) and series.result.labels.get("rule") == rule
        if matches and (found is None or is_worse(series.standing, found.standing)):
            found = series
    return found


def _source(series: Series | None) -> Violation | None:
    """The newest window that has evidence: the last one, else the last that was violated."""
    if series is None or series.result.evidence:
        return None if series is None else Violation(series.window, series.result)
    return series.violation


def _table(source: Violation | None) -> tuple[tuple[str, ...], tuple[tuple[str | None, ...], ...]]:
    evidence = source.result.evidence if source else ()
    keys = list(dict.fromkeys(key for row in evidence for key in row))
    cells = tuple(
        tuple(None if row.get(key) is None else numbers.visible(row[key]) for key in keys) for row in evidence
    )
    return tuple(numbers.visible(key) for key in keys), cells


def _web_address(info: RuleInfo | None, docs_url: str) -> str:
    """The runbook, if it is something that may safely be a link."""
    address = info.runbook if info else ""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    if parts.scheme in ("http", "https"):
        return address
    path = PurePosixPath(parts.path)
    if (
        not docs_url
        or not parts.path
        or parts.scheme
        or parts.netloc
        or path.is_absolute()
        or ".." in path.parts
    ):
        return ""
    fragment = f"#{quote(parts.fragment)}" if parts.fragment else ""
    return f"{docs_url}/{quote(parts.path)}{fragment}"


def _total(snapshot: Snapshot, recommender: str, rule: str) -> str:
    own = {("recommender", recommender), ("rule", rule)}
    totals = [
        value
        for (family, pairs), value in snapshot.counters.items()
        if family == "recsys_rule_violations_total" and own <= set(pairs)
    ]
    return numbers.count(sum(totals)) if totals else ""


def _empty(series: Series | None) -> str:
    if series is None:
        return "No window has been judged by this rule yet."
    result = series.result
    if result.evidence:
        return ""
    if result.status is Status.ERROR:
        return "The rule could not be run in this window, so there is no evidence for or against it."
    if result.status is Status.NO_DATA:
        return "There was nothing to judge in this window."
    if result.violations:
        return "Rows violate the rule, and none of them was kept as evidence."
    if series.standing is Status.VIOLATED:
        return "No row of the last window violates the rule; it stands until a window clears it."
    return "No row of this window violates the rule."
