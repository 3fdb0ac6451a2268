"""A feature on all sides of a comparison, as numbers with NaN for missing values.

Texts are numbered by their place among the sorted distinct texts of all sides, so that numbers and texts
share one piece of code for equality, constancy and bins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.core.text import VALUE_LENGTH
from monitor.models.diagnosis.sample import Values
from monitor.statistics.counts import Floats

Codes = NDArray[np.uint16]
_FINER = 4  # a value of more rows than a quarter of a bin has a bin of its own
_EXACT = 2**53  # floats beyond this skip whole numbers
FITTED = ("better", "worse")
"""The sides that bins and effects are learned from: the others have the same rows, or few."""


@dataclass(frozen=True, slots=True)
class Column:
    """One feature: its values by side (`better`, `worse`, `online`, `offline`), as numbers."""

    name: str
    levels: tuple[str, ...] | None
    """The text of each number; None for a numeric feature."""
    sides: Mapping[str, Floats]

    def varies(self, side: str) -> bool:
        """Whether the side has the feature with more than one value; missing counts as a value."""
        values = self.sides.get(side)
        if values is None or len(values) == 0:
            return False
        missing = np.isnan(values)
        if missing.any():
            return not bool(missing.all())
        return bool(values.min() != values.max())

    def plain(self, value: float) -> Any:
        """The value as evidence shows it: a number, a text cut short, or None."""
        if math.isnan(value):
            return None
        return float(value) if self.levels is None else self.levels[int(value)][:VALUE_LENGTH]

    def original(self, values: Floats) -> Values:
        """The values as the log has them, for the user's own scoring function."""
        if self.levels is None:
            return values
        texts = np.array([*self.levels, None], dtype=object)
        return np.asarray(texts[np.where(np.isnan(values), len(self.levels), values).astype(np.int64)])

    def translated(self, side: str, target: Column) -> Floats:
        """The values of a side in the numbers of another column; empty if only one of the two is text.

        A text that the other column lacks becomes missing.
        """
        values = self.sides[side]
        if self.levels is None or target.levels is None:
            return values if self.levels is target.levels else np.empty(0)
        place = {level: float(at) for at, level in enumerate(target.levels)}
        table = np.array([*(place.get(level, math.nan) for level in self.levels), math.nan])
        return np.asarray(table[np.where(np.isnan(values), len(self.levels), values).astype(np.int64)])

    def differs(self, tolerance: float) -> NDArray[np.bool_]:
        """The pairs whose online and offline values differ.

        Two missing values are equal, and so are numbers within `tolerance` of the larger. An infinity equals
        itself only.
        """
        online, offline = self.sides["online"], self.sides["offline"]
        equal = (online == offline) | (np.isnan(online) & np.isnan(offline))
        if self.levels is None:
            with np.errstate(invalid="ignore", over="ignore"):
                near = np.abs(online - offline) <= tolerance * np.maximum(np.abs(online), np.abs(offline))
            equal |= near & np.isfinite(online) & np.isfinite(offline)
        return np.asarray(~equal)


def equals(values: Floats, value: float) -> NDArray[np.bool_]:
    """The rows with this value; NaN selects the missing ones."""
    return np.asarray(np.isnan(values) if math.isnan(value) else values == value)


def read_column(name: str, sides: Mapping[str, Values]) -> Column:
    """Read a feature. If it is text on one side, it is text on all.

    One odd text is enough to make a column of a CSV file text. So if another side has numbers, and most texts
    are numbers, the feature is a number, and the other texts are missing.

    >>> read_column("city", {"better": np.array(["Rome", None, "Bern"], object)}).sides["better"].tolist()
    [1.0, nan, 0.0]
    >>> mixed = {"better": np.array([31.0, 52.0]), "worse": np.array(["31", "52", "n/a"], object)}
    >>> read_column("age", mixed).sides["worse"].tolist()
    [31.0, 52.0, nan]
    """
    arrays = {side: _numbers(np.asarray(values)) for side, values in sides.items()}
    numeric = {side: one.astype(np.float64, copy=False) for side, one in arrays.items() if _is_numeric(one)}
    texts = {side: one for side, one in arrays.items() if side not in numeric}
    if texts and any(not np.isnan(one).all() for one in numeric.values()):
        read = {side: _read_numbers(one) for side, one in texts.items()}
        if all(one is not None for one in read.values()):
            numeric |= {side: one for side, one in read.items() if one is not None}
    if len(numeric) == len(arrays):
        return Column(name, None, {side: numeric[side] for side in arrays})
    objects = {side: one.tolist() for side, one in arrays.items()}
    written = {one: _text(one) for one in set().union(*objects.values())}
    levels = tuple(sorted({text for text in written.values() if text is not None}))
    place = {text: float(at) for at, text in enumerate(levels)}
    number = {one: math.nan if text is None else place[text] for one, text in written.items()}
    return Column(
        name,
        levels,
        {
            side: np.fromiter(map(number.__getitem__, values), np.float64, len(values))
            for side, values in objects.items()
        },
    )


