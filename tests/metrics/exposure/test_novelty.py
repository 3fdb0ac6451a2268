"""Novelty, self-information and average popularity on windows worked by hand."""

from __future__ import annotations

import pytest

from monitor.core.results import Status
from monitor.metrics.exposure.novelty import Novelty
from monitor.settings.metrics import MetricSettings
from monitor.statistics.intervals import wilson
from tests.metrics.worlds import World, by_name, catalog, lists, results_of

SHOWN = lists(("u1", "ab"), ("u1", "ac"), ("u2", "a"))  # pairs u1-a, u1-b, u1-c, u2-a
HISTORY = [("u1", "a", 5), ("u1", "z", 1), ("u3", "a", 2), ("u3", "b", 4)]  # users: a 2, b 1, z 1 of 2


def found(exposures=SHOWN, history=HISTORY, items=None, columns=("category",), actions=None, **settings):
    world = World(
        exposures, items, history=history, columns=(), catalog_columns=columns, history_actions=actions
    )
    only = ("novelty", "self_information", "average_popularity")
    return by_name(results_of(world, MetricSettings(**settings), only=only))


def test_three_of_four_pairs_are_new_to_their_user():
    result = found()["novelty", "item"]
    assert (result.value, result.samples) == (0.75, 4)
    assert (result.lower, result.upper) == pytest.approx(wilson(3, 4))


def test_a_user_sees_something_new_if_a_single_item_is():
    result = found()["novelty", "user"]
    assert (result.value, result.samples) == (1.0, 2)  # u1 b and c, u2 a
    seen = [("u1", item, 1) for item in "abc"]
    result = found(history=seen)["novelty", "user"]
    assert (result.value, result.samples) == (0.5, 2)  # u2 alone: u1 has seen all three
    assert (result.lower, result.upper) == pytest.approx(wilson(1, 2))
    none = found(history=[*seen, ("u2", "a", 9)])
    assert none["novelty", "user"].value == none["novelty", "item"].value == 0.0


def test_without_user_ids_there_is_no_novelty():
    result = found(lists((None, "ab")))["novelty", "user"]
    assert (result.status, result.detail) == (Status.NO_DATA, "no user was shown an item")


@pytest.mark.parametrize("name", ["item", "user"])
def test_a_catalog_column_cannot_take_the_label_item_or_user(name):
    with pytest.raises(ValueError, match=f"novelty by {name} is measured anyway; rename the column"):
        MetricSettings(novelty=("category", name))


def test_an_item_shown_to_another_user_is_still_new():
    assert found(lists(("u2", "b")))["novelty", "item"].value == 1.0


def test_novelty_by_category_takes_users_with_categories():
    # u1 knows x (a) and y (z); shown x (a, b) and w (c): one of two new. u2 knows nothing: x is new.
    items = catalog(a="x", b="x", c="w", z="y")
    result = found(items=items)["novelty", "category"]
    assert (result.value, result.samples) == (pytest.approx(2 / 3), 3)


def test_novelty_by_tag_takes_every_tag_of_an_item():
    items = [
        {"item_id": i, "tags": t} for i, t in (("a", ["red"]), ("b", ["red", "new"]), ("c", []), ("z", None))
    ]
    result = found(items=items, columns=("tags",))
    # u1: red is known through a, new is new. u2: red is new.
    assert (result["novelty", "tag"].value, result["novelty", "tag"].samples) == (pytest.approx(2 / 3), 3)
    assert ("novelty", "category") not in result


def test_any_catalog_column_can_be_chosen():
    items = [{"item_id": i, "category": c} for i, c in (("a", "x"), ("b", "y"))]
    assert ("novelty", "category") not in found(items=items, novelty=())


def test_items_without_a_category_make_no_pair():
    result = found(items=catalog(q="x"))["novelty", "category"]
    assert result.status is Status.NO_DATA
    assert result.detail == "no item shown has a value of category"


@pytest.mark.parametrize("history", [None, []])
def test_without_a_history_nothing_is_new_or_old(history):
    results = found(history=history, items=catalog(a="x"))
    assert set(results) == {
        ("novelty", "item"),
        ("novelty", "user"),
        ("novelty", "category"),
        ("self_information", ""),
        ("average_popularity", ""),
    }
    for result in results.values():
        assert result.status is Status.NO_DATA
        assert result.detail == "the history has no earlier exposures yet"


def test_an_empty_window_is_no_data():
    assert {r.status for r in found(exposures=[]).values()} == {Status.NO_DATA}


def test_self_information_counts_users_and_an_unknown_item_takes_one():
    # a: -log2(2/2) = 0, three times; b: -log2(1/2) = 1; c is new and takes one user: 1. Mean 2/5.
    result = found()["self_information", ""]
    assert (result.value, result.samples) == (pytest.approx(2 / 5), 5)
    half = 1.959963984540054 * (0.3 / 5) ** 0.5
    assert (result.lower, result.upper) == pytest.approx((max(0.0, 0.4 - half), 0.4 + half))


def test_average_popularity_is_the_mean_of_the_items_earlier_exposures():
    # a 7 (three times), b 4, c 0.
    result = found()["average_popularity", ""]
    assert (result.value, result.samples) == (pytest.approx((3 * 7 + 4 + 0) / 5), 5)
    assert result.lower is None


def test_average_popularity_can_count_actions():
    result = found(popularity="actions", actions=[("u1", "a"), ("u2", "a"), ("u2", "q")])[
        "average_popularity", ""
    ]
    assert result.value == pytest.approx(3 * 2 / 5)
    assert result.definition == "1;popularity=actions"
    none = found(popularity="actions")["average_popularity", ""]
    assert none.detail == "the history has no earlier actions yet"


def test_actions_alone_give_popularity_and_no_self_information():
    results = found(history=None, popularity="actions", actions=[("u1", "a")])
    assert results["average_popularity", ""].value == pytest.approx(3 / 5)
    assert results["self_information", ""].status is Status.NO_DATA


def test_a_failed_query_is_an_error_of_every_series_of_the_family(monkeypatch):
    def fail(*_):
        raise ValueError("broken")

    monkeypatch.setattr(Novelty, "measure", fail)
    items = [{"item_id": "a", "category": "x", "tags": ["y"]}]
    broken = {"category", "item", "user"}, {"category", "tag", "item", "user"}
    for columns, by in zip((("category",), ("category", "tags")), broken, strict=True):
        wanted = ("category", "tags", "brand", "tags")
        results = found(items=items, columns=columns, novelty=wanted)
        assert {key[1]: r.status for key, r in results.items() if key[0] == "novelty"} == dict.fromkeys(
            by, Status.ERROR
        )
    assert {key[1] for key in found() if key[0] == "novelty"} == {"item", "user"}
