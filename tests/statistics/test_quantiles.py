"""Quantiles and their intervals: published tables, brute force, and simulated coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.statistics.quantiles import RANKS, SIGMAS, least_samples, quantile_interval, quantile_of, rank_of


@pytest.mark.parametrize(
    ("n", "ranks"),
    [
        (6, (1, 6)),
        (7, (1, 7)),
        (8, (1, 8)),
        (9, (2, 8)),
        (10, (2, 9)),
        (15, (4, 12)),
        (20, (6, 15)),
        (50, (18, 33)),
    ],
)
def test_the_ranks_of_a_median_are_those_of_published_tables(n, ranks):
    # Conover, Practical Nonparametric Statistics, and the sign test's critical values for 5 %, two-sided.
    assert quantile_interval(n, 0.5) == ranks


def chance(n, p, b):
    return math.comb(n, b) * p**b * (1 - p) ** (n - b)


@given(st.integers(1, 120), st.sampled_from([0.5, 0.9, 0.99]))
def test_the_ranks_are_the_narrowest_that_hold_at_each_end(n, p):
    lower = [k for k in range(1, n + 1) if sum(chance(n, p, b) for b in range(k)) <= 0.025]
    upper = [k for k in range(1, n + 1) if sum(chance(n, p, b) for b in range(k, n + 1)) <= 0.025]
    wanted = (lower[-1], upper[0]) if lower and upper else None
    assert quantile_interval(n, p) == wanted


@pytest.mark.parametrize("p", [0.5, 0.9, 0.99])
def test_the_least_samples_are_the_first_with_both_ends(p):
    least = least_samples(p)
    assert quantile_interval(least, p) is not None
    assert all(quantile_interval(n, p) is None for n in range(least))


@given(st.integers(1, 2_000_000), st.sampled_from([0.5, 0.9, 0.99]))
def test_no_rank_is_further_away_than_a_query_looks(n, p):
    half = SIGMAS * math.sqrt(n * p * (1 - p)) + RANKS
    for rank in (rank_of(n, p), *(quantile_interval(n, p) or ())):
        assert 1 <= rank <= n
        assert abs(rank - n * p) <= half


@pytest.mark.parametrize(("n", "p"), [(40, 0.5), (100, 0.9), (1_000, 0.99), (400, 0.99)])
@pytest.mark.parametrize("draw", ["exponential", "standard_cauchy"])
def test_the_interval_covers_the_quantile_of_any_distribution(n, p, draw):
    rng = np.random.default_rng(5)
    samples = np.sort(getattr(rng, draw)(size=(4_000, n)), axis=1)
    true = -math.log(1 - p) if draw == "exponential" else math.tan(math.pi * (p - 0.5))
    lower, upper = quantile_interval(n, p)
    covered = np.mean((samples[:, lower - 1] <= true) & (true <= samples[:, upper - 1]))
    assert 0.945 <= covered <= 0.992  # at least 95 %, and little more


def test_a_quantile_is_a_value_and_not_between_two():
    assert quantile_of(4, 0.5, [4.0, 3.0, 2.0, 1.0], 1) == (2.0, None)
    value, interval = quantile_of(40, 0.5, [float(n) for n in range(1, 41)], 1)
    assert (value, tuple(interval)) == (20.0, (14.0, 27.0))


def test_some_of_the_values_are_enough():
    near = [float(n) for n in range(30, 72)]
    assert quantile_of(100, 0.5, near, 30) == quantile_of(100, 0.5, [float(n) for n in range(1, 101)], 1)


def test_ties_are_kept():
    assert quantile_of(40, 0.9, [0.2] * 40, 1) == (0.2, (0.2, 0.2))
