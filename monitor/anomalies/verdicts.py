"""The stored verdicts on series, and which past windows lie before a known change."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
import numpy.typing as npt

from monitor.anomalies.past import Floats, Ints, PastWindow, aligned
from monitor.anomalies.series import BandedSeries
from monitor.settings.bands import BandSettings

Bools = npt.NDArray[np.bool_]


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
