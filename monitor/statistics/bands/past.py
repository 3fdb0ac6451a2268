"""The windows before one, and which of them are like it.

Many series at once: a column is a series, a row is a window before the one that is judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from monitor.statistics.counts import Floats

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

FAR = 99
"""`near` of a window whose time of day is farther than NEAR windows away."""
NEAR = 2
"""The spread is pooled over windows no farther than this in their time of day."""
POOLED = 8
"""A spread needs at least as many residuals."""


class Level(IntEnum):
    """Which past windows the expected value is the median of: the first that has points enough."""

    NONE = 0
    """No band: too little past."""
    WEEKDAY = 1
    """The same time of the same weekday (and day type): 3 points."""
    DAY_TYPE = 2
    """The same time of the same day type: 4 points."""
    ANY_DAY = 3
    """The same time of any day: 5 points."""
    ANY_WINDOW = 4
    """Any window: as many points as are asked for, that reach a day back; half a day has no night."""


_A_DAY = 1 - 1e-6
POINTS = {Level.WEEKDAY: 3, Level.DAY_TYPE: 4, Level.ANY_DAY: 5}


@dataclass(frozen=True)
class Past:
    """The windows before the one that is judged, n of them, of m series; in any order."""

    values: Floats
    """n x m; NaN where one is missing or left out."""
    samples: Floats
    """n x m; NaN where it is not known."""
    age: Floats
    """n: days before the window judged, by the clock on the wall, above 0."""
    same_weekday: Bools
    """n: is it the weekday of the window judged?"""
    same_day_type: Bools
    """n: both on working days, or both on weekends and holidays?"""
    near: Ints
    """n: its time of day less that of the window judged, in windows: 0, -1, 1, -2, 2; 99 for all others."""

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.samples.shape != self.values.shape:
            raise ValueError(f"values are windows x series, {self.values.shape}, and so are their samples")
        for name in ("age", "same_weekday", "same_day_type", "near"):
            if getattr(self, name).shape != self.values.shape[:1]:
                raise ValueError(f"{name} has one entry a window")
        if not bool(np.all(self.age > 0)):
            raise ValueError("the past is older than what is judged")


def like(past: Past, level: Level) -> Ints:
    """The past windows that are like the one judged."""
    same_time = past.near == 0
    alike = {
        Level.WEEKDAY: same_time & past.same_weekday & past.same_day_type,
        Level.DAY_TYPE: same_time & past.same_day_type,
        Level.ANY_DAY: same_time,
        Level.ANY_WINDOW: np.full(past.near.shape, True),
    }
    return np.flatnonzero(alike[level])


def pool(past: Past, level: Level) -> Bools:
    """The past windows whose residuals say how far the window judged may lie from its median."""
    close = np.abs(past.near) <= NEAR
    pooled = {
        Level.WEEKDAY: close,
        Level.DAY_TYPE: close,
        Level.ANY_DAY: close & past.same_day_type,
        Level.ANY_WINDOW: past.same_day_type,
    }
    return pooled[level]


def groups(past: Past, level: Level) -> Ints:
    """A number a window, the same for windows that are like each other."""
    near = np.where(np.abs(past.near) <= NEAR, past.near, FAR)
    # Whole days back, to the nearest; just below a half, so that a time of day always falls on one side.
    day = np.floor(past.age + 0.5 - 1e-6) % 7
    key = {
        Level.WEEKDAY: [near, day, past.same_day_type],
        Level.DAY_TYPE: [near, past.same_day_type],
        Level.ANY_DAY: [near],
        Level.ANY_WINDOW: [np.zeros(near.shape)],
    }
    _, group = np.unique(np.column_stack(key[level]), axis=0, return_inverse=True)
    return np.asarray(group, np.int64).reshape(-1)


def levels_of(past: Past, there: Bools, least: int) -> Ints:
    """The first level of each series that has points enough, for the median and for the spread."""
    levels = np.full(there.shape[1], int(Level.NONE), np.int64)
    for level in (Level.ANY_WINDOW, Level.ANY_DAY, Level.DAY_TYPE, Level.WEEKDAY):
        needed = POINTS.get(level, least)
        enough = there[like(past, level)].sum(axis=0) >= needed
        enough &= _poolable(past, there, level, needed) >= POOLED
        if level is Level.ANY_WINDOW:
            enough &= there[past.age >= _A_DAY].any(axis=0)
        levels[enough] = level
    return levels


def _poolable(past: Past, there: Bools, level: Level, needed: int) -> Ints:
    """How many windows of each series have a residual: those of the pool whose group is large enough."""
    if not len(there):
        return np.zeros(there.shape[1], np.int64)
    group = groups(past, level)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    pooled = there & pool(past, level)[:, None]
    sizes, found = (np.add.reduceat(one[order], starts, axis=0, dtype=np.int64) for one in (there, pooled))
    return np.asarray(np.where(sizes >= needed, found, 0).sum(axis=0))
