"""AUC under weights, and the error of a change of AUC on the same rows.

A counterfactual asks what AUC would have been had the rows been scored, or weighed, otherwise. Both AUCs are
of the same rows, so their errors largely cancel; what is left is told by each row's influence.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.statistics.counts import Floats, as_numbers


class Area(NamedTuple):
    """An AUC, and how far each row moves it: the sum of the squares is the variance of DeLong."""

    auc: float
    influence: Floats


class Ranking:
    """The order of the scores, kept so that many weights are tried on it.

        AUC = sum over pairs w_i w_j (s_i > s_j, ties half) / (W+ W-), i positive, j negative
        influence of i = w_i (the weighted share of the other class that i beats - AUC) / W of its class

    >>> Ranking([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]).area().auc
    0.75
    >>> Ranking([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]).area([1, 0, 1, 1]).auc
    1.0

    Raises ValueError where a score is NaN.
    """

    def __init__(self, scores: ArrayLike, labels: ArrayLike) -> None:
        _, self._group = np.unique(as_numbers(scores, "scores"), return_inverse=True)
        self._groups = int(self._group.max()) + 1 if self._group.size else 0
        self.positive: NDArray[np.bool_] = np.asarray(labels) == 1

    def area(self, weights: ArrayLike | None = None) -> Area | None:
        """AUC of the rows under these weights, 1 each unless given; None where a class has no weight."""
        w = np.ones(len(self._group)) if weights is None else np.asarray(weights, np.float64)
        positives, negatives = self._by_group(w * self.positive), self._by_group(w * ~self.positive)
        all_positive, all_negative = float(positives.sum()), float(negatives.sum())
        if not (all_positive > 0 and all_negative > 0):
            return None
        won = (np.cumsum(negatives) - negatives / 2) / all_negative
        beaten = 1 - (np.cumsum(positives) - positives / 2) / all_positive
        auc = float(positives @ won) / all_positive
        influence = np.where(
            self.positive, (won[self._group] - auc) / all_positive, (beaten[self._group] - auc) / all_negative
        )
        return Area(auc, w * influence)

    def _by_group(self, weights: Floats) -> Floats:
        return np.bincount(self._group, weights, self._groups).astype(np.float64)


def mixed_area(versions: list[Floats], shares: list[float], labels: ArrayLike) -> Area | None:
    """The expected AUC where each row gets, by lot, one of several scores.

    A row and its versions are never a pair, having one label: so the mean over all lots is the AUC of all the
    versions together, each weighed by its share. No lot has to be drawn.

    >>> mixed_area([np.array([0.0, 1.0]), np.array([1.0, 0.0])], [0.75, 0.25], [0, 1]).auc
    0.75

    The example: the positive wins in 3/4 x 3/4, ties in 2 x 3/4 x 1/4 of the lots.
    """
    rows = len(versions[0])
    weights = np.repeat(np.asarray(shares, np.float64), rows)
    found = Ranking(np.concatenate(versions), np.tile(np.asarray(labels), len(versions))).area(weights)
    return found and Area(found.auc, found.influence.reshape(len(versions), rows).sum(axis=0))


def change(before: Area, after: Area, owners: NDArray[np.int64] | None = None) -> tuple[float, float]:
    """What AUC falls by from one reading of the same rows to another, and the standard error of that.

    Args:
        before, after: the two readings.
        owners: one number a row, equal for the rows of one user: what a user adds is added up first, since
            the rows of a user err together. None where every row stands for itself.

    >>> same = Ranking([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]).area()
    >>> change(same, same)
    (0.0, 0.0)
    """
    difference = before.influence - after.influence
    if owners is not None:
        difference = np.bincount(owners, difference).astype(np.float64)
    return before.auc - after.auc, math.sqrt(float(difference @ difference))
