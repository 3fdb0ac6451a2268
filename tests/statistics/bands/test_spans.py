"""The means of the last windows: by hand, against a plain loop, and what a single wild window may do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.statistics.bands.scales import Scale, from_scale, to_scale
from monitor.statistics.bands.spans import LONGEST, SPANS, Last, over_spans

COUNT = np.array([Scale.COUNT])
LEVEL = np.array([Scale.LEVEL])


def column(newest_first, rest=np.nan):
    return np.array([*newest_first, *[rest] * (LONGEST - len(newest_first))], np.float64)[:, None]


def levels(residuals, *, sds=1.0, wild=np.inf, spreads=1.0):
    """One level of base 10 without a memory."""
    last = Last(
        column(residuals), column([], 0.0), np.broadcast_to(sds, (LONGEST, 1)), column([], 10.0), column([])
    )
    return over_spans(last, np.zeros(1), np.full((len(SPANS), 1), spreads), wild, LEVEL)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6))
def test_every_span_equals_a_plain_loop_over_its_windows(seed):
    rng = np.random.default_rng(seed)
    m = 6
    scales = rng.integers(0, 3, m)
    level = np.where(scales == Scale.COUNT, 60.0, np.where(scales == Scale.SHARE, 0.6, 3.0))
    last = Last(
        residuals=rng.normal(size=(LONGEST, m)) * 0.1 * level,
        memories=rng.normal(size=(LONGEST, m)) * 0.1 * level,
        sds=rng.uniform(0.05, 0.5, (LONGEST, m)) * level,
        bases=level + 0.1 * level * rng.normal(size=(LONGEST, m)),
        drawn=rng.integers(1, 500, (LONGEST, m)).astype(float),
    )
    last.residuals[rng.random((LONGEST, m)) < 0.02] = np.nan
    rho, wild = rng.uniform(0, 0.98, m), rng.uniform(1, 4, m)
    spreads = rng.uniform(0.01, 0.5, (len(SPANS), m)) * level
    found = over_spans(last, rho, spreads, wild, scales)
    for one in range(m):
        for number, windows in enumerate(SPANS):
            rows = range(windows)
            weights = np.array([last.sds[row, one] ** -2 for row in rows])
            weights /= weights.sum()
            parts, planned, actual, beside = [], [], [], []
            by_one = max(weights / last.drawn[:windows, one])
            for row in rows:
                base, residual = last.bases[row, one], last.residuals[row, one]
                memory = rho[one] ** (windows - row) * last.memories[windows - 1, one]
                most = wild[one] * min(last.sds[row, one], spreads[number, one] / weights[row] / 2)
                away = residual - memory
                parts.append(weights[row] * (away if windows == 1 else min(max(away, -most), most)))
                beside.append(weights[row] * residual)
                scale, drawn = scales[[one]], last.drawn[[row], one]
                known = base if np.isfinite(residual) else np.nan
                planned.append(from_scale(np.array([known + memory]), drawn, scale)[0])
                actual.append(from_scale(np.array([base + residual]), drawn, scale)[0])
            share = np.full(windows, 1 / windows) if scales[one] == Scale.COUNT else weights
            want = (sum(parts), sum(beside), share @ planned, share @ actual, by_one)
            got = [each[number, one] for each in found[:5]]
            assert got == pytest.approx(want, rel=1e-9, nan_ok=True)


def test_a_wild_window_takes_no_span_beyond_its_bound_and_two_do():
    bound = 4.6
    single = levels([-100.0, *[0.0] * (LONGEST - 1)], wild=1.5 * bound)
    assert single.means[0, 0] == -100.0
    assert (np.abs(single.means[1:, 0]) < bound).all()
    two = levels([-100.0, -100.0, *[0.0] * (LONGEST - 2)], wild=1.5 * bound)
    assert abs(two.means[1, 0]) > bound


def test_a_wild_window_that_is_far_more_precise_than_the_one_before_is_still_single():
    sds = np.vstack([np.full((1, 1), 0.1), np.full((LONGEST - 1, 1), 10.0)])
    found = levels([-100.0, *[0.0] * (LONGEST - 1)], sds=sds, wild=1.5 * 4.6, spreads=0.1)
    assert np.abs(found.means[1:, 0]).max() < 4.6 * 0.1


def test_what_was_planned_and_what_came_are_not_limited():
    found = levels([-8.0, *[0.0] * (LONGEST - 1)], wild=1.0)
    assert found.means[1, 0] == pytest.approx(-0.5)
    assert (found.planned[1, 0], found.actual[1, 0]) == (10.0, 6.0)


def test_counts_of_a_day_and_of_a_night_are_added_up():
    """A fall from 900 to 600 in the evening is no loss at night, where 20 are expected and 20 come."""
    bases = to_scale(np.array([20.0] * 6 + [900.0] * 6), np.full(12, np.nan), COUNT[0])[:, None]
    came = to_scale(np.array([20.0] * 6 + [600.0] * 6), np.full(12, np.nan), COUNT[0])[:, None]
    last = Last(came - bases, column([], 0.0), column([], 1.0), bases, column([]))
    found = over_spans(last, np.zeros(1), np.ones((len(SPANS), 1)), 5.0, COUNT)
    assert found.planned[:, 0] == pytest.approx([20, 20, 20, 20, 460])
    assert found.actual[:, 0] == pytest.approx([20, 20, 20, 20, 310])
    assert found.usual[0] == pytest.approx(460)


def test_a_window_without_a_value_hides_the_spans_that_contain_it():
    found = levels([1.0, 1.0, np.nan, *[1.0] * (LONGEST - 3)])
    for each in (found.means, found.planned, found.actual):
        assert np.isfinite(each[:, 0]).tolist() == [True, True, False, False, False]
    assert found.usual[0] == 10.0  # it rests on no value
