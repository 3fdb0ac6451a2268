"""What the score of a row would have been with other feature values.

Two ways of the same shape: the user's own scoring function, or a surrogate of it that is learned from the
scores as served. Only differences of AUC are taken from either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from monitor.diagnosis.columns import FITTED, Bins, Codes, Column, part
from monitor.diagnosis.sample import Sample, Values
from monitor.statistics.counts import Floats

Scorer = Callable[[Mapping[str, Values]], NDArray[np.float64]]
"""Features to scores, one a row; the larger, the more likely positive."""

_SWEEPS = 25
_SETTLED = 1e-3
_RIDGE = 3.0
_FINE = 8  # bins of a feature that is changed, for each bin of the others
_SHUFFLES = 3


class Scoring(Protocol):
    """Scores under a change, of the rows of one side: `better`, `worse`, or `online` (the pairs)."""

    how: str

    def base(self, side: str) -> Floats:
        """The scores of the side as they are, on the scale of the changed ones."""

    def changed(self, side: str, values: Mapping[str, Floats]) -> Floats:
        """The scores had these features had these values."""

    def without(self, side: str, features: tuple[str, ...]) -> list[Floats]:
        """The scores had these features told nothing: one version, or several equally likely ones."""


class Surrogate:
    """An additive model of the scores: link(score) = constant + the sum over features of an effect a bin.

    Fitted by backfitting with a ridge on the rows of both splits, whose scores are one function of the
    features as served. link is the logit where all scores are inside (0, 1), and otherwise the normal score
    of the rank. What the effects do not tell of a score stays with the row, so that nothing is lost where
    nothing is changed: the changed score is link(score) + new effects - old effects.

    Args:
        samples: by side; effects come from `better` and `worse`.
        columns, bins: by feature, of which those are used that `better` has.

    Source: Hastie and Tibshirani, Generalized additive models (1990), 4.4, for backfitting.
    """

    def __init__(
        self, samples: Mapping[str, Sample], columns: Mapping[str, Column], bins: Mapping[str, Bins]
    ) -> None:
        self._columns, self._bins = columns, bins
        linked = _linked({side: np.asarray(one.scores, np.float64) for side, one in samples.items()})
        self._linked = linked
        self._lengths = {side: len(one) for side, one in samples.items()}
        self._codes: dict[tuple[str, str], Codes] = {}
        target = np.concatenate([linked[side] for side in FITTED])
        self._effects, self._rest, self.r2 = self._fit(target - target.mean())
        self._fine: dict[str, tuple[Bins, Floats]] = {}
        self.how = f"by a surrogate of the scores (R2 {self.r2:.2f})"

    def codes(self, side: str, feature: str) -> Codes:
        """The bins of a side's values, worked out once; all missing where the side has no such feature."""
        key = side, feature
        if key not in self._codes:
            self._codes[key] = self._bins[feature].codes(self._values(side, feature))
        return self._codes[key]

    def _fit(self, target: Floats) -> tuple[dict[str, Floats], Floats, float]:
        codes = {
            feature: np.concatenate([self.codes(side, feature) for side in FITTED]) for feature in self._bins
        }
        counts = {one: np.bincount(codes[one], minlength=self._bins[one].size) for one in codes}
        effects = {one: np.zeros(self._bins[one].size) for one in codes}
        rest, spread = target.copy(), float(target @ target)
        for _ in range(_SWEEPS if spread > 0 else 0):
            moved = 0.0
            for one, at in codes.items():
                step = (np.bincount(at, rest, len(counts[one])) - _RIDGE * effects[one]) / (
                    counts[one] + _RIDGE
                )
                effects[one] += step
                rest -= step[at]
                moved = max(moved, float(counts[one] @ step**2))
            if moved < _SETTLED**2 * spread:
                break
        return effects, rest, 1 - float(rest @ rest) / spread if spread > 0 else 0.0

    def base(self, side: str) -> Floats:
        return self._linked[side]

    def changed(self, side: str, values: Mapping[str, Floats]) -> Floats:
        scores = self._linked[side].copy()
        for feature, new in values.items():
            scores += self._effect(feature, new) - self._effect(feature, self._values(side, feature))
        return scores

    def without(self, side: str, features: tuple[str, ...]) -> list[Floats]:
        scores = self._linked[side].copy()
        for feature in features:
            scores -= self._effect(feature, self._values(side, feature))
        return [scores]

    def _effect(self, feature: str, values: Floats) -> Floats:
        """The effect of its bin, and what finer bins tell of the rest: only features in question need it."""
        if feature not in self._fine:
            bins = part(self._columns[feature], self._bins[feature].size * _FINE)
            at = np.concatenate([bins.codes(self._values(side, feature)) for side in FITTED])
            rows = np.bincount(at, minlength=bins.size)
            self._fine[feature] = bins, np.bincount(at, self._rest, bins.size) / (rows + _RIDGE)
        bins, effects = self._fine[feature]
        return np.asarray(
            self._effects[feature][self._bins[feature].codes(values)] + effects[bins.codes(values)]
        )

    def _values(self, side: str, feature: str) -> Floats:
        """The side's values, missing on all rows where it has no such feature."""
        values = self._columns[feature].sides.get(side)
        return np.full(self._lengths[side], np.nan) if values is None else values


