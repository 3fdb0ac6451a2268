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
    """m series: what each is, what it is now (NaN: no value), and what it was in n windows of the past."""

    series: tuple[BandedSeries, ...]
    value: Floats  # [m]
    samples: Floats  # [m]
    error: Floats  # [m], half of the interval
    past: Aligned  # [n, m]
    usual: Bools  # [n, m], where it was away as on every such weekday


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

    A slice whose volume was there in at least half of the windows at the same time of day since its first
    one, and has no row now, is there with 0: what is missed must be seen to be gone. So it is 0 in the past
    as well where it had no row, from its first one on: a scene that is never there on Fridays is not missed
    on a Friday. What is lost is missed until it is back, however long ago it was there.

    Args:
        now: the window at hand.
        past: n windows before it.
        names: what each series is.
        settings: which series have a band.
        around: how each of the past windows is related to it.
        calm: which of them are past, and not left out for maintenance.
        lost: the slices that are known to be missed at this time of day, and since when they are known.
    """
    named = {number: BandedSeries.named(name) for number, name in names.items()}
    # What has no row in the whole of the past has no number among those of the past.
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
    # What is back was away as well: else nothing is left of that it stood out, nor of its last band.
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
    """The series of volume that have no row now although they are there at this time of the day."""
    there = {
        named[number]: value for number, value in zip(now.series.tolist(), now.value.tolist(), strict=True)
    }
    whole = there.get(_WHOLE)
    if whole is None or np.isnan(whole):  # the window could not be judged, or nobody measured
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
    """When each series (column) had its first row in the past; infinity where it has none."""
    return np.asarray(np.where(there, _ends(past), np.inf).min(axis=0, initial=np.inf))


def _absent(
    past: Sequence[PastWindow],
    there: Bools,
    ids: Ints,
    named: Mapping[int, BandedSeries],
    lost: Mapping[BandedSeries, datetime],
) -> Bools:
    """Where a missed series (column) was 0 in a past window (row), since it has no row there.

    The window has to know its whole volume and every value of the dimension, and the series has to be older.
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
    """Absences that belong to a weekday: the series was away each time that it was this time of this day.

    They are known after as many of them as a weekday has to have, and count although each stood out: else
    what is never there on Fridays would be missed on every Friday for good. It was there in between: what
    never came back is lost.
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
    """The `verdicts` on the table's series in n windows; what is usual of its weekday had not departed."""
    number_of = {BandedSeries.banded(name): number for number, name in names.items()}
    numbers = np.array([number_of.get(one, -1) for one in table.series], dtype=np.int64)
    deviation, departed = verdicts(judged, numbers)
    return deviation, departed & ~table.usual


def verdicts(judged: Sequence[PastWindow | None], numbers: Ints) -> tuple[Floats, Bools]:
    """The deviations in n windows of bands (rows) of the series with these m numbers, and which had departed.

    A window that bands have not judged is None: NaN, and not departed, as is a series without a result.
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
    """Which series had a known change so late that there need not be a band yet."""
    late = [one for one in settings.changes if window.end - one.at <= settings.least * window.length]
    return np.array(
        [any(change.concerns(one.metric, window.end) for change in late) for one in series], np.bool_
    )
