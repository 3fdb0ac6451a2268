"""The page of one cause: found by the names of its gap, and only while that gap is violated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monitor.core.results import Status
from monitor.history.snapshot import RecommenderState, Snapshot
from monitor.report.cause import cause_page
from monitor.report.views import CausePage
from tests.service import pictured_models, pictures
from tests.service.pictured_models import FEATURE, MODEL


def found(
    name: str = "ranker",
    model: str = MODEL,
    pair: str = "test_online",
    cause: str = "serving_skew",
    snapshot: Snapshot | None = None,
) -> CausePage | None:
    shown = snapshot or Snapshot(pictures.NOW, (pictured_models.ranker(),))
    return cause_page(shown, name, model, pair, cause, pictures.NOW)


def test_it_says_what_was_found_and_shows_the_rows_as_they_are_in_the_log():
    page = found()
    assert page is not None
    assert (page.model, page.gap.name, page.gap.value) == (
        "a/b?<script>#%[LF]..",
        "test minus online",
        "0.0813",
    )
    assert (page.cause.name, page.samples, page.window) == (
        "serving skew", "40,000", "2026-03-09 13:00 to 14:00 UTC"
    )  # fmt: skip
    (table,) = page.evidence
    assert table.columns == ("request_id", "feature", "online")
    assert table.rows[0] == ("0", FEATURE, pictures.HOSTILE)
    assert len(table.rows) == len(pictures.NASTY)


def test_rows_that_tell_different_things_are_tables_of_their_own_and_null_stays_null():
    rows = ({"feature": "age", "rate": 0.6}, {"id": 1, "age": None}, {"feature": "city", "rate": 0.1})
    made = [pictured_models.violated_gap("v"), pictured_models.cause("serving_skew", 0.5, "v", evidence=rows)]
    series = tuple(pictures.series(one, recommender="ranker", check="models") for one in made)
    page = found(model="v", snapshot=Snapshot(pictures.NOW, (RecommenderState("ranker", series=series),)))
    assert page is not None
    assert [(one.columns, one.rows) for one in page.evidence] == [
        (("feature", "rate"), (("age", "0.6"), ("city", "0.1"))),
        (("id", "age"), (("1", None),)),
    ]


def test_a_cause_without_rows_has_a_page_as_well():
    page = found(cause="score_shift")
    assert page is not None
    assert (page.evidence, page.cause.percent) == ((), None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "shop"},
        {"model": "a/b"},
        {"model": ""},
        {"pair": "train_test"},
        {"pair": "nonsense"},
        {"cause": "time_travel"},
        {"cause": ""},
    ],
)
def test_an_unknown_rule_or_recommender_has_no_page(wrong):
    assert found(**wrong) is None


def test_a_gap_that_is_over_has_no_causes_left():
    ranker = pictured_models.ranker()
    series = tuple(
        replace(one, result=replace(one.result, status=Status.OK)) if one.result.metric == "auc_gap" else one
        for one in ranker.series
    )
    assert found(snapshot=Snapshot(pictures.NOW, (replace(ranker, series=series),))) is None
