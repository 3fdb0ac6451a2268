"""Robots that click, clicks that are not logged, and a slow drift."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.clicks import ROBOTS, by_robots, drifted
from monitor.simulate.incidents.incident import StruckHour
from monitor.simulate.incidents.struck import Struck
from monitor.simulate.lists import to_exposures
from tests.simulate.incidents.conftest import SHOP, SINCE, rows_of

KEYS = ["request_id", "item_id"]


@pytest.mark.parametrize(("size", "share"), [("small", 0.02), ("middle", 0.2), ("large", 0.6)])
def test_five_users_have_the_given_share_of_all_clicks(size, share, healthy, hour, strike):
    before = healthy.feedback(hour).to_pandas()
    found = strike("click_fraud", size).feedback(hour).to_pandas()
    assert found.ts.is_monotonic_increasing
    added = (
        found.groupby([*KEYS, "user_id"]).size().sub(before.groupby([*KEYS, "user_id"]).size(), fill_value=0)
    )
    assert (added >= 0).all()
    assert added.sum() == len(found) - len(before) == pytest.approx(share * len(found), abs=1)
    new = added[added > 0].reset_index()
    assert new.user_id.nunique() <= ROBOTS
    shown = to_exposures(hour, SHOP).to_pandas().set_index([*KEYS, "user_id"]).ts
    assert new.set_index([*KEYS, "user_id"]).index.isin(shown.index).all()
    delays = found.merge(shown.rename("at").reset_index(), on=[*KEYS, "user_id"])
    assert len(delays) == len(found)
    assert (delays.ts >= delays["at"]).all()
    assert (delays.ts - delays["at"]).max().total_seconds() <= 1200
    assert set(found.event) == {"click"}


def test_robots_that_make_all_clicks_are_refused(hour, strike):
    with pytest.raises(ValueError, match="five users cannot make all clicks"):
        strike("click_fraud", 1.0).feedback(hour)


def test_robots_are_the_same_five_users_in_every_hour(healthy, strike):
    struck, found = strike("click_fraud", "large"), []
    for number in (0, 7, 30):
        lists = healthy.lists(SINCE + timedelta(hours=number))
        fresh, counts = (one.feedback(lists).to_pandas().user_id.value_counts() for one in (healthy, struck))
        added = counts.sub(fresh, fill_value=0)
        found.append(set(added[added > 0].index))
    assert found == [{f"u{user:07d}" for user in range(ROBOTS)}] * 3


def test_robots_without_lists_or_in_an_hour_without_clicks_do_not_click(healthy, hour):
    moment = StruckHour(healthy, SINCE, SINCE, 0.6, np.random.default_rng(2))
    clicks = healthy.feedback(hour)
    for rows in (hour.lengths == 0, hour.users >= ROBOTS):
        assert by_robots(clicks, rows_of(hour, np.flatnonzero(rows)), moment) is clicks
    assert by_robots(clicks.slice(0, 0), hour, moment).num_rows == 0


@pytest.mark.parametrize(("size", "share"), [("small", 0.1), ("middle", 0.4), ("large", 1.0)])
def test_the_given_share_of_clicks_is_not_logged(size, share, healthy, hour, strike):
    before = healthy.feedback(hour).to_pandas()
    found = strike("click_logging_broken", size).feedback(hour).to_pandas()
    assert len(before) - len(found) == int(share * len(before) + 0.5)
    kept = before.merge(found, on=list(before), how="inner")
    assert kept.equals(found)


@pytest.mark.parametrize(("days", "left"), [(0, 1.0), (3.5, 0.5**0.5), (7, 0.5), (14, 0.25), (20, 0.25)])
def test_the_drift_removes_the_same_share_every_hour_for_two_weeks(days, left, healthy, hour):
    clicks = healthy.feedback(hour)
    moment = StruckHour(healthy, SINCE - timedelta(days=days), SINCE, 0.75, np.random.default_rng(0))
    gone = len(clicks) - len(drifted(clicks, hour, moment))
    assert gone == int((1 - left) * len(clicks) + 0.5)


def test_the_drift_is_slow_from_day_to_day(healthy):
    struck = Struck(healthy, INCIDENTS["slow_drift"], 0.3, SINCE)
    left = []
    for day in range(4):
        lists = healthy.lists(SINCE + timedelta(days=day))
        left.append(len(struck.feedback(lists)) / len(healthy.feedback(lists)))
    assert left == pytest.approx([0.7 ** (day / 14) for day in range(4)], abs=0.002)
