"""How large a change a band can see, and why a wide one is wide."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from monitor.anomalies.band_state import MOST, YOUNG
from monitor.anomalies.lost_totals import ENOUGH
from monitor.anomalies.series import BandedSeries
from monitor.anomalies.specs import EXPECTED, METRIC_LABEL
from monitor.core.results import Result
from monitor.core.text import plural
from monitor.metrics.catalogue import SPECS
from monitor.statistics.bands.scales import Scale
from monitor.statistics.bands.spans import LONGEST

WIDE: Final = 0.5
"""A band that cannot see a change of this size is too wide to rely on."""
_FEW: Final = 50.0
_SHORT: Final = timedelta(days=14)
"""With less past than this, more past makes a band narrower."""
_SHORT_WINDOWS: Final = YOUNG * MOST
"""The same for short windows, whose past is cut to a number of windows."""


def detectable_change(expected: Result) -> float | None:
    """The smallest relative change, up or down, that takes a value out of its band.

        min(expected - lower, upper - expected) / |expected|

    A change of this size that lasts is reported within two or three windows, since the means of longer spans
    vary less than a window. None where there is no band, or where 0 is expected.

    >>> from monitor.core.results import Status
    >>> detectable_change(Result(metric="expected", labels={}, definition="", status=Status.OK,
    ...                          value=200.0, lower=150.0, upper=260.0))
    0.25
    """
    centre, lower, upper = expected.value, expected.lower, expected.upper
    if not centre or lower is None or upper is None:
        return None
    return min(centre - lower, upper - centre) / abs(centre)


def wide_bands(expected: Iterable[tuple[Result, timedelta]]) -> str:
    """A warning on the counts of the whole recommender whose bands are too wide, with the reason and what
    helps.

    Args:
        expected: results of `expected`, each with the length of its window.
    """
    wide = []
    for one, length in expected:
        if one.labels.get("dimension") or one.metric != EXPECTED.name:
            continue
        spec, change = SPECS.get(one.labels.get(METRIC_LABEL, "")), detectable_change(one)
        if spec is not None and spec.scale is Scale.COUNT and change is not None and change > WIDE:
            wide.append((change, one, length))
    if not wide:
        return ""
    change, worst, length = max(wide, key=lambda found: found[0])
    name = BandedSeries(worst.labels[METRIC_LABEL], worst.labels.get("by", ""), worst.labels.get("of", ""))
    more = f", and {len(wide) - 1} more" if len(wide) > 1 else ""
    text = f"The band of {name.title()} sees no change below {100 * change:.0f} %{more}."
    text += f" {_reason(worst, length)}"
    if name.is_total and (worst.value or 0.0) * LONGEST >= ENOUGH:
        text += f" A loss of more than half is still reported after {LONGEST} windows."
    return text


def _reason(wide: Result, length: timedelta) -> str:
    windows = wide.samples or 0
    if windows < min(_SHORT / length, _SHORT_WINDOWS):
        return f"It knows only {plural(windows, 'window')}. More past helps: backfill older logs, or wait."
    value = wide.value or 0.0
    if value < _FEW:
        few = f"{value:.0f}" if value >= 1 else f"{value:.1g}"
        return f"Only {few} {'is' if few == '1' else 'are'} expected in a window. Longer windows help."
    return (
        "The values vary this much from window to window. Longer windows help; so does the right `timezone`."
    )
