"""Totals that are lost beyond doubt, by hand-made forecasts."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.anomalies.lost_totals import lost_totals
from monitor.anomalies.series import BandedSeries
from monitor.anomalies.series_traits import SeriesTraits
from monitor.statistics.bands.seasonal_filter import Forecast
from monitor.statistics.bands.spans import LONGEST, SPANS

REQUESTS = BandedSeries("volume", "requests", "")
FAILURE = BandedSeries("failure", "pv", "")
USERS = BandedSeries("volume", "users", "")


def lost(
    series: BandedSeries, planned: float, actual: list[float], usual: float, drawn: float = 100.0
) -> list[bool]:
    """The verdicts of one series in each span; NaN in `actual` where a span has a window without a value."""
    nothing = np.full((len(SPANS), 1), np.nan)
    forecast = Forecast(
        expected=np.array([planned]), centre=nothing[0], sd=nothing[0], samples=np.array([drawn]),
        means=nothing, deviations=nothing, from_base=nothing, planned=np.full((len(SPANS), 1), planned),
        actual=np.array(actual)[:, None], by_one=nothing, usual=np.array([usual]),
    )  # fmt: skip
    samples = np.full((LONGEST, 1), drawn)
    return lost_totals(forecast, samples, SeriesTraits.of([series], {series: 0}))[:, 0].tolist()


@pytest.mark.parametrize(("actual", "is_lost"), [(49.0, True), (50.0, False), (0.0, True), (np.nan, False)])
def test_less_than_half_in_twelve_windows_is_lost(actual: float, is_lost: bool) -> None:
    assert lost(REQUESTS, 100.0, [80.0, 80.0, 80.0, 80.0, actual], 100.0) == [False] * 4 + [is_lost]


def test_what_is_less_than_half_of_a_rush_and_usual_at_this_time_is_not_lost() -> None:
    assert not any(lost(REQUESTS, 100.0, [40.0] * 5, 70.0))
    assert lost(REQUESTS, 100.0, [40.0] * 5, 90.0)[-1]


def test_of_few_that_are_expected_none_are_lost() -> None:
    assert lost(REQUESTS, 5.0, [0.0] * 5, 5.0) == [False, False, False, False, True]  # 60 of twelve windows
    assert not any(lost(REQUESTS, 4.9, [0.0] * 5, 4.9))


def test_nothing_in_two_windows_is_lost_if_sixty_are_expected() -> None:
    after_a_gap = [0.0, 0.0, np.nan, np.nan, np.nan]
    assert lost(REQUESTS, 30.0, after_a_gap, 30.0) == [False, True, False, False, False]
    assert not any(lost(REQUESTS, 29.9, after_a_gap, 29.9))
    assert not any(lost(REQUESTS, 30.0, after_a_gap, 4.9))  # after a rush at night
    assert not any(lost(REQUESTS, 30.0, [0.0, np.nan, np.nan, np.nan, np.nan], 30.0))
    assert not any(lost(REQUESTS, 30.0, [0.0, 0.5, np.nan, np.nan, np.nan], 30.0))  # one request of two hours


def test_no_list_of_two_windows_has_items() -> None:
    after_a_gap = [1.0, 1.0, np.nan, np.nan, np.nan]
    assert lost(FAILURE, 0.01, after_a_gap, 0.01) == [False, True, False, False, False]
    assert not any(lost(FAILURE, 0.01, after_a_gap, 0.01, drawn=30.0))  # 59.4 lists with items are expected
    assert not any(lost(FAILURE, 0.01, [0.99, 0.99, np.nan, np.nan, np.nan], 0.01))


def test_a_series_that_is_no_total_is_never_lost() -> None:
    assert not any(lost(USERS, 1000.0, [0.0] * 5, 1000.0))
