"""The state of a check of bands over weeks of windows: seasons, counts that follow, totals, wild hours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import timedelta

import numpy as np
import pytest

from monitor.anomalies.band_state import BandState, Step
from monitor.anomalies.past import SeriesName
from monitor.core.results import Window
from monitor.settings.bands import BandSettings
from tests.anomalies.stepped import HOUR, START, WEEK, Values, hour, past, stepped

NAMES = {
    0: SeriesName("volume", {"by": "requests"}),
    1: SeriesName("volume", {"by": "users"}),
    2: SeriesName("failure", {"by": "pv"}),
    3: SeriesName("list_length", {"dimension": "scene", "value": "cart"}),
}


def shop(
    requests: Callable[[int], float], users: Callable[[int], float] = lambda _: 1.0, noise: float = 0.03
) -> Values:
    """Requests with the shape of a day, times a factor, a quarter as many users, and few empty lists."""

    def values(number: int) -> Mapping[int, tuple[float, float]]:
        rng = np.random.default_rng([5, number])
        usual = 4000 * (1 + 0.5 * np.sin(2 * np.pi * number / 24)) * np.exp(noise * rng.normal())
        made = float(rng.poisson(usual * requests(number)))
        return {
            0: (made, made),
            1: (float(round(made / 4 * users(number))), made),
            2: (float(rng.binomial(int(made), 0.002)) / max(1.0, made), made),
        }

    return values


def steps(values: Values, count: int, **settings: object) -> list[Step]:
    return stepped(values, count, NAMES, settings)[0]


def day_of(number: int) -> str:
    return f"{hour(number).start:%Y-%m-%d}"


def test_the_steps_that_tests_share_are_those_of_a_fresh_state() -> None:
    def values(number: int) -> Mapping[int, tuple[float, float]]:
        return shop(lambda number: 0.5 if number >= 2 * WEEK + 3 else 1.0)(number)

    steps(shop(lambda _: 1.0), 2 * WEEK + 30)
    shared = steps(values, 2 * WEEK + 10)
    alone, _ = stepped(values, 2 * WEEK + 10, NAMES, {}, fresh=True)
    for one, other in zip(shared, alone, strict=True):
        np.testing.assert_equal(asdict(one), asdict(other))
    assert any(step.departed[0] for step in shared[2 * WEEK + 3 :])


def test_after_a_season_the_level_from_before_is_expected_at_once() -> None:
    begin, end = 5 * WEEK, 7 * WEEK  # two weeks at double
    season = {"from": day_of(begin), "to": day_of(end - 1), "what": "sale"}
    values = shop(lambda number: 2.0 if begin <= number < end else 1.0)
    found = steps(values, end + 24, seasons=[season])
    in_season = found[begin + 24 : end]
    assert not any(step.departed[0] for step in in_season)
    ratio = [step.forecast.expected[0] / step.values[0] for step in in_season]
    assert np.median(ratio) == pytest.approx(1, abs=0.05)
    after = found[end:]
    assert not any(step.departed[0] for step in after)
    ratio = [step.forecast.expected[0] / step.values[0] for step in after]
    assert np.median(ratio) == pytest.approx(1, abs=0.05)
    assert all(step.departed[0] for step in steps(values, end)[begin + 2 :])  # a season that is not declared


def test_a_season_is_judged_with_alerts() -> None:
    begin, end = 5 * WEEK, 7 * WEEK
    season = {"from": day_of(begin), "to": day_of(end - 1), "what": "sale"}
    lost = begin + 3 * 24 + 12
    found = steps(shop(lambda number: 0.4 if number >= lost else 1.0), lost + 2, seasons=[season])
    assert not found[lost - 1].departed[0]
    assert found[lost].departed[0]


def test_what_is_out_of_its_band_when_a_season_begins_stays_out_until_it_is_over() -> None:
    begin = 5 * WEEK
    lost, over = begin - 12, begin + 48
    season = {"from": day_of(begin), "to": day_of(begin + 2 * WEEK), "what": "sale"}
    found = steps(shop(lambda number: 0.5 if lost <= number < over else 0.9), over + 24, seasons=[season])
    assert all(step.departed[0] for step in found[lost + 1 : over])
    assert not any(step.departed[0] for step in found[over + 3 :])


@pytest.mark.parametrize("day", [0, 2])
def test_in_the_first_days_of_a_season_a_working_day_may_be_like_a_sunday(day: int) -> None:
    begin = 5 * WEEK + 24  # a Tuesday
    mornings = range(6, 12)

    def requests(number: int) -> float:
        """Mornings are quiet at the weekend, and half as quiet from that day of the season on."""
        hour_of_day, is_weekend = number % 24, number // 24 % 7 >= 5
        if hour_of_day not in mornings:
            return 1.0
        return 0.4 if is_weekend else 0.7 if number >= begin + 24 * day else 1.0

    season = {"from": day_of(begin), "to": day_of(begin + 2 * WEEK), "what": "holidays"}
    first = slice(begin + 24 * day, begin + 24 * day + 12)
    assert any(step.departed[0] for step in steps(shop(requests), first.stop)[first])
    found = steps(shop(requests), begin + 10 * 24, seasons=[season])
    assert not any(step.departed[0] for step in found[begin:])
    lost = first.start + 8
    gone = steps(
        shop(lambda number: requests(number) * (0.4 if number >= lost else 1)), lost + 2, seasons=[season]
    )
    assert gone[-1].departed[0]


def test_users_follow_the_requests_and_are_lost_only_where_the_requests_are_there() -> None:
    begin = 5 * WEEK + 12
    fewer = steps(shop(lambda number: 0.6 if number >= begin else 1.0), begin + 2)[-1]
    assert fewer.departed[:2].all()
    assert fewer.follows[:2].tolist() == [False, True]
    ids_lost = steps(shop(lambda _: 1.0, lambda number: 0.6 if number >= begin else 1.0), begin + 2)[-1]
    assert ids_lost.departed[:2].tolist() == [False, True]
    assert not ids_lost.follows[1]


def test_a_total_below_half_for_twelve_windows_is_out_however_wide_its_band_is() -> None:
    begin = 6 * WEEK
    wild = shop(lambda number: 0.35 if number >= begin else 1.0, noise=0.8)
    found = steps(wild, begin + 14, false_alarms=1e-9)
    assert found[begin].lower[0] < 0.2 * found[begin].forecast.expected[0]
    assert not any(step.departed[0] for step in found[begin : begin + 6])
    assert any(step.departed[0] and step.span[0] == 12 for step in found[begin + 6 :])


def test_a_single_hour_of_six_times_the_expected_is_out_in_that_hour() -> None:
    at = 5 * WEEK + 15
    found = steps(shop(lambda number: 6.0 if number == at else 1.0, noise=0.1), at + 2)
    assert found[at].departed[0]
    assert not found[at + 1].departed[0]


def test_two_hours_at_half_are_out_in_the_second_where_one_alone_is_not() -> None:
    begin = 5 * WEEK + 20
    found = steps(shop(lambda number: 0.5 if begin <= number < begin + 2 else 1.0, noise=0.1), begin + 2)
    single, second = found[begin:]
    assert not single.departed[0]
    assert (second.departed[0], second.span[0]) == (True, 2)
    assert abs(second.forecast.deviations[0, 0]) < single.bound[0]
    assert second.change[0] == pytest.approx(-0.5, abs=0.02)


def test_a_short_list_among_few_is_no_departure_and_many_are() -> None:
    def lists(short: float) -> Values:
        """Ten items in each list; two lists an hour at night, and three hundred by day."""
        return lambda number: {3: (10.0 if number != at else short, 2.0 if number % 24 < 8 else 300.0)}

    at = 5 * WEEK + 2
    night = steps(lists(5.5), at + 1)[-1]  # of two lists one has a single item
    assert night.forecast.deviations[3, 0] < -10  # and the day before it had 900 lists
    assert not night.departed[0]
    at = 5 * WEEK + 12
    assert steps(lists(8.0), at + 1)[-1].departed[0]


def test_the_bands_follow_a_lasting_step_of_ten_percent() -> None:
    step_at = 4 * WEEK
    found = steps(shop(lambda number: 0.9 if number >= step_at else 1.0), step_at + 10 * 24)
    assert not any(step.departed[0] for step in found[step_at:])
    last = [step.forecast.expected[0] / step.values[0] for step in found[-24:]]
    assert np.median(last) == pytest.approx(1, abs=0.03)


def test_windows_that_nobody_measured_leave_the_state_sound() -> None:
    state = BandState(BandSettings(), HOUR)
    values = shop(lambda _: 1.0)
    for number in (*range(4 * WEEK), *range(4 * WEEK + 30, 5 * WEEK)):
        found = state.step(past(number, values(number)), hour(number), NAMES)
        assert not found.departed.any()
    assert np.isfinite(found.deviation).all()


def test_a_copy_goes_its_own_way() -> None:
    state = BandState(BandSettings(), HOUR)
    values = shop(lambda _: 1.0)
    for number in range(2 * WEEK):
        state.step(past(number, values(number)), hour(number), NAMES)
    other = state.copy()
    other.step(past(2 * WEEK, {0: (1.0, 1.0)}), hour(2 * WEEK), NAMES)
    again = state.step(past(2 * WEEK, values(2 * WEEK)), hour(2 * WEEK), NAMES)
    assert other.departures.side[0] == -1
    assert not again.departed.any()


def test_windows_of_five_minutes_share_the_times_of_day_and_see_a_loss() -> None:
    length, a_day = timedelta(minutes=5), 288
    state = BandState(BandSettings(), length)
    out = []
    for number in range(12 * a_day + 2):
        rng = np.random.default_rng([7, number])
        usual = 500 * (1 + 0.5 * np.sin(2 * np.pi * number / a_day))
        made = float(rng.poisson(usual * (0.5 if number >= 12 * a_day else 1.0)))
        window = Window(START + number * length, START + (number + 1) * length)
        one = past(0, {0: (made, made)})
        out.append(bool(state.step(one, window, NAMES).departed[0]))
    assert not any(out[: 12 * a_day])
    assert out[-1]


def test_the_limits_of_few_and_unlike_days_are_numbers() -> None:
    """The history keeps no infinite number: the band of such a series would be an error of the check."""
    day, highest = timedelta(days=1), 0.0
    state = BandState(BandSettings(least=8, false_alarms=1e-4), day)
    rng = np.random.default_rng(5)
    for number in range(12):
        window = Window(START + number * day, START + (number + 1) * day)
        made = float(rng.poisson(20_000 * np.exp(0.8 * rng.normal())))
        step = state.step(past(number, {0: (made, made)}), window, NAMES)
        if step.has_band[0]:
            highest = max(highest, step.upper[0])
    assert 1e9 < highest < np.inf
