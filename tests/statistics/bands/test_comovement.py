"""The slope of series on the requests: by hand, against a plain loop, and where nothing is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.statistics.bands.comovement import Comovement

A_DAY = 24


def taught(errors: np.ndarray, drivers: list[int], allowed: object = True) -> Comovement:
    """What rows of errors teach, one row a window."""
    found = Comovement(A_DAY)
    found.add(errors.shape[1])
    for row in errors:
        found.learn(row, np.array(drivers), allowed)
    return found


def drawn(windows: int, slope: float, noise: float, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    requests = rng.normal(size=windows)
    return np.column_stack([requests, slope * requests + noise * rng.normal(size=windows)])


@pytest.mark.parametrize("slope", [-2.0, -0.01, 0.5, 30.0])
def test_the_slope_is_found_on_any_scale_and_side(slope: float) -> None:
    found = taught(drawn(500, slope, 0.3 * abs(slope)), [-1, 0]).slopes()
    assert found[1] == pytest.approx(slope, rel=0.1)
    assert found[0] == 0.0


def test_series_that_do_not_move_together_have_no_slope() -> None:
    for seed in range(30):
        assert taught(drawn(500, 0.0, 1.0, seed), [-1, 0]).slopes().tolist() == [0.0, 0.0]


def test_nothing_is_known_before_two_days_or_without_a_driver() -> None:
    errors = drawn(2 * A_DAY, 1.0, 0.1)
    assert taught(errors[:-1], [-1, 0]).slopes()[1] == 0.0
    assert taught(errors, [-1, 0]).slopes()[1] == pytest.approx(1.0, abs=0.1)
    assert taught(errors, [-1, -1]).slopes()[1] == 0.0


def test_a_driver_that_never_moves_explains_nothing() -> None:
    errors = np.column_stack([np.zeros(100), np.ones(100)])
    assert taught(errors, [-1, 0]).slopes()[1] == 0.0


def test_windows_without_a_value_or_out_of_the_band_teach_nothing() -> None:
    usual = drawn(200, 1.0, 0.1)
    gaps = np.insert(usual, range(0, 200, 10), [np.nan, 5.0], axis=0)
    assert taught(gaps, [-1, 0]).slopes()[1] == taught(usual, [-1, 0]).slopes()[1]
    found = taught(usual, [-1, 0])
    before = found.slopes()
    for _ in range(50):
        found.learn(np.array([50.0, -50.0]), np.array([-1, 0]), np.array([False, False]))
    assert found.slopes().tolist() == before.tolist()


def test_one_wild_window_does_not_turn_the_slope() -> None:
    found = taught(drawn(500, 1.0, 0.2), [-1, 0])
    found.learn(np.array([1e6, -1e6]), np.array([-1, 0]), True)
    assert found.slopes()[1] == pytest.approx(1.0, abs=0.1)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6))
def test_the_products_are_those_of_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    errors = drawn(300, float(rng.normal()), 0.5, seed)
    found = taught(errors, [-1, 0])
    products: list[float] = []
    for number, row in enumerate(errors.tolist()):
        most = [
            2.5 * products[place] ** 0.5 if number >= A_DAY / 2 else np.inf for place in (0, 2) if products
        ]
        x, y = (min(max(one, -far), far) for one, far in zip(row, most or [np.inf] * 2, strict=True))
        new = [x * x, x * y, y * y]
        gain = max(1 / (21 * A_DAY), 1 / (number + 1))
        products = [held + gain * (one - held) for held, one in zip(products or new, new, strict=True)]
    known = products[1] ** 2 >= 0.09 * products[0] * products[2]
    assert found.slopes()[1] == pytest.approx(products[1] / products[0] if known else 0.0, rel=1e-9)
