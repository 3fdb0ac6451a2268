"""What a window of bands takes over from those before it: which series stood out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import numpy as np
import numpy.typing as npt

from monitor.anomalies.neighbours import Neighbours
from monitor.anomalies.past import Floats, PastWindow, SeriesName
from monitor.anomalies.results import Banded
from monitor.anomalies.series import BandedSeries
from monitor.anomalies.table import Table, verdicts
from monitor.settings.bands import BandSettings

Bools = npt.NDArray[np.bool_]
Place = tuple[str, str]


def last(deviations: Floats, departed: Bools) -> tuple[Floats, Bools]:
    """The newest deviation of each series (rows: the newest window first), and whether it had departed.

    >>> last(np.array([[np.nan, 2.0], [7.0, 8.0]]), np.array([[False, False], [True, True]]))
    (array([7., 2.]), array([ True, False]))
    """
    if not len(deviations):
        return np.full(deviations.shape[1], np.nan), np.zeros(deviations.shape[1], dtype=np.bool_)
    first = np.isfinite(deviations).argmax(axis=0)
    columns = np.arange(deviations.shape[1])
    return deviations[first, columns], departed[first, columns]


def standing(deviations: Floats, departed: Bools, around: Neighbours) -> tuple[Floats, Bools]:
    """The deviation at which each series stands out (rows: the newest window first), and whether it does.

    It stands where it had departed in the newest window, in the newest of this time of day, or in the newest
    of this time on such a day: neither a night nor a Sunday in which it was within its band ends an incident
    of weeks.
    """
    same_time = around.near == 0
    stood, stands = last(deviations, departed)
    for alike in (same_time, same_time & around.same_day_type):
        then, stood_then = last(deviations[alike], departed[alike])
        stood, stands = np.where(stands, stood, then), stands | stood_then
    return stood, stands


def lost(
    judged: Sequence[PastWindow | None],
    names: Mapping[int, SeriesName],
    around: Neighbours,
    settings: BandSettings,
) -> dict[BandedSeries, datetime]:
    """The slices whose requests stood out below their band when this time of day was judged last.

    Such a one is missed until it is back, be it longer than its past lasts: what once was there, and when,
    says less and less about it. Each comes with the end of the first window in which it was judged.
    """
    series = {number: BandedSeries.banded(name) for number, name in names.items()}
    numbers = sorted(number for number, one in series.items() if one.is_missed and one.is_banded(settings))
    deviations, departed = verdicts(judged, np.array(numbers, dtype=np.int64))
    stood, stands = standing(np.where((around.near == 0)[:, None], deviations, np.nan), departed, around)
    return {
        series[numbers[place]]: around.ends[np.flatnonzero(np.isfinite(deviations[:, place]))[-1]]
        for place in np.flatnonzero(stands & (stood < 0)).tolist()
    }


def unseen(
    table: Table,
    judged: Sequence[PastWindow | None],
    names: Mapping[int, SeriesName],
    starts: Sequence[datetime],
    recent: Bools,
    places: Collection[Place],
    end: datetime,
    settings: BandSettings,
) -> list[Banded]:
    """The series that stood out when they were last judged, and that the window at hand does not have at all.

    However long ago that was: nobody has seen them back. But a slice of which nothing is left is forgotten
    after the recent windows, since nothing can be wrong with it any more; that it is gone is for its volume.

    Args:
        table: the series of the window at hand.
        judged: n windows of bands before it, the newest first, None where there was no verdict.
        names: what each series of theirs is.
        starts: when each of them starts.
        recent: which of them are just before it.
        places: the slices of which the window at hand has a number, each a dimension and a value.
        end: of the window at hand.
        settings: which series have a band, and the known changes: what stood out before one is not missed.
    """
    series = {number: BandedSeries.banded(name) for number, name in names.items()}
    here = set(table.series)
    numbers = sorted(number for number, one in series.items() if one not in here and one.is_banded(settings))
    deviations, departed = verdicts(judged, np.array(numbers, dtype=np.int64))
    stood, stands = last(deviations, departed)
    found: list[Banded] = []
    for at in np.flatnonzero(stands).tolist():
        one, newest = series[numbers[at]], int(np.isfinite(deviations[:, at]).argmax())
        changes = (change for change in settings.changes if change.concerns(one.metric, end))
        anew = any(starts[newest] < change.at for change in changes)
        is_left = not one.dimension or one.is_missed or (one.dimension, one.value) in places
        if not anew and (is_left or recent[newest]):
            found.append(Banded.unseen(one, float(stood[at])))
    return found
