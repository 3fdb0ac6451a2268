"""Pearson's chi-square of counts against expected counts, with a p that is valid for few counts too.

The chi-square distribution is a limit. It is not used if an expected count is below 5. The p is then exact if
all outcomes can be listed in time and memory, else simulated with a fixed seed, so that the same counts
always give the same p.

scipy.special is imported when it is first needed, and scipy.stats never: it costs three times the memory.
"""

from __future__ import annotations

import math
from enum import StrEnum
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from monitor.statistics.counts import Floats, as_counts

FEW = 5.0
"""The smallest expected count for which the chi-square distribution is used."""

_LISTED = 200_000  # outcomes listed for an exact p: a tenth of a second
_LISTED_CELLS = 2_000_000  # cells of all outcomes: a hundred megabytes
_CELLS = 5_000_000  # cells drawn for a simulated p: half a second
_DRAWS = (5_000, 100_000)
_LARGEST_DRAWN = 10**9  # the most that numpy's hypergeometric takes
_SEED = 20_260_105


class Method(StrEnum):
    """How the p of a test was found."""

    CHI_SQUARE = "chi_square"
    EXACT = "exact"
    SIMULATED = "simulated"


class ChiSquare(NamedTuple):
    """Pearson's statistic, its degrees of freedom, and its p."""

    statistic: float
    df: int
    p: float
    method: Method


def goodness_of_fit(counts: ArrayLike, weights: ArrayLike) -> ChiSquare | None:
    """Do the counts follow the weights? X^2 = sum((n_i - N w_i)^2 / (N w_i)), df = number of counts - 1.

    None if all counts are 0 or there are fewer than two.

    Args:
        counts: how many were seen of each.
        weights: their intended shares, in any unit; they are divided by their sum.

    >>> test = goodness_of_fit([4950, 5050], [1, 1])
    >>> test.statistic, test.df, round(test.p, 6), str(test.method)
    (1.0, 1, 0.317311, 'chi_square')
    >>> few = goodness_of_fit([5, 0], [1, 1])  # 2.5 expected of each; 2 of 32 sequences are as far off
    >>> round(few.p, 6), str(few.method)
    (0.0625, 'exact')

    Raises ValueError where a count is negative or not finite, where a weight is not above 0 and
    finite, or where there are not as many weights as counts.
    """
    seen, share = as_counts(counts), shares(weights)
    if seen.shape != share.shape:
        raise ValueError(f"{len(seen)} counts, but {len(share)} intended shares")
    total = float(seen.sum())
    if total == 0 or len(seen) < 2:
        return None
    expected = total * share
    statistic = float(np.sum((seen - expected) ** 2 / expected))
    df = len(seen) - 1
    if expected.min() >= FEW:
        return ChiSquare(statistic, df, _survival(df, statistic), Method.CHI_SQUARE)
    # A tolerance for rounding: the same outcome added in another order counts as well.
    bound = statistic * (1 - 1e-9)
    outcomes = math.comb(min(int(total), _LISTED) + df, df)
    if outcomes <= min(_LISTED, _LISTED_CELLS // len(seen)):
        return ChiSquare(statistic, df, _exact(int(total), share, bound), Method.EXACT)
    return ChiSquare(statistic, df, _simulated_fit(total, share, bound), Method.SIMULATED)


def shares(weights: ArrayLike) -> Floats:
    """Weights as shares that add up to 1.

    >>> shares([2, 1, 1]).tolist()
    [0.5, 0.25, 0.25]

    Raises ValueError where a weight is not above 0 or not finite.
    """
    given = np.asarray(weights, np.float64)
    if given.ndim != 1 or not bool(np.all((given > 0) & np.isfinite(given))):
        raise ValueError("intended shares are above 0 and finite")
    scaled = given / given.max(initial=1e-300)  # a sum of very large weights would overflow
    return np.asarray(scaled / scaled.sum())


def independence(table: ArrayLike) -> ChiSquare | None:
    """Are the rows and the columns of a table of counts independent?

    X^2 = sum((n_ij - e_ij)^2 / e_ij), e_ij = row total * column total / N, df = (rows - 1)(columns - 1).
    Rows and columns without any count are left out. None if fewer than two rows or columns are left. If an
    expected count is below 5, the p is simulated with fixed margins, up to 10^9 counts. With more counts the
    chi-square distribution is used all the same.

    >>> test = independence([[10, 20], [30, 40]])
    >>> round(test.statistic, 6), test.df, round(test.p, 6)
    (0.793651, 1, 0.372998)

    Raises ValueError where a count is negative or not finite, or where it is not a table.
    """
    seen = as_counts(table, "the counts of a table", dimensions=2)
    seen = seen[seen.sum(axis=1) > 0][:, seen.sum(axis=0) > 0]
    if min(seen.shape) < 2:
        return None
    rows, columns, total = seen.sum(axis=1), seen.sum(axis=0), float(seen.sum())
    expected = rows[:, None] * (columns / total)
    statistic = float(np.sum((seen - expected) ** 2 / expected))
    df = (len(rows) - 1) * (len(columns) - 1)
    if expected.min() >= FEW or total >= _LARGEST_DRAWN:
        return ChiSquare(statistic, df, _survival(df, statistic), Method.CHI_SQUARE)
    p = _simulated_table(rows, columns, expected, statistic * (1 - 1e-9))
    return ChiSquare(statistic, df, p, Method.SIMULATED)


def _survival(df: int, statistic: float) -> float:
    from scipy import special

    return float(special.chdtrc(df, statistic))


def _exact(total: int, share: Floats, bound: float) -> float:
    """The multinomial probability of all outcomes whose statistic is at least the bound."""
    from scipy import special

    arms = len(share)
    # Stars and bars: arms - 1 bars among total + arms - 1 places; the stars between them are the counts.
    bars = chain.from_iterable(combinations(range(total + arms - 1), arms - 1))
    places = np.fromiter(bars, np.int64).reshape(-1, arms - 1)
    edges = np.pad(places, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, total + arms - 1)))
    outcomes = (np.diff(edges, axis=1) - 1).astype(np.float64)
    expected = total * share
    as_far = outcomes[np.sum((outcomes - expected) ** 2 / expected, axis=1) >= bound]
    terms = as_far * np.log(share) - special.gammaln(as_far + 1)
    return min(1.0, float(np.exp(math.lgamma(total + 1) + terms.sum(axis=1)).sum()))


