"""States of bands after days of windows; tests with the same first days go on from copies of one state."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from monitor.anomalies.band_state import BandState, Step
from monitor.anomalies.past import PastWindow, SeriesName
from monitor.core.results import Window
from monitor.settings.bands import BandSettings

HOUR: Final = timedelta(hours=1)
START: Final = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
DAY: Final = 24
WEEK: Final = 7 * DAY
Values = Callable[[int], Mapping[int, tuple[float, float]]]
Names = Mapping[int, SeriesName]

_kept: dict[tuple[str, int, str], tuple[BandState, list[Step]]] = {}


def hour(number: int) -> Window:
    return Window(START + number * HOUR, START + (number + 1) * HOUR)


def past(number: int, values: Mapping[int, tuple[float, float]]) -> PastWindow:
    """A measured window; each series has a value and its samples."""
    ids = sorted(values)
    return PastWindow(
        hour(number).end,
        np.array(ids, dtype=np.int64),
        np.array([values[one][0] for one in ids]),
        np.array([values[one][1] for one in ids]),
        np.full(len(ids), np.nan),
        np.zeros(len(ids), dtype=np.bool_),
        np.array(["1"] * len(ids), dtype=object),
    )


def stepped(
    values: Values, count: int, names: Names, settings: Mapping[str, object], *, fresh: bool = False
) -> tuple[list[Step], BandState]:
    """The steps of so many hours, and the state after them.

    Whole days that were seen before are not repeated; `fresh` repeats them all the same.
    """
    given = json.dumps([settings, sorted((number, str(name)) for number, name in names.items())])
    made = [values(number) for number in range(count)]
    keys, digest = [], hashlib.sha256()
    for number, one in enumerate(made):
        if number % DAY == 0:
            keys.append((given, number, digest.hexdigest()))
        digest.update(repr(sorted(one.items())).encode())
    known = None if fresh else next((key for key in reversed(keys) if key in _kept), None)
    state, found = BandState(BandSettings.model_validate(settings), HOUR), list[Step]()
    if known is not None:
        state, found = _kept[known][0].copy(), list(_kept[known][1])
    for number in range(len(found), count):
        if number and number % DAY == 0 and not fresh:
            _kept.setdefault(keys[number // DAY], (state.copy(), list(found)))
        found.append(state.step(past(number, made[number]), hour(number), names))
    return found, state
