"""What a table of totals says of its last day."""

from __future__ import annotations

import math
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor.core.results import Result, ResultKind, Status
from monitor.platform.days import DailyTotals, Reading
from monitor.platform.judge import PlatformJudge
from tests.platform.shop import settings

DAYS = tuple(date(2026, 3, 2) + timedelta(days=number) for number in range(35))
NOISE = np.random.default_rng(1).normal(size=(3, 35))


def reading(series: Any, total: str = "orders", **status: Any) -> Reading:
    values = np.asarray(series, float)
    known = tuple(Status.OK if math.isfinite(one) else status.get("status", Status.NO_DATA) for one in values)
    why = tuple("" if one is Status.OK else status.get("why", "gone") for one in known)
    return Reading({total: values}, known, {total: why})


def table(own: Any, search: Any, demand: Any = None, **more: Reading) -> DailyTotals:
    return DailyTotals(
        DAYS, own if isinstance(own, Reading) else reading(own),
        {"search": search if isinstance(search, Reading) else reading(search), **more},
        None if demand is None else reading(demand, "demand"),
    )  # fmt: skip


def level(height: float, step: float = 0.0, which: int = 0) -> np.ndarray:
    found = height * (1 + 0.01 * NOISE[which])
    found[28:] += step
    return found


def judged(found: DailyTotals, platform: dict[str, Any] | None = None, **more: Any) -> dict[str, Result]:
    given = settings(Path("/nowhere"), platform, **more)
    results = PlatformJudge(given, given.platform).run(found)
    return {" ".join([one.metric, *one.labels.values()]): one for one in results}


def test_amounts_and_the_share_of_the_last_day():
    found = judged(table(np.full(35, 30.0), np.full(35, 70.0)))
    amounts = {name: one.value for name, one in found.items() if one.metric == "platform_amount"}
    assert amounts == {
        "platform_amount orders recommender": 30.0,
        "platform_amount orders search": 70.0,
        "platform_amount orders platform": 100.0,
    }
    assert found["platform_share orders"].value == 0.3


def test_what_the_recommender_takes_from_search_is_zero_sum_and_a_real_gain_is_not():
    taken = judged(table(level(300, 90), level(700, -90, 1)))["substitution orders search"]
    assert taken.status is Status.VIOLATED
    assert taken.kind is ResultKind.SUBSTITUTION
    assert taken.value == pytest.approx(0.0, abs=0.3)
    assert taken.upper < 0.5
    assert (taken.threshold, taken.bound) == (0.5, "min")
    assert "Observed, not caused." in taken.detail
    gained = judged(table(level(300, 90), level(700, 0, 1)))["substitution orders search"]
    assert (gained.status, gained.value) == (Status.OK, None)
    fell = judged(table(level(300), level(700, -90, 1)))["substitution orders search"]
    assert fell.status is Status.OK


def test_a_change_has_its_interval_and_the_least_rise_is_stated():
    found = judged(table(level(300, 90), level(700, -90, 1)))
    own = found["platform_change orders recommender"]
    assert own.value == pytest.approx(0.3, abs=0.02)
    assert own.lower < own.value < own.upper
    assert own.samples == 35
    assert 0 < found["platform_least_rise orders"].value < 0.3


@pytest.mark.parametrize(
    ("status", "derived"),
    [(Status.LATE, Status.LATE), (Status.NO_DATA, Status.NO_DATA), (Status.ERROR, Status.NO_DATA)],
)
def test_a_system_without_a_total_is_itself_alone_in_error_and_nothing_is_counted_as_0(status, derived):
    search = level(700)
    search[-1] = np.nan
    found = judged(table(level(300), reading(search, status=status, why="the log is gone")))
    assert found["platform_amount orders search"].status is status
    assert found["platform_amount orders search"].value is None
    assert found["platform_amount orders recommender"].status is Status.OK
    for name in ("platform_amount orders platform", "platform_share orders", "substitution orders search"):
        assert found[name].status is derived
        assert found[name].value is None
        assert "search: the log is gone" in found[name].detail


