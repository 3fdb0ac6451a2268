"""Why a model is worse on one split than on another: the causes, by the share of the gap each explains."""

from __future__ import annotations

from dataclasses import replace

from monitor.models.diagnosis.case import (
    CAUSES,
    EVIDENCE,
    NAMED,
    Claim,
    Finding,
    Pair,
    labelled,
    owners_of,
    read_case,
)
from monitor.models.diagnosis.overfitting import overfitting
from monitor.models.diagnosis.population import population_shift
from monitor.models.diagnosis.pruned import pruned_features
from monitor.models.diagnosis.sample import Pairs, Sample
from monitor.models.diagnosis.score_shift import score_shift
from monitor.models.diagnosis.scoring import Scorer
from monitor.models.diagnosis.skew import serving_skew
from monitor.models.diagnosis.spikes import spikes
from monitor.models.diagnosis.swaps import swapped
from monitor.models.diagnosis.time_travel import from_the_future, older_test_rows
from monitor.settings.models import DiagnosisSettings
from monitor.statistics.auc import auc_gap, auc_sums

__all__ = ["CAUSES", "Finding", "Pair", "Scorer", "diagnose"]

_DEFAULT = DiagnosisSettings()


def diagnose(
    pair: Pair,
    better: Sample,
    worse: Sample,
    *,
    train: Sample | None = None,
    pairs: Pairs | None = None,
    scorer: Scorer | None = None,
    settings: DiagnosisSettings = _DEFAULT,
) -> tuple[Finding, ...]:
    """The causes of the gap AUC(better) - AUC(worse), that of the largest share first.

        share = 1 - G' / G,  G' the gap had the cause not been there

    The shares of two causes need not add up to 1: what both break is in both. Nothing is named where nothing
    is clear: no gap, one class only, or no cause whose share is above 0 with confidence.

    Args:
        pair: which splits: `train_test`, or `test_online`.
        better, worse: rows of the two, 50,000 or fewer each for it to take seconds.
        train: the rows of training, for `test_online`: are test rows older?
        pairs: requests online beside their offline features. Without them a default is only seen as a spike.
        scorer: the model itself. Without it a surrogate is learned from the scores.
        settings: what is too little to be named.

    >>> import numpy as np
    >>> x, y = np.arange(4000) % 2.0, np.arange(4000) // 2 % 10 / 10
    >>> labels = (2 * x + y > np.arange(4000) * 7919 % 4001 / 1400).astype(float)
    >>> test = Sample(0.1 + 0.5 * x + 0.3 * y, labels, {"x": x, "y": y})
    >>> online = Sample(0.1 + 0.3 * y, labels, {"x": np.zeros(4000), "y": y})
    >>> [(one.cause, round(one.share, 2), one.features) for one in diagnose("test_online", test, online)]
    [('pruned_features', 1.0, ('x',))]

    Raises ValueError where the scoring function does not give one number a row.
    """
    better, worse = labelled(better), labelled(worse)
    sums = [auc_sums(one.scores, one.labels, owners_of(one)) for one in (better, worse)]
    if sums[0] is None or sums[1] is None:
        return ()
    gap = auc_gap(sums[0], sums[1])
    if gap is None or gap.interval.lower <= settings.least_gap:
        return ()
    if pairs is not None:
        pairs = pairs.usable()
        pairs = Pairs(labelled(pairs.online), pairs.offline, pairs.offline_times)
    train = None if train is None else labelled(train)
    case = read_case(pair, better, worse, train, pairs, scorer, settings, sums[0].auc, gap.difference)
    claims: list[Claim] = []
    owned: frozenset[str] = frozenset()
    for cause in (swapped, from_the_future, pruned_features, serving_skew, spikes):
        claims.append(cause(case, owned))
        owned |= claims[-1].owned
    claims += [population_shift(case, owned), score_shift(case), older_test_rows(case)]
    explained = sum(max(0.0, one.won) for one in claims if one.finding and one.finding.share is not None)
    claims.append(overfitting(case, explained))
    return _ranked(claims)


def _ranked(claims: list[Claim]) -> tuple[Finding, ...]:
    """One finding a cause, its larger one; then those of unknown share, of which some need plain evidence.

    A second finding of a cause is told in the first one: nothing that is seen is dropped.
    """
    found: dict[str, Finding] = {}
    for claim in sorted(claims, key=lambda one: -one.won):
        if claim.finding is not None and claim.finding.share is not None:
            first = found.get(claim.finding.cause)
            found[claim.finding.cause] = claim.finding if first is None else _with(first, claim.finding)
    unknown = [one for one in claims if one.finding is not None and one.finding.share is None]
    shown = [one.finding for one in unknown if one.plain] or ([] if found else [o.finding for o in unknown])
    for finding in shown:
        if finding is not None:
            first = found.get(finding.cause)
            found[finding.cause] = finding if first is None else _with(first, finding)
    return tuple(found.values())


def _with(first: Finding, second: Finding) -> Finding:
    """A cause found in two ways, as one finding with the share of the first."""
    features = tuple(dict.fromkeys([*first.features, *second.features]))[:NAMED]
    evidence = (*first.evidence, *second.evidence)[:EVIDENCE]
    return replace(first, features=features, summary=f"{first.summary} {second.summary}", evidence=evidence)
