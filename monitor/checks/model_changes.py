"""When another model took over: the change that most often comes before a number leaves its band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import numpy as np

from monitor.checks.band_series import VOLUME
from monitor.history.past import PastWindow, SeriesName, aligned
from monitor.logs.columns import MODEL
from monitor.results import Window

RECENT = timedelta(days=1)


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
    models = {
        number: one.labels.get("value", "")
        for number, one in names.items()
        if one.metric == VOLUME
        and one.labels.get("by") == "requests"
        and one.labels.get("dimension") == MODEL
    }
    ids = np.array(sorted(models), dtype=np.int64)
    recent = sorted(
        (one for one in windows if window.end - RECENT - window.length <= one.end), key=lambda one: one.end
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
