"""From a table of series and their past to a verdict on each: within its band, or out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np

from monitor.anomalies.memory import BandValues, Bools, last, standing
from monitor.anomalies.neighbours import DAY, Neighbours
from monitor.anomalies.past import Floats
from monitor.anomalies.results import Banded
from monitor.anomalies.table import Table, begun_anew, just_changed
from monitor.core.results import Window
from monitor.settings.bands import BandSettings
from monitor.statistics.bands.band import Bands, band, deviation, limits
from monitor.statistics.bands.false_alarms import EASIER, Bounds, bounds, decide
from monitor.statistics.bands.past import Level, Past
from monitor.statistics.bands.scales import Scale

CHECKS: Final = 4  # two of bands and two of drift share the false alarms that are allowed
_WEEK: Final = timedelta(days=7)
_HALF_OF_95: Final = 1.959964  # half of a 95 % interval, in standard errors
_DUST: Final = 0.001
"""Ignore smaller rises of a number that is not a count: from 0, any rise is a large part of what was."""
_OF_OLD: Final = "its last band: too few windows without a deviation since then for a new one"
_LEVELS: Final = {
    Level.WEEKDAY: "the same time of the same weekday",
    Level.DAY_TYPE: "the same time of such days",
    Level.ANY_DAY: "the same time of any day",
    Level.ANY_WINDOW: "any window",
}


@dataclass(frozen=True, slots=True)
class BandJob:
    """A window whose series are to be judged, with the n windows before it, the newest first."""

    window: Window
    settings: BandSettings
    table: Table
    around: Neighbours
    calm: Bools
    """n: outside of maintenance."""
    recent: Bools
    """n: just before the window."""
    deviations: Floats
    """n by m: how far each series was from its band, NaN where it was not judged."""
    departed: Bools
    """n by m: whether it was out of its band."""

    def begun_anew(self) -> Bools:
        """n by m: whether a known change came between that window and this one."""
        starts = [end - self.window.length for end in self.around.ends]
        return begun_anew(self.table.series, starts, self.window.end, self.settings)


@dataclass(frozen=True, slots=True)
class _Earlier:
    """What the windows before said of each series."""

    was: Floats
    """Its deviation just before, or the one at which it stands out where its last band holds."""
    was_out: Bools
    newest: Floats
    """Its deviation when it was judged last, however long ago."""
    still_out: Bools
    stood: Floats
    has_stood: Bools
    kept: Bools
    """Whether its last band still holds."""
    out_of_old: Bools
    """Whether it was out of its band before a known change."""


@dataclass(frozen=True, slots=True)
class _Expected:
    """Where each series is expected, and how far from there it is."""

    expected: Floats
    lower: Floats
    upper: Floats
    deviation: Floats


def judge_bands(job: BandJob, last_bands: Callable[[Bools], BandValues]) -> list[Banded]:
    """The verdict on each series of the table.

    Args:
        job: the window and what came before it.
        last_bands: reads the last band of the series that it is asked for.
    """
    table, anew = job.table, job.begun_anew()
    made = _band(job, anew)
    earlier = _earlier(job, anew, made)
    errors = table.error / _HALF_OF_95
    far = deviation(made, table.value, errors)
    bound = _bounds(job, made, earlier, far)
    found = _Expected(made.expected, *limits(made, bound.pair, errors), far)
    if earlier.kept.any():
        found = _by_last_band(found, table.value, bound, earlier.kept, last_bands(earlier.kept))
    departed = _departed(job, found, earlier, bound)
    learns = earlier.out_of_old & (made.level == Level.NONE)
    learns &= just_changed(table.series, job.window, job.settings)
    still = np.where(earlier.still_out | learns, earlier.newest, np.nan)
    was = np.where(earlier.was_out, earlier.was, still)
    return [
        Banded(
            series=one,
            measured=float(table.value[place]),
            expected=float(found.expected[place]),
            lower=float(found.lower[place]),
            upper=float(found.upper[place]),
            deviation=float(found.deviation[place]),
            points=int(made.seen[place]),
            reached=float(bound.pair[place]),
            departed=bool(departed[place]),
            why=_OF_OLD if earlier.kept[place] else _why(made, place, job.settings),
            was=float(was[place]),
            learns=bool(learns[place]),
        )
        for place, one in enumerate(table.series)
    ]


def _band(job: BandJob, anew: Bools) -> Bands:
    """The bands, from what of the past was normal."""
    past, around = job.table.past, job.around
    out = past.violated | job.departed | anew | ~job.calm[:, None]
    normal = Past(
        values=np.where(out, np.nan, past.value),
        samples=past.samples,
        age=around.age,
        same_weekday=around.same_weekday,
        same_day_type=around.same_day_type,
        near=around.near,
    )
    scales = np.array([int(one.scale) for one in job.table.series], dtype=np.int64)
    return band(normal, scales, job.table.samples, least=job.settings.least)


def _earlier(job: BandJob, anew: Bools, made: Bands) -> _Earlier:
    deviations, departed = job.deviations, job.departed & ~anew
    was, was_out = last(deviations[job.recent], departed[job.recent])
    newest, still_out = last(deviations, departed)
    # Of what stands out less and less past is left. It is not back because its band gets wide.
    stood, has_stood = standing(deviations, departed & np.isfinite(job.table.past.value), job.around)
    kept = has_stood & ~np.isin(made.level, (Level.WEEKDAY, Level.DAY_TYPE))
    return _Earlier(
        was=np.where(kept, stood, was),
        was_out=was_out | kept,
        newest=newest,
        still_out=still_out,
        stood=stood,
        has_stood=has_stood,
        kept=kept,
        out_of_old=last(deviations, job.departed & anew)[1],
    )


def _bounds(job: BandJob, made: Bands, earlier: _Earlier, far: Floats) -> Bounds:
    """How far a series may be from what is expected, given how many are tested in a week."""
    settings = job.settings
    tests = max(1, int((np.isfinite(far) | earlier.kept).sum())) * (_WEEK / job.window.length)
    known = np.fmax(settings.history / DAY, made.df)
    df = np.where(earlier.was_out | earlier.has_stood, known, made.df)
    return bounds(tests, df, budget=settings.false_alarms / CHECKS)


def _by_last_band(
    found: _Expected, values: Floats, bound: Bounds, kept: Bools, told: BandValues
) -> _Expected:
    """The last band in place of this window's, where it still holds."""
    return _Expected(
        expected=np.where(kept, told.expected, found.expected),
        lower=np.where(kept, told.lower, found.lower),
        upper=np.where(kept, told.upper, found.upper),
        deviation=np.where(kept, told.deviation(values, bound.pair), found.deviation),
    )