def test_a_total_that_is_too_large_for_a_number_says_so():
    own = Reading({"orders": np.array([*level(300)[:-1], np.inf])}, (Status.OK,) * 35, {"orders": ("",) * 35})
    found = judged(table(own, level(700)))
    amount = found["platform_amount orders recommender"]
    assert (amount.status, amount.detail) == (Status.NO_DATA, "the values add up to no finite number")
    assert found["platform_share orders"].detail == f"recommender: {amount.detail}"


def test_days_that_lack_are_left_out_and_too_few_give_no_verdict():
    own = level(300)
    own[:10] = np.nan
    assert judged(table(own, level(700)))["platform_change orders recommender"].samples == 25
    own[:20] = np.nan
    short = judged(table(own, level(700)))["substitution orders search"]
    assert short.status is Status.NO_DATA
    assert "8 earlier days (at least 14 are needed), and 7 recent days (at least 2)" in short.detail
    own[:27], own[28:34] = np.nan, np.nan
    least = judged(table(own, level(700)))["substitution orders search"]
    assert "1 earlier day (at least 14 are needed), and 1 recent day (at least 2)" in least.detail


def test_a_platform_of_nothing_is_undefined_and_never_divided_by():
    found = judged(table(np.zeros(35), np.zeros(35)))
    assert found["platform_share orders"].status is Status.UNDEFINED
    assert found["platform_change orders recommender"].status is Status.UNDEFINED
    assert found["platform_least_rise orders"].status is Status.UNDEFINED
    assert found["substitution orders search"].status is Status.OK


def test_the_system_that_is_the_whole_platform_is_its_total_and_the_rest_are_others():
    whole = {"systems": [{"name": "all-orders", "whole": True, "log": {"path": "x"}}]}
    found = DailyTotals(DAYS, reading(level(300, 90)), {"all-orders": reading(level(1000, 0, 1))})
    results = judged(found, whole)
    assert results["platform_amount orders platform"].value == pytest.approx(level(1000, 0, 1)[-1])
    assert results["substitution orders others"].status is Status.VIOLATED


WITH_WHOLE = {
    "systems": [
        {"name": "all-orders", "whole": True, "log": {"path": "x"}},
        {"name": "search", "log": {"path": "x"}},
    ]
}


def test_beside_a_declared_whole_one_neighbour_is_not_all_of_the_others():
    whole = reading(level(1000, 0, 1))
    found = DailyTotals(
        DAYS, reading(level(300, 90)), {"all-orders": whole, "search": reading(level(400, 0, 2))}
    )
    results = judged(found, WITH_WHOLE)
    assert results["substitution orders search"].status is Status.OK
    assert results["substitution orders others"].status is Status.VIOLATED
    assert results["platform_change orders others"].value < 0


def test_a_declared_whole_and_the_share_of_it_need_no_neighbour():
    search = level(400, 0, 2)
    search[-1] = np.nan
    late = reading(search, status=Status.LATE, why="the log has stopped")
    systems = {"all-orders": reading(np.full(35, 1000.0)), "search": late}
    results = judged(DailyTotals(DAYS, reading(np.full(35, 300.0)), systems), WITH_WHOLE)
    assert results["platform_amount orders platform"].value == 1000.0
    assert results["platform_share orders"].value == 0.3
    assert results["platform_amount orders search"].status is Status.LATE
    assert results["substitution orders search"].status is Status.LATE
    own = reading([*np.full(34, 300.0), np.nan], why="the log is gone")
    results = judged(DailyTotals(DAYS, own, systems), WITH_WHOLE)
    assert results["platform_amount orders platform"].value == 1000.0
    share = results["platform_share orders"]
    assert (share.status, share.detail) == (Status.NO_DATA, "recommender: the log is gone")


def test_two_neighbours_are_judged_alone_and_together():
    both = {"systems": [{"name": name, "log": {"path": "x"}} for name in ("search", "ads")]}
    found = judged(table(level(300, 90), level(700, -90, 1), ads=reading(level(100, 0, 2))), both)
    assert found["substitution orders search"].status is Status.VIOLATED
    assert found["substitution orders others"].status is Status.VIOLATED
    assert found["substitution orders ads"].status is Status.OK