def _simulated_fit(total: float, share: Floats, bound: float) -> float:
    random, expected = np.random.default_rng(_SEED), total * share
    draws = _draws(len(share))
    chunk = max(1, 1_000_000 // len(share))
    as_far = 0
    for first in range(0, draws, chunk):
        drawn = random.multinomial(int(total), share, min(chunk, draws - first))
        as_far += int(np.sum(np.sum((drawn - expected) ** 2 / expected, axis=1) >= bound))
    return (as_far + 1) / (draws + 1)


def _simulated_table(rows: Floats, columns: Floats, expected: Floats, bound: float) -> float:
    """Tables of the same margins, drawn cell by cell: each is hypergeometric given those before it."""
    random, draws = np.random.default_rng(_SEED), _draws(expected.size)
    free = np.repeat(columns.astype(np.int64)[:, None], draws, axis=1)
    statistic = np.zeros(draws)
    for row, wanted in zip(rows.astype(np.int64), expected, strict=True):
        left = np.full(draws, row)
        for at, one in enumerate(wanted):
            drawn = random.hypergeometric(free[at], free[at + 1 :].sum(axis=0), left)
            free[at] -= drawn
            left -= drawn
            statistic += (drawn - one) ** 2 / one
    return (int(np.sum(statistic >= bound)) + 1) / (draws + 1)


def _draws(cells: int) -> int:
    fewest, most = _DRAWS
    return min(most, max(fewest, _CELLS // cells))
