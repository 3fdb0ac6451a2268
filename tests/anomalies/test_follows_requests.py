"""What the requests explain of a departure, what may change a little, and the nights of holidays."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from monitor.anomalies.band_state import Step
from monitor.anomalies.past import SeriesName
from tests.anomalies.stepped import Values, hour, stepped
from tests.anomalies.test_band_state import day_of

WEEK = 7 * 24
REQUESTS, DISTINCT, FAILED, HOME, HOME_ROWS, POPULAR, PERSONAL, OLD, NEW = range(9)
NAMES = {
    REQUESTS: SeriesName("volume", {"by": "requests"}),
    DISTINCT: SeriesName("score_health", {"by": "distinct"}),
    FAILED: SeriesName("failure", {"by": "pv"}),
    HOME: SeriesName("volume", {"by": "requests", "dimension": "scene", "value": "home"}),
    HOME_ROWS: SeriesName("volume", {"by": "exposures", "dimension": "scene", "value": "home"}),
    POPULAR: SeriesName("popularity_share", {"by": "top_10_percent"}),
    PERSONAL: SeriesName("personalization", {}),
    OLD: SeriesName("volume", {"by": "requests", "dimension": "model", "value": "m1"}),
    NEW: SeriesName("volume", {"by": "requests", "dimension": "model", "value": "m2"}),
}
Change = Callable[[int], float]


def always(_: int) -> float:
    return 1.0


def shop(
    requests: Change = always, *, distinct: Change = always, failed: Change = always, home: Change = always,
    popular: Change = always, new_model: int = 10**6, night: Change = always, share_of_home: float = 0.7,
    personal: Change = always,
) -> Values:  # fmt: skip
    """A shop whose traffic wanders by some percent, and whose share of distinct scores falls as it rises."""
    wander = np.zeros(10_000)
    for number, step in enumerate(np.random.default_rng(8).normal(size=10_000) * 0.02):
        wander[number] = 0.95 * wander[number - 1] + step

    def values(number: int) -> Mapping[int, tuple[float, float]]:
        rng = np.random.default_rng([6, number])
        usual = 4000 * (1 + 0.3 * np.sin(2 * np.pi * number / 24)) * np.exp(wander[number]) * night(number)
        made = float(rng.poisson(usual * requests(number)))
        at_home = float(rng.binomial(int(made), share_of_home * home(number)))
        share = (0.95 - 0.1 * np.log(made / 4000)) * distinct(number) + rng.normal(0, 0.0005)
        lists = 0.7 * popular(number) + rng.normal(0, 0.002)
        serves = NEW if number >= new_model else OLD
        return {
            REQUESTS: (made, made), DISTINCT: (share, 10 * made), HOME: (at_home, at_home),
            FAILED: (float(rng.binomial(int(made), min(1.0, 0.002 * failed(number)))) / made, made),
            HOME_ROWS: (10 * at_home, 10 * at_home), POPULAR: (lists, np.nan),
            PERSONAL: (0.93 * personal(number) + rng.normal(0, 0.002), np.nan), serves: (made, made),
        }  # fmt: skip

    return values


def judged(values: Values, count: int, **settings: object) -> list[Step]:
    given = {"sliced": ["volume"]} | settings
    found, state = stepped(values, count, NAMES, given)
    assert len(set(state.series)) == len(state.series)
    return found


def column(number: int) -> int:
    """Where a series stands in a state: in the order of the names, without those of models."""
    assert number < OLD
    return number


def told(step: Step, number: int) -> bool:
    """Whether a series is out of its band and no change of the requests explains it."""
    place = column(number)
    return bool(step.departed[place] and not step.follows[place])


def after(begin: int, factor: float) -> Change:
    return lambda number: factor if number >= begin else 1.0


def test_a_share_that_moves_with_the_requests_follows_them_though_they_are_in_their_band() -> None:
    begin = 3 * WEEK
    found = judged(shop(after(begin, 0.88)), begin + 12)[begin:]
    out = [step for step in found if step.departed[DISTINCT]]
    assert out, "the share is out of its band"
    assert all(step.follows[DISTINCT] for step in out)


def test_the_same_share_is_told_where_the_requests_do_not_explain_it() -> None:
    begin = 3 * WEEK
    found = judged(shop(distinct=after(begin, 0.9)), begin + 6)[begin:]
    assert any(told(step, DISTINCT) for step in found[:2])
    against = judged(shop(after(begin, 0.8), distinct=after(begin, 0.9)), begin + 6)[begin:]
    assert any(told(step, DISTINCT) for step in against[:2]), "fewer requests have more distinct scores"


def test_no_change_of_the_requests_explains_lists_without_items() -> None:
    begin = 3 * WEEK
    loaded = shop(lambda number: 1.0 + 0.2 * (number % 5 == 0), failed=lambda n: 6.0 if n % 5 == 0 else 1.0)

    def values(number: int) -> Mapping[int, tuple[float, float]]:
        if number < begin:
            return loaded(number)
        return shop(after(begin, 1.3), failed=after(begin, 60.0))(number)

    found = judged(values, begin + 3)[begin:]
    assert told(found[0], FAILED) or told(found[1], FAILED)


def test_rows_of_a_scene_follow_its_own_requests_and_those_the_whole() -> None:
    begin = 3 * WEEK
    lost = judged(shop(home=after(begin, 0.3)), begin + 3)[-1]
    assert lost.departed[HOME]
    assert lost.departed[HOME_ROWS]
    assert lost.follows[HOME_ROWS], "no short lists: the scene has fewer requests"
    assert told(lost, HOME), "the whole has lost nothing"
    fewer = judged(shop(after(begin, 0.4)), begin + 3)[-1]
    assert fewer.departed[HOME]
    assert fewer.follows[HOME]
    assert told(fewer, REQUESTS)


def test_what_moves_with_the_requests_learns_nothing_while_they_are_out_of_their_band() -> None:
    """A busy night is no past of the scene: its morning is expected as that of the whole."""
    begin = 4 * WEEK
    found = judged(shop(lambda number: 2.0 if begin <= number < begin + 6 else 1.0), begin + 12)
    assert any(step.departed[REQUESTS] for step in found[begin : begin + 6])
    for step in found[begin + 6 :]:
        expected = step.forecast.expected
        assert expected[HOME] / expected[REQUESTS] == pytest.approx(0.7, rel=0.03)
        assert not any(told(step, number) for number in (DISTINCT, HOME, HOME_ROWS))


@pytest.mark.parametrize("factor", [0.955, 1.04])
def test_a_new_model_may_change_what_the_lists_hold_a_little(factor: float) -> None:
    begin = 3 * WEEK + 4
    with_model = judged(shop(popular=after(begin, factor), new_model=begin), begin + 3 * 24)[begin:]
    assert not any(told(step, POPULAR) for step in with_model)
    assert with_model[30].forecast.expected[POPULAR] == pytest.approx(0.7 * factor, rel=0.01)
    without = judged(shop(popular=after(begin, factor)), begin + 24)[begin:]
    assert any(told(step, POPULAR) for step in without) == (factor > 1)


def test_a_new_model_that_changes_them_much_is_told_and_so_is_a_change_on_its_second_day() -> None:
    begin = 3 * WEEK + 4
    much = judged(shop(popular=after(begin, 1.3), new_model=begin), begin + 4)[begin:]
    assert any(told(step, POPULAR) for step in much)
    later = judged(shop(popular=after(begin + 30, 1.06), new_model=begin), begin + 36)[begin + 30 :]
    assert any(told(step, POPULAR) for step in later)


def test_lists_of_more_different_items_are_told_only_where_they_change_much() -> None:
    begin = 3 * WEEK + 4
    for factor, is_told in ((1.05, True), (0.95, False), (0.8, True)):
        found = judged(shop(popular=after(begin, factor)), begin + 24)[begin:]
        assert any(told(step, POPULAR) for step in found) == is_told, factor


def test_lists_that_are_less_personal_are_told_with_a_new_model_as_without_one() -> None:
    begin = 3 * WEEK + 4
    found = judged(shop(personal=after(begin + 6, 0.85), new_model=begin), begin + 9)[begin + 6 :]
    assert any(told(step, PERSONAL) for step in found[:2])


@pytest.mark.parametrize("change", [{"home": 0.4}, {"requests": 1.3}, {"requests": 0.75}])
def test_on_a_holiday_a_lost_scene_is_told_and_other_traffic_is_not(change: dict[str, float]) -> None:
    holiday = 4 * WEEK + 2 * 24
    changes = {name: after(holiday + 9, factor) for name, factor in change.items()}
    found = judged(shop(share_of_home=0.15, **changes), holiday + 12, holidays=[day_of(holiday)])[holiday:]
    assert any(told(step, HOME) for step in found[9:11]) == ("home" in change)


def test_a_model_that_served_before_is_no_new_one() -> None:
    begin = 3 * WEEK + 4
    there, back = begin, begin + 48
    values = shop(popular=after(back, 1.06), new_model=there)
    old = shop(popular=after(back, 1.06))
    found = judged(lambda number: old(number) if number >= back else values(number), back + 12)[back:]
    assert any(told(step, POPULAR) for step in found)


@pytest.mark.parametrize("like_sunday", [True, False])
def test_the_night_of_a_holiday_may_be_that_of_a_working_day_or_of_a_sunday(like_sunday: bool) -> None:
    holiday = 5 * WEEK + 2 * 24  # a Wednesday

    def night(number: int) -> float:
        is_weekend = hour(number).start.weekday() >= 5 or (like_sunday and holiday <= number < holiday + 24)
        return 2.0 if number % 24 < 6 and is_weekend else 1.0

    found = judged(shop(night=night), holiday + 6, holidays=[day_of(holiday)])[holiday:]
    assert not any(step.departed[REQUESTS] for step in found)
    gone = judged(
        shop(lambda number: 0.2 if number >= holiday + 2 else 1.0, night=night), holiday + 6,
        holidays=[day_of(holiday)],
    )[holiday + 2 :]  # fmt: skip
    assert any(step.departed[REQUESTS] for step in gone), "most requests are gone either way"


@pytest.mark.parametrize("share", [0.7, 0.012, 0.008])
def test_what_left_its_band_with_the_requests_is_back_with_them(share: float) -> None:
    """A small scene of few requests would need more windows to show that it is back."""
    begin = 4 * WEEK
    lost = shop(lambda number: 0.5 if begin <= number < begin + 12 else 1.0, share_of_home=share)
    found = judged(lost, begin + 30)[begin:]
    assert any(step.departed[REQUESTS] for step in found[:2])
    assert any(step.departed[HOME] for step in found[:12])
    assert not any(told(step, one) for step in found for one in (HOME, HOME_ROWS, DISTINCT))


def test_a_scene_that_stays_lost_when_the_requests_are_back_is_told_soon() -> None:
    begin = 4 * WEEK
    traffic = shop(
        lambda number: 0.5 if begin <= number < begin + 6 else 1.0,
        home=lambda number: 0.55 if number >= begin + 6 else 1.0,
    )

    def values(number: int) -> Mapping[int, tuple[float, float]]:
        given = dict(traffic(number))
        if number >= begin + 6:  # others took over: the whole is as before
            requests = given[REQUESTS][0]
            assert given[HOME][0] < 0.5 * requests
        return given

    found = judged(values, begin + 12)[begin + 6 :]
    back = next(number for number, step in enumerate(found) if not step.departed[REQUESTS])
    assert any(told(step, HOME) for step in found[: back + 3])
