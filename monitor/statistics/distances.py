"""How far one distribution is from another: from counts over the same bins, or from two samples.

Bins are fixed by the reference, so that distances of two days can be compared. Counts (or weights) are
divided by their sums, so the sizes of the samples do not matter. The distance is None if one side is empty.
Each raises ValueError if a count is negative, NaN or infinite, or if the sides have different numbers of
bins.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.statistics.counts import Floats, as_counts, as_numbers

PSI_FLOOR = 1e-4
"""The smallest share of a bin in the PSI: an empty bin would make it infinite."""

_LARGE = 1e300


def quantile_edges(reference: ArrayLike, bins: int = 10) -> Floats:
    """Inner edges of bins with equal numbers of reference values; fewer if values repeat.

    The outer bins reach to infinity. There are at least two bins, unless `bins` is 1 or all values are equal.

    >>> quantile_edges(range(9), 4).tolist()
    [2.0, 4.0, 6.0]
    >>> quantile_edges([0.0] * 95 + [1.0, 2.0, 3.0, 4.0, 5.0]).tolist()  # 0 and above 0
    [0.0]

    Raises ValueError where a value is NaN or infinite, or where there is none, or where bins < 1.
    """
    values = as_numbers(reference, "reference values")
    if bins < 1 or values.size == 0 or not bool(np.isfinite(values).all()):
        raise ValueError("edges need finite reference values, and at least one bin")
    part = _part(values)
    quantiles = np.quantile(values * part, np.arange(bins + 1) / bins) / part
    inner = np.unique(quantiles)[1:-1]
    least, largest = quantiles[0], quantiles[-1]
    if inner.size or bins == 1 or least == largest:
        return np.asarray(inner)
    # Nearly all values are the least or the largest one. With one bin, no shift could be seen.
    return np.array([least if quantiles[1] == least else values[values < largest].max()])


def bin_counts(values: ArrayLike, edges: ArrayLike) -> NDArray[np.int64]:
    """How many values lie in each of the len(edges) + 1 bins; a value on an edge lies in the bin below it.

    >>> bin_counts([-5, 2.8, 3, 100], [2.8, 5.6]).tolist()
    [2, 1, 1]

    Raises ValueError where a value is NaN, or where the edges do not ascend.
    """
    inner = as_numbers(edges, "edges")
    if bool(np.any(np.diff(inner) <= 0)):
        raise ValueError("edges ascend")
    at = np.searchsorted(inner, as_numbers(values), side="left")
    return np.bincount(at, minlength=len(inner) + 1).astype(np.int64)


def _distance(
    reference: ArrayLike, current: ArrayLike, formula: Callable[[Floats, Floats], float]
) -> float | None:
    """The formula of both sides' shares; None if a side is empty."""
    p = as_counts(reference, "reference counts", whole=False)
    q = as_counts(current, "current counts", whole=False)
    if p.shape != q.shape:
        raise ValueError(f"{len(p)} bins of the reference, but {len(q)} of the current")
    if not (p.any() and q.any()):
        return None
    return float(formula(_share(p), _share(q)))


def _share(counts: Floats) -> Floats:
    scaled = counts / counts.max()  # a sum of very large weights would overflow
    return np.asarray(scaled / scaled.sum())


def psi(reference: ArrayLike, current: ArrayLike, floor: float = PSI_FLOOR) -> float | None:
    """Population stability index: sum((q - p) ln(q / p)) over the bins, p of the reference, q the current.

    A share below the floor counts as the floor, without rescaling: an empty bin would be infinitely far. So
    the PSI of an emptied bin depends on the floor. Rules of thumb: below 0.1 little, above 0.25 much. By
    chance alone it is about (bins - 1)(1 / n + 1 / m).

    >>> round(psi([50, 50], [25, 75]), 6)
    0.274653

    Also raises ValueError unless 0 < floor < 1.
    """
    if not 0 < floor < 1:
        raise ValueError(f"the floor lies between 0 and 1, got {floor!r}")

    def formula(p: Floats, q: Floats) -> float:
        p, q = np.maximum(p, floor), np.maximum(q, floor)
        return float(np.sum((q - p) * np.log(q / p)))

    return _distance(reference, current, formula)


def jensen_shannon(reference: ArrayLike, current: ArrayLike) -> float | None:
    """Jensen-Shannon distance: root of the divergence, base 2; 0 where equal, 1 where nothing is shared.

        sqrt((sum p log2(p / m) + sum q log2(q / m)) / 2),  m = (p + q) / 2

    >>> round(jensen_shannon([50, 50], [100, 0]), 6)
    0.557923
    """

    def formula(p: Floats, q: Floats) -> float:
        from scipy import special

        m = (p + q) / 2
        divergence = float(np.sum(special.rel_entr(p, m) + special.rel_entr(q, m))) / (2 * math.log(2))
        return math.sqrt(min(1.0, max(0.0, divergence)))

    return _distance(reference, current, formula)


