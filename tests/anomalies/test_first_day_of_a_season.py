"""The first day of a season: its windows together say what its level is, and a loss is seen all the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pytest

from monitor.anomalies.band_state import Step
from monitor.anomalies.past import SeriesName
from tests.anomalies.stepped import WEEK, hour, stepped

REQUESTS, FAILED, HIT = range(3)
NAMES = {
    REQUESTS: SeriesName("volume", {"by": "requests"}),
    FAILED: SeriesName("failure", {"by": "pv"}),
    HIT: SeriesName("hit_rate", {"by": "any", "k": "5"}),
}
BEGIN = 3 * WEEK + 5 * 24
SEASON = {
    "from": f"{hour(BEGIN).start:%Y-%m-%d}",
    "to": f"{hour(BEGIN + WEEK).start:%Y-%m-%d}",
    "what": "sale",
}
WANDER = np.zeros(5 * WEEK)
"""What lasts from hour to hour, beside the noise of counts."""
for _number, _step in enumerate(np.random.default_rng(7).normal(0, 0.03, len(WANDER))):
    WANDER[_number] = 0.9 * WANDER[_number - 1] + _step


def shop(
    variant: int,
    hours: int,
    *,
    lost: Collection[int] = (),
    unseen: Collection[int] = (),
    season: bool = True,
    begin: int = BEGIN,
    wander: float = 0.0,
    **settings: object,
) -> list[Step]:
    """The hours from `begin` on, of a season with a seventh fewer requests.

    Half of the requests are gone in the hours `lost`, and shares have no value in the hours `unseen`.
    """

    def values(number: int) -> Mapping[int, tuple[float, float]]:
        here = number - begin
        rng = np.random.default_rng([variant if here >= 0 else 0, number])
        usual = 1500 * (1 + 0.6 * np.sin(2 * np.pi * (number - 9) / 24)) * np.exp(wander * WANDER[number])
        level = (0.86 if season and here >= 0 else 1.0) * (0.5 if here in lost else 1.0)
        made = int(rng.poisson(usual * level))
        seen = made // 10
        failed, hits = int(rng.binomial(made, 0.003)), int(rng.binomial(seen, 0.85))
        shares = {FAILED: (failed / made, made), HIT: (hits / seen, seen)}
        return {REQUESTS: (made, made)} | ({} if here in unseen else shares)

    given = settings | ({"seasons": [SEASON]} if season else {})
    return stepped(values, begin + hours, NAMES, given)[0][begin:]


def out(found: list[Step]) -> bool:
    return any(step.departed.any() for step in found)


def test_no_first_hour_decides_what_is_usual() -> None:
    """The night has few requests, so its first hour may have no empty list at all."""
    assert [variant for variant in range(1, 25) if out(shop(variant, 36))] == []


def test_a_first_hour_that_comes_late_does_not_decide_either() -> None:
    """The shares of the night are missing, and the first hour of the morning has few hits."""
    assert [variant for variant in range(1, 25) if out(shop(variant, 48, unseen=range(10)))] == []


def test_a_season_that_begins_on_a_holiday_takes_its_level_from_the_day_after() -> None:
    holiday = {"holidays": [SEASON["from"]]}
    assert [variant for variant in range(1, 25) if out(shop(variant, 60, **holiday))] == []
    for variant in (1, 2, 3):  # the holiday has half of the requests of the next days
        assert not out(shop(variant, 60, lost=range(24), **holiday)[27:])


@pytest.mark.parametrize("holidays", [[], [SEASON["from"]]], ids=["working day", "holiday"])
@pytest.mark.parametrize("lost", [10, 18, 30])
def test_a_loss_on_the_first_day_is_seen(lost: int, holidays: list[str]) -> None:
    for variant in (1, 2, 3):
        found = shop(variant, lost + 6, lost=range(lost, lost + 6), holidays=holidays)
        assert not any(step.departed[REQUESTS] for step in found[:lost])
        assert all(step.departed[REQUESTS] for step in found[lost + 1 :])


@pytest.mark.parametrize("season", [True, False], ids=["first day of a season", "second week of a series"])
def test_a_loss_stays_out_while_it_lasts_though_every_window_teaches(season: bool) -> None:
    """What lasts from hour to hour is remembered; a loss is not, as long as the series is out of its band."""
    begin = BEGIN if season else WEEK + 5 * 24
    for variant in range(1, 7):
        found = shop(variant, 24, lost=range(10, 22), season=season, begin=begin, wander=1.0)
        assert all(step.departed[REQUESTS] for step in found[11:19]), variant


def test_a_loss_that_outlasts_the_holiday_does_not_become_the_level_of_the_season() -> None:
    for variant in (1, 2, 3):
        found = shop(variant, 30, lost=range(18, 30), holidays=[SEASON["from"]])
        assert all(step.departed[REQUESTS] for step in found[19:]), variant


def test_a_history_that_begins_with_holidays_has_no_band_on_them() -> None:
    """They teach nothing, so nothing is known: a value would be expected to be whatever it is."""
    found = shop(1, 72, begin=0, season=False, holidays=["2026-03-02", "2026-03-03"], lost=range(30, 36))
    assert not any(step.has_band.any() or step.points.any() for step in found[:49])
    assert found[-1].points.tolist() == [23.0, 23.0, 23.0]
