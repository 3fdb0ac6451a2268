"""What another policy would have earned, estimated from a log that has propensities.

The logging policy showed an item with probability p, its propensity. The target policy would show the same
item with probability q. A row of the log then stands for w = q / p rows of the target. All estimators are
ratios of sums over units (users or requests), so a database can compute the sums, and the intervals are those
of `effects`.

They assume that p is the probability with which the item was really drawn, that the target shows nothing that
the log could not show, and that a reward depends on the request and on the item alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.statistics.counts import Floats
from monitor.statistics.effects import Estimate, RatioSums, effective_size, ratio_delta, ratio_within
from monitor.statistics.intervals import CONFIDENCE, Interval, most_variance

LEAST_EFFECTIVE = 100
"""The smallest effective sample size that gives an estimate."""

MOST_UNSEEN = 0.05
"""The largest share of the target's probability, or of the rows, that an estimate may leave out."""

_ROUNDING = 1e-9

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Weights:
    """The importance weight of each row, and why other rows have none.

    Attributes:
        values: (n,) weights w = q / p; NaN for a row without one.
        faults: how many rows have no weight, by the name of the fault. A row counts once.
    """

    values: Floats
    faults: Mapping[str, int] = field(default_factory=dict)

    @property
    def usable(self) -> NDArray[np.bool_]:
        """(n,) whether a row has a weight."""
        return ~np.isnan(self.values)


def importance_weights(target: ArrayLike, logged: ArrayLike) -> Weights:
    """The weights w = q / p of the rows of a log.

    A row has no weight if its propensity is no probability above 0, or if the target's probability is none.
    A target's probability of 0 is fine: its weight is 0. Each fault is counted: `missing` is null or NaN,
    `overflow` a weight beyond float64.

    Args:
        target: (n,) probability q with which the target policy shows the item of the row.
        logged: (n,) propensity p of the logging policy.

    >>> found = importance_weights([0.5, 0.0, 0.5, 0.5, 0.5], [0.25, 0.25, 0.0, None, 1.5])
    >>> found.values.tolist()
    [2.0, 0.0, nan, nan, nan]
    >>> found.faults
    {'propensity missing': 1, 'propensity above 1': 1, 'propensity 0': 1}

    Raises ValueError if the arrays are not two vectors of one length.
    """
    q, p = (np.asarray(values, np.float64) for values in (target, logged))
    if q.ndim != 1 or q.shape != p.shape:
        raise ValueError(f"weights need two vectors of one length, got shapes {q.shape} and {p.shape}")
    wrong = {f"propensity {name}": rows for name, rows in _no_probability(p).items()}
    wrong["propensity 0"] = p == 0
    wrong |= {f"target {name}": rows for name, rows in _no_probability(q).items()}
    left = np.zeros(len(p), np.bool_)
    faults: dict[str, int] = {}
    for name, rows in wrong.items():
        faults[name] = int((rows & ~left).sum())
        left |= rows
    with np.errstate(over="ignore"):
        values = np.where(left, np.nan, q) / np.where(left, 1.0, p)
    faults["overflow"] = int(np.isinf(values).sum())
    values[np.isinf(values)] = np.nan
    return Weights(values, {name: count for name, count in faults.items() if count})


