"""Overfitting: what is left of a gap from train to test once all that can be shown is taken off."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from monitor.models.diagnosis.area import Area, Ranking, change
from monitor.models.diagnosis.case import Case, Claim, Finding
from monitor.models.diagnosis.sample import Sample
from monitor.statistics.counts import Floats

CAUSE = "overfitting"
_CLIP = 1e-6
_STEPS = 50


def overfitting(case: Case, explained: float) -> Claim:
    """The rest of the gap, only from train to test: the model knows its training rows by heart.

    Share: 1 less the shares of the other causes.

    Args:
        case: the gap.
        explained: what the other causes explain, in AUC.
    """
    areas = [Ranking(one.scores, one.labels).area() for one in (case.better, case.worse)]
    if case.pair != "train_test" or areas[0] is None or areas[1] is None:
        return Claim()
    won = case.gap - explained
    changes = [
        change(one, Area(one.auc, np.zeros_like(one.influence)), case.owners.get(side))
        for side, one in zip(("better", "worse"), areas, strict=True)
        if one
    ]
    error = math.hypot(*(one for _, one in changes))
    share = case.share(won, error)
    if share is None:
        return Claim()
    facts = (
        {"split": "train", **_facts(case.better, areas[0].auc)},
        {"split": "test", **_facts(case.worse, areas[1].auc)},
    )
    slope = facts[1].get("slope")
    sure = (
        ""
        if slope is None
        else f"; on test the scores are {_sureness(slope)} (calibration slope {slope:.2f})"
    )
    finding = Finding(
        CAUSE,
        share,
        (),
        f"The model has memorised its training rows: AUC {areas[0].auc:.3f} on them, {areas[1].auc:.3f} on "
        f"test, and nothing else explains {share:.0%} of the gap of {case.gap:.3f}{sure}.",
        "Regularise more, stop earlier, drop features that name rows (ids), or train on more rows.",
        facts,
    )
    return Claim(frozenset(), won, finding)


def _sureness(slope: float) -> str:
    return "more certain than they should be" if slope < 1 else "not more certain than they should be"


def _facts(sample: Sample, auc: float) -> dict[str, Any]:
    facts: dict[str, Any] = {"rows": len(sample), "auc": auc}
    if bool(np.all((sample.scores >= 0) & (sample.scores <= 1))):
        p = np.clip(sample.scores, _CLIP, 1 - _CLIP)
        facts["log_loss"] = -float(np.mean(np.where(sample.labels == 1, np.log(p), np.log1p(-p))))
        facts["calibration"] = float(p.mean() / sample.labels.mean())
        facts["slope"] = calibration_slope(np.log(p) - np.log1p(-p), sample.labels)
    return facts


def calibration_slope(logits: Floats, labels: Floats) -> float | None:
    """b of the logistic regression logit P(label = 1) = a + b logit(score), by Newton's method.

    1 is right; below 1 the scores are too sure, as those of an overfitted model are on new rows. None where
    it has no finite answer: all scores are equal, or part the labels without a mistake.

    >>> logits = np.repeat([-1.0, 1.0], 100)
    >>> labels = np.r_[np.ones(40), np.zeros(60), np.ones(60), np.zeros(40)]
    >>> round(calibration_slope(logits, labels), 4) == round(math.log(1.5), 4)
    True

    Source: D. R. Cox, Two further applications of a model for binary regression, Biometrika 45 (1958).
    """
    from scipy import special  # 10 MiB that a daemon without a violated gap can spare

    design = np.stack([np.ones_like(logits), logits])
    found = np.zeros(2)
    for _ in range(_STEPS):
        p = special.expit(found @ design)
        bend = (design * (p * (1 - p))) @ design.T
        if not np.linalg.cond(bend) < 1e12:
            return None
        step = np.linalg.solve(bend, design @ (labels - p))
        found += step
        if not bool(np.all(np.abs(found) < 1e3)):
            return None
        if float(np.abs(step).max()) < 1e-9:
            return float(found[1])
    return None
