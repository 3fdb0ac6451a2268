"""Lists at k: worked by hand, the published numbers, the edge cases, and the definitions by brute force."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from pydantic import ValidationError

from monitor.metrics.measure import not_measured
from monitor.metrics.settings import EventSettings, MetricSettings
from monitor.results import Status
from tests.metrics.ranking_oracle import expected
from tests.metrics.worlds import START, World, by_name, lists, results_of, shared_of

NAMES = (
    "precision",
    "precision_strict",
    "recall",
    "f_score",
    "adjusted_precision",
    "hit_rate",
    "reciprocal_rank",
    "average_precision",
    "average_precision_full",
    "ndcg",
)
MINUTE = timedelta(minutes=1)


def graded(*grades):
    """The events grade0, grade1, ... of these grades."""
    return {f"grade{number}": EventSettings(grade=grade) for number, grade in enumerate(grades)}


def liked(request, items, event="click", user="u"):
    """Actions on items of a list, a letter each."""
    number = int(request.removeprefix("r"))
    return [
        {
            "user_id": user,
            "item_id": item,
            "ts": START + (number + 1) * MINUTE,
            "event": event,
            "request_id": request,
        }
        for item in items
    ]


def world(exposures, feedback, columns=("position", "score", "scene", "shelf")):
    return World(exposures, feedback=feedback, columns=columns)


def measured(
    exposures, feedback, dimensions=None, columns=("position", "score", "scene", "shelf"), **settings
):
    """(metric, by, k) -> result."""
    found = results_of(
        world(exposures, feedback, columns), MetricSettings(**settings), dimensions, only=NAMES
    )
    keyed = {}
    for key, result in by_name(found).items():
        metric, by, *rest = key
        keyed[(metric, by, *rest)] = result
    return keyed


def values(*args, **settings):
    return {key: result.value for key, result in measured(*args, **settings).items()}


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


def test_a_users_lists_count_as_one_user_and_lists_without_a_user_in_micro_alone():
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


def test_without_a_hit_every_metric_is_zero_and_not_undefined():
    assert set(values(lists(("u", "ab")), liked("r0", "z"), k=(1, 5)).values()) == {0.0}


def test_an_item_that_is_shown_twice_is_a_hit_once_and_its_copy_takes_a_place():
    found = values(lists(("u", "baac")), liked("r0", "ac"), k=(3, 4))
    assert found["precision", "macro", "3"] == pytest.approx(1 / 3)
    assert found["recall", "macro", "4"] == 1.0
    assert found["average_precision", "", "4"] == (1 / 2 + 2 / 4) / 2


def test_the_order_is_by_position_then_score_then_item_and_what_is_unknown_comes_last():
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


def test_what_nobody_acted_on_is_a_miss_or_leaves_the_list():
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


def test_a_list_without_items_has_no_precision_and_counts_in_the_rest():
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


def test_gains_that_are_lost_in_float64_leave_ndcg_undefined():
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
def test_without_anything_to_measure_there_is_no_data(shown, done, macro, micro):
    for (_, by, _), result in measured(shown, done, k=(1,)).items():
        wanted = micro if by in ("micro", "any") else macro
        if wanted is None:
            assert result.value == 1.0
        else:
            assert (result.status, result.detail, result.value) == (Status.NO_DATA, wanted, None)


def test_each_k_is_what_it_is_alone():
    shown = lists(*(("u", "abcdefgh"), ("v", "hgfedcba"), ("u", "abc")))
    done = liked("r0", "bdz") + liked("r1", "ah", user="v") + liked("r2", "c")
    together = values(shown, done, k=(7, 1, 3, 1000))
    alone = {}
    for k in (7, 1, 3, 1000):
        alone |= values(shown, done, k=(k,))
    assert together == alone
    assert len(together) == 4 * 16


def test_a_setting_that_changes_a_metric_is_in_its_definition_and_k_is_in_none():
    found = measured(lists(("u", "a")), liked("r0", "a"), k=(3,), gain="linear", beta=2, unrated="ignore")
    assert found["ndcg", "", "3"].definition == "1;unrated=ignore;gain=linear"
    assert found["f_score", "macro", "3"].definition == "1;unrated=ignore;beta=2.0"
    assert found["recall", "macro", "3"].definition == "1;unrated=ignore"


@pytest.mark.parametrize("k", [(), (0,), (1001,), (5, 5), tuple(range(1, 22))])
def test_places_that_make_no_sense_are_refused(k):
    with pytest.raises(ValidationError):
        MetricSettings(k=k)


def random_world(seed):
    dice = random.Random(seed)
    scores = [None, float("nan"), float("inf"), -float("inf"), 0.0, 0.5, 0.5, 1.0]
    shown = lists(
        *(
            (dice.choice(["u", "v", "w", "x", None]), "".join(dice.choices("abcdefg", k=dice.randrange(7))))
            for _ in range(dice.choice([0, 1, 5, 25]))
        )
    )
    for row in shown:
        row["position"] = dice.choice([row["position"], row["position"], 1, None])
        row["score"] = dice.choice(scores)
        row["shelf"] = dice.choice(["top", "<b>", None])
        row["scene"] = f"scene {row['request_id'][-1]}"
    requests = {row["request_id"]: row["user_id"] for row in shown}
    done = []
    for request, user in requests.items():
        for event in ("click", "buy", "hide", "scroll"):
            done += liked(request, dice.choices("abcdefgh", k=dice.choice([0, 0, 1, 3])), event, user)
    dice.shuffle(done)
    settings = {
        "events": {"click": EventSettings(), "buy": EventSettings(grade=2.5), "hide": EventSettings(grade=0)},
        "k": tuple(dice.sample(range(1, 9), dice.choice([1, 3]))),
        "beta": dice.choice([0.5, 1.0, 2.0]),
        "gain": dice.choice(["exponential", "linear"]),
        "unrated": dice.choice(["as_negative", "ignore", "liked_only"]),
    }
    return shown, done, settings


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for key, want in wanted.items():
        result = found[key]
        if isinstance(want, str):
            assert (key, result.status.value, result.value) == (key, want, None)
            assert result.detail
        else:
            _, value, samples, lower, upper = want
            assert result.value == pytest.approx(value, rel=1e-9, abs=1e-9), key
            assert result.samples == samples, key
            assert result.lower == (None if lower is None else pytest.approx(lower, rel=1e-6, abs=1e-7)), key
            assert result.upper == (None if upper is None else pytest.approx(upper, rel=1e-6, abs=1e-7)), key


@pytest.mark.parametrize("seed", range(12))
def test_every_metric_is_what_the_definitions_give_list_by_list_overall_and_by_slice(seed):
    shown, done, settings = random_world(seed)
    dimensions = {"scene": "scene", "on shelf": "shelf"}
    found = measured(shown, done, dimensions, **settings)
    assert_same(
        {k: r for k, r in found.items() if len(k) == 3}, expected(shown, done, MetricSettings(**settings))
    )
    for dimension, column in dimensions.items():
        for value in {row[column] or "unknown" for row in shown}:
            own = [row for row in shown if (row[column] or "unknown") == value]
            of_slice = {k[:3]: r for k, r in found.items() if k[3:] == (dimension, value)}
            assert_same(of_slice, expected(own, done, MetricSettings(**settings)))
