"""Totals of which few are expected, short windows, and the end of a season."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from monitor.anomalies.band_state import BandState
from monitor.anomalies.past import SeriesName, markers, read_day
from monitor.core.results import Status, Window
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.settings.bands import BandSettings
from tests.anomalies.banded import measured
from tests.anomalies.stepped import HOUR, START, WEEK, hour, past, stepped

REQUESTS = {0: SeriesName("volume", {"by": "requests"})}
BUYS = {0: SeriesName("action_volume", {"event": "buy", "by": "event"})}


def poisson(mean: float, number: int) -> float:
    return float(np.random.default_rng([3, number]).poisson(mean))


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.6, 1.0, 2.0])
def test_a_rare_event_is_not_lost_in_hours_without_one(rate: float) -> None:
    def values(number: int) -> Mapping[int, tuple[float, float]]:
        count = poisson(rate, number)
        return {0: (count, count)}

    steps, _ = stepped(values, 6 * WEEK, BUYS, {})
    assert sum(bool(step.departed[0]) for step in steps[2 * WEEK :]) == 0


def test_nights_without_requests_are_not_lost_traffic() -> None:
    def values(number: int) -> Mapping[int, tuple[float, float]]:
        count = poisson(0.05 if number % 24 < 12 else 200.0, number)
        return {0: (count, count)}

    steps, _ = stepped(values, 4 * WEEK, REQUESTS, {})
    assert not any(step.departed[0] for step in steps[WEEK:])


@pytest.mark.parametrize("expected", [10.0, 200.0])
def test_where_enough_is_expected_a_half_is_lost_however_wide_the_band_is(expected: float) -> None:
    """The level moves by so much from day to day that its band allows a loss of a half."""
    struck = 4 * WEEK + 3 * 24

    def values(number: int) -> Mapping[int, tuple[float, float]]:
        of_day = float(np.exp(0.8 * np.random.default_rng([5, number // 24]).normal()))
        count = poisson(expected * min(max(of_day, 0.6), 4.0), number)
        count = poisson(0.1 * expected, number) if number >= struck else count
        return {0: (count, count)}

    steps, _ = stepped(values, struck + 24, REQUESTS, {})
    assert any(step.departed[0] for step in steps[struck:])


def test_a_lasting_incident_of_short_windows_does_not_become_usual() -> None:
    """The past holds fewer windows than the history asks for; a quarter of that is never reached."""
    length, steady, lasts = timedelta(minutes=2), 2_600, 900
    state = BandState(BandSettings.model_validate({"history": "56d"}), length)
    out = []
    for number in range(steady + lasts):
        count = poisson(100.0 if number < steady else 50.0, number)
        window = Window(START + number * length, START + (number + 1) * length)
        out.append(bool(state.step(past(number, {0: (count, count)}), window, REQUESTS).departed[0]))
    assert not any(out[steady - 500 : steady])
    assert all(out[-lasts // 2 :])


@pytest.mark.parametrize("eve", [0.5, 1.3])
def test_the_hours_before_a_season_are_not_next_to_those_after_it(eve: float) -> None:
    begins, ends = 4 * WEEK, 5 * WEEK
    first, last = (START + number * HOUR for number in (begins, ends - 24))
    sale = {"from": f"{first:%Y-%m-%d}", "to": f"{last:%Y-%m-%d}", "what": "sale"}

    def values(number: int) -> Mapping[int, tuple[float, float]]:
        mean = 1000.0 * (1 + 0.5 * np.sin(2 * np.pi * number / 24))
        mean *= 1.5 if begins <= number < ends else eve if begins - 6 <= number < begins else 1.0
        count = poisson(mean, number)
        return {0: (count, count)}

    steps, _ = stepped(values, ends + 48, REQUESTS, {"seasons": [sale]})
    assert any(step.departed[0] for step in steps[begins - 6 : begins]), "the eve is out of its band"
    assert not any(step.departed[0] for step in steps[ends:])


def test_an_empty_hour_counts_as_zero_in_the_mean_of_a_day(tmp_path: Path) -> None:
    name, check = "shop", "exposure"
    with Store.open(tmp_path / "history.sqlite") as store:
        for number, (value, status) in enumerate(((10.0, Status.OK), (0.0, Status.NO_DATA))):
            window = hour(number)
            result = measured("volume", value, int(value), by="requests")
            runs = [CheckRun(check=check, results=[replace(result, status=status)], outcome="ok")]
            store.record_window(name, window, runs, fingerprint="", rows=0, evaluated_at=window.end)
        with store.reading() as connection:
            found = markers(connection, name, check, [hour(0).end, hour(1).end], HOUR)
            definitions = dict.fromkeys(range(10), result.definition)
            day = read_day(connection, found, definitions)
    assert (day.windows.tolist(), day.mean.tolist()) == ([2], [5.0])
