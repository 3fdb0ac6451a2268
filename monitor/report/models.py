"""The section on models: their splits, the gaps between them, and their features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from monitor.core.columns import ONLINE, TEST, TRAIN
from monitor.core.results import Result, Status, rank, worst_status
from monitor.core.text import visible
from monitor.history.snapshot import Series
from monitor.metrics.family import MODEL_LABEL, SPLIT_LABEL
from monitor.metrics.scores.auc import AUC
from monitor.metrics.scores.calibration import CALIBRATION, LOG_LOSS
from monitor.metrics.scores.user_auc import USER_AUC
from monitor.models.feature_specs import DISTANCES, FEATURE_DISTANCE, FEATURE_LABEL, FEATURE_SKEW
from monitor.models.specs import SAMPLE_ROWS
from monitor.report import gaps, numbers, rows
from monitor.report.sparkline import sparkline
from monitor.report.views import FeatureView, Measure, ModelView, SplitView

_SPLITS: Final = (TRAIN, TEST, ONLINE)
_WEIGHT: Final = "equal"  # the user AUC with this weight has its own cell
_FEATURES: Final = 20  # on a page; /metrics has them all


def model_views(series: Iterable[Series], now: datetime, docs_url: str) -> tuple[ModelView, ...]:
    """Every model of a recommender: the worst state first, then the most online rows."""
    models: dict[str, list[Series]] = {}
    for one in series:
        models.setdefault(one.result.labels[MODEL_LABEL], []).append(one)
    ordered = sorted(models.items(), key=lambda item: (rank(model_state(item[1])), -_online_rows(item[1])))
    return tuple(_model(model, own, now, docs_url) for model, own in ordered)


def _model(model: str, series: Sequence[Series], now: datetime, docs_url: str) -> ModelView:
    results = [one.result for one in series]
    features = _features(results)
    compared = (FEATURE_SKEW.name, FEATURE_DISTANCE.name)
    lacking = [
        one.detail
        for one in results
        if one.metric in compared and FEATURE_LABEL not in one.labels and one.detail
    ]
    return ModelView(
        name=visible(rows.model_name(model)),
        verdict=rows.verdict(model_state(series)),
        splits=tuple(split for name in _SPLITS if (split := _split(name, series)) is not None),
        gaps=tuple(gaps.gap_view(gap, series, now, docs_url) for gap in gaps.gaps_of(series)),
        features=tuple(features[:_FEATURES]),
        left_out=max(0, len(features) - _FEATURES),
        lacking=tuple(visible(text) for text in dict.fromkeys(lacking)),
    )


def model_state(series: Iterable[Series]) -> Status:
    """The worst state of the model's gaps. Without gaps, that of the AUC of its splits."""
    series = list(series)
    found = gaps.gaps_of(series)
    if found:
        return worst_status(one.standing for one in found)
    return worst_status(one.result.status for one in series if one.result.metric == AUC.name)


def _online_rows(series: Iterable[Series]) -> float:
    return sum(
        one.result.value or 0.0
        for one in series
        if one.result.metric == SAMPLE_ROWS.name and one.result.labels.get(SPLIT_LABEL) == ONLINE
    )


def _split(name: str, series: Iterable[Series]) -> SplitView | None:
    own = [one for one in series if one.result.labels.get(SPLIT_LABEL) == name]
    if not own:
        return None
    found = {(one.result.metric, one.result.labels.get("by", "")): one for one in own}

    def cell(metric: str, by: str = "") -> Measure | None:
        one = found.get((metric, by))
        return None if one is None else gaps.measure(one.result)

    otherwise = [
        f"by {by} {numbers.number(one.result.value)}"
        for (metric, by), one in found.items()
        if metric == USER_AUC.name and by != _WEIGHT and one.result.value is not None
    ]
    auc = found.get((AUC.name, ""))
    return SplitView(
        name=name,
        rows=cell(SAMPLE_ROWS.name),
        auc=cell(AUC.name),
        user_auc=cell(USER_AUC.name, _WEIGHT),
        user_auc_otherwise=visible(", ".join(otherwise)),
        log_loss=cell(LOG_LOSS.name),
        calibration=cell(CALIBRATION.name),
        spark=None if auc is None else sparkline(auc.past, numbers.number),
        notes=tuple(visible(text) for text in _details(one.result for one in own)),
    )


def _features(results: Iterable[Result]) -> list[FeatureView]:
    """Sorted by the difference on the same requests (its lower bound), then by the distance from training."""
    found: dict[str, dict[str, Result]] = {}
    for one in results:
        if one.metric in (FEATURE_SKEW.name, FEATURE_DISTANCE.name) and FEATURE_LABEL in one.labels:
            key = one.labels.get("by", "") if one.metric == FEATURE_DISTANCE.name else FEATURE_SKEW.name
            found.setdefault(one.labels[FEATURE_LABEL], {})[key] = one
    ordered = sorted(found.items(), key=lambda item: (_worth(item[1]), item[0]))
    return [_feature(name, own) for name, own in ordered]


def _worth(own: dict[str, Result]) -> tuple[float, ...]:
    skew = own.get(FEATURE_SKEW.name)
    surely = 0.0 if skew is None else skew.lower or 0.0
    far = max((own[by].value or 0.0 for by in ("jensen_shannon", "ks") if by in own), default=0.0)
    return (-surely, -far)


def _feature(name: str, own: dict[str, Result]) -> FeatureView:
    skew = own.get(FEATURE_SKEW.name)
    ordered = [own[key] for key in (FEATURE_SKEW.name, *DISTANCES) if key in own]
    return FeatureView(
        name=visible(name),
        skew=None if skew is None else gaps.measure(skew),
        pairs="" if skew is None or skew.samples is None else numbers.count(skew.samples),
        distances=tuple(gaps.measure(own[by]) if by in own else None for by in DISTANCES),
        notes=tuple(visible(text) for text in _details(ordered)),
    )


def _details(results: Iterable[Result]) -> list[str]:
    """The details of the results without repetitions."""
    return list(dict.fromkeys(one.detail for one in results if one.detail))
