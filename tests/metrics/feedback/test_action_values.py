"""The value of actions and how many items are seen to the end, worked by hand."""

from __future__ import annotations

import math

import pytest

from monitor.core.results import Status
from monitor.settings.metrics import EventSettings, MetricSettings
from tests.metrics.feedback.test_business import PLAYS, did, measured
from tests.metrics.worlds import START, lists


def test_values_of_orders_are_summed_and_values_that_are_not_finite_are_counted():
    shown = lists(("u", "abc"), ("v", "abc"))
    done = did("r0", "a", "buy", 30.0) + did("r0", "b", "buy", 10.0) + did("r1", "a", "buy", 5.0)
    done += did("r1", "b", "buy", math.nan) + did("r1", "c", "buy", math.inf) + did("r0", "c", "buy")
    found = measured(shown, done, MetricSettings(events={"buy": EventSettings()}))
    whole, mean = found["action_value", "sum", "buy"], found["action_value", "mean", "buy"]
    assert (whole.value, whole.samples, whole.lower) == (45.0, 3, None)
    assert (mean.value, mean.samples) == (15.0, 3)
    # u: 40 of 2 orders, v: 5 of 1; by hand: squares (40 - 30)^2 + (5 - 15)^2 = 200
    half = 1.959963984540054 * math.sqrt(2 / 1 * 200) / 3
    assert (mean.lower, mean.upper) == pytest.approx((15 - half, 15 + half))
    assert whole.detail == mean.detail == "left out: 3 of 6 actions without a finite value"


def test_sums_that_overflow_float64_are_undefined_and_no_error():
    done = did("r0", "ab", value=1.7e308) + did("r1", "a", value=1e200)
    found = measured(lists(("u", "ab"), ("v", "ab")), done)
    assert found["action_value", "sum", "click"].status is Status.UNDEFINED
    assert found["action_value", "mean", "click"].status is Status.UNDEFINED
    done = did("r0", "ab", value=1e200) + did("r1", "a", value=1e200)
    mean = measured(lists(("u", "ab"), ("v", "ab")), done)["action_value", "mean", "click"]
    assert (mean.value, mean.lower) == (1e200, None)  # its squares are beyond float64


def test_a_shop_without_orders_has_a_sum_of_0():
    found = measured(lists(("u", "ab")), [])
    assert (found["action_value", "sum", "click"].value, found["action_value", "sum", "click"].samples) == (
        0,
        0,
    )
    assert found["action_value", "mean", "click"].status is Status.NO_DATA


def test_completion_is_the_share_of_plays_that_reach_enough_of_the_length():
    shown = lists(("u", "abcde"), ("v", "abcde"))
    done = did("r0", "a", "play", 8.0) + did("r0", "b", "play", 8.0) + did("r1", "e", "play", 9.0)
    done += did("r1", "cd", "play", 9.0) + did("r1", "a", "play")
    found = measured(shown, done, PLAYS)["completion", "", "play"]
    assert (found.value, found.samples) == (pytest.approx(2 / 3), 3)
    assert found.detail == "left out: 3 of 6 actions without a value or a length"
    assert ("completion", "", "click") not in measured(shown, done, PLAYS)


TEXTS = ("10", "n/a", "", None, " 5.0 ", "nan", "inf", "0")


def test_an_item_whose_length_is_no_number_is_left_out_of_completion():
    items = "abcdefgh"
    catalog = [{"item_id": item, "duration": text} for item, text in zip(items, TEXTS, strict=True)]
    plays = MetricSettings(events={"play": EventSettings(length="duration")})
    more = {"catalog": catalog, "catalog_columns": ("duration",)}
    found = measured(lists(("u", items)), did("r0", items, "play", 9.0), plays, **more)
    completion = found["completion", "", "play"]
    assert (completion.value, completion.samples) == (1.0, 2)
    assert completion.detail == "left out: 6 of 8 actions without a value or a length"


def test_a_length_that_is_a_time_leaves_every_item_out():
    plays = MetricSettings(events={"play": EventSettings(length="created_at")})
    more = {"catalog": [{"item_id": "a", "created_at": START}], "catalog_columns": ("created_at",)}
    found = measured(lists(("u", "a")), did("r0", "a", "play", 9.0), plays, **more)
    assert found["completion", "", "play"].status is Status.NO_DATA
    assert (
        found["completion", "", "play"].detail == "none of 1 actions has both a value and the item's length"
    )
    assert found["action_rate", "pv", "play"].value == 1.0
