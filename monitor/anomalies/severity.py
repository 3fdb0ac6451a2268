"""The missing share of the expected value, for the causes that have such a share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from monitor.anomalies.results import Banded

Severity = Callable[[Sequence[Banded], Sequence[Banded]], float]
"""From the series that a cause explains, and from all series of the window."""

_RATE: Final = ("action_rate", "exposure")


def lost_requests(mine: Sequence[Banded], found: Sequence[Banded]) -> float:  # noqa: ARG001
    """The missing share of the expected volume."""
    return _gone([one for one in mine if not one.series.dimension and one.series.metric == "volume"])


def lost_actions(mine: Sequence[Banded], found: Sequence[Banded]) -> float:  # noqa: ARG001
    """The missing share of the expected actions, of all events together.

    Events within their bands count too: the loss of a rare event alone is not severe. Where fewer items are
    shown than usual, fewer actions are expected: as many as the usual rate gives on what is shown.
    """
    whole = [one for one in found if not one.series.dimension and one.is_judged]
    rates = {one.series.of: one for one in whole if (one.series.metric, one.series.by) == _RATE}
    actions = [one for one in whole if one.series.metric == "action_volume"]
    return _gone([replace(one, expected=_expected(one, rates.get(one.series.of))) for one in actions])


def _expected(actions: Banded, rate: Banded | None) -> float:
    """The expected actions, at most those that the usual rate gives on what is shown."""
    if rate is None or rate.measured <= 0:
        return actions.expected
    return min(actions.expected, actions.measured / rate.measured * rate.expected)


def empty_lists(mine: Sequence[Banded], found: Sequence[Banded]) -> float:  # noqa: ARG001
    """How much more of the requests have no list than expected."""
    whole = (one for one in mine if not one.series.dimension)
    failed = (one for one in whole if (one.series.metric, one.series.by) == ("failure", "pv"))
    return max((one.measured - one.expected for one in failed), default=0.0)


def _gone(counts: Sequence[Banded]) -> float:
    expected = sum(one.expected for one in counts)
    return 1 - sum(one.measured for one in counts) / expected if expected > 0 else 0.0
