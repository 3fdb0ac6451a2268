"""What a series learns while an incident lasts that its own values hardly show: nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from monitor.anomalies.band_state import BandState, Step
from monitor.anomalies.past import SeriesName
from monitor.settings.bands import BandSettings
from tests.anomalies.stepped import HOUR, START, WEEK, Values, hour, past, stepped

WHOLE, CART = 0, 1
NAMES = {
    WHOLE: SeriesName("list_length", {}),
    CART: SeriesName("list_length", {"dimension": "scene", "value": "cart"}),
}
STRUCK = 5 * WEEK + 6
OVER = STRUCK + 48


def lists(length: float = 0.75, of_season: float = 1.0, season_from: int = 10 * WEEK) -> Values:
    """Lists of ten items; the scene `cart` has few, of many lengths. For 48 hours all lists are shorter."""

    def values(number: int) -> Mapping[int, tuple[float, float]]:
        noise = np.random.default_rng([3, number]).normal(size=2)
        usual = 10.0 * (length if STRUCK <= number < OVER else 1.0)
        usual *= of_season if number >= season_from else 1.0
        return {
            WHOLE: (usual * (1 + 0.005 * noise[WHOLE]), 4000.0),
            CART: (usual * (1 + 0.2 * noise[CART]), 60.0),
        }

    return values


def steps(values: Values, count: int, **settings: object) -> list[Step]:
    return stepped(values, count, NAMES, settings)[0]


def test_a_slice_does_not_learn_what_is_an_incident_of_the_whole() -> None:
    found = steps(lists(), OVER + 24)
    assert all(step.departed[WHOLE] for step in found[STRUCK + 1 : OVER])
    assert not any(step.departed[CART] for step in found[STRUCK : STRUCK + 6])  # its own band lets it learn
    after = [step.forecast.expected[CART] for step in found[OVER : OVER + 24]]
    assert np.mean(after) == pytest.approx(10.0, rel=0.05)
    assert not any(step.departed.any() for step in found[OVER + 6 :])


def test_a_slice_learns_again_once_the_whole_is_back() -> None:
    found = steps(lists(), OVER + 24)
    learned = [step.points[CART] for step in found]
    assert learned[OVER - 1] <= learned[STRUCK] + 2
    assert learned[OVER + 23] >= learned[OVER] + 15


def test_a_slice_of_an_incident_takes_the_level_of_a_season_only_once_the_whole_is_back() -> None:
    begin = 5 * WEEK + 24  # in the middle of the incident
    first, last = (f"{START + number * HOUR:%Y-%m-%d}" for number in (begin, begin + 2 * WEEK))
    season = {"from": first, "to": last, "what": "sale"}
    found = steps(lists(0.75, 1.15, begin), OVER + 24, seasons=[season])
    assert all(step.departed[WHOLE] for step in found[STRUCK + 1 : OVER])
    after = [step.forecast.expected[CART] for step in found[OVER + 6 : OVER + 24]]
    assert np.mean(after) == pytest.approx(11.5, rel=0.05)
    assert not any(step.departed[CART] for step in found[OVER:])


def test_a_season_that_is_above_what_was_lost_before_it_is_learned_once_the_incident_is_over() -> None:
    begin = 5 * WEEK + 24
    first, last = (f"{START + number * HOUR:%Y-%m-%d}" for number in (begin, begin + 2 * WEEK))
    season = {"from": first, "to": last, "what": "sale"}
    found = steps(lists(0.75, 1.15, begin), OVER + 24, seasons=[season])
    assert {bool(step.deviation[WHOLE] < 0) for step in found[STRUCK + 1 : OVER]} == {True}
    assert not any(step.departed[WHOLE] for step in found[OVER + 2 :])
    assert found[OVER + 23].forecast.expected[WHOLE] == pytest.approx(11.5, rel=0.02)


ACTIONS, RATE = 1, 2
OF_CLICKS = {
    0: SeriesName("volume", {"by": "requests"}),
    ACTIONS: SeriesName("action_volume", {"event": "click"}),
    RATE: SeriesName("action_rate", {"by": "uv", "event": "click"}),
}
LATE = 5 * WEEK + 12


def slow(seed: int, sd: float) -> list[float]:
    """Noise of which an hour shares nineteen parts in twenty with the hour before."""
    found, steps = [0.0], np.random.default_rng(seed).normal(size=LATE + 60)
    for step in steps:
        found.append(0.95 * found[-1] + sd * np.sqrt(1 - 0.95**2) * step)
    return found


def after_hours_without_values(noise: float) -> tuple[list[Step], list[Step]]:
    """For 40 hours only requests are measured; then 7 hours of a holiday have no click, and the next 12 have.

    Returns the steps of the seven hours, and of the twelve.
    """
    of_actions, of_rate, lost = slow(8, noise), slow(9, 0.22), range(LATE, LATE + 47)
    settings = BandSettings.model_validate({"holidays": [f"{START + (LATE + 40) * HOUR:%Y-%m-%d}"]})
    state, found = BandState(settings, HOUR), list[Step]()
    for number in range(LATE + 59):
        values = {0: (4000.0 + number % 7, 4000.0)}
        if not LATE <= number < LATE + 40:
            made = 0.0 if number in lost else float(round(1200 * np.exp(of_actions[number])))
            rate = 0.0 if number in lost else 0.6 * np.exp(of_rate[number])
            values |= {ACTIONS: (made, made), RATE: (rate, 900.0)}
        found.append(state.step(past(number, values), hour(number), OF_CLICKS))
    return found[LATE + 40 : LATE + 47], found[LATE + 47 :]


def test_all_actions_are_lost_although_the_band_is_wide_after_hours_without_a_value() -> None:
    lost, _ = after_hours_without_values(0.8)
    assert lost[0].lower[ACTIONS] < 1  # its band would take 0 for usual
    assert all(step.departed[ACTIONS] for step in lost[1:])


def test_rates_do_not_learn_that_there_are_no_actions() -> None:
    lost, over = after_hours_without_values(0.4)
    assert lost[-1].forecast.expected[RATE] == pytest.approx(0.6, rel=0.25)
    assert over[2].forecast.expected[RATE] == pytest.approx(over[2].values[RATE], rel=0.25)
    assert not any(step.departed[RATE] for step in over[2:])
