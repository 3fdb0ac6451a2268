"""Category entropy on windows worked by hand."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from monitor.core.results import Status
from tests.metrics.worlds import World, by_name, catalog, lists, results_of

MANY = pa.list_(pa.string())


def found(exposures, items, **options):
    only = ("category_entropy", "unknown_category", "intra_list_diversity")
    return by_name(results_of(World(exposures, items, columns=(), **options), only=only))


def test_the_worked_example_of_the_definitions():
    shown = lists(("u1", "abc"), ("u2", "abd"), ("u3", "a"))
    results = found(shown, catalog(a="1", b="2", c="3", d="4"))
    assert results["category_entropy", "overall"].value == pytest.approx(0.921185, abs=1e-6)
    assert results["category_entropy", "overall"].samples == 7
    assert results["unknown_category", ""].value == 0.0


def test_equal_categories_give_1_and_a_single_one_gives_0():
    items = catalog(a="x", b="y")
    assert found(lists(("u1", "ab")), items)["category_entropy", "overall"].value == 1.0
    assert found(lists(("u1", "aa")), items)["category_entropy", "overall"].value == 0.0


def test_a_list_is_measured_against_the_categories_it_could_hold():
    # Three categories. aa: 0 / ln 2. ab: ln 2 / ln min(3, 2) = 1. aab: H(2/3, 1/3) / ln 3. a: too short.
    results = found(
        lists(("u1", "aa"), ("u2", "ab"), ("u3", "aab"), ("u4", "a")), catalog(a="x", b="y", c="z")
    )
    third = -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3)) / math.log(3)
    assert results["category_entropy", "pv"].value == pytest.approx((0 + 1 + third) / 3)
    assert results["category_entropy", "pv"].samples == 3
    assert results["category_entropy", "pv"].lower < results["category_entropy", "pv"].value


def test_all_lists_of_a_user_count_together_by_user():
    results = found(lists(("u1", "a"), ("u1", "b"), (None, "ab")), catalog(a="x", b="y"))
    assert results["category_entropy", "uv"].value == 1.0
    assert results["category_entropy", "uv"].samples == 1
    assert results["category_entropy", "pv"].samples == 1


@pytest.mark.parametrize("unknown", [None, ""])
def test_an_item_without_a_category_has_one_of_its_own_and_its_share_is_shown(unknown):
    results = found(lists(("u1", "ab")), [*catalog(a="x"), {"item_id": "b", "category": unknown}])
    assert results["category_entropy", "overall"].value == 1.0
    assert results["unknown_category", ""].value == 0.5
    assert results["unknown_category", ""].samples == 2


def test_an_item_outside_the_catalog_is_of_unknown_category():
    results = found(lists(("u1", "az")), catalog(a="x", b="y"))
    for by in ("overall", "pv", "uv"):
        assert results["category_entropy", by].value == 1.0
    assert results["unknown_category", ""].value == 0.5
    alone = found(lists(("u1", "az")), catalog(a="x"))
    assert alone["category_entropy", "overall"].status is Status.UNDEFINED


def test_one_item_outside_the_catalog_changes_no_other_list():
    items = catalog(a="s", b="t", c="u", d="v")
    shown = [(f"u{n}", "abca") for n in range(99)]
    usual, odd = (found(lists(*shown, ("u99", last)), items) for last in ("abca", "abcz"))
    for by in ("overall", "pv", "uv"):
        one, other = usual["category_entropy", by], odd["category_entropy", by]
        assert 0 < abs(other.value - one.value) < 0.02
    assert odd["unknown_category", ""].value == pytest.approx(1 / 400)


def test_items_outside_the_catalog_can_spread_a_list_over_more_categories_than_it_has():
    results = found(lists(("u1", "abz")), catalog(a="x", b="y"))
    assert results["category_entropy", "pv"].value == pytest.approx(math.log(3) / math.log(2))


def test_one_category_leaves_it_undefined():
    results = found(lists(("u1", "ab")), catalog(a="x", b="x"))
    for by in ("overall", "pv", "uv"):
        assert results["category_entropy", by].status is Status.UNDEFINED
    assert results["unknown_category", ""].value == 0.0


def test_an_empty_catalog_makes_everything_unknown():
    results = found(lists(("u1", "ab")), [])
    assert results["category_entropy", "overall"].status is Status.UNDEFINED
    assert results["unknown_category", ""].value == 1.0


def test_nothing_shown_is_no_data():
    results = found(lists(("u1", "")), catalog(a="x", b="y"))
    for key in [("category_entropy", "overall"), ("category_entropy", "pv"), ("unknown_category", "")]:
        assert results[key].status is Status.NO_DATA


def test_several_categories_share_an_items_exposure_equally():
    # a gives x 1/2 and y 1/2, b gives y 1: shares 1/4 and 3/4. A category named twice counts once.
    results = found(lists(("u1", "ab")), catalog(a=["x", "y", "x"], b=["y"]), category=MANY)
    entropy = -(1 / 4 * math.log(1 / 4) + 3 / 4 * math.log(3 / 4)) / math.log(2)
    for by in ("overall", "pv", "uv"):
        assert results["category_entropy", by].value == pytest.approx(entropy)


def test_empty_lists_of_categories_and_nulls_in_them_are_unknown():
    rows = catalog(a=["x"], b=[], c=[None], d=None)
    assert found(lists(("u1", "abcd")), rows, category=MANY)["unknown_category", ""].value == 0.75


def test_long_and_short_lists_are_counted_alike():
    # 40 items is past the length from which lists are counted by group.
    results = found(lists(("u1", "a" * 20 + "b" * 20), ("u2", "ab")), catalog(a="x", b="y"))
    assert results["category_entropy", "pv"].value == 1.0
    assert results["category_entropy", "pv"].samples == 2
    # 40 items: 2 * 190 pairs alike of 780; 2 items: none of 1.
    assert results["intra_list_diversity", ""].value == pytest.approx((1 - 380 / 780 + 1) / 2)


def test_a_list_of_100000_items_is_measured():
    shown = lists(("u1", "ab" * 50_000))
    result = found(shown, catalog(a="x", b="y"))["category_entropy", "pv"]
    assert (result.value, result.samples) == (1.0, 1)
