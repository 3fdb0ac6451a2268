"""When another model took over: the most frequent change before a value leaves its band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np

from monitor.anomalies.moments import DAY
from monitor.anomalies.past import PastWindow, SeriesName, aligned
from monitor.anomalies.series import DIMENSION, SLICE_VALUE, VOLUME
from monitor.core.columns import MODEL
from monitor.core.results import Window


def model_changes(
    window: Window, windows: Sequence[PastWindow], names: Mapping[int, SeriesName]
) -> list[str]:
    """A note for each time in the day before the window's end at which another model took the most requests.

    It is read from the slices of `volume` by model, so it needs `model` in `slices.by`; else there is none.

    Args:
        window: the window at hand.
        windows: itself and windows of its past, in any order.
        names: what each series is.
    """
    models = _models(names)
    ids = np.array(sorted(models), dtype=np.int64)
    recent = sorted(
        (one for one in windows if window.end - DAY - window.length <= one.end), key=lambda one: one.end
    )
    if len(ids) < 2 or len(recent) < 2:
        return []
    volume = np.nan_to_num(aligned(recent, ids).value)
    there = volume.sum(axis=1) > 0
    ends = [one.end for one, is_there in zip(recent, there, strict=True) if is_there]
    first = ids[volume[there].argmax(axis=1)]
    return [
        f"model {models[int(number)]} serves most since {ends[place] - window.length:%Y-%m-%d %H:%M} UTC"
        for place, number in enumerate(first)
        if place and number != first[place - 1]
    ]


def models_by_day(
    windows: Sequence[PastWindow], names: Mapping[int, SeriesName], length: timedelta, begin: datetime
) -> dict[datetime, str]:
    """The model with the most requests of each day, by the day's start; ties go to the first name.

    A day without requests, or without `model` in `slices.by`, is left out.

    Args:
        windows: some of the past, in any order.
        names: what each series is.
        length: of a window.
        begin: where a day begins; all others begin whole days before or after it.
    """
    models = _models(names)
    ids = np.array(sorted(models, key=lambda number: models[number]), dtype=np.int64)
    if not len(ids) or not windows:
        return {}
    order = np.argsort(ids)
    volume = np.empty((len(windows), len(ids)))
    volume[:, order] = np.nan_to_num(aligned(windows, ids[order]).value)
    starts = [begin + (one.end - length - begin) // DAY * DAY for one in windows]
    days = sorted(set(starts))
    place = {start: number for number, start in enumerate(days)}
    added = np.zeros((len(days), len(ids)))
    np.add.at(added, np.array([place[start] for start in starts]), volume)
    return {
        start: models[int(ids[row.argmax()])] for start, row in zip(days, added, strict=True) if row.max() > 0
    }


class Serving:
    """Which model serves most, and for how many windows if it is a new one."""

    def __init__(self) -> None:
        self.windows = 0
        """The windows since a new model took over, itself counted; 0 if none did so far."""
        self._known: set[str] = set()
        self._series: dict[int, str] = {}
        self._named = 0

    def see(self, now: PastWindow, names: Mapping[int, SeriesName]) -> None:
        """Take the next window. Without requests by model it says nothing."""
        if self._named != len(names):
            self._series, self._named = _models(names), len(names)
        self.windows += self.windows > 0
        mine = [
            (value, self._series[number])
            for number, value in zip(now.series.tolist(), now.value.tolist(), strict=True)
            if number in self._series and value > 0
        ]
        if not mine:
            return
        _, first = max(mine)
        if self._known and first not in self._known:
            self.windows = 1
        self._known.add(first)


def _models(names: Mapping[int, SeriesName]) -> dict[int, str]:
    """The series that count the requests of a model, and its name."""
    return {
        number: one.labels.get(SLICE_VALUE, "")
        for number, one in names.items()
        if one.metric == VOLUME and one.labels.get("by") == "requests" and one.labels.get(DIMENSION) == MODEL
    }
