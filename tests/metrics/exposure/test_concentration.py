"""Gini, popularity share and Matthew effect on windows worked by hand."""

from __future__ import annotations

import pytest

from monitor.core.results import Status
from monitor.settings.metrics import MetricSettings
from tests.metrics.worlds import World, by_name, catalog, lists, results_of

THREE_USERS = lists(("u1", "abc"), ("u2", "abd"), ("u3", "a"))  # a 3, b 2, c 1, d 1
SIX_ITEMS = catalog(a="1", b="2", c="3", d="4", e="5", f="6")


def found(exposures, items=None, feedback=None, **settings):
    world = World(exposures, items, feedback, columns=(), feedback_columns=())
    only = ("gini", "gini_exposed", "popularity_share", "matthew_effect")
    return by_name(results_of(world, MetricSettings(**settings), only=only))


def clicks(*items, event="click"):
    return [{"user_id": "u1", "item_id": item, "event": event} for item in items]


def test_the_worked_example_of_the_definitions():
    results = found(THREE_USERS, SIX_ITEMS)
    assert results["gini", ""].value == pytest.approx(0.6)
    assert results["gini", ""].samples == 6
    assert results["gini_exposed", ""].value == pytest.approx(1 / 3)
    assert results["gini_exposed", ""].samples == 4


def test_equal_exposures_have_a_gini_of_0_and_a_single_hit_has_1():
    assert found(lists(("u1", "abcdef")), SIX_ITEMS)["gini", ""].value == 0.0
    assert found(lists(("u1", "aaaa")), SIX_ITEMS)["gini", ""].value == 1.0


def test_items_outside_the_catalog_move_gini_exposed_and_not_gini():
    results = found(THREE_USERS + [{**r, "request_id": "r9"} for r in lists(("u1", "zzzzz"))], SIX_ITEMS)
    assert results["gini", ""].value == pytest.approx(0.6)
    assert results["gini_exposed", ""].value != pytest.approx(1 / 3)


def test_one_item_leaves_both_undefined():
    results = found(lists(("u1", "aa")), catalog(a="1"))
    assert results["gini", ""].status is Status.UNDEFINED
    assert results["gini_exposed", ""].status is Status.UNDEFINED


def test_showing_no_catalog_item_is_undefined_and_showing_nothing_is_no_data():
    assert found(lists(("u1", "zz")), SIX_ITEMS)["gini", ""].status is Status.UNDEFINED
    assert found(lists(("u1", "")), SIX_ITEMS)["gini", ""].status is Status.NO_DATA
    assert found([], SIX_ITEMS)["gini_exposed", ""].status is Status.NO_DATA


def test_the_top_1_and_10_percent_round_up_to_whole_items():
    # 21 items: one shown 8 times, two shown 4 times, the rest once: 34 exposures.
    shown = lists(("u1", "a" * 8 + "b" * 4 + "c" * 4 + "defghijklmnopqrstu"))
    results = found(shown)
    assert results["popularity_share", "top_item"].value == pytest.approx(8 / 34)
    assert results["popularity_share", "top_1_percent"].value == pytest.approx(8 / 34)
    assert results["popularity_share", "top_10_percent"].value == pytest.approx(16 / 34)
    assert results["popularity_share", "top_item"].samples == 34


def test_a_tenth_of_exactly_ten_items_is_one_item():
    results = found(lists(("u1", "aabcdefghij")))
    assert results["popularity_share", "top_10_percent"].value == pytest.approx(2 / 11)


def test_the_matthew_effect_is_the_gini_of_exposures_minus_that_of_actions():
    # Actions a, b, c once each over six items: (2*4-7 + 2*5-7 + 2*6-7) / (5*3) = 0.6; a gap of 0.
    assert found(THREE_USERS, SIX_ITEMS, clicks("a", "b", "c"))["matthew_effect", ""].value == 0.0
    even = clicks("a", "b", "c", "d", "e", "f")
    assert found(THREE_USERS, SIX_ITEMS, even)["matthew_effect", ""].value == pytest.approx(0.6)
    assert found(THREE_USERS, SIX_ITEMS, clicks("a", "a"))["matthew_effect", ""].value == pytest.approx(-0.4)


def test_only_the_chosen_events_are_actions():
    feedback = clicks("a", "b", "c", "d", "e", "f") + clicks("a", event="view")
    result = found(THREE_USERS, SIX_ITEMS, feedback, action_events=("click",))["matthew_effect", ""]
    assert result.value == pytest.approx(0.6)
    assert result.definition == "1;action_events=click"


def test_no_actions_are_no_data_and_actions_outside_the_catalog_undefined():
    assert found(THREE_USERS, SIX_ITEMS, [])["matthew_effect", ""].status is Status.NO_DATA
    assert found(THREE_USERS, SIX_ITEMS, clicks("z"))["matthew_effect", ""].status is Status.UNDEFINED
    assert found(lists(("u1", "z")), SIX_ITEMS, clicks("a"))["matthew_effect", ""].status is Status.UNDEFINED
    assert found(THREE_USERS, catalog(a="1"), clicks("a"))["matthew_effect", ""].status is Status.UNDEFINED
    assert found([], SIX_ITEMS, clicks("a"))["matthew_effect", ""].status is Status.NO_DATA


def test_without_a_catalog_or_feedback_there_is_no_matthew_effect():
    assert ("matthew_effect", "") not in found(THREE_USERS, SIX_ITEMS)
    assert ("matthew_effect", "") not in found(THREE_USERS, None, clicks("a"))
