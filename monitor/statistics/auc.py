"""The area under the ROC curve with DeLong's interval, from arrays or from a database's sums.

AUC is the share of (positive, negative) pairs that the scores put in the right order, a tie counting half.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.statistics.counts import Floats, as_numbers
from monitor.statistics.intervals import CONFIDENCE, Interval, quantile
from monitor.statistics.rank_correlation import mid_ranks

_ROUNDING = 1e-12

FEWEST_CLUSTERS = 10
"""With fewer users than this, an interval from the spread between them cannot be trusted."""


class ClusterSums(NamedTuple):
    """The sums for the variance of AUC if rows of one user are correlated.

    With V10 and V01 a user's sums of placements, m and n its positives and negatives:
    """

    clusters: int
    """Users; a row without a user counts as a user of its own."""
    with_positives: int
    with_negatives: int
    c10: float
    """The sum over users of (V10 - m AUC)^2."""
    c01: float
    """The sum over users of (V01 - n AUC)^2."""
    c11: float
    """The sum over users of (V10 - m AUC) (V01 - n AUC)."""


class AucSums(NamedTuple):
    """The sums for DeLong's variance.

    A positive's placement v10 is the share of negatives that it beats, a negative's v01 the share of
    positives that beat it, ties half. Both have the mean AUC.
    """

    positives: int
    negatives: int
    auc: float
    v10_squared: float
    """The sum of the squares of v10 over the positives."""
    v01_squared: float
    """The sum of the squares of v01 over the negatives."""
    clusters: ClusterSums | None = None
    """Given if a user has several rows."""


def auc_sums(scores: ArrayLike, labels: ArrayLike, owners: ArrayLike | None = None) -> AucSums | None:
    """AUC and the sums of DeLong's variance, exact, by mid-ranks in O(n log n).

    With M positives, N negatives, rank the mid-rank among all and own the mid-rank among its class:

        v10 = (rank - own) / N,  v01 = 1 - (rank - own) / M,
        AUC = (sum of the positives' ranks - M (M + 1) / 2) / (M N)

    None if there is only one class, or no row. Infinite scores are ranked like any other.

    Args:
        scores: one a row; the larger, the more likely positive.
        labels: 0 and 1, or False and True.
        owners: one whole number a row, equal for the rows of one user; None if rows are independent.

    Source: Sun and Xu, Fast implementation of DeLong's algorithm, IEEE Signal Processing Letters 21 (2014).

    >>> auc_sums([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    AucSums(positives=2, negatives=2, auc=0.75, v10_squared=1.25, v01_squared=1.25, clusters=None)
    >>> auc_sums([0.1, 0.4], [1, 1]) is None
    True

    Raises ValueError if a score is NaN, a label is neither 0 nor 1, or the numbers of scores and labels
    differ.
    """
    values, classes = as_numbers(scores, "scores"), np.asarray(labels)
    if classes.shape != values.shape:
        raise ValueError(f"{values.size} scores, but {classes.size} labels")
    positive = classes == 1
    if not bool(np.all(positive | (classes == 0))):
        raise ValueError("a label is 0 or 1")
    positives = int(positive.sum())
    negatives = len(values) - positives
    if positives == 0 or negatives == 0:
        return None
    ranks = mid_ranks(values)
    v10 = (ranks[positive] - mid_ranks(values[positive])) / negatives
    v01 = 1 - (ranks[~positive] - mid_ranks(values[~positive])) / positives
    rank_sum = float(ranks[positive].sum())
    auc = (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)
    clusters = None
    if owners is not None:
        _, who = np.unique(np.asarray(owners), return_inverse=True)
        clusters = _clusters(who, positive, v10 - auc, v01 - auc)
    return AucSums(positives, negatives, auc, float(v10 @ v10), float(v01 @ v01), clusters)


def _clusters(who: NDArray[np.int64], positive: NDArray[np.bool_], v10: Floats, v01: Floats) -> ClusterSums:
    size = int(who.max()) + 1
    ups, downs = np.bincount(who[positive], v10, size), np.bincount(who[~positive], v01, size)
    return ClusterSums(
        size,
        len(np.unique(who[positive])),
        len(np.unique(who[~positive])),
        float(ups @ ups),
        float(downs @ downs),
        float(ups @ downs),
    )


def delong_variance(sums: AucSums) -> float | None:
    """DeLong's variance of AUC: s10 / M + s01 / N, s the sample variances of the placements.

        s10 = (sum v10^2 - M AUC^2) / (M - 1),  s01 = (sum v01^2 - N AUC^2) / (N - 1)

    With clusters it is Obuchowski's: placements are summed by user first. Of I users, I10 have positives and
    I01 negatives:

        s10 = I10 / ((I10 - 1) M) c10,  s01 = I01 / ((I01 - 1) N) c01,  s11 = I / (I - 1) c11
        variance = s10 / M + s01 / N + 2 s11 / (M N)

    The two are equal if every row is a user of its own.

    None if a class has fewer than two rows: one placement has no spread. It is 0 if all placements of each
    class are equal: at AUC 0 and 1, and if all scores are tied.

    Source: DeLong, DeLong, Clarke-Pearson, Comparing the areas under two or more correlated ROC curves,
    Biometrics 44 (1988); N. A. Obuchowski, Nonparametric analysis of clustered ROC curve data, Biometrics 53
    (1997).

    >>> delong_variance(AucSums(2, 2, 0.75, 1.25, 1.25))
    0.125

    Raises ValueError if a number is negative or NaN, AUC is outside [0, 1], or the sums of squares do not fit
    it.
    """
    _check(sums)
    if min(sums.positives, sums.negatives) < 2:
        return None
    if sums.clusters is not None:
        return _clustered(sums, sums.clusters)
    return _part(sums.positives, sums.auc, sums.v10_squared) + _part(
        sums.negatives, sums.auc, sums.v01_squared
    )


def _clustered(sums: AucSums, own: ClusterSums) -> float | None:
    if min(own.with_positives, own.with_negatives) < 2:
        return None
    m, n = sums.positives, sums.negatives
    s10 = own.with_positives / ((own.with_positives - 1) * m) * own.c10
    s01 = own.with_negatives / ((own.with_negatives - 1) * n) * own.c01
    s11 = own.clusters / (own.clusters - 1) * own.c11
    return max(0.0, s10 / m + s01 / n + 2 * s11 / (m * n))


def _part(n: int, auc: float, squares: float) -> float:
    spread = squares - n * auc * auc
    return spread / (n - 1) / n if spread > _ROUNDING * squares else 0.0


def _check(sums: AucSums) -> None:
    if not (sums.positives >= 0 and sums.negatives >= 0 and 0 <= sums.auc <= 1):
        raise ValueError(f"numbers of rows are not negative and AUC lies in [0, 1], got {sums}")
    for n, squares in ((sums.positives, sums.v10_squared), (sums.negatives, sums.v01_squared)):
        # Placements lie in [0, 1] and have the mean AUC, which bounds the sum of their squares.
        room = 1e-6 * max(n * sums.auc, 1e-300)
        if not n * sums.auc**2 - room <= squares <= n * sums.auc + room:
            raise ValueError(f"no placements have these sums of squares: {sums}")


def delong_interval(sums: AucSums, confidence: float = CONFIDENCE) -> Interval | None:
    """DeLong's interval of AUC on the logit scale, so that it stays within 0 and 1.

        logit(AUC) -+ z error / (AUC (1 - AUC)), carried back; error^2 is DeLong's variance

    Near 1 the plain AUC -+ z error passes 1 and is too short below; this interval keeps its coverage there.
    At AUC 0 and 1 the variance is 0. There the far end comes from min(M, N) pairs without a common row, which
    are all in order with probability AUC^min(M, N): (alpha / 2)^(1 / min(M, N)), exact and wide. None if a
    class has fewer than two rows. If all scores are tied, both ends are 1/2.

    The coverage holds if min(M, N) min(AUC, 1 - AUC) is 3 or more: some rows of the smaller class are in the
    wrong place. Below that, as with 20 positives at 0.97, the interval is too narrow.

    With clusters z is Student's quantile with one degree of freedom less than there are users. With fewer
    than 10 users there is no interval.

    Source: M. S. Pepe, The statistical evaluation of medical tests (2003), 5.2.5, for the logit.

    >>> [round(end, 4) for end in delong_interval(AucSums(50, 200, 0.9, 41.0, 163.0))]
    [0.8662, 0.926]
    >>> [round(end, 4) for end in delong_interval(AucSums(3, 5, 1.0, 3.0, 5.0))]
    [0.2924, 1.0]

    Raises ValueError as `delong_variance` does, and unless 0 < confidence < 1.
    """
    z = quantile(confidence)
    variance, own = delong_variance(sums), sums.clusters
    if variance is None or (own is not None and own.clusters < FEWEST_CLUSTERS):
        return None
    auc, pairs = sums.auc, min(sums.positives, sums.negatives)
    if own is not None:
        pairs = min(own.with_positives, own.with_negatives)
        z = _student(confidence, own.clusters - 1)
    if auc in (0.0, 1.0):
        end = ((1 - confidence) / 2) ** (1 / pairs)
        return Interval(end, 1.0) if auc == 1 else Interval(0.0, 1 - end)
    middle, half = math.log(auc) - math.log1p(-auc), z * math.sqrt(variance) / (auc * (1 - auc))
    return Interval(_expit(middle - half), _expit(middle + half))


def _student(confidence: float, freedom: int) -> float:
    from scipy import special  # 10 MiB of memory, only needed with clusters

    return float(special.stdtrit(freedom, 0.5 + confidence / 2))


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


class AucGap(NamedTuple):
    """One AUC minus another, with its interval."""

    difference: float
    interval: Interval


def auc_gap(one: AucSums, other: AucSums, confidence: float = CONFIDENCE) -> AucGap | None:
    """The difference of two AUCs of independent samples, such as train minus test, with its interval.

    From the single intervals (l, u), which keep within 0 and 1, by the square-and-add rule:

        d - sqrt((a - l_a)^2 + (u_b - b)^2)  to  d + sqrt((u_a - a)^2 + (b - l_b)^2)

    For large samples it is d -+ z sqrt(variance_a + variance_b). It never leaves [-1, 1], and holds near 1,
    where AUCs of training data often are. Not for two scores of the same rows, which are not independent.
    None if one of the AUCs has no interval.

    Source: R. G. Newcombe, Interval estimation for the difference between independent proportions,
    Statistics in Medicine 17 (1998); Zou and Donner (2008) for the rule with any interval.

    >>> found = auc_gap(AucSums(50, 200, 0.9, 41.0, 163.0), AucSums(50, 200, 0.8, 34.0, 134.0))
    >>> round(found.difference, 4), [round(end, 4) for end in found.interval]
    (0.1, [0.0362, 0.1727])

    Raises ValueError as `delong_interval` does.
    """
    first, second = delong_interval(one, confidence), delong_interval(other, confidence)
    if first is None or second is None:
        return None
    difference = one.auc - other.auc
    below = math.hypot(one.auc - first.lower, second.upper - other.auc)
    above = math.hypot(first.upper - one.auc, other.auc - second.lower)
    return AucGap(difference, Interval(difference - below, difference + above))