def _departed(job: BandJob, found: _Expected, earlier: _Earlier, bound: Bounds) -> Bools:
    """Which series are out of their band: those that fire now, and those that fired and are not back."""
    far = found.deviation
    yesterday = np.where(earlier.has_stood, earlier.stood, np.nan)
    fires = decide(far, earlier.was, bound) | decide(far, yesterday, bound)
    fires &= _matters(job, found.expected) & ~earlier.kept
    stays = earlier.was_out & (np.sign(far) == np.sign(earlier.was)) & (np.abs(far) > bound.clear)
    return np.asarray(fires | (stays & _matters(job, found.expected, EASIER)))


def _matters(job: BandJob, expected: Floats, part: float = 1.0) -> Bools:
    """Whether the change is large enough for anybody to care, however sure it is; or a part of that."""
    table, settings = job.table, job.settings
    count = np.array([one.scale is Scale.COUNT for one in table.series], dtype=np.bool_)
    least = np.where(count, settings.least_volume_change, settings.least_change)
    share = np.array([one.scale is Scale.SHARE for one in table.series], dtype=np.bool_)
    size = np.where(share, np.minimum(np.abs(expected), np.abs(1 - expected)), np.abs(expected))
    change = table.value - expected
    is_dust = ~count & (change >= 0) & (change < _DUST * part)
    return np.asarray((np.abs(change) >= part * least * size) & ~is_dust)


def _why(made: Bands, place: int, settings: BandSettings) -> str:
    level = Level(int(made.level[place]))
    if level is Level.NONE:
        seen = int(made.seen[place])
        return f"{seen} past windows can be used; a band needs {settings.least} over a day"
    return f"from {_LEVELS[level]}"
