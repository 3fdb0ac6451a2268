"""Medians that skip missing values, and the median of the others, for many series at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from monitor.statistics.counts import Floats

NORMAL = 1.4826
"""The normal's standard deviation over its median absolute deviation."""
_REACH = 3.0
"""Residuals beyond so many first guesses of the spread count as this many."""
_KEPT = 0.9950
"""E min(z^2, 9) of a standard normal z: what the reach leaves of a variance of 1."""
_KEPT_OF_MOST = 0.9733
"""E z^2 where |z| <= 3."""


def median(values: Floats) -> Floats:
    """The median along the last axis of what is not NaN; NaN where nothing is.

    >>> median(np.array([[3.0, np.nan, 1.0, 8.0], [np.nan] * 4])).tolist()
    [3.0, nan]
    """
    if values.shape[-1] == 0:
        return np.full(values.shape[:-1], np.nan)
    inorder = np.sort(values, axis=-1)
    count = np.isfinite(inorder).sum(axis=-1)
    return _middle(inorder, count[..., None], np.full((*count.shape, 1), inorder.shape[-1]))[..., 0]


def median_of_the_others(values: Floats) -> Floats:
    """For each value along the last axis, the median of all others that are not NaN.

    NaN where a value has no other. Sorted once: without the value of rank r, whatever comes after it moves
    up by one place.

    >>> median_of_the_others(np.array([1.0, 2.0, 10.0, np.nan])).tolist()
    [6.0, 5.5, 1.5, 2.0]
    """
    if values.shape[-1] == 0:
        return values.copy()
    order = np.argsort(values, axis=-1, kind="stable")
    rank = np.argsort(order, axis=-1, kind="stable")
    inorder = np.take_along_axis(values, order, axis=-1)
    there = np.isfinite(values)
    others = there.sum(axis=-1, keepdims=True) - there
    return _middle(inorder, others, rank)


def _middle(inorder: Floats, count: NDArray[np.int64], without: NDArray[np.int64]) -> Floats:
    """The median of the first `count` of sorted values, the one at place `without` passed over."""
    low, high = np.maximum(count - 1, 0) // 2, count // 2
    last = inorder.shape[-1] - 1
    ends = (np.minimum(place + (place >= without), last) for place in (low, high))
    one, other = (np.take_along_axis(inorder, place, axis=-1) for place in ends)
    return np.where(count > 0, one / 2 + other / 2, np.nan)


def spread(residuals: Floats) -> Floats:
    """A robust standard deviation about 0 along the last axis, of what is not NaN.

        s0 = 1.4826 median |r|,  s^2 = mean(min(r^2, 9 s0^2)) / 0.995, times n / (n - 0.8)

    The first guess withstands that nearly half of the residuals are wild; the second wastes no more than a
    twentieth of them where they are normal, and sees heavy tails that the first is blind to. Where more than
    half are 0, s0 is 1.2533 mean |r|. NaN where there is none, 0 where all are 0.

    Source: Maronna and Zamar, Robust estimates of location and dispersion for high-dimensional datasets,
    Technometrics 44 (2002), the tau scale with c = 3.

    >>> spread(np.array([[-1.0, 1.0, -1.0, 1.0], [0.0, 0.0, 0.0, np.nan]])).round(4).tolist()
    [1.2531, 0.0]
    """
    size, first = _first_guess(residuals)
    reached = np.minimum(size, _REACH * first[..., None])
    return _root_mean(reached, np.isfinite(size), _KEPT)


def spread_of_most(residuals: Floats) -> Floats:
    """As `spread`, but without residuals beyond the reach: those are steps, not noise.

        s^2 = the mean of r^2 where |r| <= 3 s0, / 0.9733, times n / (n - 0.8), n how many those are

    >>> spread_of_most(np.array([[-1.0, 1.0, -1.0, 1.0, 50.0]])).round(4).tolist()
    [1.267]
    """
    size, first = _first_guess(residuals)
    return _root_mean(size, size <= _REACH * first[..., None], _KEPT_OF_MOST)


def _first_guess(residuals: Floats) -> tuple[Floats, Floats]:
    """Their sizes, and 1.4826 times the median of these, or 1.2533 times the mean where the median is 0."""
    size = np.abs(residuals)
    there = np.isfinite(size)
    guess = np.nan_to_num(NORMAL * median(size))
    mean = np.where(there, size, 0.0).sum(axis=-1) / np.maximum(there.sum(axis=-1), 1)
    return size, np.where(guess > 0, guess, 1.2533 * mean)


def _root_mean(size: Floats, used: NDArray[np.bool_], kept: float) -> Floats:
    count = used.sum(axis=-1)
    safe = np.maximum(count, 1)
    found = np.sqrt((np.where(used, size, 0.0) ** 2).sum(axis=-1) / safe / kept) * safe / (safe - 0.8)
    return np.where(count > 0, found, np.nan)
