"""The page of one cause of a model's gap: the finding, what to do, and the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from monitor.core.text import visible
from monitor.history.snapshot import Snapshot
from monitor.metrics.family import MODEL_LABEL
from monitor.models.specs import CAUSE_LABEL, PAIR_LABEL
from monitor.report import gaps, numbers, rows
from monitor.report.evidence import evidence_table
from monitor.report.frame import frame
from monitor.report.views import CausePage, EvidenceTable


def cause_page(
    snapshot: Snapshot, recommender: str, model: str, pair: str, cause: str, now: datetime, docs_url: str = ""
) -> CausePage | None:
    """The page of a cause, None if the last window has no such cause."""
    state = next((s for s in snapshot.recommenders if s.name == recommender), None)
    if state is None:
        return None
    of_models = [one for one in state.series if rows.is_of_model(one.result)]
    wanted = {PAIR_LABEL: pair, MODEL_LABEL: model}
    gap = next((one for one in gaps.gaps_of(of_models) if dict(one.result.labels) == wanted), None)
    if gap is None:
        return None
    causes = gaps.causes_of(gap, of_models)
    series = next((one for one in causes if one.result.labels[CAUSE_LABEL] == cause), None)
    if series is None:
        return None
    result = series.result
    return CausePage(
        frame=frame(snapshot, now),
        recommender=visible(state.name),
        recommender_href=rows.recommender_href(state.name),
        model=visible(rows.model_name(model)),
        gap=rows.named_row(gap, now, name=gaps.pair_name(pair)),
        cause=gaps.cause_view(series, docs_url),
        samples="" if result.samples is None else numbers.count(result.samples),
        window=numbers.window(series.window),
        evaluated=rows.moment(series.evaluated_at, now),
        definition=visible(result.definition),
        evidence=tuple(_tables(result.evidence)),
    )


def _tables(evidence: Sequence[Mapping[str, Any]]) -> Iterator[EvidenceTable]:
    """A table for each kind of row: a cause may have rows of features and rows of requests."""
    kinds: dict[frozenset[str], list[Mapping[str, Any]]] = {}
    for row in evidence:
        kinds.setdefault(frozenset(row), []).append(row)
    for rows_of_a_kind in kinds.values():
        columns, cells = evidence_table(rows_of_a_kind)
        yield EvidenceTable(columns, cells)
