"""How two estimates vary together: known cases, and how often the paired interval holds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from monitor.statistics.effects import RatioSums, ratio_delta
from monitor.statistics.mover import Estimate, difference
from monitor.statistics.random_groups import LEAST_GROUPS, cautious_correlation, error_by_groups

RNG = np.random.default_rng(11)
NOISE = RNG.normal(size=(2, 100))


def test_independent_groups_count_as_independent() -> None:
    assert cautious_correlation(*NOISE.tolist()) == 0.0


@pytest.mark.parametrize("sign", [1, -1])
def test_the_correlation_is_one_error_below_what_the_groups_show_upward(sign) -> None:
    one, other = NOISE[0], sign * (NOISE[0] + 0.2 * NOISE[1])
    z = math.atanh(np.corrcoef(one, other)[0, 1])
    assert cautious_correlation(one, other) == pytest.approx(math.tanh(z - 1 / math.sqrt(97)))
    assert cautious_correlation(one * 1e200, other * 1e-200) == pytest.approx(
        cautious_correlation(one, other)
    )


def test_too_few_groups_and_equal_values_tell_nothing() -> None:
    few = [float(number) for number in range(LEAST_GROUPS - 1)]
    assert cautious_correlation(few, few) == 0.0
    assert cautious_correlation([*few, 19.0], [*few, 19.0]) == 1.0
    assert cautious_correlation([0.5] * 50, list(range(50))) == 0.0
    assert cautious_correlation([], []) == 0.0


def test_groups_without_a_finite_value_on_both_sides_do_not_count() -> None:
    up = [float(number) for number in range(30)]
    holes = [*up[:-3], math.nan, math.inf, -math.inf]
    assert cautious_correlation(up, holes) == 1.0
    assert cautious_correlation(up[:21], [*up[:19], math.nan, math.nan]) == 0.0


def test_the_paired_interval_holds_and_is_much_narrower() -> None:
    """800 pairs of click rates of the same 2,000 users; the true difference is 0."""
    rng = np.random.default_rng(5)
    holds = paired_width = width = 0.0
    runs, users = 800, 2000
    for _ in range(runs):
        taste = rng.beta(0.3, 2.7, users)
        shown = rng.integers(3, 20, users)
        group = rng.integers(0, 100, users)
        clicks = [rng.binomial(shown, taste).astype(float) for _ in range(2)]
        a, b = (_rate(one, shown.astype(float)) for one in clicks)
        rates = [np.bincount(group, one, 100) / np.bincount(group, shown, 100) for one in clicks]
        found = difference(a, b, correlation=cautious_correlation(*rates))
        alone = difference(a, b)
        holds += found.lower <= 0 <= found.upper
        paired_width += found.upper - found.lower
        width += alone.upper - alone.lower
    assert holds / runs > 0.93  # 0.95 less 2.6 standard errors
    assert paired_width < 0.55 * width


def _rate(clicks: np.ndarray, shown: np.ndarray) -> Estimate:
    sums = (clicks, shown, clicks**2, shown**2, clicks * shown)
    found = ratio_delta(RatioSums(len(shown), *(float(one.sum()) for one in sums)))
    assert found is not None
    return Estimate(found.value, *found.interval)


def test_the_error_by_groups_is_the_delta_method_with_groups_as_units() -> None:
    rng = np.random.default_rng(4)
    shown = rng.integers(3, 90, 60).astype(float)
    clicks = rng.binomial(shown.astype(int), rng.beta(1, 9, 60)).astype(float)
    sums = (clicks, shown, clicks**2, shown**2, clicks * shown)
    found = ratio_delta(RatioSums(60, *(float(one.sum()) for one in sums)))
    assert found is not None
    assert error_by_groups(clicks / shown, shown) == pytest.approx(found.error)
    assert error_by_groups(clicks / shown * 1e150, shown * 1e-150) == pytest.approx(found.error * 1e150)


def test_groups_without_a_value_or_a_size_have_no_error() -> None:
    values, sizes = [0.0, 1.0] * 20, [5.0] * 40
    more = [math.nan, math.inf, 0.5, 0.5], [5.0, 5.0, 0.0, math.nan]
    assert error_by_groups([*values, *more[0]], [*sizes, *more[1]]) == error_by_groups(values, sizes)
    assert error_by_groups(values[:19], sizes[:19]) is None
    assert error_by_groups([], []) is None
    assert error_by_groups([0.5] * 40, sizes) == pytest.approx(0.0, abs=1e-15)
