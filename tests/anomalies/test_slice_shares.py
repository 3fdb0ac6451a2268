"""A lost part of the traffic shows in its share, however noisy the traffic is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median_low

import numpy as np
import pytest

from monitor.anomalies.band_state import BandState, Step
from monitor.anomalies.past import SeriesName
from monitor.anomalies.series import BandedSeries
from monitor.anomalies.slice_shares import LOST, SliceShares
from monitor.settings.bands import BandSettings
from monitor.statistics.bands.seasonal_filter import Moment
from tests.anomalies.stepped import HOUR, WEEK, Names, Values, hour, past, stepped

SCENES = {"home": 0.5, "detail": 0.3, "search": 0.15, "cart": 0.05}
WHOLE, HOME, DETAIL, SEARCH, CART = range(5)
NAMES = {WHOLE: SeriesName("volume", {"by": "requests"})} | {
    number: SeriesName("volume", {"by": "requests", "dimension": "scene", "value": scene})
    for number, scene in enumerate(SCENES, 1)
}
SETTINGS = {"sliced": ["volume"]}
BEGINS = 5 * WEEK + 34
Factor = Callable[[int], float]


def always(_: int) -> float:
    return 1.0


def during(factor: float, first: int = BEGINS, windows: int = 10**6) -> Factor:
    return lambda number: factor if first <= number < first + windows else 1.0


def noisy(mean: float = 2_000, *, share_noise: float = 0.0, **factors: Factor) -> Values:
    """Traffic that is half or twice the usual for hours, as on a day of news.

    `factors` of the requests are by scene, or of `all`.
    """
    rng = np.random.default_rng(11)
    hours = 2_000
    wander, own = np.zeros(hours), np.zeros((hours, len(SCENES)))
    for number in range(1, hours):
        wander[number] = 0.8 * wander[number - 1] + 0.36 * rng.normal()
        own[number] = 0.8 * own[number - 1] + 0.6 * share_noise * rng.normal(size=len(SCENES))

    def values(number: int) -> Mapping[int, tuple[float, float]]:
        at = np.random.default_rng([5, number])
        level = mean * (1 + 0.4 * np.sin(2 * np.pi * number / 24)) * np.exp(wander[number])
        level *= factors.get("all", always)(number)
        found: dict[int, tuple[float, float]] = {}
        for place, (scene, share) in enumerate(SCENES.items()):
            expected = level * share * np.exp(own[number, place]) * factors.get(scene, always)(number)
            if made := float(at.poisson(expected)):
                found[place + 1] = made, made
        whole = sum(made for made, _ in found.values())
        return found | {WHOLE: (whole, whole)}

    return values


def steps(values: Values, count: int, **settings: object) -> list[Step]:
    return stepped(values, count, NAMES, SETTINGS | settings)[0]


def since(values: Values, windows: int, **settings: object) -> list[list[bool]]:
    """Which series are out of their bands in each of the windows from BEGINS on."""
    return [step.departed.tolist() for step in steps(values, BEGINS + windows, **settings)[BEGINS:]]


@pytest.mark.parametrize("scene", list(SCENES))
def test_a_lost_scene_departs_within_two_windows_where_the_band_of_its_requests_reaches_zero(
    scene: str,
) -> None:
    lost = 1 + list(SCENES).index(scene)
    found = steps(noisy(**{scene: during(0.0)}), BEGINS + 2)[BEGINS:]
    first, second = found
    assert second.departed[lost]
    assert second.deviation[lost] < 0
    assert not second.follows[lost]
    assert second.departed.sum() == 1, "no other scene, and not the whole"
    assert not first.departed[lost] or first.lower[lost] > 0
    assert 0.0 < second.lower[lost] <= second.forecast.expected[lost] / 2, "the band that is shown excludes 0"
    before = steps(noisy(), BEGINS)[-200:]
    assert min(step.lower[lost] for step in before) < 0.02 * np.mean([step.values[lost] for step in before])


def test_a_scene_with_a_fifth_of_its_requests_is_lost_too_and_is_back_when_they_are() -> None:
    found = since(noisy(search=during(0.2, windows=6)), 24)
    assert found[1][SEARCH]
    assert found[5][SEARCH]
    assert not any(one[SEARCH] for one in found[12:])


def test_no_scene_is_lost_if_all_lose_alike_or_if_another_one_has_more() -> None:
    for values in (noisy(all=during(0.3)), noisy(cart=during(60.0)), noisy(home=during(5.0))):
        found = steps(values, BEGINS + 12)[BEGINS:]
        assert len(found) == 12
        lost = [step.departed & (step.deviation < 0) & ~step.follows for step in found]
        assert not any(one[HOME:].any() for one in lost)


def test_shares_that_wander_leave_no_band_in_five_weeks() -> None:
    def bursts(number: int) -> float:
        return 8.0 if np.random.default_rng([9, number]).random() < 0.04 else 1.0

    for mean in (60, 2_000):
        found = steps(noisy(mean, share_noise=0.3, detail=bursts), 10 * WEEK)[5 * WEEK :]
        below = [step.departed & (step.deviation < 0) for step in found]
        assert len(found) == 5 * WEEK
        assert sum(int(one[HOME:].sum()) for one in below) == 0


def test_a_scene_of_five_requests_an_hour_is_not_lost_when_one_hour_has_none() -> None:
    quiet = [since(noisy(100, cart=during(0.0, BEGINS + shift, 1)), shift + 1)[-1] for shift in range(8)]
    assert not any(one[CART] for one in quiet)


def test_what_was_shared_while_a_scene_is_lost_is_not_learned() -> None:
    ended = noisy(home=during(0.0, windows=48))
    found = since(ended, 48 + 24)
    assert all(one[HOME] for one in found[1:48])
    assert not any(any(one[DETAIL:]) for one in found)
    again = noisy(home=during(0.0, windows=48), cart=during(0.0, BEGINS + 60))
    assert since(again, 62)[-1][CART]


def test_a_declared_change_of_the_volume_ends_it() -> None:
    values = noisy(home=during(0.0))
    change = {"at": hour(BEGINS + 4).start.isoformat(), "metrics": ["volume"], "what": "closed"}
    found = since(values, 40, changes=[change])
    assert found[2][HOME]
    assert not any(one[HOME] for one in found[5:])


def test_a_window_that_nobody_measured_hides_no_loss() -> None:
    values = noisy(search=during(0.0))
    _, state = stepped(values, BEGINS, NAMES, SETTINGS)
    state = state.copy()
    departed = [
        bool(state.step(past(number, values(number)), hour(number), NAMES).departed[SEARCH])
        for number in (BEGINS + 3, BEGINS + 4)
    ]
    assert departed[1]


def test_a_state_that_takes_series_over_knows_their_shares() -> None:
    values = noisy(cart=during(0.0))
    _, older = stepped(values, BEGINS, NAMES, SETTINGS)
    young = BandState(BandSettings.model_validate(SETTINGS), HOUR)
    for numbers in ({CART, SEARCH}, {WHOLE, HOME, DETAIL}):  # so the columns have another order
        young.take_over(older, {BandedSeries.named(NAMES[one]) for one in numbers})
    assert young.series != older.series
    found = [young.step(past(number, values(number)), hour(number), NAMES) for number in (BEGINS, BEGINS + 1)]
    place = young.series.index(BandedSeries.named(NAMES[CART]))
    assert found[1].departed[place]
    assert found[1].departed.sum() == 1


def lost_scenes(values: Values, first: int, count: int, names: Names = NAMES, **settings: object) -> int:
    """In how many of so many windows a slice is out of its band below, and that is not explained."""
    found = stepped(values, first + count, names, SETTINGS | settings)[0][first:]
    return sum(bool((one.departed & (one.deviation < 0) & ~one.follows)[1:].any()) for one in found)


@pytest.mark.parametrize(
    ("scene", "more", "hours"), [("search", 4.0, 6), ("cart", 4.0, 8), ("cart", 5.0, 24)]
)
def test_a_scene_is_not_lost_when_its_campaign_ends(scene: str, more: float, hours: int) -> None:
    for shift in range(0, 24, 8):
        values = noisy(share_noise=0.05, **{scene: during(more, BEGINS + shift, hours)})
        assert lost_scenes(values, BEGINS + shift + hours, 14) == 0


def test_of_two_slices_one_is_not_lost_because_the_other_has_more() -> None:
    two = {WHOLE: NAMES[WHOLE], 1: NAMES[HOME], 2: NAMES[DETAIL]}
    traffic = noisy(share_noise=0.05)

    def values(home: Factor, detail: Factor) -> Values:
        def made(number: int) -> Mapping[int, tuple[float, float]]:
            level = traffic(number)[WHOLE][0] / 2
            counts = [np.rint(level * one(number)) for one in (home, detail)]
            return {place: (one, one) for place, one in enumerate([sum(counts), *counts]) if one}

        return made

    assert lost_scenes(values(during(10.0), always), BEGINS, 48, two) == 0
    for one in (values(during(0.0), always), values(always, during(0.0))):
        assert lost_scenes(one, BEGINS + 1, 5, two) == 5


def test_a_season_teaches_no_share_for_the_time_after_it() -> None:
    """In a season of two weeks hardly anybody comes to `detail`, and in school hours nearly all."""
    first, last = 5 * WEEK, 7 * WEEK - 1

    def school(number: int) -> float:
        if first <= number <= last:
            return 0.15
        return 2.5 if number // 24 % 7 < 5 and 8 <= number % 24 < 14 else 0.2

    season = {"from": f"{hour(first).start:%F}", "to": f"{hour(last).start:%F}", "what": "holidays"}
    values = noisy(detail=school)
    assert lost_scenes(values, 7 * WEEK, 3 * 24, seasons=[season]) == 0
    state = stepped(values, 7 * WEEK + 8, NAMES, SETTINGS | {"seasons": [season]})[1]
    expected = steps(values, 7 * WEEK + 10, seasons=[season])[-1].forecast.expected[DETAIL]
    share = state._shares._filter.judge(
        np.full(4, 0.1), np.full(4, 2_000.0), Moment(9, 0)
    ).expected  # Monday at nine
    assert share[DETAIL - 1] > 0.35
    assert expected > 0


def test_the_next_slice_to_go_is_seen_although_another_one_was_closed() -> None:
    closed = BEGINS + 3 * WEEK
    values = noisy(home=during(0.0), search=during(0.0, closed), cart=lambda _: 0.0)
    found = since(values, 3 * WEEK + 2)
    assert found[-1][HOME]
    assert found[-1][3], "search; there is no cart"
    assert not found[-1][DETAIL]


@pytest.mark.parametrize("left", [0.2, 0.3])
def test_the_first_weekend_of_a_state_makes_no_office_look_lost(left: float) -> None:
    def office(number: int) -> float:
        return left if number // 24 % 7 >= 5 else 1.0

    assert lost_scenes(noisy(share_noise=0.05, detail=office), 24, WEEK) == 0


def test_no_scene_is_lost_if_half_of_them_have_a_rush() -> None:
    for first in range(BEGINS, BEGINS + 6 * 24, 36):
        rush = during(6.0, first, 24)
        values = noisy(share_noise=0.05, home=rush, search=rush)
        assert lost_scenes(values, first, 24) == 0


def test_a_scene_that_comes_and_goes_is_no_longer_lost() -> None:
    def search(number: int) -> float:
        is_off = number >= 3 * WEEK and number // 6 % 7 == 3
        return 0.0 if is_off else 1.0

    found = steps(noisy(search=search), BEGINS + 2 * WEEK)
    lost = [bool(one.departed[SEARCH] and one.deviation[SEARCH] < 0) for one in found]
    assert any(lost[3 * WEEK : 4 * WEEK])
    assert not any(lost[4 * WEEK : 7 * WEEK])


def test_what_is_left_in_the_others_is_their_lower_median() -> None:
    rng = np.random.default_rng(2)
    shares = SliceShares(24, 24)
    dimensions = ["scene", "device", "scene", "alone", "scene", "device", "scene", "pair", "pair"]
    shares.add(
        [BandedSeries("volume", "requests", "", one, str(place)) for place, one in enumerate(dimensions)], 0
    )
    for _ in range(200):
        left = rng.integers(0, 4, (5, len(dimensions))).astype(float)
        left[rng.random(left.shape) < 0.2] = rng.choice([np.nan, np.inf])
        found = shares._allowed(left)
        for span, place in np.argwhere(np.isfinite(left)).tolist():
            others = [
                left[span, other]
                for other, dimension in enumerate(dimensions)
                if other != place and dimension == dimensions[place] and np.isfinite(left[span, other])
            ]
            expected = LOST * median_low(others) if others else np.nan
            if len(others) == 1:
                expected = min(expected, 0.1)
            elif others and median_low(others) > 1:
                expected = min(expected, max(LOST * min(others), 0.1))
            assert found[span, place] == pytest.approx(expected, nan_ok=True)
