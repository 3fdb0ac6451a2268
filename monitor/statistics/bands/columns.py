"""The state of many series, kept as arrays whose last axis is the series."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Columns:
    """A state that starts without a series. Series can be added, and can begin anew.

    A subclass names its arrays in `_fresh`: the shape of each without its last axis, and the value that a new
    series has everywhere.

    >>> class Level(Columns):
    ...     level: NDArray[np.float64]
    ...     def _fresh(self):
    ...         return {"level": ((), np.nan)}
    >>> one = Level()
    >>> one.add(2)
    >>> one.level[:] = [5.0, 6.0]
    >>> one.begin_anew([True, False])
    >>> one.level.tolist()
    [nan, 6.0]
    """

    def __init__(self) -> None:
        for name, array in self._arrays(0).items():
            setattr(self, name, array)

    def _fresh(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        raise NotImplementedError

    def _arrays(self, series: int) -> dict[str, NDArray[Any]]:
        return {name: np.full((*shape, series), value) for name, (shape, value) in self._fresh().items()}

    def add(self, series: int) -> None:
        """Add so many new series behind the others."""
        for name, array in self._arrays(series).items():
            setattr(self, name, np.concatenate([getattr(self, name), array], axis=-1))

    def begin_anew(self, which: ArrayLike) -> None:
        """Forget everything about the series that are True."""
        chosen = np.asarray(which, np.bool_)
        for name, (_, value) in self._fresh().items():
            getattr(self, name)[..., chosen] = value

    def take_from(self, other: Self, here: NDArray[np.int64], there: NDArray[np.int64]) -> None:
        """Take series from another state: what is at the places `there` comes to the places `here`."""
        for name in self._fresh():
            getattr(self, name)[..., here] = getattr(other, name)[..., there]

    def copy(self) -> Self:
        """The same state, which goes its own way from here."""
        return copy.deepcopy(self)