def _no_probability(values: Floats) -> dict[str, NDArray[np.bool_]]:
    return {
        "missing": np.isnan(values),
        "infinite": np.isinf(values),
        "negative": values < 0,
        "above 1": values > 1,
    }


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much of the target policy the log can show.

    Attributes:
        rows: all rows of the log, also those without a weight.
        left_out: rows without a weight.
        effective: effective sample size (sum w)^2 / sum w^2; 0 if all weights are 0.
        largest: the largest weight.
        mean: the mean weight and its interval by unit. It is expected to be 1. If the interval is above or
            below, the propensities or the target's probabilities are wrong, or the target lacks support.
        unsupported: share of the target's probability that lies on items which the log never shows; None if
            the target is known for the shown items alone.
    """

    rows: int
    left_out: int
    effective: float
    largest: float
    mean: Estimate | None
    unsupported: float | None

    @property
    def reason(self) -> str:
        """Why there is no estimate, as half a sentence; empty if there can be one.

        The bounds are LEAST_EFFECTIVE and MOST_UNSEEN; docs/statistics.md has the simulations behind them.
        """
        if self.rows == 0:
            return "the log has no row"
        rows = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        if self.left_out == self.rows:
            return f"none of {rows} has a weight"
        if self.left_out > MOST_UNSEEN * self.rows:
            return f"{self.left_out:,} of {rows} have no weight, more than {MOST_UNSEEN:.0%}"
        if self.unsupported is not None and self.unsupported > MOST_UNSEEN:
            return (
                f"{self.unsupported:.3g} of the target's probability is on items that the log never shows, "
                f"more than {MOST_UNSEEN:g}"
            )
        if self.effective < LEAST_EFFECTIVE:
            verb = "is" if self.rows == 1 else "are"
            return f"{rows} {verb} worth {self.effective:.3g} by their weights, less than {LEAST_EFFECTIVE}"
        return ""


def overlap(weights: Weights, units: ArrayLike | None = None, *, unsupported: float | None = None) -> Overlap:
    """Measure the overlap of a target policy with a log.

    Args:
        weights: of all rows.
        units: (n,) the unit of each row, as for `Rows`.
        unsupported: see `unsupported_share`.

    >>> found = overlap(importance_weights([0.5, 0.1, 0.5], [0.25, 0.2, 0.0]))
    >>> found.left_out, found.largest, round(found.effective, 3), found.reason
    (1, 2.0, 1.471, '1 of 3 rows have no weight, more than 5%')

    Raises ValueError if the lengths differ, or unless unsupported lies in 0..1.
    """
    if unsupported is not None and not 0 <= unsupported <= 1:
        raise ValueError(f"a share lies between 0 and 1, got {unsupported!r}")
    usable = weights.usable
    w = weights.values[usable]
    which = None if units is None else _units(units, len(usable))[usable]
    mean = ratio_delta(ratio_sums(w, np.ones_like(w), which))
    largest = float(w.max(initial=0.0))
    return Overlap(len(usable), int((~usable).sum()), effective(w), largest, mean, unsupported)


def effective(weights: Floats) -> float:
    """The effective sample size of weights that are not negative; 0 if there is none above 0.

    >>> effective(np.array([1e200, 1e200, 0.0]))
    2.0
    """
    largest = float(weights.max(initial=0.0))
    if largest == 0:
        return 0.0
    parts = weights / largest  # their squares do not overflow
    return effective_size(float(parts.sum()), float(parts @ parts))


def unsupported_share(target: ArrayLike, shown: ArrayLike, rows: ArrayLike) -> float | None:
    """Share of the target's probability that lies on items which the log never shows.

    Args:
        target: (contexts, items) probability q of an item in a context, such as a position.
        shown: (contexts, items) how often the log shows it.
        rows: (contexts,) how often the context occurs.

    >>> unsupported_share([[0.9, 0.1], [0.5, 0.5]], [[5, 0], [3, 2]], [5, 5])
    0.05

    None if no context occurs. Raises ValueError if shapes differ or a number is negative or not finite.
    """
    q, counts, weight = (np.asarray(values, np.float64) for values in (target, shown, rows))
    if q.ndim != 2 or q.shape != counts.shape or weight.shape != q.shape[:1]:
        raise ValueError(f"shapes differ: {q.shape}, {counts.shape} and {weight.shape}")
    if not all(bool(np.all(np.isfinite(values) & (values >= 0))) for values in (q, counts, weight)):
        raise ValueError("probabilities and counts are finite and not negative")
    if not weight.sum():
        return None
    return min(1.0, float(weight @ np.where(counts == 0, q, 0.0).sum(axis=1) / weight.sum()))


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a log that have a weight, and what users did.

    Attributes:
        weights: (n,) finite weights, not negative.
        rewards: (n,) the reward of the shown item, such as 1 for a click.
        units: (n,) whole numbers from 0: the user or the request of a row. Rows of one unit may be
            correlated. Unless given, each row is a unit.
        bounds: the range of a reward. None if it has none, such as money: the interval is then the delta
            method's, which is too narrow if rewards are rare or a few weights are large.

    Raises ValueError if the lengths differ, a weight is negative or not finite, a reward is not finite or
    outside its bounds, or a unit is no whole number from 0.
    """

    weights: Floats
    rewards: Floats
    units: NDArray[np.int64] | None = None
    bounds: Range | None = (0.0, 1.0)

    @classmethod
    def of(
        cls,
        weights: ArrayLike,
        rewards: ArrayLike,
        units: ArrayLike | None = None,
        bounds: Range | None = (0.0, 1.0),
    ) -> Rows:
        """Checked rows of anything like an array."""
        w = _values(weights, None)
        if not bool(np.all(w >= 0)):
            raise ValueError("weights are not negative")
        r = _values(rewards, bounds, len(w))
        return cls(w, r, None if units is None else _units(units, len(w)), bounds)

    def mean(self, terms: Floats, confidence: float) -> Estimate | None:
        """The mean of terms, one of each row."""
        sums = ratio_sums(terms, np.ones_like(terms), self.units)
        return from_sums(sums, self.bounds, effective(self.weights), confidence)