def _numbers(values: Values) -> Values:
    """The values as float64 if an array of objects has only numbers and missing values."""
    if values.dtype.kind != "O":
        return values
    kinds = set(map(type, values.tolist()))
    plain = all(issubclass(one, float | int | np.number | None) for one in kinds)
    return values.astype(np.float64) if plain else values


def _is_numeric(values: Values) -> bool:
    return values.dtype.kind in "biuf"


def _read_numbers(texts: Values) -> Floats | None:
    """The texts as numbers, NaN where one is not; None if most are not."""
    found = np.fromiter(map(_number, texts.tolist()), np.float64, len(texts))
    present = sum(_text(one) is not None for one in texts.tolist())
    return found if 2 * np.count_nonzero(~np.isnan(found)) > present else None


def _number(value: Any) -> float:
    try:
        return math.nan if value is None else float(value)
    except ValueError:
        return math.nan


def _text(value: Any) -> str | None:
    """A value as text, a whole number as a log in text writes it; None if it is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    whole = isinstance(value, float) and value.is_integer() and abs(value) < _EXACT
    return str(int(value) if whole else value)


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins of a feature. Bin 0 is for missing values; a value of many rows has its own bin."""

    size: int
    edges: Floats | None
    places: Codes | None
    """The bin of each text; rare texts share the last bin."""

    def codes(self, values: Floats) -> Codes:
        """The bin of each value."""
        missing = np.isnan(values)
        if self.places is not None:
            at: NDArray[Any] = self.places[np.where(missing, 0, values).astype(np.int64)]
        else:
            at = 1 + np.searchsorted(np.asarray(self.edges), values, side="left")
        return np.where(missing, 0, at).astype(np.uint16)


def part(column: Column, bins: int) -> Bins:
    """Bins of about equal size over both splits; for text the most frequent values, and one bin for the rest.

    >>> bins = part(read_column("x", {"better": np.r_[np.zeros(50), np.arange(50), np.nan]}), 4)
    >>> bins.codes(np.array([np.nan, -1, 0, 1, 24, 26, 99, np.inf])).tolist()
    [0, 1, 2, 3, 3, 4, 4, 4]
    """
    pooled = np.concatenate([np.empty(0), *(column.sides[side] for side in FITTED if side in column.sides)])
    pooled = pooled[~np.isnan(pooled)]
    if column.levels is not None:
        counts = np.bincount(pooled.astype(np.int64), minlength=len(column.levels))
        places = np.full(max(len(counts), 1), bins, dtype=np.uint16)
        # A stable sort orders equally frequent texts alphabetically.
        top = np.argsort(-counts, kind="stable")[: bins - 1]
        places[top] = 1 + np.arange(len(top), dtype=np.uint16)
        return Bins(bins + 1, None, places)
    if pooled.size == 0:
        return Bins(2, np.empty(0), None)
    pooled.sort()
    cuts = pooled[(np.arange(1, bins) * len(pooled)) // bins]
    fine = pooled[(np.arange(1, bins * _FINER) * len(pooled)) // (bins * _FINER)]
    heavy = fine[1:][fine[1:] == fine[:-1]]
    edges = np.unique(np.concatenate([cuts, heavy, np.nextafter(heavy, -np.inf)]))
    return Bins(len(edges) + 2, edges, None)


class Binned:
    """The bin of every value, computed once for each feature and side; all missing without the feature."""

    def __init__(
        self, columns: Mapping[str, Column], bins: Mapping[str, Bins], lengths: Mapping[str, int]
    ) -> None:
        self._columns, self._bins, self._lengths = columns, bins, lengths
        self._known: dict[tuple[str, str], Codes] = {}

    def codes(self, side: str, feature: str) -> Codes:
        """The bin of each row of the side."""
        key = side, feature
        if key not in self._known:
            values = self._columns[feature].sides.get(side)
            values = np.full(self._lengths[side], np.nan) if values is None else values
            self._known[key] = self._bins[feature].codes(values)
        return self._known[key]
