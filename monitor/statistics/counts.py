"""Input checks of counts and values."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def as_counts(values: ArrayLike, what: str = "counts", *, dimensions: int = 1, whole: bool = True) -> Floats:
    """The counts as float64.

    A count above 2^53 is rounded to the nearest float64.

    >>> as_counts([1, 2]).tolist()
    [1.0, 2.0]

    Raises ValueError if a count is negative, NaN, infinite or (with `whole`) not whole, or if the number of
    dimensions differs.
    """
    counts = np.asarray(values, np.float64)
    if counts.ndim != dimensions:
        raise ValueError(f"{what} are {dimensions}-dimensional, got the shape {counts.shape}")
    if not bool(np.all(np.isfinite(counts) & (counts >= 0))):
        raise ValueError(f"{what} are finite and not negative")
    if whole and not bool(np.all(counts == np.floor(counts))):
        raise ValueError(f"{what} are whole numbers")
    return counts


def as_numbers(values: ArrayLike, what: str = "values") -> Floats:
    """The values as a float64 vector. Infinities are kept: they have an order.

    >>> as_numbers([1, float("inf")]).tolist()
    [1.0, inf]

    Raises ValueError if a value is NaN, which has no order, or if `values` is not a vector.
    """
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 1:
        raise ValueError(f"{what} are 1-dimensional, got the shape {numbers.shape}")
    if bool(np.isnan(numbers).any()):
        raise ValueError(f"{what} hold NaN; count those apart and leave them out")
    return numbers