def ips(rows: Rows, confidence: float = CONFIDENCE) -> Estimate | None:
    """Inverse propensity score: the mean of w r over the rows.

        V = sum w r / n

    It has no bias if the propensities are right and the target has support. Large weights make it noisy.

    Source: D. G. Horvitz and D. J. Thompson, A generalization of sampling without replacement from a finite
    universe, JASA 47 (1952).

    >>> ips(Rows.of([2.0, 0.5, 2.0, 0.5], [1, 1, 0, 0])).value
    0.625

    None if there are fewer than two units, all weights are 0, or a sum is not finite.
    """
    return rows.mean(rows.weights * rows.rewards, confidence)


def clipped_ips(rows: Rows, cap: float, confidence: float = CONFIDENCE) -> Estimate | None:
    """`ips` with each weight cut at `cap`: less noise for a bias.

        V = sum min(w, cap) r / n

    If rewards are not negative, it is on average too low by E[(w - cap)+ r]. Its interval is one of the lower
    value.

    Source: L. Bottou et al., Counterfactual reasoning and learning systems, JMLR 14 (2013).

    >>> clipped_ips(Rows.of([2.0, 0.5, 2.0, 0.5], [1, 1, 0, 0]), cap=1.0).value
    0.375

    None as for `ips`. Raises ValueError unless cap > 0.
    """
    if not cap > 0:
        raise ValueError(f"a cap of weights is above 0, got {cap!r}")
    return ips(replace(rows, weights=np.minimum(rows.weights, cap)), confidence)


def self_normalised_ips(rows: Rows, confidence: float = CONFIDENCE) -> Estimate | None:
    """Self-normalised inverse propensity score: the weighted mean of the rewards.

        V = sum w r / sum w

    It stays within the range of the rewards. If all propensities are wrong by one factor, it does not change.
    It has a bias, which falls with the effective sample size.

    Source: A. Swaminathan and T. Joachims, The self-normalized estimator for counterfactual learning, NIPS
    2015.

    >>> self_normalised_ips(Rows.of([2.0, 0.5, 2.0, 0.5], [1, 1, 0, 0])).value
    0.5

    None as for `ips`.
    """
    # Divided by the largest, so that no square overflows or vanishes; the value stays the same.
    weights = rows.weights / (rows.weights.max(initial=0.0) or 1.0)
    sums = ratio_sums(weights * rows.rewards, weights, rows.units)
    return from_sums(sums, rows.bounds, effective(rows.weights), confidence)


