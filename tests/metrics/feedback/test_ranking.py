"""Lists at k: worked by hand, the published numbers, and the edge cases."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from monitor.core.results import Status
from monitor.metrics.feedback.ranking import Ranking
from monitor.metrics.measure import not_measured
from monitor.settings.metrics import EventSettings, MetricSettings
from tests.metrics.feedback.ranked_worlds import NAMES, liked, measured, values, world
from tests.metrics.worlds import lists, results_of, shared_of


def graded(*grades):
    """The events grade0, grade1, ... of these grades."""
    return {f"grade{number}": EventSettings(grade=grade) for number, grade in enumerate(grades)}


def of_relevance(relevance, missed=(), **settings):
    """The values for one list that shows items of these grades, with others that it missed."""
    grades = sorted({*relevance, *missed} - {0})
    events = graded(0, *grades)
    items = "abcdefghijklmnopqrstuvwxyz"[: len(relevance)]
    feedback = []
    for item, grade in [*zip(items, relevance, strict=True), *zip("ABCDEFGHIJ", missed, strict=False)]:
        feedback += liked("r0", item, f"grade{1 + grades.index(grade) if grade else 0}")
    return values(lists(("u", items)), feedback, events=events, **settings)


def test_precision_and_recall_of_one_list_at_each_place():
    found = of_relevance([1, 0, 1, 0, 0], [1, 1, 1], k=(1, 2, 3, 4, 5))
    assert [found["precision", "macro", str(k)] for k in range(1, 6)] == pytest.approx(
        [1, 1 / 2, 2 / 3, 2 / 4, 2 / 5]
    )
    assert [found["recall", "macro", str(k)] for k in range(1, 6)] == pytest.approx([0.2, 0.2, 0.4, 0.4, 0.4])


@pytest.mark.parametrize(
    ("relevance", "missed", "k", "gain", "wanted"),
    [
        ([1, 0, 1, 0, 0], [1, 1, 1], 3, "exponential", 0.703918),
        ([0, 1, 1], [1, 1, 1], 3, "exponential", 0.530721),
        ([3, 4, 1, 0, 3, 2], [], 6, "linear", 0.913864),
        ([3, 4, 1, 0, 3, 2], [], 6, "exponential", 0.843269),
        ([3, 1, 2, 3, 2], [], 5, "exponential", 0.911673),
        ([1, 2, 2, 3, 3], [], 5, "exponential", 10.115495 / 14.595391),
    ],
)
def test_ndcg_of_the_worked_lists(relevance, missed, k, gain, wanted):
    found = of_relevance(relevance, missed, k=(k,), gain=gain)
    assert found["ndcg", "", str(k)] == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize(("relevance", "wanted"), [([1, 1, 0, 1], 0.916667), ([1, 0, 0, 1, 1, 1], 0.691667)])
def test_average_precision_of_the_worked_lists(relevance, wanted):
    found = of_relevance(relevance, k=(len(relevance),))
    assert found["average_precision", "", str(len(relevance))] == pytest.approx(wanted, abs=1e-6)


def test_the_hit_rate_of_three_users_and_a_list_of_forty():
    shown = lists(("u1", "abcde"), ("u2", "abcde"), ("u3", "abcde"))
    done = liked("r0", "abvwxy") + liked("r1", "abcvwxyz") + liked("r2", "abcdstuvwx")
    assert values(shown, done, k=(5,))["hit_rate", "micro", "5"] == 0.375
    rows = [{**lists(("u", "a"))[0], "item_id": f"i{n}", "position": n} for n in range(1, 41)]
    done = [{**liked("r0", "a")[0], "item_id": f"i{n}"} for n in (1, 40, *range(100, 108))]
    found = values(rows, done, k=(40,))
    assert found["precision", "macro", "40"] == 0.05
    assert found["recall", "macro", "40"] == 0.2


def test_lists_of_one_user_count_as_one_and_lists_without_a_user_only_in_micro():
    shown = lists(("u", "ab"), ("u", "cd"), ("v", "ab"), (None, "ab"), ("w", "ab"))
    done = liked("r0", "a") + liked("r1", "d") + liked("r2", "az", user="v") + liked("r3", "b", user=None)
    found = measured(shown, done, k=(1, 2))
    recall = found["recall", "macro", "1"]
    assert (recall.value, recall.samples) == ((1 / 2 + 1 / 2) / 2, 2)
    assert found["recall", "micro", "1"].value == 2 / 5
    assert found["recall", "micro", "1"].samples == 4
    assert found["hit_rate", "any", "1"].value == 2 / 4
    assert found["reciprocal_rank", "", "2"].value == ((1 + 1 / 2) / 2 + 1) / 2
    assert recall.detail == (
        "left out: 1 of 5 lists without a relevant item; 1 of 3 users without one; "
        "1 of 4 lists with one have no user"
    )
    assert found["recall", "micro", "1"].detail == "left out: 1 of 5 lists without a relevant item"


def test_short_lists_and_few_relevant_items_have_a_metric_each():
    found = values(lists(("u", "ab")), liked("r0", "a"), k=(5,))
    assert found["precision", "macro", "5"] == found["precision", "micro", "5"] == 1 / 2
    assert found["precision_strict", "macro", "5"] == found["precision_strict", "micro", "5"] == 1 / 5
    found = values(lists(("u", "abcde")), liked("r0", "abcvwxyz"), k=(5,))
    assert found["recall", "macro", "5"] == 3 / 8
    assert found["adjusted_precision", "macro", "5"] == 3 / 5
    assert found["average_precision", "", "5"] == 3 / 5
    assert found["average_precision_full", "", "5"] == 3 / 8


def test_beta_weighs_recall_against_precision():
    shown, done = lists(("u", "abcd")), liked("r0", "ayz")
    for beta, wanted in ((1, 2 * (1 / 4) * (1 / 3) / (1 / 4 + 1 / 3)), (2, 5 * (1 / 12) / (1 + 1 / 3))):
        found = values(shown, done, k=(4,), beta=beta)
        assert found["f_score", "macro", "4"] == pytest.approx(wanted)
        assert found["f_score", "micro", "4"] == pytest.approx(wanted)


def test_every_metric_is_zero_without_a_hit():
    assert set(values(lists(("u", "ab")), liked("r0", "z"), k=(1, 5)).values()) == {0.0}


def test_an_item_shown_twice_is_one_hit_and_takes_two_places():
    found = values(lists(("u", "baac")), liked("r0", "ac"), k=(3, 4))
    assert found["precision", "macro", "3"] == pytest.approx(1 / 3)
    assert found["recall", "macro", "4"] == 1.0
    assert found["average_precision", "", "4"] == (1 / 2 + 2 / 4) / 2


def test_items_are_ordered_by_position_then_score_then_item_with_nulls_last():
    def ranked(columns=("position", "score"), **of_items):
        rows = [
            {**lists(("u", "a"))[0], "item_id": item, "position": position, "score": score}
            for item, (position, score) in of_items.items()
        ]
        return {
            item: round(
                1 / values(rows, liked("r0", item), columns=columns, k=(10,))["reciprocal_rank", "", "10"]
            )
            for item in of_items
        }

    nan, inf = float("nan"), float("inf")
    assert ranked(a=(2, 0.9), b=(1, 0.1), c=(None, 1.0)) == {"b": 1, "a": 2, "c": 3}
    assert ranked(a=(1, 0.1), b=(1, 0.9), c=(1, 0.9)) == {"b": 1, "c": 2, "a": 3}
    assert ranked(a=(1, nan), b=(1, None), c=(1, -inf), d=(1, inf)) == {"d": 1, "c": 2, "a": 3, "b": 4}
    assert ranked(("score",), a=(1, 0.1), b=(2, 0.9)) == {"b": 1, "a": 2}
    assert ranked(("position",), a=(0, 0.1), b=(7, 0.9)) == {"a": 1, "b": 2}


def test_lists_without_an_order_are_not_measured():
    shared = shared_of(world(lists(("u", "a")), liked("r0", "a"), columns=()))
    reason = not_measured(shared, MetricSettings())["ranking"]
    assert reason == "needs the column position or score of the log exposures"


def test_items_without_actions_are_misses_or_are_left_out():
    shown = lists(("u", "abcd"))
    done = liked("r0", "d") + liked("r0", "b", "hide")
    events = {"click": EventSettings(), "hide": EventSettings(grade=0)}
    wanted = {"as_negative": (1 / 4, 1 / 4), "ignore": (1 / 2, 1 / 2), "liked_only": (1.0, 1.0)}
    for unrated, (precision, reciprocal) in wanted.items():
        found = values(shown, done, events=events, unrated=unrated, k=(4,))
        assert (found["precision", "macro", "4"], found["reciprocal_rank", "", "4"]) == (
            precision,
            reciprocal,
        )


def test_an_empty_list_has_no_precision_and_counts_in_the_other_metrics():
    shown = lists(("u", ""), ("u", "a"), ("v", ""))
    done = liked("r0", "a") + liked("r1", "a") + liked("r2", "a", user="v")
    found = measured(shown, done, k=(1,))
    assert (found["precision", "macro", "1"].value, found["precision", "macro", "1"].samples) == (1.0, 1)
    assert found["precision", "macro", "1"].detail == "left out: 2 of 3 lists with one are empty"
    assert found["precision", "micro", "1"].value == 1.0
    assert found["recall", "macro", "1"].value == (1 / 2 + 0) / 2
    alone = measured(lists(("u", "")), liked("r0", "a"), k=(1,))
    for by in ("macro", "micro"):
        for metric in ("precision", "f_score"):
            assert alone[metric, by, "1"].status is Status.UNDEFINED
            assert alone[metric, by, "1"].detail == "every list with a relevant item is empty"
    assert alone["precision_strict", "macro", "1"].value == 0.0


def test_gains_too_small_for_float64_leave_ndcg_undefined():
    events = {"click": EventSettings(grade=1e-20)}
    found = measured(lists(("u", "a")), liked("r0", "a"), events=events, k=(1,))
    assert found["ndcg", "", "1"].status is Status.UNDEFINED
    assert found["recall", "macro", "1"].value == 1.0


@pytest.mark.parametrize(
    ("shown", "done", "macro", "micro"),
    [
        ([], [], "no list has a relevant item", "no list has a relevant item"),
        (lists(("u", "a")), [], "no list has a relevant item", "no list has a relevant item"),
        (
            lists((None, "a")),
            liked("r0", "a", user=None),
            "no list with a relevant item has a known user",
            None,
        ),
    ],
)
def test_an_empty_window_is_no_data(shown, done, macro, micro):
    for (_, by, _), result in measured(shown, done, k=(1,)).items():
        wanted = micro if by in ("micro", "any") else macro
        if wanted is None:
            assert result.value == 1.0
        else:
            assert (result.status, result.detail, result.value) == (Status.NO_DATA, wanted, None)


def test_several_k_give_the_same_values_as_each_k_alone():
    shown = lists(*(("u", "abcdefgh"), ("v", "hgfedcba"), ("u", "abc")))
    done = liked("r0", "bdz") + liked("r1", "ah", user="v") + liked("r2", "c")
    together = values(shown, done, k=(7, 1, 3, 1000))
    alone = {}
    for k in (7, 1, 3, 1000):
        alone |= values(shown, done, k=(k,))
    assert together == alone
    assert len(together) == 4 * 16


def test_the_declared_series_are_the_measured_ones():
    settings = MetricSettings(k=(1, 7))
    found = results_of(world(lists(("u", "a")), liked("r0", "a")), settings, only=NAMES)
    declared = [(spec.name, labels) for spec, labels in Ranking().series(settings)]
    assert sorted(((r.metric, dict(r.labels)) for r in found), key=str) == sorted(declared, key=str)


def test_settings_are_part_of_the_definition_and_k_is_not():
    found = measured(lists(("u", "a")), liked("r0", "a"), k=(3,), gain="linear", beta=2, unrated="ignore")
    assert found["ndcg", "", "3"].definition == "1;unrated=ignore;gain=linear"
    assert found["f_score", "macro", "3"].definition == "1;unrated=ignore;beta=2.0"
    assert found["recall", "macro", "3"].definition == "1;unrated=ignore"


@pytest.mark.parametrize("k", [(), (0,), (1001,), (5, 5), tuple(range(1, 22))])
def test_an_invalid_k_is_refused(k):
    with pytest.raises(ValidationError):
        MetricSettings(k=k)
