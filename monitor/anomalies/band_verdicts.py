"""Judge each series of a table by its past: within its band, or out of it."""

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

CHECKS: Final = 4  # two of bands and two of drift share the allowed false alarms
_WEEK: Final = timedelta(days=7)
_HALF_OF_95: Final = 1.959964  # half of a 95 % interval, in standard errors
_DUST: Final = 0.001
"""Ignore smaller rises of anything but a count: relative to 0, any rise is large."""
_OF_OLD: Final = "its last band: too few windows without a deviation since then for a new one"
_LEVELS: Final = {
    Level.WEEKDAY: "the same time of the same weekday",
    Level.DAY_TYPE: "the same time of such days",
    Level.ANY_DAY: "the same time of any day",
    Level.ANY_WINDOW: "any window",
}


@dataclass(frozen=True, slots=True)
class BandJob:
    """A window whose m series are judged, with the n windows before it, newest first."""

    window: Window
    settings: BandSettings
    table: Table
    around: Neighbours
    calm: Bools
    """n: outside of maintenance."""
    recent: Bools
    """n: just before the window."""
    deviations: Floats
    """n by m: the deviation of each series, NaN where it was not judged."""
    departed: Bools
    """n by m: whether it was out of its band."""

    def begun_anew(self) -> Bools:
        """n by m: whether a known change came between that window and this one."""
        starts = [end - self.window.length for end in self.around.ends]
        return begun_anew(self.table.series, starts, self.window.end, self.settings)


@dataclass(frozen=True, slots=True)
class _Earlier:
    """The earlier verdicts on each series."""

    was: Floats
    """Its deviation in the recent windows; if its last band holds, the deviation of its departure."""
    was_out: Bools
    newest: Floats
    """Its deviation when it was last judged, however long ago."""
    still_out: Bools
    stood: Floats
    has_stood: Bools
    kept: Bools
    """Whether its last band still holds."""
    out_of_old: Bools
    """Whether it was out of its band before a known change."""


@dataclass(frozen=True, slots=True)
class _Expected:
    """The band and the deviation of each series."""

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
    bands = _band(job, anew)
    earlier = _earlier(job, anew, bands)
    errors = table.error / _HALF_OF_95
    far = deviation(bands, table.value, errors)
    bound = _bounds(job, bands, earlier, far)
    found = _Expected(bands.expected, *limits(bands, bound.pair, errors), far)
    if earlier.kept.any():
        found = _by_last_band(found, table.value, bound, earlier.kept, last_bands(earlier.kept))
    departed = _departed(job, found, earlier, bound)
    learns = earlier.out_of_old & (bands.level == Level.NONE)
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
            points=int(bands.seen[place]),
            reached=float(bound.pair[place]),
            departed=bool(departed[place]),
            why=_OF_OLD if earlier.kept[place] else _why(bands, place, job.settings),
            was=float(was[place]),
            learns=bool(learns[place]),
        )
        for place, one in enumerate(table.series)
    ]


def _band(job: BandJob, anew: Bools) -> Bands:
    """The bands from the normal windows of the past."""
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


def _earlier(job: BandJob, anew: Bools, bands: Bands) -> _Earlier:
    deviations, departed = job.deviations, job.departed & ~anew
    was, was_out = last(deviations[job.recent], departed[job.recent])
    newest, still_out = last(deviations, departed)
    # A long departure leaves few windows for a band. A wide new band must not end the departure.
    stood, has_stood = standing(deviations, departed & np.isfinite(job.table.past.value), job.around)
    kept = has_stood & ~np.isin(bands.level, (Level.WEEKDAY, Level.DAY_TYPE))
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


def _bounds(job: BandJob, bands: Bands, earlier: _Earlier, far: Floats) -> Bounds:
    """The bounds of the deviations, given the number of tests a week."""
    settings = job.settings
    tests = max(1, int((np.isfinite(far) | earlier.kept).sum())) * (_WEEK / job.window.length)
    known = np.fmax(settings.history / DAY, bands.df)
    df = np.where(earlier.was_out | earlier.has_stood, known, bands.df)
    return bounds(tests, df, budget=settings.false_alarms / CHECKS)


def _by_last_band(
    found: _Expected, values: Floats, bound: Bounds, kept: Bools, stored: BandValues
) -> _Expected:
    """Replace the band of this window by the last band where that still holds."""
    return _Expected(
        expected=np.where(kept, stored.expected, found.expected),
        lower=np.where(kept, stored.lower, found.lower),
        upper=np.where(kept, stored.upper, found.upper),
        deviation=np.where(kept, stored.deviation(values, bound.pair), found.deviation),
    )


def _departed(job: BandJob, found: _Expected, earlier: _Earlier, bound: Bounds) -> Bools:
    """Which series are out of their bands: those that leave now, and those that left and are not back."""
    far = found.deviation
    yesterday = np.where(earlier.has_stood, earlier.stood, np.nan)
    fires = decide(far, earlier.was, bound) | decide(far, yesterday, bound)
    fires &= _matters(job, found.expected) & ~earlier.kept
    stays = earlier.was_out & (np.sign(far) == np.sign(earlier.was)) & (np.abs(far) > bound.clear)
    return np.asarray(fires | (stays & _matters(job, found.expected, EASIER)))


def _matters(job: BandJob, expected: Floats, part: float = 1.0) -> Bools:
    """Whether the change reaches `part` of the smallest change that counts, however certain it is."""
    table, settings = job.table, job.settings
    count = np.array([one.scale is Scale.COUNT for one in table.series], dtype=np.bool_)
    least = np.where(count, settings.least_volume_change, settings.least_change)
    share = np.array([one.scale is Scale.SHARE for one in table.series], dtype=np.bool_)
    size = np.where(share, np.minimum(np.abs(expected), np.abs(1 - expected)), np.abs(expected))
    change = table.value - expected
    is_dust = ~count & (change >= 0) & (change < _DUST * part)
    return np.asarray((np.abs(change) >= part * least * size) & ~is_dust)


def _why(bands: Bands, place: int, settings: BandSettings) -> str:
    level = Level(int(bands.level[place]))
    if level is Level.NONE:
        seen = int(bands.seen[place])
        return f"{seen} past windows can be used; a band needs {settings.least} over a day"
    return f"from {_LEVELS[level]}"
