"""What the score of a row would have been with other feature values.

Two ways of the same shape: the user's own scoring function, or a surrogate of it that is learned from the
scores as served. Only differences of AUC are taken from either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from monitor.models.diagnosis.columns import FITTED, Column, part
from monitor.models.diagnosis.sample import Sample, Values
from monitor.statistics.counts import Floats

Scorer = Callable[[Mapping[str, Values]], NDArray[np.float64]]
"""Features to scores, one a row; the larger, the more likely positive."""

_TREES = 300
_LEVELS = 200  # of a text; scikit-learn takes 255 categories at most
_LEAST = 50  # rows to learn from
_HELD_OUT = 5  # one row of so many is held out
_CELLS = 5_000_000  # rows times features that are learned from, so that a fit takes seconds
_LARGEST = 1e100
_SHUFFLES = 3


class Scoring(Protocol):
    """Scores under a change, of the rows of one side: `better`, `worse`, or `online` (the pairs)."""

    method: str
    """What the scores come from, for a sentence."""
    measure: str
    """What `fidelity` is."""
    fidelity: Mapping[str, float]
    """By side: how well the scores of the log are met, 1 for exactly."""

    def base(self, side: str) -> Floats:
        """The scores of the side as they are, on the scale of the changed ones."""

    def changed(self, side: str, values: Mapping[str, Floats]) -> Floats:
        """The scores had these features had these values."""

    def without(self, side: str, features: tuple[str, ...]) -> list[Floats]:
        """The scores had these features told nothing: several equally likely versions."""


class Surrogate:
    """Boosted trees that learn link(score) from the features as served, interactions included.

    One function gave the scores of both splits, so the rows of both are learned from. link is the logit where
    all scores are inside (0, 1), and otherwise the normal score of the rank. A fifth of the rows is held out;
    `fidelity` is R2 on those, split by split. What the trees miss of a score stays with its row:

        changed score = link(score) + trees(new values) - trees(old values)

    So nothing is lost where nothing is changed, and an effect that the trees miss is understated.

    Args:
        samples: by side; the trees learn from `better` and `worse`.
        columns: the features that `better` has.

    Source: Ke et al., LightGBM, NeurIPS 2017, for boosting on histograms, as scikit-learn has it.
    """

    method: str = "a surrogate of the scores"
    measure: str = "R2"

    def __init__(self, samples: Mapping[str, Sample], columns: Mapping[str, Column]) -> None:
        self._columns, self._samples = columns, samples
        self._lengths = {side: len(one) for side, one in samples.items()}
        self._linked = _linked({side: np.asarray(one.scores, np.float64) for side, one in samples.items()})
        self._levels = {
            name: part(column, _LEVELS) for name, column in columns.items() if column.levels is not None
        }
        self._trees: Any = None
        self._used = list(columns)
        self._as_served: dict[str, Floats] = {}
        self.fidelity: Mapping[str, float] = self._fit()
        if "online" in samples:
            self.fidelity = {**self.fidelity, "online": self.fidelity["worse"]}

    def _fit(self) -> dict[str, float]:
        target = np.concatenate([self._linked[side] for side in FITTED])
        side = np.repeat([0, 1], [self._lengths[one] for one in FITTED])
        if not self._columns or target.size < _LEAST or target.min() == target.max():
            return dict.fromkeys(FITTED, 0.0)
        rows = np.concatenate([self._matrix(one, {}) for one in FITTED])
        labels = np.concatenate([np.asarray(self._samples[one].labels) for one in FITTED])
        # An order of their own, so that the fit does not hang on the order of the rows in the log.
        order = np.lexsort((*rows.T, labels, side, target))
        order = order[:: max(1, math.ceil(rows.size / _CELLS))]
        held = np.arange(len(order)) % _HELD_OUT == _HELD_OUT // 2
        learn, test = order[~held], order[held]
        from sklearn.ensemble import HistGradientBoostingRegressor  # 60 MiB that a healthy daemon spares
        from threadpoolctl import threadpool_limits

        some = ~np.isnan(rows[learn]).all(axis=0)
        if not some.any():
            return dict.fromkeys(FITTED, 0.0)
        self._used = [name for name, one in zip(self._columns, some, strict=True) if one]
        rows = rows[:, some]
        categories = [name in self._levels for name in self._used]
        trees = HistGradientBoostingRegressor(
            max_iter=_TREES, max_leaf_nodes=31, categorical_features=categories, random_state=0
        )
        with threadpool_limits(1):  # the same fit on every machine, and the cores stay with the daemon
            self._trees = trees.fit(rows[learn], target[learn])
            found = self._trees.predict(rows[test])
        return {
            name: _r2(target[test][side[test] == at], found[side[test] == at])
            for at, name in enumerate(FITTED)
        }

    def base(self, side: str) -> Floats:
        return self._linked[side]

    def changed(self, side: str, values: Mapping[str, Floats]) -> Floats:
        new = {name: one for name, one in values.items() if name in self._used}
        if self._trees is None or not new:
            return self._linked[side].copy()
        moved = np.zeros(self._lengths[side], np.bool_)
        for name, one in new.items():
            old = self._values(side, name)
            moved |= ~((one == old) | (np.isnan(one) & np.isnan(old)))
        scores = self._linked[side].copy()
        if moved.any():
            scores[moved] += self._predict(self._matrix(side, new, moved)) - self._served(side)[moved]
        return scores

    def without(self, side: str, features: tuple[str, ...]) -> list[Floats]:
        values = {one: self._values(side, one) for one in features}
        return [self.changed(side, one) for one in shuffled(self._samples[side], values)]

    def _served(self, side: str) -> Floats:
        if side not in self._as_served:
            self._as_served[side] = self._predict(self._matrix(side, {}))
        return self._as_served[side]

    def _predict(self, rows: Floats) -> Floats:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            return np.asarray(self._trees.predict(rows), np.float64)

    def _matrix(
        self, side: str, values: Mapping[str, Floats], rows: NDArray[np.bool_] | None = None
    ) -> Floats:
        """The features as the trees take them: numbers finite or missing, texts by the place of the level."""
        found = []
        for name in self._used:
            one = values.get(name, self._values(side, name))
            one = one if rows is None else one[rows]
            if name in self._levels:
                one = np.where(np.isnan(one), np.nan, self._levels[name].codes(one).astype(np.float64))
            found.append(np.clip(one, -_LARGEST, _LARGEST))
        return np.stack(found, axis=1)

    def _values(self, side: str, feature: str) -> Floats:
        """The side's values, missing on all rows where it has no such feature."""
        values = self._columns[feature].sides.get(side)
        return np.full(self._lengths[side], np.nan) if values is None else values


