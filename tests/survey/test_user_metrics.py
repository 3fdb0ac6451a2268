"""The metrics of single users are those that the families give of that user's own lists."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from monitor.metrics.catalogue import FAMILIES, SPECS
from monitor.metrics.measure import measure_all
from monitor.metrics.shared import Shared
from monitor.survey import people as groups
from monitor.survey.user_metrics import OF_ONE_USER, chosen, largest_k, measure_users, series_of
from tests.survey.world import END, answers, catalog, clicks, exposures, feelings, people


@pytest.fixture
def opened(survey_of):
    """Lists of four days with clicks; the survey is about the last two."""
    rng = np.random.default_rng(11)
    users = people(rng, 40)
    shown = exposures(rng, users, days=2)
    before = exposures(rng, users, days=2)
    before = before.assign(ts=before["ts"] - pd.Timedelta(days=3), request_id="b" + before["request_id"])
    both = pd.concat([before, shown])
    given = answers(rng, users, feelings(rng, users), "happy", rate=0.9)
    config = {"metrics": {"k": [2, 5]}}
    return survey_of(
        {"least": 10, "attribution": "2d"}, config=config, exposures=both, feedback=clicks(rng, both),
        catalog=catalog(), survey=given,
    )  # fmt: skip


def alone(survey, user, lists=None):
    """The metrics of a log with the lists of this user alone; the past stays that of everybody."""
    whole, create = survey._shared, survey._create
    mine = whole.exposures.filter(whole.exposures["user_id"] == user)
    if lists is not None:
        mine = mine.semi_join(lists, "request_id")
    shared = Shared(
        create("alone_exposures", mine),
        catalog=whole.catalog,
        feedback=whole.feedback,
        responses=whole.responses,
        around=whole.around,
        history_user_items=whole.history_user_items,
        history_actions=whole.history_actions,
        materialise=lambda name, table: create(f"alone_{name}", table),
    )
    names = tuple(name for name in SPECS if name not in OF_ONE_USER)
    settings = survey.settings.metrics.model_copy(update={"disable": names})
    results = [one for measured in measure_all(shared, settings, {}, FAMILIES) for one in measured.results]
    return {series_of(one): one.value for one in results if one.value is not None}


@pytest.mark.parametrize("of_answers", [False, True])
def test_each_value_is_that_of_a_log_with_this_user_alone(opened, of_answers):
    lists = None
    if of_answers:
        lists = groups.in_question(opened._about, "happy")
        lists = opened._create("some_lists", lists.filter(lists["request_id"].cast("string").endswith("1")))
    found = measure_users(
        opened._shared, opened.settings.metrics, opened._respondents, list(OF_ONE_USER), opened._create, lists
    )
    users = sorted(found.values["volume", (("by", "requests"),)])[:3]
    compared = 0
    for user in users:
        expected = alone(opened, user, lists)
        for series, values in found.values.items():
            assert (user in values) == (series in expected), (user, series)
            if user in values:
                assert values[user] == pytest.approx(expected[series], rel=1e-9, abs=1e-12), (user, series)
                compared += 1
    assert compared > 3 * 12


def test_the_series_say_something_of_one_user(opened):
    metrics = largest_k(opened.settings.metrics)
    found = measure_users(opened._shared, metrics, opened._respondents, list(OF_ONE_USER), opened._create)
    names = {(metric, *dict(labels).values()) for metric, labels in chosen(found).values}
    assert names >= {
        ("volume", "requests"), ("list_length",), ("failure", "pv"), ("update_rate", "refresh"),
        ("intra_list_diversity",), ("novelty", "item"), ("novelty", "category"), ("self_information",),
        ("average_popularity",), ("serendipity",), ("action_rate", "exposure", "click"), ("ndcg", "5"),
        ("precision", "macro", "5"),
    }  # fmt: skip
    assert not names & {("volume", "users"), ("failure", "uv"), ("novelty", "user"), ("ndcg", "2")}


def test_named_metrics_give_all_of_their_series(opened):
    found = measure_users(
        opened._shared, opened.settings.metrics, opened._respondents, ["ndcg", "failure"], opened._create
    )
    assert {series[0] for series in found.values} == {"ndcg", "failure"}
    assert sorted(dict(labels)["k"] for metric, labels in found.values if metric == "ndcg") == ["2", "5"]


def test_what_was_shown_after_an_answer_does_not_count(opened):
    late = opened._about.join(opened._lists, "request_id").aggregate(last=lambda t: t["ts"].max())
    assert pd.Timestamp(late.to_pyarrow().to_pylist()[0]["last"], tz="UTC") <= END - pd.Timedelta(minutes=5)