def direct_method(
    expected: ArrayLike,
    units: ArrayLike | None = None,
    bounds: Range | None = (0.0, 1.0),
    confidence: float = CONFIDENCE,
) -> Estimate | None:
    """The mean of a reward model's predictions for the target; it needs no propensity.

        V = sum v / n,  v = sum over items of q(item) * predicted reward(item)

    It is as wrong as the model. Its interval covers only the choice of requests, not the error of the model.

    Args:
        expected: (n,) the predicted reward v of the target policy for the request of a row.
        units: (n,) as in `Rows`.
        bounds: the range of a prediction.
        confidence: the coverage.

    Source: M. Dudik, J. Langford, L. Li, Doubly robust policy evaluation and learning, ICML 2011.

    >>> direct_method([0.25, 0.75]).value
    0.5

    None if there are fewer than two units. Raises ValueError as `Rows.of` does.
    """
    v = _values(expected, bounds)
    return from_sums(ratio_sums(v, np.ones_like(v), units), bounds, confidence=confidence)


def doubly_robust(
    rows: Rows, predicted: ArrayLike, expected: ArrayLike, confidence: float = CONFIDENCE
) -> Estimate | None:
    """The direct method, corrected by the weighted error of its model.

        V = sum (v + w (r - predicted)) / n

    It has no bias if the propensities or the model are right. The model must not have learnt from the unit
    that it predicts: fit it on other units.

    Args:
        rows: as for `ips`.
        predicted: (n,) the predicted reward of the shown item.
        expected: (n,) as for `direct_method`.
        confidence: the coverage.

    Source: M. Dudik, J. Langford, L. Li, Doubly robust policy evaluation and learning, ICML 2011.

    >>> rows = Rows.of([2.0, 0.5], [1, 0])
    >>> doubly_robust(rows, predicted=[0.5, 0.5], expected=[0.5, 0.5]).value
    0.875

    None as for `ips`. Raises ValueError as `Rows.of` does.
    """
    model, v = (_values(values, rows.bounds, len(rows.weights)) for values in (predicted, expected))
    return rows.mean(v + rows.weights * (rows.rewards - model), confidence)


def ips_by_position(rows: Rows, requests: ArrayLike, confidence: float = CONFIDENCE) -> Estimate | None:
    """Reward of a whole list, with a weight of its own for each position: independent-positions IPS.

        V = sum over requests and positions k of w_k r_k / requests,  w_k = q_k(item) / p_k(item)

    It assumes that the reward at a position depends on the item there alone, not on the other items of the
    list. So no weight of a whole list is needed, which is a product over its positions. It is wrong if users
    compare items or stop at the first good one.

    Args:
        rows: one row a position; `bounds` are of a reward at one position.
        requests: (n,) whole numbers from 0: the request of a row. Lists may differ in length.
        confidence: the coverage.

    If `rows.units` is None, requests are the units.

    Source: S. Li et al., Offline evaluation of ranking policies with click models, KDD 2018.

    >>> rows = Rows.of([2.0, 0.5, 1.0], [1, 1, 1])
    >>> ips_by_position(rows, requests=[0, 0, 1]).value  # (2.5 + 1) / 2
    1.75

    None as for `ips`. Raises ValueError if a request is no whole number from 0.
    """
    lists = _units(requests, len(rows.weights))
    starts = np.zeros(len(lists))
    starts[np.unique(lists, return_index=True)[1]] = 1.0  # a request counts once
    longest = float(np.bincount(lists).max(initial=0))
    sums = ratio_sums(rows.weights * rows.rewards, starts, lists if rows.units is None else rows.units)
    whole = rows.bounds and (longest * rows.bounds[0], longest * rows.bounds[1])
    return from_sums(sums, whole, effective(rows.weights), confidence)


