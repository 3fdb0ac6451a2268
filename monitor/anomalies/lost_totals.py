"""Totals that are lost beyond doubt: half of what is expected in twelve windows, or all of it in two.

A band may be so wide that even 0 lies within: after a noisy month, on a holiday, or after hours without a
value. But a total tells that users are harmed now, and chance does not take so much of it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from monitor.anomalies.past import Floats
from monitor.anomalies.series_traits import Bools, SeriesTraits
from monitor.statistics.bands.seasonal_filter import Forecast
from monitor.statistics.bands.spans import SPANS

LOST: Final = 0.5
"""Totals below this part of what is expected, in the mean of the longest span, are always out."""
ENOUGH: Final = 60.0
"""So many must be expected in a span: of fewer, chance alone takes half now and then."""
_NONE: Final = 0.5  # what is left of a zero that went to the scale of its metric and back


def lost_totals(forecast: Forecast, drawn: Floats, traits: SeriesTraits) -> Bools:
    """SPANS x m: in which spans a total is out of its band whatever its spread.

    - In the longest span, if less than half is there: of what was expected from before the span, and also of
      what is usual at this time.
    - In a shorter one of two windows or more, if nothing is there, and enough was expected and is usual.

    Args:
        forecast: of the window.
        drawn: LONGEST x m, the samples of the last windows, the newest first.
        traits: of the m series.
    """
    in_spans = np.array([np.nansum(drawn[:windows], axis=0) for windows in SPANS])
    windows = np.array(SPANS, np.float64)[:, None]

    def many(expected: Floats, windows: Floats, drawn: Floats) -> Floats:
        """How many a count is, or the rest of a share, such as the lists that are not empty."""
        return np.asarray(np.where(traits.is_count, expected * windows, (1 - expected) * drawn))

    planned = many(forecast.planned, windows, in_spans)
    actual = many(forecast.actual, windows, in_spans)
    usual = many(forecast.usual, windows[-1], in_spans[-1])
    is_enough = planned >= ENOUGH
    lost: Bools = is_enough & (usual >= ENOUGH) & (actual < _NONE) & (windows > 1)
    lost[-1] = is_enough[-1] & (actual[-1] < LOST * np.minimum(planned[-1], usual))
    return lost & traits.is_total
