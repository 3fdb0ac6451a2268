"""The results of a model's splits: the metrics of each split, and the gaps between them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from monitor.core.columns import ONLINE, TEST, TRAIN
from monitor.core.results import Result, ResultKind, Status
from monitor.metrics.family import MODEL_LABEL, SPLIT_LABEL, MetricSpec, ResultBuilder
from monitor.metrics.scores.auc import AUC, few_users
from monitor.metrics.scores.calibration import CALIBRATION, LOG_LOSS, calibration_sums, moved
from monitor.metrics.scores.labelled import sentences
from monitor.metrics.scores.user_auc import USER_AUC, WEIGHTS, weighted_mean_sums
from monitor.models import specs
from monitor.models.splits import SplitSums
from monitor.settings.metrics import MetricSettings
from monitor.settings.models import ModelSettings
from monitor.statistics.auc import AucSums, auc_gap, delong_interval
from monitor.statistics.effects import ratio_delta, ratio_within

SIDES: Mapping[specs.Pair, tuple[str, str]] = {"train_test": (TRAIN, TEST), "test_online": (TEST, ONLINE)}
"""The splits of a pair; the first should have the same AUC or a higher one."""

NOT_DIAGNOSED: Final = "its features, scores and causes are not all known"
"""What the detail of a gap says if the diagnosis failed."""


def unexplained(gap: Result) -> str:
    """Why a violated gap without a cause has none.

    >>> gap = Result(metric="auc_gap", labels={}, definition="", status=Status.VIOLATED)
    >>> unexplained(gap)
    'No cause was found that clearly explains it.'
    >>> unexplained(replace(gap, detail=f"AUC 0.9 (test) and 0.8 (online); {NOT_DIAGNOSED}: out of memory"))
    'Its causes are not known, because the diagnosis failed.'
    """
    if NOT_DIAGNOSED in gap.detail:
        return "Its causes are not known, because the diagnosis failed."
    return "No cause was found that clearly explains it."


def builder(spec: MetricSpec, metrics: MetricSettings, models: ModelSettings, **labels: str) -> ResultBuilder:
    """The builder of one metric's results of a model.

    The definition has the settings that change which rows are judged.
    """
    parts = [spec.definition(metrics)]
    of_online = ONLINE in (labels.get(SPLIT_LABEL), labels.get(specs.PAIR_LABEL, "").split("_")[-1])
    if of_online:
        parts.append(f"over={models.over.total_seconds():.0f}s")
        if models.online != "samples":
            parts.append(f"online={models.online}")
    kind = spec.kind if spec.kind.is_of_models else ResultKind.MODEL  # auc is also a metric of exposures
    return ResultBuilder(spec, ";".join(parts), labels, kind=kind)


def split_results(
    sums: SplitSums | None,
    metrics: MetricSettings,
    models: ModelSettings,
    *,
    split: str,
    model: str,
    **further: str,
) -> Iterator[Result]:
    """The metrics of one split of one model; `further` has the labels of a slice."""
    labels = {SPLIT_LABEL: split, MODEL_LABEL: model, **further}

    def own(spec: MetricSpec, by: str = "") -> ResultBuilder:
        return builder(spec, metrics, models, **({"by": by, **labels} if by else labels))

    if not further:
        yield _rows(own(specs.SAMPLE_ROWS), sums, split)
    if sums is None or sums.n == 0:
        for spec, values in ((AUC, ("",)), (USER_AUC, WEIGHTS), (LOG_LOSS, ("",)), (CALIBRATION, ("",))):
            yield from (own(spec, by).no_data(_nothing(sums, split)) for by in values)
        return
    out = left_out(sums)
    if sums.auc is None:
        yield own(AUC).undefined(one_class(sums, split), sums.n)
    else:
        detail = sentences(few_users(sums.auc), out)
        yield own(AUC).value(sums.auc.auc, sums.n, delong_interval(sums.auc), detail=detail)
    for by in WEIGHTS:
        yield _user_auc(own(USER_AUC, by), sums, by, out)
    row = sums.probabilities
    assert row is not None  # a group with a usable row has sums
    detail = sentences(moved(row, metrics.clip), out)
    yield own(LOG_LOSS).mean(sums.n, row["loss"], row["loss_squared"], "", detail=detail)
    if sums.positives == 0:
        yield own(CALIBRATION).undefined(f"no label is 1: the observed rate of {split} is 0", sums.n)
    else:
        found = ratio_delta(calibration_sums(row))
        value = float(row["predicted"]) / float(row["observed"])
        yield own(CALIBRATION).value(value, sums.n, found.interval if found else None, detail=detail)


def _rows(own: ResultBuilder, sums: SplitSums | None, split: str) -> Result:
    if sums is None or sums.rows == 0:
        return own.no_data(_nothing(None, split))
    return own.value(float(sums.n), sums.rows, detail=left_out(sums))


def _nothing(sums: SplitSums | None, split: str) -> str:
    if sums is None or sums.rows == 0:
        return f"there is no row of the split {split}"
    return f"no row of the split {split} has both a finite score and a label of 0 or 1: {left_out(sums)}"


def left_out(sums: SplitSums) -> str:
    """The rows that a split's metrics leave out; empty if there are none.

    >>> left_out(SplitSums(rows=10, unscored=2, unlabelled=0, n=8, positives=4))
    '2 of 10 rows have no finite score'
    """
    return sentences(
        f"{sums.unscored:,} of {sums.rows:,} rows have no finite score" if sums.unscored else "",
        f"{sums.unlabelled:,} of {sums.rows:,} rows have no label of 0 or 1" if sums.unlabelled else "",
    )


def one_class(sums: SplitSums, split: str) -> str:
    """Why a split without both classes has no AUC."""
    return f"all {sums.n} labels of {split} are {0 if sums.positives == 0 else 1}"


def _user_auc(own: ResultBuilder, sums: SplitSums, by: str, out: str) -> Result:
    if sums.known_users == 0:
        return own.no_data("no row has a user id")
    mixed = int(sums.users["mixed"]) if sums.users else 0
    if sums.users is None or mixed == 0:
        return own.undefined(f"none of {sums.known_users:,} users has labels of both classes", 0)
    left = sums.known_users - mixed
    one_sided = f"{left:,} of {sums.known_users:,} users have labels of one class only" if left else ""
    value = float(sums.users[f"{by}_wa"]) / float(sums.users[f"{by}_w"])
    interval = ratio_within(weighted_mean_sums(sums.users, by))
    return own.value(value, mixed, interval, detail=sentences(one_sided, out))


def gap_result(
    pair: specs.Pair,
    better: SplitSums | None,
    worse: SplitSums | None,
    metrics: MetricSettings,
    models: ModelSettings,
    model: str,
) -> Result:
    """The gap of a pair of splits with its verdict.

    - `violated`: the whole interval is above the bound of `gaps`.
    - `no_data`: a split has no rows, too few for an interval, or too few to detect a gap as large as the
    bound.
    - `ok` otherwise.
    """
    bound = getattr(models.gaps, pair)
    own = builder(specs.AUC_GAP, metrics, models, **{specs.PAIR_LABEL: pair, MODEL_LABEL: model})

    def judged(result: Result, **changes: object) -> Result:
        return replace(result, threshold=bound, bound="max", **changes)  # type: ignore[arg-type]

    sides = SIDES[pair]
    known: list[tuple[SplitSums, AucSums]] = []
    for split, sums in zip(sides, (better, worse), strict=True):
        if sums is None or sums.n == 0:
            return judged(own.no_data(_nothing(sums, split)))
        if sums.auc is None:
            return judged(own.no_data(f"{one_class(sums, split)}: there is no AUC", sums.n))
        if _smaller(sums) < 2:
            few = f"{split} has fewer than two labels of a class: chance cannot be estimated"
            return judged(own.no_data(few, sums.n))
        if delong_interval(sums.auc) is None:
            few = few_users(sums.auc) or "all labels of one class come from one user"
            return judged(own.no_data(f"{split}: {few}", sums.n))
        known.append((sums, sums.auc))
    (one, first), (other, second) = known
    found = auc_gap(first, second)
    assert found is not None  # both have an interval
    n = one.n + other.n
    said = f"AUC {first.auc:.4f} ({sides[0]}) and {second.auc:.4f} ({sides[1]})"
    result = judged(own.value(found.difference, n, found.interval, detail=said))
    lower, upper = found.interval
    if lower > bound:
        why = f"{said}: the gap is at least {lower:.4f}, and {bound:g} is allowed"
        return replace(result, status=Status.VIOLATED, detail=why)
    half = (upper - lower) / 2
    if half > bound:
        factor = math.ceil((half / bound) ** 2 * 10) / 10
        needs = " and ".join(
            f"{math.ceil(_smaller(sums) * factor):,} labels of the rarer class of {split}"
            for split, (sums, _) in zip(sides, known, strict=True)
        )
        why = f"{said}: a gap of {bound:g} could not be seen; about {needs} could show it"
        return replace(result, status=Status.NO_DATA, value=None, lower=None, upper=None, detail=why)
    return result


def _smaller(sums: SplitSums) -> int:
    return min(sums.positives, sums.negatives)
