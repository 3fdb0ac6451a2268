"""The gaps of a model's AUC on the page, with the causes of violated gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from monitor.core.columns import ONLINE
from monitor.core.results import Result, ResultKind, Status
from monitor.core.text import visible
from monitor.history.snapshot import Series
from monitor.metrics.family import MODEL_LABEL, SPLIT_LABEL
from monitor.models.diagnosis.registry import RUNBOOKS
from monitor.models.feature_specs import DISTANCES, SCORE_DISTANCE
from monitor.models.specs import CAUSE_LABEL, PAIR_LABEL, SAMPLE_ROWS
from monitor.models.split_results import SIDES, unexplained
from monitor.report import rows
from monitor.report.causes import by_share, cause_name, explains, share_text
from monitor.report.runbooks import runbook_address
from monitor.report.views import CauseView, GapView, Measure, SeriesRow

_DETAIL: Final = 2000  # characters: the finding and what to do
_GAP_RUNBOOK: Final = "RecsysAucGap"
_PAIRS: Final[dict[str, str]] = {pair: " minus ".join(sides) for pair, sides in SIDES.items()}


def pair_name(pair: str) -> str:
    """The two splits in words.

    >>> pair_name("test_online")
    'test minus online'
    """
    return _PAIRS[pair]


def cause_href(recommender: str, result: Result) -> str:
    """The address of a cause's evidence.

    A model may have any name, even an empty one or `..`. So its name is last and has a prefix.

    >>> labels = {"pair": "test_online", "cause": "serving_skew", "model": "a/b?"}
    >>> cause_href("shop", Result(metric="auc_gap_cause", labels=labels, status=Status.OK, definition="1"))
    'recommenders/shop/gaps/test_online/serving_skew/model-a%2Fb%3F'
    """
    pair, cause, model = (
        rows.in_address(result.labels[label]) for label in (PAIR_LABEL, CAUSE_LABEL, MODEL_LABEL)
    )
    return f"{rows.recommender_href(recommender)}/gaps/{pair}/{cause}/model-{model}"


def gaps_of(series: Iterable[Series]) -> list[Series]:
    """The gaps among the series, from training to service."""
    order = list(_PAIRS)
    found = [one for one in series if one.result.kind is ResultKind.GAP]
    return sorted(found, key=lambda one: order.index(one.result.labels[PAIR_LABEL]))


def gaps_that_count(series: Sequence[Series]) -> list[Series]:
    """The gaps that count for the state of the recommender.

    If some model is served, the others have no online rows, and their missing verdict needs no action.
    """
    served = {
        one.result.labels[MODEL_LABEL]
        for one in series
        if one.result.metric == SAMPLE_ROWS.name
        and one.result.labels[SPLIT_LABEL] == ONLINE
        and one.result.status is Status.OK
    }
    return [
        gap
        for gap in gaps_of(series)
        if not served or gap.result.labels[MODEL_LABEL] in served or gap.standing is not Status.NO_DATA
    ]


def causes_of(gap: Series, series: Iterable[Series]) -> list[Series]:
    """The causes of the gap, the largest share first. Empty unless its last window is violated."""
    if gap.result.status is not Status.VIOLATED:
        return []
    found = (one for one in series if explains(one.result, gap.result))
    return sorted(found, key=lambda one: by_share(one.result))


def gap_view(gap: Series, series: Sequence[Series], now: datetime, docs_url: str) -> GapView:
    """The view of a gap. `series` are all series of its model."""
    causes = causes_of(gap, series)
    why = ""
    if gap.standing is Status.VIOLATED and not causes:
        why = unexplained(gap.result)
        if gap.result.status is not Status.VIOLATED:
            why = (
                "The interval of the last window's gap is not wholly above the bound, so the gap was not "
                "explained again. It stays violated until a window clears it."
            )
    pair = gap.result.labels[PAIR_LABEL]
    apart = {
        one.result.labels["by"]: one.result
        for one in series
        if one.result.metric == SCORE_DISTANCE.name and one.result.labels[PAIR_LABEL] == pair
    }
    known = [apart[by] for by in DISTANCES if by in apart]
    return GapView(
        row=rows.named_row(gap, now, name=pair_name(pair)),
        causes=tuple(cause_view(one, docs_url) for one in causes),
        unexplained=why,
        distances=tuple((distance_name(one), measure(one)) for one in known),
    )


def cause_view(series: Series, docs_url: str) -> CauseView:
    """The view of a cause, with links to its evidence and its runbook."""
    result = series.result
    path = f"docs/runbooks/{RUNBOOKS.get(result.labels[CAUSE_LABEL], _GAP_RUNBOOK)}.md"
    known = result.value is not None
    return CauseView(
        name=cause_name(result),
        share=share_text(result),
        percent=round(100 * min(max(result.value or 0.0, 0.0), 1.0), 1) if known else None,
        detail=visible(result.detail, _DETAIL),
        href=cause_href(series.recommender, result),
        evidence=len(result.evidence),
        runbook=runbook_address(path, docs_url),
    )


def first_runbook(gap: Series, series: Sequence[Series], docs_url: str) -> str:
    """The runbook of the cause with the largest share; empty if no cause is known."""
    mine = [one for one in series if one.result.labels[MODEL_LABEL] == gap.result.labels[MODEL_LABEL]]
    return next((cause_view(one, docs_url).runbook for one in causes_of(gap, mine)), "")


def attention_row(gap: Series, series: Iterable[Series], now: datetime) -> SeriesRow:
    """The attention row of a gap: it names the model and the first cause, and links to the evidence."""
    model, pair = gap.result.labels[MODEL_LABEL], gap.result.labels[PAIR_LABEL]
    note = f"model {rows.model_name(model)}"
    causes = causes_of(gap, [one for one in series if one.result.labels[MODEL_LABEL] == model])
    href, evidence = f"{rows.recommender_href(gap.recommender)}#models", 0
    if causes:
        first = causes[0].result
        note += f", first cause: {cause_name(first)}"
        if first.evidence:
            href, evidence = cause_href(gap.recommender, first), len(first.evidence)
    row = rows.named_row(gap, now, name=f"AUC {pair_name(pair)}", href=href)
    return replace(row, note=visible(note), evidence=evidence)


def distance_name(result: Result) -> str:
    """The name of a distance in words."""
    return result.labels["by"].replace("_", " ")


def measure(result: Result) -> Measure:
    """A result as one cell."""
    value = "" if result.value is None else rows.shower_of(result)(result.value)
    return Measure(value, rows.interval_text(result), rows.verdict(result.status))