def hellinger(reference: ArrayLike, current: ArrayLike) -> float | None:
    """Hellinger distance: sqrt(sum((sqrt p - sqrt q)^2) / 2); 0 where equal, 1 where nothing is shared.

    >>> round(hellinger([50, 50], [100, 0]), 6)
    0.541196
    """
    return _distance(
        reference, current, lambda p, q: math.sqrt(min(1.0, np.sum((np.sqrt(p) - np.sqrt(q)) ** 2) / 2))
    )


def l_infinity(reference: ArrayLike, current: ArrayLike) -> float | None:
    """The largest change of one bin's share: max |p - q|.

    >>> l_infinity([50, 50, 0], [25, 25, 50])
    0.5
    """
    return _distance(reference, current, lambda p, q: np.max(np.abs(p - q)))


def total_variation(reference: ArrayLike, current: ArrayLike) -> float | None:
    """Total variation distance: sum |p - q| / 2, the share that would have to move to another bin.

    >>> total_variation([50, 50, 0], [25, 25, 50])
    0.5
    """
    return _distance(reference, current, lambda p, q: min(1.0, np.abs(p - q).sum() / 2))


def ks_of_counts(reference: ArrayLike, current: ArrayLike) -> float | None:
    """The Kolmogorov-Smirnov statistic of binned data: the largest gap of the two cumulated shares.

    Bins are in ascending order. It is at most the statistic of the values themselves.

    >>> ks_of_counts([50, 50, 0], [25, 25, 50])
    0.5
    """
    return _distance(reference, current, lambda p, q: min(1.0, np.max(np.abs(np.cumsum(p - q)))))


def wasserstein_of_counts(reference: ArrayLike, current: ArrayLike, positions: ArrayLike) -> float | None:
    """Wasserstein-1 distance: how far a unit of mass moves on average, in the values' own unit.

        sum |P_i - Q_i| (x_(i+1) - x_i), P and Q the cumulated shares, x the ascending positions of the bins

    It is None if it is beyond float64, too.

    >>> wasserstein_of_counts([50, 50, 0], [0, 50, 50], [0, 1, 3])
    1.5

    Also raises ValueError unless the positions are finite and ascending, one a bin.
    """
    at = as_numbers(positions, "positions")
    if at.shape != np.shape(reference) or not bool(np.isfinite(at).all() and np.all(at[1:] > at[:-1])):
        raise ValueError("positions are finite and ascending, one a bin")
    part = _part(at)
    gaps = np.diff(at * part)
    moved = _distance(reference, current, lambda p, q: np.sum(np.abs(np.cumsum(p - q)[:-1]) * gaps))
    return None if moved is None or math.isinf(moved / part) else moved / part


def _part(values: Floats) -> float:
    """The part of values whose differences are finite: all of them, or a quarter near the largest float64."""
    return 0.25 if np.abs(values).max(initial=0.0) > _LARGE else 1.0


def _on_one_axis(reference: ArrayLike, current: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """The distinct values of both samples, ascending, and how often each sample has them."""
    x, y = as_numbers(reference, "reference values"), as_numbers(current, "current values")
    axis, at = np.unique(np.concatenate([x, y]), return_inverse=True)
    counts = [
        np.bincount(one, minlength=len(axis)).astype(np.float64) for one in (at[: len(x)], at[len(x) :])
    ]
    return axis, counts[0], counts[1]


def wasserstein(reference: ArrayLike, current: ArrayLike) -> float | None:
    """Wasserstein-1 distance of two samples, in the values' own unit.

    None where one is empty, or where the distance is beyond float64.

    >>> wasserstein([0, 1, 3], [5, 6, 8])
    5.0

    Raises ValueError where a value is NaN or infinite.
    """
    axis, p, q = _on_one_axis(reference, current)
    return wasserstein_of_counts(p, q, axis)


class KolmogorovSmirnov(NamedTuple):
    """The largest gap of the two distribution functions, and its p."""

    statistic: float
    p: float


def kolmogorov_smirnov(reference: ArrayLike, current: ArrayLike) -> KolmogorovSmirnov | None:
    """The two-sample Kolmogorov-Smirnov test: statistic and two-sided p. None where a sample is empty.

    The p is exact up to 10,000 values a sample and asymptotic above; with ties it is too large, never too
    small. With very many values any difference has a small p: judge the statistic. Values may be infinite.

    >>> found = kolmogorov_smirnov([0.99, 1.99], [1, 2, 3])
    >>> round(found.statistic, 6), round(found.p, 6)
    (0.666667, 0.6)

    Raises ValueError where a value is NaN.
    """
    _, p, q = _on_one_axis(reference, current)
    statistic = ks_of_counts(p, q)
    if statistic is None:
        return None
    from scipy import stats  # 55 MiB that only this p needs

    with warnings.catch_warnings():
        # If rounding takes an exact p above 1, scipy warns and uses the asymptotic one, which is 1 too.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = stats.ks_2samp(np.asarray(reference), np.asarray(current))
    return KolmogorovSmirnov(statistic, float(found.pvalue))