def test_demand_lets_a_shift_be_seen_that_the_weather_hides():
    weather = 1 + 0.3 * NOISE[2]
    own, search = level(300, 60) * weather, level(700, -60, 1) * weather
    assert judged(table(own, search))["substitution orders search"].status is Status.OK
    demand = {"demand": {"log": {"path": "x"}}}
    found = judged(table(own, search, 5000 * weather), demand)
    assert found["substitution orders search"].status is Status.VIOLATED
    assert "at equal demand" in found["substitution orders search"].detail
    assert found["platform_amount demand demand"].value == pytest.approx(5000 * weather[-1])
    gone = np.array([*(5000 * weather[:-1]), np.nan])
    lacking = judged(table(own, search, gone), demand)["substitution orders search"]
    assert (lacking.status, lacking.detail) == (Status.NO_DATA, "demand: gone")


def test_maintenance_and_seasons_and_declared_changes_are_left_out():
    own, search = level(300), level(700)
    own[12], search[12] = 0.0, 0.0
    quiet = [{"from": "2026-03-14T00:00:00Z", "until": "2026-03-14T03:00:00Z"}]
    found = judged(table(own, search), maintenance=quiet)
    assert found["platform_change orders recommender"].samples == 34
    last = [{"from": "2026-04-05T10:00:00Z", "until": "2026-04-05T11:00:00Z"}]
    away = judged(table(own, search), maintenance=last)["substitution orders search"]
    assert (away.status, away.detail) == (Status.NO_DATA, "the day is left out: it lies in maintenance")
    season = {"seasons": [{"from": "2026-03-02", "to": "2026-03-08", "what": "sale"}]}
    assert judged(table(own, search), bands=season)["platform_change orders recommender"].samples == 27
    longer = {"seasons": [{"from": "2026-03-02", "to": "2026-03-18", "what": "sale"}]}
    short = judged(table(own, search), bands=longer)["substitution orders search"]
    assert short.status is Status.NO_DATA
    assert short.detail.endswith("; days left out: 17 in another season")


def test_only_a_change_that_names_the_platform_begins_the_past_anew():
    own, search = level(300, 90), level(700, -90, 1)
    launch = {"at": "2026-03-30T00:00:00Z", "what": "new page"}
    caught = judged(table(own, search), bands={"changes": [launch]})
    assert caught["substitution orders search"].status is Status.VIOLATED
    accepted = judged(table(own, search), bands={"changes": [{**launch, "metrics": ["platform_amount"]}]})
    assert accepted["substitution orders search"].status is Status.NO_DATA


def test_a_holiday_counts_as_a_sunday():
    sunday = np.array([600.0 if day.weekday() == 6 else 300.0 for day in DAYS])
    holiday = DAYS.index(date(2026, 4, 3))
    sunday[holiday] = 600.0
    noisy = sunday * (1 + 0.01 * NOISE[0])
    with_it = judged(table(noisy, noisy), bands={"holidays": ["2026-04-03"]})
    without = judged(table(noisy, noisy))
    name = "platform_change orders recommender"
    assert abs(with_it[name].value) < abs(without[name].value)


def test_the_definition_changes_with_what_is_compared_and_holds_no_secret():
    plain = judged(table(level(300), level(700)))
    stricter = judged(table(level(300), level(700)), {"least_gain": 0.2})
    assert (
        plain["platform_amount orders search"].definition
        == stricter["platform_amount orders search"].definition
    )
    assert plain["substitution orders search"].definition != stricter["substitution orders search"].definition


def test_a_recommender_that_began_in_these_days_has_no_share_of_0():
    found = judged(table(level(0, 300), level(700, -90, 1)))
    change = found["platform_change orders recommender"]
    assert (change.status, change.detail) == (Status.UNDEFINED, "the level before is 0 or less")
    assert "recommender: +300 (+300 to +300)" in found["substitution orders search"].detail


def test_large_amounts_are_written_in_full():
    found = judged(table(level(0, 14_049), level(3_000_000, -14_049, 1)))
    assert "recommender: +14,049 (+14,049 to +14,049)" in found["substitution orders search"].detail
    assert "2,994,727 a day before, 2,978,349 now" in found["platform_change orders search"].detail
    assert "e+0" not in " ".join(one.detail for one in found.values())
