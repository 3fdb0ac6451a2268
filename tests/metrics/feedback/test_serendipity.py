"""Serendipity on windows worked by hand."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from monitor.core.results import Status
from monitor.settings.metrics import MetricSettings
from tests.metrics.worlds import World, by_name, catalog, lists, results_of

ITEMS = catalog(a="x", b="x", c="y", d="z")
SHOWN = lists(("u1", "abc"), ("u1", "d"), ("u2", "c"))


def click(user, item, request=None, event="click"):
    return {"user_id": user, "item_id": item, "request_id": request, "event": event}


def serendipity(feedback, actions, exposures=SHOWN, items=ITEMS, settings=None, **options):
    world = World(exposures, items, feedback, history_actions=actions, columns=(), **options)
    return by_name(results_of(world, settings or MetricSettings(), only=("serendipity",)))["serendipity", ""]


def test_a_category_acted_on_before_is_no_surprise_and_a_new_one_is():
    result = serendipity([click("u1", "b"), click("u1", "d")], [("u1", "a"), ("u1", "c")])
    assert (result.value, result.samples) == (0.5, 2)
    assert result.lower < 0.5 < result.upper


def test_the_most_similar_earlier_item_counts():
    many = pa.list_(pa.string())
    items = catalog(a=["x", "y"], b=["y"], c=["z"])
    result = serendipity([click("u1", "a")], [("u1", "b"), ("u1", "c")], items=items, category=many)
    assert result.value == pytest.approx(1 - 1 / math.sqrt(2))
    items += catalog(d=["x", "y", "z"])  # sqrt(2 / 3), more than 1 / sqrt(2)
    result = serendipity([click("u1", "a")], [("u1", "b"), ("u1", "d")], items=items, category=many)
    assert result.value == pytest.approx(1 - math.sqrt(2 / 3))


def test_feedback_with_a_request_id_matches_only_that_request():
    shown = lists(("u1", "a"), ("u1", "a"))
    assert serendipity([click("u1", "a", "r0")], [("u1", "c")], shown).samples == 1
    assert serendipity([click("u1", "a")], [("u1", "c")], shown).samples == 1
    assert serendipity([click("u1", "a", "r0"), click("u1", "a")], [("u1", "c")], shown).samples == 2


def test_a_log_of_feedback_without_the_column_request_id_matches_by_user():
    assert serendipity([click("u1", "a")], [("u1", "c")], feedback_columns=()).samples == 1


def test_two_actions_on_one_exposure_count_once():
    assert serendipity([click("u1", "a"), click("u1", "a", event="buy")], [("u1", "c")]).samples == 1


def test_users_without_earlier_actions_are_left_out_and_counted():
    result = serendipity([click("u1", "b"), click("u2", "c")], [("u1", "a")])
    assert (result.value, result.samples) == (0.0, 1)
    assert result.detail == "1 of 2 exposures acted on have nothing to compare with"


def test_only_the_chosen_events_are_actions():
    feedback = [click("u1", "b", event="view"), click("u1", "d", event="buy")]
    result = serendipity(
        feedback, [("u1", "a")], settings=MetricSettings(events={"buy": {}, "view": {"grade": 0}})
    )
    assert (result.value, result.samples) == (1.0, 1)


@pytest.mark.parametrize(
    ("feedback", "actions", "detail"),
    [
        ([], [("u1", "a")], "no exposure was acted on"),
        ([click("u1", "q")], [("u1", "a")], "no exposure was acted on"),
        ([click(None, "a")], [("u1", "a")], "no exposure was acted on"),
        ([click("u1", "a")], None, "the history has no earlier actions yet"),
        ([click("u1", "a")], [], "the history has no earlier actions yet"),
        ([click("u1", "a")], [("u9", "a")], "nobody who acted has earlier actions to compare with"),
    ],
)
def test_no_data_has_a_reason(feedback, actions, detail):
    result = serendipity(feedback, actions)
    assert result.status is Status.NO_DATA
    assert result.detail == detail


def test_vectors_are_compared_by_their_cosine():
    items = [
        {"item_id": i, "vector": v}
        for i, v in (("a", [1.0, 0.0]), ("b", [1.0, 1.0]), ("c", [0.0, 3.0]), ("d", None))
    ]
    options = {"items": items, "catalog_columns": ("vector",)}
    result = serendipity([click("u1", "a")], [("u1", "b"), ("u1", "c"), ("u1", "d")], **options)
    assert result.value == pytest.approx(1 - 1 / math.sqrt(2))
    assert serendipity([click("u1", "d")], [("u1", "a")], **options).status is Status.NO_DATA
    assert serendipity([click("u1", "a")], [("u1", "d")], **options).status is Status.NO_DATA
