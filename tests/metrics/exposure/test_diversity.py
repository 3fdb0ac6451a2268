"""Intra-list diversity on windows worked by hand."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from monitor.core.results import Status
from monitor.metrics.measure import not_measured
from monitor.settings.metrics import MetricSettings
from tests.metrics import worlds
from tests.metrics.oracle import of_shares
from tests.metrics.worlds import World, by_name, catalog, lists, results_of


def diversity(exposures, items, columns=("category",), **settings):
    kind = pa.list_(pa.string()) if any(isinstance(r.get("category"), list) for r in items) else pa.string()
    world = World(exposures, items, columns=(), category=kind, catalog_columns=columns)
    return by_name(results_of(world, MetricSettings(**settings), only=("intra_list_diversity",)))[
        "intra_list_diversity", ""
    ]


def vectors(**of_items):
    return [{"item_id": item, "vector": vector} for item, vector in of_items.items()]


def test_two_of_three_pairs_are_of_different_categories():
    result = diversity(lists(("u1", "abc")), catalog(a="x", b="x", c="y"))
    assert result.value == pytest.approx(2 / 3)
    assert result.definition == "1;similarity=category"


def test_the_mean_runs_over_lists_of_two_items_or_more():
    result = diversity(
        lists(("u1", "ab"), ("u1", "ac"), ("u2", "c"), ("u3", "")), catalog(a="x", b="x", c="y")
    )
    assert (result.value, result.samples) == (0.5, 2)
    assert (result.lower, result.upper) == pytest.approx(of_shares([0.0, 1.0]))


def test_an_item_twice_in_a_list_equals_itself():
    assert diversity(lists(("u1", "aa")), catalog(a="x", b="y")).value == 0.0


def test_items_of_unknown_category_are_alike():
    assert diversity(lists(("u1", "yz")), catalog(a="x")).value == 0.0


def test_sets_of_categories_are_alike_by_the_cosine():
    # {x, y} and {y}: 1 / sqrt(2).
    result = diversity(lists(("u1", "ab")), catalog(a=["x", "y"], b=["y"]))
    assert result.value == pytest.approx(1 - 1 / math.sqrt(2))


def test_no_list_with_two_items_is_no_data():
    assert diversity(lists(("u1", "a"), ("u2", "")), catalog(a="x")).status is Status.NO_DATA


def test_vectors_are_used_where_the_catalog_has_them():
    items = vectors(a=[1.0, 0.0], b=[0.0, 2.0], c=[3.0, 3.0], d=[-1.0, 0.0])
    result = diversity(lists(("u1", "ab")), items, ("vector",))
    assert result.value == pytest.approx(1.0)
    assert result.definition == "1;similarity=vector"
    assert diversity(lists(("u1", "ac")), items, ("vector",)).value == pytest.approx(1 - 1 / math.sqrt(2))
    assert diversity(lists(("u1", "ad")), items, ("vector",)).value == pytest.approx(2.0)
    assert diversity(lists(("u1", "abc")), items, ("vector",)).value == pytest.approx(
        1 - 2 / math.sqrt(2) / 3
    )


def test_items_without_a_usable_vector_are_left_out_of_their_list():
    items = vectors(
        a=[1.0, 0.0], b=[0.0, 1.0], c=None, d=[0.0, 0.0], e=[math.nan, 1.0], f=[1.0], g=[None, 1.0]
    )
    result = diversity(lists(("u1", "abcdefgz"), ("u2", "ac")), items, ("vector",))
    assert (result.value, result.samples) == (1.0, 1)


def test_vectors_of_huge_and_tiny_numbers_have_a_direction():
    items = vectors(a=[1e300, 1e300], b=[1e-300, 1e-300])
    assert diversity(lists(("u1", "ab")), items, ("vector",)).value == pytest.approx(0.0, abs=1e-9)


def test_long_vectors_are_summed_in_parts():
    # 40 components: a and b share every second one.
    items = vectors(a=[1.0] * 40, b=[1.0, 0.0] * 20)
    assert diversity(lists(("u1", "ab")), items, ("vector",)).value == pytest.approx(1 - 20 / math.sqrt(800))


def test_a_column_of_vectors_without_any_is_no_data():
    for items in ([], vectors(a=None), vectors(a=[])):
        assert diversity(lists(("u1", "ab")), items, ("vector",)).status is Status.NO_DATA


def test_one_vector_of_another_length_leaves_the_others_usable():
    items = vectors(a=[1.0, 0.0], b=[0.0, 2.0], c=[1.0, 1.0, 1.0])
    result = diversity(lists(("u1", "abc")), items, ("vector",))
    assert (result.value, result.samples) == (1.0, 1)


def test_the_longer_of_two_equally_frequent_lengths_counts():
    items = vectors(a=[1.0], b=[2.0], c=[1.0, 1.0], d=[2.0, 2.0], e=[])
    assert diversity(lists(("u1", "abcd")), items, ("vector",)).value == pytest.approx(0.0, abs=1e-9)


def test_items_of_the_same_several_categories_are_exactly_alike():
    several = ["x", "y", "z"]
    result = diversity(lists(("u1", "abc"), ("u2", "bca")), catalog(a=several, b=several, c=several))
    assert (result.value, result.samples) == (0.0, 2)


def test_vectors_read_as_text_are_not_used(monkeypatch):
    monkeypatch.setitem(worlds.TYPES, "vector", pa.string())
    items = [{"item_id": item, "category": "x", "vector": "0.1 0.2"} for item in "ab"]
    result = diversity(lists(("u1", "ab")), items, ("category", "vector"))
    assert (result.value, result.definition) == (0.0, "1;similarity=category")
    world = World(lists(("u1", "ab")), items, columns=(), catalog_columns=("category", "vector"))
    reasons = not_measured(worlds.shared_of(world), MetricSettings(similarity="vector"))
    assert "list_separator" in reasons["intra_list_diversity"]


def test_the_settings_can_choose_the_category_over_the_vector():
    items = [{**row, "category": "x"} for row in vectors(a=[1.0, 0.0], b=[0.0, 1.0])]
    assert diversity(lists(("u1", "ab")), items, ("category", "vector"), similarity="category").value == 0.0


def test_an_item_that_the_catalog_holds_twice_counts_once():
    items = vectors(a=[1.0, 0.0], b=[0.0, 1.0]) + vectors(a=[0.0, -1.0])
    # Whichever of its vectors is taken, a is at a right angle or opposite to b: never a list of three.
    assert diversity(lists(("u1", "ab")), items, ("vector",)).value in (1.0, 2.0)
    twice = catalog(a="x", b="y") + catalog(a="x")
    assert diversity(lists(("u1", "ab")), twice).value == 1.0