def _r2(values: Floats, found: Floats) -> float:
    """The share of the spread that is met, from 0 to 1; 0 where nothing varies."""
    spread = float(np.sum((values - values.mean()) ** 2)) if values.size else 0.0
    return max(0.0, 1 - float(np.sum((values - found) ** 2)) / spread) if spread > 0 else 0.0


def shuffled(sample: Sample, values: Mapping[str, Floats]) -> list[dict[str, Floats]]:
    """The values among other rows of the side, together: they keep their spread and tell nothing."""
    # In an order of their own, so that the result does not hang on the order of the rows in the log.
    order = np.lexsort((*values.values(), sample.labels, sample.scores))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    chance = np.random.default_rng(0)
    found = [order[chance.permutation(len(order))][place] for _ in range(_SHUFFLES)]
    return [{one: has[at] for one, has in values.items()} for at in found]


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

    method: str = "the scoring function given"
    measure: str = "rank correlation with the log"

    def __init__(self, scorer: Scorer, samples: Mapping[str, Sample], columns: Mapping[str, Column]) -> None:
        self._scorer, self._samples, self._columns = scorer, samples, columns
        self._base: dict[str, Floats] = {}
        self.fidelity: Mapping[str, float] = {
            side: max(0.0, _rank_correlation(self.base(side), one.scores)) for side, one in samples.items()
        }

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
        values = {one: self._columns[one].sides[side] for one in features if side in self._columns[one].sides}
        return [self.changed(side, one) for one in shuffled(self._samples[side], values)]
