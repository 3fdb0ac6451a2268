"""A model of the reward, from counts: the direct method and the parts of doubly robust need its predictions.

The users are divided into random groups. The model that predicts a group has not seen it. The engine counts
rows and rewards; no row of a log leaves it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from monitor.statistics.counts import Floats
from monitor.statistics.effects import Estimate
from monitor.statistics.intervals import most_variance, wilson_within

GROUPS: Final = 10
"""The random groups of users: each model leaves out one."""

MOST_CELLS: Final = 200_000
"""How many kinds of rows are fitted. More would take minutes and gigabytes."""

GROUP, PLACE, ITEM, ROWS, HITS, Q = "group", "place", "item", "rows", "hits", "q"
_MOST_PREDICTIONS: Final = 20_000_000
_LEAST_GROUPS: Final = 5


@dataclass(frozen=True, slots=True)
class Predictions:
    """What the models predict.

    Attributes:
        shown: GROUP, PLACE, ITEM, the context, `predicted`: of the items that the log shows.
        expected: GROUP, PLACE, the context, `expected`: of the target policy.
        direct: the direct method; None with fewer than five groups.
    """

    shown: pd.DataFrame
    expected: pd.DataFrame
    direct: Estimate | None


def predictions(counted: pd.DataFrame, target: pd.DataFrame, context: Sequence[str]) -> Predictions | str:
    """Fit the models, predict, and estimate by the direct method; or why there are none, as half a sentence.

    A model is a logistic regression with a coefficient for each item, position and value of a context column,
    under the usual penalty (C = 1). So an item with few rows is near the mean. An item that the model has not
    seen has the mean of its position and context.

    The direct method's interval is that of the jackknife over the groups, with its models fitted again. It
    does not know whether the form of the model is right.

    Args:
        counted: GROUP, PLACE, ITEM, the context (text), ROWS and HITS (rows with a reward); at most
            MOST_CELLS + 1 rows are needed.
        target: PLACE, ITEM and Q, the target's probability of an item at a position.
        context: the names of the columns of the context.

    Source: M. Dudik, J. Langford, L. Li, Doubly robust policy evaluation and learning, ICML 2011.
    """
    if len(counted) > MOST_CELLS:
        return f"there are more than {MOST_CELLS:,} combinations of position, item and context"
    if not counted[HITS].sum():
        return "no row has a reward, so a model learns nothing"
    where = [PLACE, *context]
    places = counted.groupby([GROUP, *where], sort=False)[ROWS].sum().reset_index()
    asked = places[where].drop_duplicates(ignore_index=True)
    of_place = target.groupby(PLACE).size()
    if int(asked[PLACE].map(of_place).fillna(0).sum()) > _MOST_PREDICTIONS:
        return "the context has too many values to predict each item of the target for each"
    groups = sorted(counted[GROUP].unique())
    if len(groups) < 2:
        return "one group of users is not enough to fit a model on other users"
    shown, expected, left = [], [], []
    for group in groups:
        of_group = (counted[GROUP] == group).to_numpy()
        model = _Model.fit(counted[~of_group], where)
        own = counted[of_group]
        shown.append(own[[GROUP, *where, ITEM]].assign(predicted=model.rate(own)))
        value = asked.assign(expected=model.expected(asked, target))
        both = places.merge(value, on=where)
        expected.append(both.loc[both[GROUP] == group, [GROUP, *where, "expected"]])
        left.append(_mean(both[both[GROUP] != group]))
    direct = None
    if len(groups) >= _LEAST_GROUPS:
        whole = _Model.fit(counted, where)
        value = places.merge(asked.assign(expected=whole.expected(asked, target)), on=where)
        direct = _jackknife(_mean(value), np.array(left), float(counted[ROWS].sum()))
    return Predictions(pd.concat(shown), pd.concat(expected), direct)


def _mean(rows: pd.DataFrame) -> float:
    return float(np.average(rows["expected"], weights=rows[ROWS]))


def _jackknife(value: float, left: Floats, rows: float) -> Estimate:
    """The estimate from its values without each group; bounds of a share.

    If all these values are 1, since each row has a reward, the interval is that of so many rows.
    """
    count = len(left)
    variance = (count - 1) / count * float(np.square(left - left.mean()).sum())
    most = most_variance(min(1.0, max(0.0, value)))
    effective = most / variance if variance > 0 and most > 0 else rows
    return Estimate(value, math.sqrt(variance), wilson_within(value, effective, count - 1))


@dataclass(frozen=True, slots=True)
class _Model:
    """Log odds: an intercept, and a coefficient for each known value of each column."""

    intercept: float
    coefficients: dict[str, pd.Series]

    @classmethod
    def fit(cls, cells: pd.DataFrame, where: Sequence[str]) -> _Model:
        hits, rows = (cells[name].to_numpy(np.float64) for name in (HITS, ROWS))
        rate = hits.sum() / rows.sum()
        if not 0 < rate < 1:
            return cls(math.inf if rate else -math.inf, {})
        from scipy import sparse
        from sklearn.linear_model import LogisticRegression  # slow to import

        codes, values = zip(*(pd.factorize(cells[name]) for name in (ITEM, *where)), strict=True)
        columns: list[NDArray[np.int64]] = []
        start = 0
        for code, known in zip(codes, values, strict=True):
            columns.append(code + start)
            start += len(known)
        indices = np.stack(columns, axis=1).ravel()
        ends = np.arange(len(cells) + 1) * len(columns)
        features = sparse.csr_matrix((np.ones(len(indices)), indices, ends), (len(cells), start))
        model = LogisticRegression(max_iter=500)
        labels = np.repeat([1, 0], len(cells))
        model.fit(sparse.vstack([features, features]), labels, np.concatenate([hits, rows - hits]))
        at, found = 0, {}
        for name, known in zip((ITEM, *where), values, strict=True):
            found[name] = pd.Series(model.coef_[0, at : at + len(known)], index=known)
            at += len(known)
        return cls(float(model.intercept_[0]), found)

    def rate(self, cells: pd.DataFrame) -> Floats:
        """The predicted rate of each row of cells."""
        from scipy import special

        odds = np.full(len(cells), self.intercept)
        for name, values in self.coefficients.items():
            if name in cells:
                odds += cells[name].map(values).fillna(0.0).to_numpy(np.float64)
        return np.asarray(special.expit(odds), np.float64)

    def expected(self, asked: pd.DataFrame, target: pd.DataFrame) -> Floats:
        """The predicted rate of the target for each place and context; 0 at a position that it lacks."""
        from scipy import special

        found = np.zeros(len(asked))
        for at, (odds, items) in enumerate(self._by_place(asked, target)):
            found[at] = items[Q].to_numpy() @ special.expit(odds + items["odds"].to_numpy())
        return found

    def _by_place(self, asked: pd.DataFrame, target: pd.DataFrame) -> Iterator[tuple[float, pd.DataFrame]]:
        """For each place and context its log odds, and the target's items with theirs."""
        items = self.coefficients.get(ITEM)
        odds = 0.0 if items is None else target[ITEM].map(items).fillna(0.0)
        with_odds = target.assign(odds=odds)
        by_place = dict(iter(with_odds.groupby(PLACE)))
        nothing = with_odds.iloc[:0]
        own = np.full(len(asked), self.intercept)
        for name in asked:
            if name in self.coefficients:
                own += asked[name].map(self.coefficients[name]).fillna(0.0).to_numpy(np.float64)
        for place, number in zip(asked[PLACE], own, strict=True):
            yield float(number), by_place.get(place, nothing)
