"""Is an experiment's split sound? Check this before reading its metrics.

If the split is not as intended, users were lost or selected, and the arms differ by more than the treatment.
Counts are of users, each counted once: requests of one user are not independent.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from monitor.statistics.chi_square import FEW, ChiSquare, goodness_of_fit, independence, shares
from monitor.statistics.counts import Floats, as_counts
from monitor.statistics.intervals import CONFIDENCE, Interval

CONCENTRATION = 1_000.0
"""How many users the prior of the sequential test is worth.

On a split in halves with p < 0.01, a lost arm is found after 102 users, 60 % against 40 % after 630, 51 %
against 49 % after 33,000, 50.5 % against 49.5 % after 144,000. With 10,000 instead: after 311, 1,670, 34,500
and 128,000.
"""

_STIRLING = 16.0
_HALVINGS = 64
_GROUPS = 10  # of buckets, at least


def sample_ratio_mismatch(counts: ArrayLike, split: ArrayLike) -> ChiSquare | None:
    """Sample ratio mismatch: do the users per arm follow the intended split?

    Pearson's chi-square, exact or simulated where an arm expects fewer than 5 users. The p holds for ONE
    look, at a time fixed beforehand; to look every hour, use `sequential_split`. None if there are no users
    or fewer than two arms.

    Args:
        counts: distinct users per arm.
        split: the intended weight of each arm, above 0, in any unit: [1, 1], [50, 50], [0.9, 0.1].

    Source: Fabijan et al., Diagnosing sample ratio mismatch in online controlled experiments, KDD 2019.

    >>> test = sample_ratio_mismatch([821_588, 815_482], [1, 1])
    >>> round(test.statistic, 4), f"{test.p:.2g}"
    (22.7744, '1.8e-06')

    Raises ValueError where a count is negative or not finite, where a weight is not above 0, or where there
    are not as many weights as counts.
    """
    return goodness_of_fit(counts, split)


def bucket_uniformity(counts: ArrayLike) -> ChiSquare | None:
    """Do the hash buckets hold equally many users? Chi-square against equal shares.

    A hash that favours some buckets selects users before any arm is chosen. None if all are empty or there
    are fewer than two buckets. An empty bucket must be given, with a count of 0.

    If a bucket expects fewer than 5 users, random groups of buckets that expect 5 are counted instead: a
    simulated p could not be small enough for a broken hash. The groups depend only on the counts. Below 50
    users there are too few groups, and buckets are not grouped.

    >>> round(bucket_uniformity([90, 110, 105, 95]).p, 6)
    0.475291
    >>> bucket_uniformity([6, 0] * 500).df  # pairs, as 3 are expected of each
    499

    Raises ValueError where a count is negative or not finite.
    """
    seen = as_counts(counts)
    total = float(seen.sum())
    together = math.ceil(FEW * len(seen) / total) if total else 1
    if together == 1 or len(seen) // together < _GROUPS:
        return goodness_of_fit(seen, np.ones_like(seen))
    starts = np.arange(len(seen) // together) * together
    # A fixed seed would group the same places every time. Sorted counts make the order irrelevant.
    ordered = np.sort(seen)
    drawn = np.random.default_rng(ordered.astype(np.uint64)).permutation(ordered)
    return goodness_of_fit(np.add.reduceat(drawn, starts), np.diff(starts, append=len(seen)))


class Orthogonality(NamedTuple):
    """The chi-square of two layers' arms, and Cramer's V: 0 independent, 1 if one determines the other."""

    test: ChiSquare
    cramers_v: float


def layer_orthogonality(table: ArrayLike) -> Orthogonality | None:
    """Are two layers of experiments assigned independently of each other?

    Chi-square of the contingency table: one row an arm of one layer, one column an arm of the other, users
    in the cells. Cramer's V = sqrt(X^2 / (N min(rows - 1, columns - 1))) is the size of the effect: with very
    many users the p is small for differences that do not matter. Arms without a user are left out. None if
    fewer than two arms of a layer are left.

    >>> found = layer_orthogonality([[2500, 2500], [2400, 2600]])
    >>> round(found.test.p, 4), round(found.cramers_v, 4)
    (0.0455, 0.02)

    Raises ValueError where a count is negative or not finite, or where it is not a table.
    """
    test = independence(table)
    if test is None:
        return None
    seen = as_counts(table, "the counts of a table", dimensions=2)
    smaller = min(int(np.sum(seen.sum(axis=axis) > 0)) for axis in (0, 1))
    return Orthogonality(test, math.sqrt(min(1.0, test.statistic / (float(seen.sum()) * (smaller - 1)))))


class SequentialTest(NamedTuple):
    """One look: the log of the Bayes factor against the intended split, and the p of all looks so far."""

    log_bayes_factor: float
    p: float


def sequential_split(
    counts: ArrayLike, split: ArrayLike, smallest_p: float = 1.0, concentration: float = CONCENTRATION
) -> SequentialTest:
    """Sample ratio mismatch with a p that is valid at any number of looks, and at any stop.

    The intended split is compared with a Dirichlet prior around it. If the split is as intended, the Bayes
    factor is a martingale, so it ever passes 1 / alpha with probability alpha at most
    (Ville's inequality), and p = min over the looks of 1 / factor is valid at every look:

        factor = B(a + n) / (B(a) prod(split_i^n_i)),  a_i = concentration * split_i

    Keep the counts and the smallest p between looks. Without users the factor is 1.

    Args:
        counts: distinct users per arm since the experiment began, not since the last look.
        split: the intended weight of each arm, above 0, in any unit. The same at every look.
        smallest_p: the p of the look before; 1 at the first.
        concentration: users that the prior is worth. A larger one finds small deviations sooner among many
            users, and large ones later among few. The same at every look.

    Source: Lindon and Malek, Anytime-valid inference for multinomial count data, NeurIPS 2022.

    >>> first = sequential_split([520, 480], [1, 1])
    >>> second = sequential_split([10_400, 9_600], [1, 1], first.p)
    >>> round(first.p, 4), round(second.p, 7)
    (0.9479, 1.1e-06)

    Raises ValueError for wrong counts or weights, a smallest_p outside [0, 1], or a concentration not above
    0.
    """
    if not 0 <= smallest_p <= 1:
        raise ValueError(f"a p lies between 0 and 1, got {smallest_p!r}")
    share = shares(split)
    factor = float(log_bayes_factors(as_counts(counts), share, concentration))
    return SequentialTest(factor, min(float(smallest_p), math.exp(-max(0.0, factor))))


def log_bayes_factors(counts: Floats, share: Floats, concentration: float = CONCENTRATION) -> Floats:
    """The log Bayes factor of each row of counts (the last axis is the arms), exact at any size.

    The plain formula adds and subtracts log gammas of size N ln N, which leaves no digit for 10^15 users.
    With L(x) = ln gamma(x) - (x ln x - x), x = a + n, X = sum x, and d_i = x_i / (X s_i) - 1 the same is,
    without cancellation:

        L(A) - sum L(a_i) - L(X) + sum L(x_i) + sum X s_i ((1 + d_i) ln(1 + d_i) - d_i)

    >>> round(float(log_bayes_factors(np.array([3.0, 1.0]), np.array([0.5, 0.5]), 2.0)), 6)  # ln(16 / 20)
    -0.223144

    Raises ValueError where the arms of counts and shares differ, or where the concentration is not above 0.
    """
    if not (concentration > 0 and math.isfinite(concentration)):
        raise ValueError(f"the concentration is above 0, got {concentration!r}")
    if counts.shape[-1:] != share.shape:
        raise ValueError(f"{counts.shape[-1]} counts, but {len(share)} intended shares")
    from scipy import special

    prior = concentration * share
    total = counts.sum(axis=-1, keepdims=True)
    expected = (concentration + total) * share
    # counts - total * share, not x - expected: fewer digits are cancelled.
    deviation = (counts - total * share) / expected
    excess = special.xlog1py(1 + deviation, deviation) - deviation
    return np.asarray(
        _remainder(np.float64(concentration))
        - _remainder(prior).sum()
        - _remainder(concentration + total[..., 0])
        + _remainder(prior + counts).sum(axis=-1)
        + (expected * excess).sum(axis=-1)
    )


def _remainder(x: Floats | np.float64) -> Floats:
    """ln gamma(x) - (x ln x - x): by Stirling's series if x is large, where the difference has no digits."""
    from scipy import special

    far = np.maximum(x, _STIRLING)
    series = 1 / (12 * far) - 1 / (360 * far**3) + 1 / (1260 * far**5) - 1 / (1680 * far**7)
    stirling = 0.5 * np.log(2 * math.pi / far) + series
    near = np.minimum(x, _STIRLING)
    return np.where(x >= _STIRLING, stirling, special.gammaln(near) - (special.xlogy(near, near) - near))


def anytime_shares(
    counts: ArrayLike,
    split: ArrayLike,
    confidence: float = CONFIDENCE,
    concentration: float = CONCENTRATION,
) -> list[Interval] | None:
    """An interval of each arm's true share that is valid at every look: a confidence sequence.

    It holds all shares s of one arm against the others whose own Bayes factor, with the same prior, stays
    below 1 / (1 - confidence). Each arm's interval holds with that confidence over all looks together, all
    arms' intervals at once with less. None if there are no users or fewer than two arms.

    >>> [round(end, 4) for end in anytime_shares([10_400, 9_600], [1, 1])[0]]
    [0.5085, 0.5315]

    Raises ValueError as `sequential_split` does, and unless 0 < confidence < 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies between 0 and 1, got {confidence!r}")
    seen, share = as_counts(counts), shares(split)
    if seen.shape != share.shape:
        raise ValueError(f"{len(seen)} counts, but {len(share)} intended shares")
    total = float(seen.sum())
    if total == 0 or len(seen) < 2:
        return None
    both = np.stack([seen, total - seen], axis=-1)
    at_split = [
        float(log_bayes_factors(pair, np.array([s, 1 - s]), concentration))
        for pair, s in zip(both, share, strict=True)
    ]
    room = -math.log1p(-confidence) - np.asarray(at_split)
    inside = seen / total
    lower = _crossing(np.zeros_like(share), inside, both, share, room)
    upper = _crossing(np.ones_like(share), inside, both, share, room)
    return [Interval(float(low), float(high)) for low, high in zip(lower, upper, strict=True)]


def _crossing(outside: Floats, inside: Floats, both: Floats, share: Floats, room: Floats) -> Floats:
    """The point between `inside` and `outside` where the log likelihood has fallen by `room` (bisection)."""
    from scipy import special

    for _ in range(_HALVINGS):
        middle = (outside + inside) / 2
        with np.errstate(divide="ignore"):
            used = -special.xlog1py(both[:, 0], (middle - share) / share)
            used = used - special.xlog1py(both[:, 1], (share - middle) / (1 - share))
        is_inside = used < room
        inside = np.where(is_inside, middle, inside)
        outside = np.where(is_inside, outside, middle)
    return inside
