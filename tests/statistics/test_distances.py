"""Distances against scipy, against tables worked by hand, and at the edges."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import jensenshannon

from monitor.statistics.distances import (
    PSI_FLOOR,
    bin_counts,
    hellinger,
    jensen_shannon,
    kolmogorov_smirnov,
    ks_of_counts,
    l_infinity,
    psi,
    quantile_edges,
    total_variation,
    wasserstein,
    wasserstein_of_counts,
)

OF_COUNTS = [psi, jensen_shannon, hellinger, l_infinity, total_variation, ks_of_counts]
WITHIN_1 = [jensen_shannon, hellinger, l_infinity, total_variation, ks_of_counts]
COUNTS = st.lists(st.integers(0, 10**6), min_size=4, max_size=4).filter(any)
SAMPLES = st.lists(st.integers(-20, 20).map(lambda n: n / 4), min_size=1, max_size=30)


@given(reference=COUNTS, current=COUNTS)
@settings(max_examples=150, deadline=None)
def test_distances_of_counts_agree_with_their_definitions(reference, current):
    p = [n / sum(reference) for n in reference]
    q = [n / sum(current) for n in current]
    pairs = list(zip(p, q, strict=True))
    floored = [(max(a, PSI_FLOOR), max(b, PSI_FLOOR)) for a, b in pairs]
    assert psi(reference, current) == pytest.approx(sum((b - a) * math.log(b / a) for a, b in floored))
    assert jensen_shannon(reference, current) == pytest.approx(jensenshannon(p, q, 2), abs=1e-7)
    assert total_variation(reference, current) == pytest.approx(sum(abs(a - b) for a, b in pairs) / 2)
    assert l_infinity(reference, current) == pytest.approx(max(abs(a - b) for a, b in pairs))
    shared = sum(math.sqrt(a * b) for a, b in pairs)
    assert hellinger(reference, current) ** 2 == pytest.approx(1 - shared, abs=1e-12)
    gaps = [abs(sum(p[: i + 1]) - sum(q[: i + 1])) for i in range(4)]
    assert ks_of_counts(reference, current) == pytest.approx(max(gaps), abs=1e-12)
    moved = wasserstein_of_counts(reference, current, [-1, 0, 2, 10])
    assert moved == pytest.approx(stats.wasserstein_distance([-1, 0, 2, 10], [-1, 0, 2, 10], p, q))


@given(reference=SAMPLES, current=SAMPLES)
@settings(max_examples=150, deadline=None)
def test_distances_of_samples_agree_with_scipy(reference, current):
    found = kolmogorov_smirnov(reference, current)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy's own, of an exact p that rounding takes above 1
        expected = stats.ks_2samp(reference, current)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)
    assert wasserstein(reference, current) == pytest.approx(stats.wasserstein_distance(reference, current))


def test_the_kolmogorov_smirnov_p_agrees_with_all_ways_to_split_the_values():
    from itertools import combinations

    x, y = [0.1, 0.5, 0.6, 2.0], [1.0, 3.0, 4.0, 5.0, 6.0]
    found = kolmogorov_smirnov(x, y)
    both = x + y
    ways = [
        kolmogorov_smirnov([both[i] for i in way], [v for i, v in enumerate(both) if i not in way]).statistic
        for way in combinations(range(9), 4)
    ]
    assert found.p == pytest.approx(np.mean([way >= found.statistic - 1e-12 for way in ways]))


@pytest.mark.parametrize("distance", OF_COUNTS)
def test_equal_shares_have_no_distance_whatever_the_sizes(distance):
    assert distance([1, 2, 3], [10**15, 2 * 10**15, 3 * 10**15]) == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("distance", WITHIN_1)
def test_disjoint_sides_have_a_distance_of_1(distance):
    assert distance([5, 0], [0, 9]) == pytest.approx(1)


@given(reference=COUNTS, current=COUNTS)
@settings(max_examples=100, deadline=None)
def test_distances_are_between_0_and_1_and_symmetric(reference, current):
    for distance in WITHIN_1:
        found = distance(reference, current)
        assert 0 <= found <= 1
        assert found == pytest.approx(distance(current, reference), abs=1e-7)


@pytest.mark.parametrize("distance", OF_COUNTS)
def test_an_empty_side_has_no_distance(distance):
    assert distance([0, 0], [1, 2]) is None
    assert distance([1, 2], [0, 0]) is None
    assert distance([], []) is None


def test_an_empty_sample_has_no_distance():
    assert kolmogorov_smirnov([], [1.0]) is None
    assert wasserstein([1.0], []) is None
    assert wasserstein_of_counts([0, 0], [1, 1], [0, 1]) is None


@pytest.mark.parametrize("distance", OF_COUNTS)
@pytest.mark.parametrize(
    ("reference", "current"),
    [
        ([-1, 2], [1, 2]),
        ([1, 2], [math.nan, 2]),
        ([1, math.inf], [1, 2]),
        ([1, 2], [1, 2, 3]),
        ([[1]], [[1]]),
    ],
)
def test_invalid_counts_and_different_bins_are_refused(distance, reference, current):
    with pytest.raises(ValueError, match=r"counts|bins"):
        distance(reference, current)


def test_nan_and_infinite_values_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        kolmogorov_smirnov([1, math.nan], [1])
    with pytest.raises(ValueError, match="finite"):
        wasserstein([1, math.inf], [1])
    assert kolmogorov_smirnov([1, math.inf], [-math.inf, 1]).statistic == 0.5
    with pytest.raises(ValueError, match="ascending"):
        wasserstein_of_counts([1, 1], [1, 1], [1, 0])
    with pytest.raises(ValueError, match="floor"):
        psi([1], [1], 0)


def test_an_emptied_bin_counts_as_the_floor():
    by_hand = (PSI_FLOOR - 0.5) * math.log(PSI_FLOOR / 0.5) + (1 - 0.5) * math.log(1 / 0.5)
    assert psi([1, 1], [0, 2]) == pytest.approx(by_hand)
    # Almost empty is not further off than empty.
    assert psi([10**9, 10**9], [1, 2 * 10**9]) <= psi([1, 1], [0, 2]) + 1e-8


def test_edges_come_from_the_reference_and_the_outer_bins_are_open():
    edges = quantile_edges([1, 1, 1, 1, 2, 3, 4, 5], 4)
    assert edges.tolist() == [1.5, 3.25]  # the lower quartile and the least value are one
    assert bin_counts([-math.inf, 1.5, 2, 99, math.inf], edges).tolist() == [2, 1, 2]
    assert quantile_edges([7, 7, 7]).tolist() == []
    assert bin_counts([1, 2], []).tolist() == [2]
    assert bin_counts([], [1]).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("reference", "edges"),
    [
        ([0] * 95 + [1, 2, 3, 4, 5], [0]),
        ([1] * 95 + [0.1, 0.2, 0.3, 0.4, 0.5], [0.5]),
        ([0] * 51 + [1] * 50, [0]),
    ],
)
def test_a_shift_away_from_the_value_that_nearly_all_have_is_seen(reference, edges):
    found = quantile_edges(reference)
    assert found.tolist() == edges
    moved = [0] * 20 + [1] * 80 if reference[0] == 0 else [1] * 20 + [0.1] * 80
    assert psi(bin_counts(reference, found), bin_counts(moved, found)) > 0.1
    assert quantile_edges(reference, 1).tolist() == []


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=20, max_size=60, unique=True))
@settings(max_examples=60, deadline=None)
def test_bins_hold_equally_many_reference_values(values):
    edges = quantile_edges(values, 5)
    counts = bin_counts(values, edges)
    assert counts.sum() == len(values)
    assert counts.max() - counts.min() <= 2


@pytest.mark.parametrize("reference", [[], [1, math.inf], [1, math.nan]])
def test_edges_of_empty_or_infinite_references_are_refused(reference):
    with pytest.raises(ValueError, match="reference values"):
        quantile_edges(reference)
    with pytest.raises(ValueError, match="ascend"):
        bin_counts([1], [2, 2])


@pytest.mark.filterwarnings("error")
def test_values_near_the_largest_float64_have_finite_edges_and_distances():
    """Differences of such values were infinite: a distance of 0 was NaN, and a middle edge was infinite."""
    far = 1.5e308
    assert quantile_edges([-far, far], 4).tolist() == [-far / 2, 0.0, far / 2]
    assert wasserstein([-far, far], [far, -far]) == 0.0
    assert wasserstein([-far, 0.0, 0.0], [far / 2, 0.0, 0.0]) == pytest.approx(far / 2)
    assert wasserstein([-far], [far]) is None  # 3e308 is beyond float64
    assert wasserstein([5e-324], [1e-323]) == 5e-324
