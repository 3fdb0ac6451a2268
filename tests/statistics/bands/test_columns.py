"""Columns grow, are forgotten, are copied and are taken over one by one."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.statistics.bands.columns import Columns


class Sums(Columns):
    total: np.ndarray
    last: np.ndarray
    seen: np.ndarray

    def _fresh(self):
        return {"total": ((), 0.0), "last": ((2, 3), np.nan), "seen": ((4,), np.int32(0))}


def three():
    sums = Sums()
    sums.add(3)
    sums.total[:] = [1.0, 2.0, 3.0]
    sums.last[...] = np.arange(18.0).reshape(2, 3, 3)
    sums.seen[...] = 7
    return sums


def test_a_state_begins_without_a_series_and_with_the_given_types():
    sums = Sums()
    assert (sums.total.shape, sums.last.shape, sums.seen.shape) == ((0,), (2, 3, 0), (4, 0))
    assert (sums.total.dtype, sums.seen.dtype) == (np.float64, np.int32)


def test_new_series_come_behind_the_others():
    sums = three()
    sums.add(2)
    assert sums.total.tolist() == [1.0, 2.0, 3.0, 0.0, 0.0]
    assert sums.last[0, 1].tolist()[:3] == [3.0, 4.0, 5.0]
    assert np.isnan(sums.last[..., 3:]).all()
    assert sums.seen[0].tolist() == [7, 7, 7, 0, 0]
    assert sums.seen.dtype == np.int32


def test_no_new_series_change_nothing():
    sums = three()
    sums.add(0)
    assert sums.total.tolist() == [1.0, 2.0, 3.0]


def test_only_the_chosen_series_begin_anew():
    sums = three()
    sums.begin_anew([False, True, False])
    assert sums.total.tolist() == [1.0, 0.0, 3.0]
    assert np.isnan(sums.last[..., 1]).all()
    assert np.isfinite(sums.last[..., [0, 2]]).all()
    assert sums.seen[2].tolist() == [7, 0, 7]


def test_series_are_taken_from_another_state_by_place():
    here, there = three(), three()
    there.total *= 10
    there.last += 100
    here.take_from(there, np.array([2, 0]), np.array([0, 1]))
    assert here.total.tolist() == [20.0, 2.0, 10.0]
    assert here.last[1, 2].tolist() == [116.0, 16.0, 115.0]
    assert there.total.tolist() == [10.0, 20.0, 30.0]


def test_a_copy_goes_its_own_way():
    sums = three()
    other = sums.copy()
    other.total[0] = 99.0
    other.add(1)
    assert sums.total.tolist() == [1.0, 2.0, 3.0]
    assert isinstance(other, Sums)


def test_a_class_that_names_no_arrays_is_refused():
    with pytest.raises(NotImplementedError):
        Columns()
