"""Finds the causes of an AUC gap, and the share of the gap that each explains."""

from __future__ import annotations

from dataclasses import replace

from monitor.models.diagnosis.case import (
    EVIDENCE,
    NAMED,
    Claim,
    Finding,
    Pair,
    labelled,
    owners_of,
    read_case,
)
from monitor.models.diagnosis.registry import CAUSES, LOOKS, RESTS
from monitor.models.diagnosis.sample import Pairs, Sample
from monitor.models.diagnosis.scoring import Scorer
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
    """The causes of the gap AUC(better) - AUC(worse), the largest share first.

        share = 1 - G' / G,  G' the gap without the cause

    The shares need not add up to 1: two causes may affect the same rows. Empty if there is no gap, only one
    class, or no cause with a share certainly above 0.

    Args:
        pair: the splits: `train_test`, or `test_online`.
        better, worse: their rows; with at most 50,000 each it takes seconds.
        train: the training rows, for `test_online`: are test rows older?
        pairs: online requests with their offline features. Without them a default is found as a spike only.
        scorer: the model itself. Without it a surrogate is learned from the scores.
        settings: the bounds from which a cause is named.

    >>> import numpy as np
    >>> x, y = np.arange(4000) % 2.0, np.arange(4000) // 2 % 10 / 10
    >>> labels = (2 * x + y > np.arange(4000) * 7919 % 4001 / 1400).astype(float)
    >>> test = Sample(0.1 + 0.5 * x + 0.3 * y, labels, {"x": x, "y": y})
    >>> online = Sample(0.1 + 0.3 * y, labels, {"x": np.zeros(4000), "y": y})
    >>> [(one.cause, round(one.share, 2), one.features) for one in diagnose("test_online", test, online)]
    [('pruned_features', 1.0, ('x',))]

    Raises ValueError if the scoring function does not return one number for each row.
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
    for look in LOOKS:
        claims.append(look(case, owned))
        owned |= claims[-1].owned
    explained = sum(max(0.0, one.won) for one in claims if one.finding and one.finding.share is not None)
    claims += [rest(case, explained) for rest in RESTS]
    return _ranked(claims)


def _ranked(claims: list[Claim]) -> tuple[Finding, ...]:
    """One finding for each cause, the largest share first; then findings with plain evidence of unknown
    share.

    If there are only findings of unknown share, all of them are given. Two findings of one cause are merged.
    """
    largest_first = sorted(claims, key=lambda claim: -claim.won)
    sized = [claim.finding for claim in largest_first if claim.finding and claim.finding.share is not None]
    unknown = [(one.finding, one.plain) for one in claims if one.finding and one.finding.share is None]
    plain = [finding for finding, is_plain in unknown if is_plain]
    shown = plain or ([] if sized else [finding for finding, _ in unknown])
    found: dict[str, Finding] = {}
    for finding in [*sized, *shown]:
        first = found.get(finding.cause)
        found[finding.cause] = finding if first is None else _with(first, finding)
    return tuple(found.values())


def _with(first: Finding, second: Finding) -> Finding:
    """A cause that was found in two ways, as one finding with the share of the first."""
    features = tuple(dict.fromkeys([*first.features, *second.features]))[:NAMED]
    evidence = (*first.evidence, *second.evidence)[:EVIDENCE]
    return replace(first, features=features, summary=f"{first.summary} {second.summary}", evidence=evidence)
