"""Hours of made-up series with the shapes of a day and a week, each judged by the hours before it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import signal

from monitor.statistics.bands.departures import Departures
from monitor.statistics.bands.false_alarms import bounds
from monitor.statistics.bands.scales import as_scales
from monitor.statistics.bands.seasonal_filter import WILD, Moment, SeasonalFilter

HOURS, WEEK = 24, 168
_WINDOWS_A_DF = 4.0
_YOUNG = 14 * HOURS


class Watched(NamedTuple):
    """What was said of each hour."""

    deviations: np.ndarray
    """hours x SPANS x series"""
    out: np.ndarray
    """hours x series: whether the series was out of its band"""
    expected: np.ndarray
    """hours x series"""

    def begun(self, first: int) -> int:
        """How many departures began from this hour on."""
        return int((self.out[first:] & ~self.out[first - 1 : -1]).sum())


def watched(values, scales, samples=np.nan, *, chance, judge_from=_YOUNG, first_weekday=0) -> Watched:
    """Judge hour after hour, and learn from those within the bands; all hours before `judge_from` teach."""
    values = np.asarray(values, np.float64)
    hours, series = values.shape
    many = np.broadcast_to(np.asarray(samples, np.float64), values.shape)
    model, departures = SeasonalFilter(HOURS), Departures()
    model.add_series(as_scales(scales, series))
    departures.add(series)
    matters, small = np.ones((5, series), np.bool_), np.zeros(series, np.bool_)
    wild, said = np.full(series, WILD), []
    for hour in range(hours):
        moment = Moment(hour % HOURS, (hour // HOURS + first_weekday) % 7)
        forecast = model.judge(values[hour], many[hour], moment, None, wild)
        out = np.zeros(series, np.bool_)
        if hour >= judge_from:
            limit = bounds(chance, model.windows / _WINDOWS_A_DF)
            wild = np.fmax(1.5 * limit.shown, WILD)
            was = departures.side != 0
            out = departures.decide(forecast, forecast.deviations, limit, matters, small, model.scales)
            model.forget_last(was & ~out)
        model.learn(~out)
        said.append((forecast.deviations, out, forecast.expected))
    return Watched(*(np.array(each) for each in zip(*said, strict=True)))


def hours(days, first_weekday=0):
    """The weekday and the time of day of each hour."""
    hour = np.arange(HOURS * days)
    return (hour // HOURS + first_weekday) % 7, hour % HOURS


def shape(weekday, time):
    """Requests by hour: low at night, higher and later at the weekend."""
    evening = 20 + 1.5 * (weekday >= 5)
    return np.exp(0.6 * np.cos(2 * np.pi * (time - evening) / HOURS)) * (1 + 0.25 * (weekday >= 5))


def noise(rng, size, *, tails=np.inf, serial=0.0):
    """Columns of noise with variance 1, Student's tails, and a correlation from hour to hour."""
    drawn = (
        rng.normal(size=size)
        if tails == np.inf
        else rng.standard_t(tails, size) / np.sqrt(tails / (tails - 2))
    )
    return signal.lfilter([1], [1, -serial], drawn * np.sqrt(1 - serial**2), axis=0)
