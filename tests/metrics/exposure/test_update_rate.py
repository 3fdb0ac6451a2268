"""Update rate on windows worked by hand."""

from __future__ import annotations

import string
from datetime import timedelta

import pytest

from monitor.core.results import Status
from tests.metrics.oracle import of_shares
from tests.metrics.worlds import START, World, by_name, lists, results_of


def refresh(rows, columns=("scene",)):
    return by_name(results_of(World(rows, columns=columns), only=("update_rate",)))["update_rate", "refresh"]


def test_one_of_three_items_is_new():
    result = refresh(lists(("u1", "abc"), ("u1", "abd"), scene="home"))
    assert result.value == pytest.approx(1 / 3)
    assert result.samples == 1
    assert result.lower is None


def test_the_mean_runs_over_pairs_of_consecutive_lists_and_the_interval_keeps_within_0_and_1():
    # u1: abc -> abd 1/3, abd -> xyz 1; u2: ab -> ab 0. Mean 4/9, sample variance 7/27.
    result = refresh(lists(("u1", "abc"), ("u2", "ab"), ("u1", "abd"), ("u2", "ab"), ("u1", "xyz")))
    assert result.value == pytest.approx(4 / 9)
    assert (result.lower, result.upper) == pytest.approx(of_shares([1 / 3, 1.0, 0.0]))


def test_if_a_newer_list_is_longer_the_interval_is_the_normal_one_from_0():
    result = refresh(lists(("u1", "a"), ("u2", "ab"), ("u1", "bcd"), ("u2", "ab")))  # 3 and 0
    assert (result.value, result.lower) == (1.5, 0.0)
    assert result.upper == pytest.approx(1.5 + 1.959963984540054 * 1.5)


def test_lists_of_different_scenes_or_users_are_never_compared():
    rows = lists(("u1", "ab"), scene="home") + [
        {**row, "request_id": "other"} for row in lists(("u1", "cd"), scene="feed")
    ]
    rows += [{**row, "request_id": "third"} for row in lists(("u2", "cd"), scene="home")]
    assert refresh(rows).status is Status.NO_DATA


def test_without_a_scene_all_lists_of_a_user_follow_each_other():
    assert refresh(lists(("u1", "ab"), ("u1", "ac")), columns=()).value == 0.5


def test_a_longer_newer_list_can_pass_1():
    assert refresh(lists(("u1", "a"), ("u1", "bcd"))).value == 3.0


def test_a_newer_list_without_items_brings_nothing_new():
    assert refresh(lists(("u1", "ab"), ("u1", ""))).value == 0.0


def test_a_pair_whose_older_list_is_empty_is_left_out_and_named():
    result = refresh(lists(("u1", "ab"), ("u1", ""), ("u1", "ab")))
    assert (result.value, result.samples) == (0.0, 1)
    assert result.detail == "left out: 1 pair whose older list is empty"


def test_only_empty_older_lists_leave_it_undefined():
    result = refresh(lists(("u1", ""), ("u1", "ab")))
    assert (result.status, result.value) == (Status.UNDEFINED, None)
    assert result.detail == "the older list of every pair is empty (1 pair)"


def test_an_item_twice_in_the_newer_list_counts_twice():
    # aab -> aac: of three slots only c is new. abc -> zza: two of three.
    assert refresh(lists(("u1", "aab"), ("u1", "aac"))).value == pytest.approx(1 / 3)
    assert refresh(lists(("u1", "abc"), ("u1", "zza"))).value == pytest.approx(2 / 3)


def test_long_lists_are_compared_like_short_ones():
    # 40 x 41 comparisons: ten letters are gone, ten items are new, one of the old ones is there twice.
    letters = string.ascii_letters
    older, newer = letters[:40], letters[10:50] + letters[10]
    assert refresh(lists(("u1", older), ("u1", newer))).value == pytest.approx(10 / 40)
    # A pair of short lists beside a pair of long ones: 1 / 2 and 10 / 40.
    both = refresh(lists(("u1", older), ("u2", "ab"), ("u1", newer), ("u2", "ac")))
    assert (both.value, both.samples) == (pytest.approx((1 / 2 + 10 / 40) / 2), 2)


def test_only_the_list_right_before_counts():
    # b was shown two lists ago: it is new again in the third.
    assert refresh(lists(("u1", "b"), ("u1", "a"), ("u1", "b"))).value == 1.0


def test_requests_of_the_same_moment_follow_each_other_by_their_ids():
    rows = [{**row, "ts": START} for row in lists(("u1", "ab"), ("u1", "cd"), ("u1", "cde"))]
    assert refresh(rows).value == pytest.approx((1 + 1 / 2) / 2)


def test_lists_are_ordered_by_time_and_not_by_rows():
    rows = lists(("u1", "ab"), ("u1", "abcd"))
    later = [{**row, "ts": row["ts"] + timedelta(hours=row["request_id"] == "r0")} for row in rows]
    assert refresh(later).value == 0.0  # abcd -> ab


def day(yesterday, today):
    world = World([], columns=(), yesterday=yesterday, today=today)
    return by_name(results_of(world, only=("update_rate",)))["update_rate", "day"]


def test_a_users_day_is_compared_with_their_day_before():
    # u1: abcd -> abx: 1 of 4. u2: a -> bc: 2 of 1. u3 and u4 are there on one day only.
    result = day(
        [("u1", "a"), ("u1", "b"), ("u1", "c"), ("u1", "d"), ("u2", "a"), ("u3", "a")],
        [("u1", "a"), ("u1", "b"), ("u1", "x"), ("u2", "b"), ("u2", "c"), ("u4", "a"), ("u2", "c")],
    )
    assert result.value == pytest.approx((0.25 + 2) / 2)
    assert result.samples == 2


def test_a_first_day_has_no_day_before():
    result = day(None, [("u1", "a")])
    assert (result.status, result.value) == (Status.NO_DATA, None)
    assert result.detail == "the history has no exposures of the day before yet"


def test_nobody_on_both_days_is_no_data():
    assert day([("u1", "a")], [("u2", "a")]).status is Status.NO_DATA
    assert day([], []).status is Status.NO_DATA
