"""The measured series of a window beside those of its past, as one table of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from monitor.anomalies.neighbours import Neighbours
from monitor.anomalies.past import Aligned, Floats, Ints, PastWindow, SeriesName, aligned
from monitor.anomalies.series import DIMENSION_OTHER, VOLUME, BandedSeries
from monitor.core.results import Window
from monitor.settings.bands import BandSettings
from monitor.statistics.bands.past import NEAR, POINTS, Level

Bools = npt.NDArray[np.bool_]
_WHOLE: Final = BandedSeries(VOLUME, "requests", "")


@dataclass(frozen=True, slots=True)
class Table:
    """m series: name, value now (NaN: no value), and values in n windows of the past."""

    series: tuple[BandedSeries, ...]
    value: Floats  # [m]
    samples: Floats  # [m]
    error: Floats  # [m], half of the interval
    past: Aligned  # [n, m]
    usual: Bools  # [n, m], where its absence is usual for that weekday


def tabled(
    now: PastWindow,
    past: Sequence[PastWindow],
    names: Mapping[int, SeriesName],
    settings: BandSettings,
    around: Neighbours,
    calm: Bools,
    lost: Mapping[BandedSeries, datetime] = MappingProxyType({}),
) -> Table:
    """The series that have a band, with their past.

    The volume of a missing slice is 0. A slice without rows now is missing if it had rows in at least half of
    the windows at this time of day since its first one. In the past it is 0 as well where it had no rows,
    from its first row on: so a scene that has no rows on Fridays is not missing on a Friday. A lost slice is
    missing until it is back.

    Args:
        now: the judged window.
        past: n windows before it.
        names: the names of the series.
        settings: which series have a band.
        around: how each past window relates to it.
        calm: which past windows are outside of maintenance.
        lost: the slices that are already missing at this time of day, and when each was first judged.
    """
    named = {number: BandedSeries.named(name) for number, name in names.items()}
    # A slice without rows in the whole past has no id there: give it a negative one.
    named |= {-1 - place: one for place, one in enumerate(sorted(lost.keys() - set(named.values())))}
    measured = {number for number in now.series.tolist() if named[number].is_banded(settings)}
    missed = _missed(now, past, named, settings, (around.near == 0) & calm, lost)
    ids = np.array(sorted(measured | missed), dtype=np.int64)
    definitions = dict(zip(now.series.tolist(), now.definition.tolist(), strict=True))
    for window in past if missed else ():
        held = dict(zip(window.series.tolist(), window.definition.tolist(), strict=True))
        definitions = {number: held[number] for number in missed & held.keys()} | definitions
    definition = np.array([definitions.get(number) for number in ids.tolist()], dtype=object)
    at_hand, before = aligned([now], ids), aligned(past, ids, definition)
    gone = np.isin(ids, list(missed))
    # A slice that is back was absent too: without this, its departure and last band would be forgotten.
    away = gone | np.array([named[number] in lost for number in ids.tolist()], dtype=np.bool_)
    usual = np.zeros(before.value.shape, dtype=np.bool_)
    if away.any():
        there = before.there[:, away]
        absent = _absent(past, there, ids[away], named, lost)
        before.value[:, away] = np.where(absent, 0.0, before.value[:, away])
        usual[:, away] = _usual(absent, there, around, calm)
    value, error = at_hand.value[0], np.full(len(ids), np.nan)
    place = np.searchsorted(now.series, ids)
    there = np.isin(ids, now.series)
    error[there] = now.error[place[there]]
    value[gone] = 0.0
    return Table(
        tuple(named[number] for number in ids.tolist()),
        value,
        at_hand.samples[0],
        error,
        before,
        usual,
    )


def _missed(
    now: PastWindow,
    past: Sequence[PastWindow],
    named: Mapping[int, BandedSeries],
    settings: BandSettings,
    same_time: Bools,
    lost: Mapping[BandedSeries, datetime],
) -> set[int]:
    """The series of volume without rows now that usually have rows at this time of day."""
    there = {
        named[number]: value for number, value in zip(now.series.tolist(), now.value.tolist(), strict=True)
    }
    whole = there.get(_WHOLE)
    if whole is None or np.isnan(whole):  # the window was not measured
        return set()
    full = {one.dimension for one in there if one.value == DIMENSION_OTHER}
    wanted = [
        number
        for number, one in named.items()
        if one.is_missed and one.is_banded(settings) and one.dimension not in full and one not in there
    ]
    ids = np.array(sorted(wanted), dtype=np.int64)
    if not len(ids):
        return set()
    before = aligned(past, ids)
    since = same_time[:, None] & (_ends(past) >= _first(past, before.there))
    there = (since & np.isfinite(before.value)).sum(axis=0)
    often = (there > 0) & (there >= since.sum(axis=0) / 2)
    return set(ids[often].tolist()) | {number for number in wanted if named[number] in lost}


def _ends(past: Sequence[PastWindow]) -> Floats:
    return np.array([window.end.timestamp() for window in past], dtype=np.float64)[:, None]


def _first(past: Sequence[PastWindow], there: Bools) -> Floats:
    """When each series (column) had its first row in the past; infinity without one."""
    return np.asarray(np.where(there, _ends(past), np.inf).min(axis=0, initial=np.inf))


def _absent(
    past: Sequence[PastWindow],
    there: Bools,
    ids: Ints,
    named: Mapping[int, BandedSeries],
    lost: Mapping[BandedSeries, datetime],
) -> Bools:
    """Where a missing series (column) was 0 in a past window (row) because it has no row there.

    The window must have its whole volume and no slice `other` of the dimension, and the series must be older.
    """
    rest_of = {number: one.dimension for number, one in named.items() if one.value == DIMENSION_OTHER}
    whole = [number for number, one in named.items() if one == _WHOLE]
    rest = np.array(sorted(rest_of), dtype=np.int64)
    is_full = aligned(past, rest).there
    is_rest = np.array(
        [[rest_of[one] == named[number].dimension for number in ids] for one in rest], np.bool_
    )
    known = np.isfinite(aligned(past, np.array(whole)).value)
    known_since = [lost[named[one]].timestamp() if named[one] in lost else np.inf for one in ids.tolist()]
    is_older = _ends(past) > np.minimum(_first(past, there), known_since)
    return np.asarray(~there & known & ~(is_full @ is_rest.reshape(-1, len(ids))) & is_older)


def _usual(absent: Bools, there: Bools, around: Neighbours, calm: Bools) -> Bools:
    """Absences that are usual for a weekday: the series was absent each time at this time of this weekday.

    An absence is usual after as many absences as a weekday needs windows, although each was out of its band:
    otherwise a scene without Fridays would be missing on every Friday. The series must have had rows in
    between: otherwise it is lost.
    """
    same_day = around.same_weekday & around.same_day_type
    same_time = (around.near == 0) & calm
    away = np.where(absent & (same_time & same_day)[:, None], around.age[:, None], np.inf)
    since = np.sort(away, axis=0)[POINTS[Level.WEEKDAY] - 1 :][:1].max(axis=0, initial=-np.inf)
    came_back = (there & same_time[:, None] & (around.age[:, None] < since)).any(axis=0)
    every = ~there[same_time & same_day].any(axis=0)
    often = np.isfinite(since)
    return np.asarray(
        absent & (often & every & came_back) & (same_day & (np.abs(around.near) <= NEAR))[:, None]
    )


def left_out(
    table: Table, judged: Sequence[PastWindow | None], names: Mapping[int, SeriesName]
) -> tuple[Floats, Bools]:
    """The `verdicts` on the table's series in n windows; a usual absence is no departure."""
    number_of = {BandedSeries.banded(name): number for number, name in names.items()}
    numbers = np.array([number_of.get(one, -1) for one in table.series], dtype=np.int64)
    deviation, departed = verdicts(judged, numbers)
    return deviation, departed & ~table.usual


