"""Small splits with a transparent score: the sum of two features, so that every counterfactual is known."""

from __future__ import annotations

import numpy as np
from scipy import special

from monitor.models.diagnosis.sample import Sample
from monitor.statistics.auc import auc_sums

ROWS = 4000


def drawn(seed, rows=ROWS, slope=1.0):
    """x and y as they are, and labels that follow their sum."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=rows), rng.normal(size=rows)
    return {"x": x, "y": y}, (rng.random(rows) < special.expit(slope * (x + y))).astype(float)


def scored(features):
    """The model: exactly the sum, as a probability; missing counts as 0."""
    return special.expit(sum(np.nan_to_num(values) for values in features.values()))


def as_served(features, labels, **more):
    """The rows as the model saw them."""
    return Sample(scored(features), labels, features, **more)


def auc_of(sample):
    return auc_sums(sample.scores, sample.labels).auc