def ratio_sums(numerator: Floats, denominator: Floats, units: ArrayLike | None = None) -> RatioSums:
    """Sums over units of a ratio: what a database gives for a log that is too large for arrays.

    Args:
        numerator: (n,) of each row.
        denominator: (n,) of each row.
        units: (n,) as in `Rows`.

    >>> ratio_sums(np.array([1.0, 0.0, 1.0]), np.ones(3), units=[0, 0, 1])[:3]  # n, numerator, denominator
    (2, 2.0, 3.0)
    """
    x, y, n = numerator, denominator, len(numerator)
    if units is not None:
        which = _units(units, n)
        present = np.bincount(which) > 0
        x, y = (np.bincount(which, values)[present].astype(np.float64) for values in (x, y))
        n = int(present.sum())
    with np.errstate(over="ignore"):
        return RatioSums(n, float(x.sum()), float(y.sum()), float(x @ x), float(y @ y), float(x @ y))


def from_sums(
    sums: RatioSums,
    bounds: Range | None,
    effective: float = math.inf,
    confidence: float = CONFIDENCE,
) -> Estimate | None:
    """An estimate from its sums over units, with an interval that holds for rare rewards.

    The few rewarded rows say little about the variance: a large weight without a reward leaves no trace in
    it. The weights of all rows are known. So the variance is at least that of a share of `effective` rows.

    If nearly all rows are rewarded, the noise of the weights remains, and Wilson's upper end is too low. So
    the upper end is at least that of the delta method, cut off at the bound, if the variance is larger than
    that of values within the bounds can be.

    Args:
        sums: the estimator's numerator and denominator over units.
        bounds: the range of the true value; None for the delta method's interval.
        effective: the effective sample size of the weights of all rows.
        confidence: the coverage.

    >>> found = from_sums(RatioSums(1000, 4.0, 1000.0, 4.0, 1000.0, 4.0), (0.0, 1.0), effective=200)
    >>> found.value, [round(end, 4) for end in found.interval]
    (0.004, [0.0006, 0.0263])

    None as for `effects.ratio_delta`, and if `effective` is 0.
    """
    found = ratio_delta(sums, confidence)
    if found is None or not effective > 0:
        return None
    if bounds is None:
        return found
    within = ratio_within(sums, bounds, confidence, effective)
    if within is None:
        return None
    # Only a self-normalised value must lie within the bounds.
    lower, upper = min(within.lower, found.value), max(within.upper, found.value)
    width = bounds[1] - bounds[0]
    most = most_variance((found.value - bounds[0]) / width) / max(1.0, min(effective, sums.n) - 1)
    if found.error / width > math.sqrt(most) + _ROUNDING:
        upper = max(upper, min(bounds[1], found.interval.upper))
    return found._replace(interval=Interval(lower, upper))


def _values(values: ArrayLike, bounds: Range | None, length: int | None = None) -> Floats:
    """Finite numbers of the given length, within the bounds."""
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 1 or length not in (None, len(numbers)):
        wanted = "a vector" if length is None else f"{length} values"
        raise ValueError(f"expected {wanted}, got shape {numbers.shape}")
    if not bool(np.all(np.isfinite(numbers))):
        raise ValueError("weights, rewards and predictions are finite")
    if bounds is not None and not bool(np.all((numbers >= bounds[0]) & (numbers <= bounds[1]))):
        raise ValueError(f"rewards and predictions lie within {bounds[0]:g} and {bounds[1]:g}")
    return numbers


def _units(units: ArrayLike, length: int) -> NDArray[np.int64]:
    which = np.asarray(units)
    if which.shape != (length,):
        raise ValueError(f"expected {length} units, got shape {which.shape}")
    if length and (which.dtype.kind not in "iu" or int(which.min()) < 0):
        raise ValueError("units are whole numbers from 0")
    return which.astype(np.int64)