def _rank_correlation(one: Floats, other: Floats) -> float:
    """Spearman's; 0 where one of them does not vary."""
    ranks = []
    for values in (one, other):
        _, at, sizes = np.unique(values, return_inverse=True, return_counts=True)
        middle = (np.cumsum(sizes) - sizes / 2)[at]
        ranks.append(middle - middle.mean())
    spread = float(np.sqrt((ranks[0] @ ranks[0]) * (ranks[1] @ ranks[1])))
    return float(ranks[0] @ ranks[1]) / spread if spread > 0 else 0.0


def _linked(scores: Mapping[str, Floats]) -> dict[str, Floats]:
    from scipy import special  # 10 MiB that a daemon without a violated gap can spare

    everything = np.concatenate(list(scores.values()))
    # Scores so close to 0 or 1 that their logits would drown all others are not read as probabilities.
    if bool(np.all((everything > 1e-6) & (everything < 1 - 1e-6))):
        return {side: np.asarray(special.logit(one)) for side, one in scores.items()}
    _, at, sizes = np.unique(everything, return_inverse=True, return_counts=True)
    middle = np.cumsum(sizes) - sizes / 2
    linked = special.ndtri(middle / max(len(everything), 1))[at]
    ends = np.cumsum([len(one) for one in scores.values()])[:-1]
    return dict(zip(scores, np.split(linked, ends), strict=True))


class Rescored:
    """The user's own scoring function. What a feature tells is taken away by permuting it within a side.

    One that ranks the rows otherwise than the log is of another model: its summary says how far they agree.
    """

    def __init__(self, scorer: Scorer, samples: Mapping[str, Sample], columns: Mapping[str, Column]) -> None:
        self._scorer, self._samples, self._columns = scorer, samples, columns
        self._base: dict[str, Floats] = {}
        alike = _rank_correlation(self.base("better"), samples["better"].scores)
        self.how = f"by the scoring function given (its rank correlation with the log is {alike:.2f})"

    def base(self, side: str) -> Floats:
        if side not in self._base:
            self._base[side] = self.changed(side, {})
        return self._base[side]

    def changed(self, side: str, values: Mapping[str, Floats]) -> Floats:
        rows = len(self._samples[side])
        features = {
            name: column.original(values.get(name, column.sides.get(side, np.full(rows, np.nan))))
            for name, column in self._columns.items()
        }
        scores = np.asarray(self._scorer(features), np.float64)
        if scores.shape != (rows,) or bool(np.isnan(scores).any()):
            raise ValueError(f"the scoring function gives one number a row, none of them NaN, of {rows} rows")
        return scores

    def without(self, side: str, features: tuple[str, ...]) -> list[Floats]:
        sample = self._samples[side]
        values = {one: self._columns[one].sides[side] for one in features if side in self._columns[one].sides}
        # In an order of their own, so that the result does not hang on the order of the rows in the log.
        order = np.lexsort((*values.values(), sample.labels, sample.scores))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        chance = np.random.default_rng(0)
        shuffled = [order[chance.permutation(len(order))][place] for _ in range(_SHUFFLES)]
        return [self.changed(side, {one: has[at] for one, has in values.items()}) for at in shuffled]