def verdicts(judged: Sequence[PastWindow | None], numbers: Ints) -> tuple[Floats, Bools]:
    """The deviations in n windows of bands (rows) of the m series with these ids, and which had departed.

    A window without a verdict is None. It gives NaN and no departure, as does a series without a result.
    """
    deviation = np.full((len(judged), len(numbers)), np.nan)
    departed = np.zeros(deviation.shape, dtype=np.bool_)
    order = np.argsort(numbers, kind="stable")
    known = [(row, window) for row, window in enumerate(judged) if window is not None]
    found = aligned([window for _, window in known], numbers[order])
    rows = np.array([row for row, _ in known], dtype=np.int64)
    deviation[np.ix_(rows, order)] = found.value
    departed[np.ix_(rows, order)] = found.violated
    return deviation, departed


def begun_anew(
    series: Sequence[BandedSeries], starts: Sequence[datetime], end: datetime, settings: BandSettings
) -> Bools:
    """Which past windows (rows, by their starts) lie before a known change of a series (columns)."""
    before = np.zeros((len(starts), len(series)), dtype=np.bool_)
    for change in settings.changes:
        concerned = np.array([change.concerns(one.metric, end) for one in series], dtype=np.bool_)
        older = np.array([start < change.at for start in starts], dtype=np.bool_)
        before |= older[:, None] & concerned[None, :]
    return before


def just_changed(series: Sequence[BandedSeries], window: Window, settings: BandSettings) -> Bools:
    """Which series had a known change so recently that there may be no band yet."""
    late = [one for one in settings.changes if window.end - one.at <= settings.least * window.length]
    return np.array(
        [any(change.concerns(one.metric, window.end) for change in late) for one in series], np.bool_
    )
