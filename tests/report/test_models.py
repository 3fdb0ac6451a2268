"""What the pages say of a recommender's models, before anything is laid out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from monitor.core.results import Result, ResultKind, Status
from monitor.history.snapshot import RecommenderState, Series, Snapshot
from monitor.models.diagnosis.diagnose import CAUSES
from monitor.models.split_results import NOT_DIAGNOSED
from monitor.report.fleet import Fleet
from monitor.report.links import Sites, alert_labels
from monitor.report.page import RecommenderView, recommender_page
from monitor.report.runbooks import runbook_text
from monitor.report.views import ModelView
from tests.service import pictured_models, pictures
from tests.service.pictured_models import FEATURE, cause, features, gap, split, violated_gap

ROOT = Path(__file__).resolve().parents[2]
DOCS = "https://git.test/main"


def view(state: RecommenderState | None = None, docs_url: str = "") -> RecommenderView:
    snapshot = Snapshot(pictures.NOW, (state or pictured_models.ranker(),))
    found = recommender_page(snapshot, "ranker", pictures.NOW, Sites(docs_url))
    assert found is not None
    return found.recommender


def ranker(results: Iterable[Result], **standing: Status) -> RecommenderState:
    """A recommender with these results; a gap stands as told under its pair."""
    made: list[Series] = []
    for result in results:
        stands = standing.get(result.labels.get("pair", "")) if result.metric == "auc_gap" else None
        made.append(pictures.series(result, recommender="ranker", check="models", standing=stands))
    return RecommenderState("ranker", series=tuple(made))


def only(results: Iterable[Result], **standing: Status) -> ModelView:
    (model,) = view(ranker(results, **standing)).models
    return model


def plain(text: str) -> str:
    return text.replace("\xa0", " ")


def test_the_violated_model_comes_first_and_an_unnamed_one_is_shown_as_no_name():
    models = view().models
    assert [(model.name, model.verdict.key) for model in models] == [
        ("a/b?<script>#%[LF]..", "violated"),
        ("(no name)", "ok"),
    ]


def test_each_split_has_its_measures_in_the_order_in_which_a_model_meets_them():
    splits = view().models[0].splits
    assert [one.name for one in splits] == ["train", "test", "online"]
    online = splits[2]
    shown = [one and one.value for one in (online.auc, online.rows, online.user_auc, online.calibration)]
    assert shown == ["0.7007", "20,000", "0.6807", "1.02"]
    assert online.auc is not None
    assert online.auc.interval == "0.6947 to 0.7067"
    assert online.user_auc_otherwise == "by positives 0.6897, by samples 0.6877"
    assert online.spark is not None


def test_a_measure_without_a_value_says_why_and_what_was_left_out_is_noted_once():
    said = "2 of 10 rows have no finite score"
    labels = {"split": "test", "model": "v"}
    auc = pictures.metric("auc", status=Status.UNDEFINED, labels=labels, detail="all 8 labels of test are 1")
    loss = pictures.metric("log_loss", value=0.1, labels=labels, detail=said)
    rows = pictures.metric("sample_rows", value=8.0, labels=labels, detail=said)
    (found,) = only([auc, loss, rows]).splits
    assert found.auc is not None
    assert (found.auc.value, found.auc.verdict.word) == ("", "undefined")
    assert found.notes == ("all 8 labels of test are 1", said)
    assert found.calibration is None


def test_the_causes_of_a_violated_gap_are_ranked_by_their_share():
    small, large = view().models[0].gaps
    assert (small.row.name, small.row.verdict.key, small.causes) == ("train minus test", "ok", ())
    assert (large.row.name, large.row.value, large.row.bound) == (
        "test minus online",
        "0.0813",
        "at most 0.02",
    )
    assert [(one.name, plain(one.share), one.percent) for one in large.causes] == [
        ("serving skew", "68 %", 68.0),
        ("population shift", "11 %", 11.0),
        ("score shift", "", None),
    ]
    assert large.causes[0].detail == pictured_models.WHY
    assert [one.evidence for one in large.causes] == [len(pictures.NASTY), 0, 0]
    assert [(name, one.value) for name, one in large.distances] == [
        ("psi", "0.213"), ("jensen shannon", "0.151"), ("ks", "0.12")
    ]  # fmt: skip


@pytest.mark.parametrize("name", [*CAUSES, "of_a_later_version"])
def test_every_cause_has_an_existing_runbook_and_a_link_if_the_docs_have_an_address(name):
    results = [violated_gap("v"), cause(name, 0.5, "v")]
    (without,) = only(results).gaps[0].causes
    name = without.runbook.removeprefix("runbooks/")
    assert runbook_text(name)
    (model,) = view(ranker(results), DOCS).models
    assert model.gaps[0].causes[0].runbook == f"{DOCS}/docs/runbooks/{name}.md"


def test_a_violated_gap_whose_last_window_was_not_violated_is_not_explained_again():
    calm = gap("test_online", "v", value=0.021, lower=0.01, upper=0.03, samples=9000)
    (held,) = only([calm, cause("serving_skew", 0.5, "v")], test_online=Status.VIOLATED).gaps
    assert (held.row.verdict.key, held.row.last and held.row.last.key) == ("violated", "ok")
    assert held.causes == ()
    assert "stays violated until a window clears it" in held.unexplained


def test_a_violated_gap_without_a_cause_is_reported_and_an_ok_gap_is_not():
    assert only([violated_gap("v")]).gaps[0].unexplained == "No cause was found that clearly explains it."
    assert only([gap("test_online", "v", value=0.0, samples=9)]).gaps[0].unexplained == ""


def test_a_gap_whose_diagnosis_failed_is_not_said_to_have_no_cause():
    failed = replace(violated_gap("v"), detail=f"{NOT_DIAGNOSED}: out of memory")
    assert only([failed]).gaps[0].unexplained == "Its causes are not known, because the diagnosis failed."


def test_models_have_a_place_of_their_own_and_their_slices_are_among_the_slices():
    shown = view()
    assert shown.metrics == ()
    assert shown.objectives == ()
    (group,) = shown.slices
    assert [(row.name, row.note) for row in group.rows] == [("home", "auc split online, model (no name)")]


def test_the_auc_of_exposures_stays_among_the_metrics():
    auc = pictures.series(pictures.metric("auc", value=0.7, samples=90), recommender="ranker")
    shown = view(replace(pictured_models.ranker(), series=(auc, *pictured_models.ranker().series)))
    assert [group.name for group in shown.metrics] == ["auc"]
    assert len(shown.models) == 2


def test_a_violated_gap_is_the_recommenders_verdict_and_needs_attention():
    page = Fleet(Snapshot(pictures.NOW, (pictured_models.ranker(),)), pictures.NOW).page()
    assert (page.verdict.key, page.summary) == ("violated", "ranker needs attention")
    (line,) = page.lines
    assert (line.problem, line.more) == ("AUC test minus online", 0)
    told = view()
    assert told.summary == "1 AUC gap too large"
    (row,) = told.problems
    assert (row.name, row.note) == (
        "AUC test minus online",
        "model a/b?<script>#%[LF].., first cause: serving skew",
    )
    assert (
        row.href == "recommenders/ranker/gaps/test_online/serving_skew/model-a%2Fb%3F%3Cscript%3E%23%25%0A.."
    )
    assert row.evidence == len(pictures.NASTY)


def test_a_gap_without_evidence_leads_to_the_models_of_its_recommender():
    (row,) = view(ranker([violated_gap("v")])).problems
    assert (row.href, row.evidence, row.note) == ("recommenders/ranker#models", 0, "model v")


def test_all_is_well_where_every_gap_is_ok():
    shown = view(ranker(pictured_models.unnamed()))
    assert (shown.verdict.key, shown.summary, shown.problems) == ("ok", "1 AUC gap ok", ())


def test_a_model_that_is_not_served_needs_no_attention_if_another_is():
    old = gap("test_online", "old", Status.NO_DATA, samples=0, detail="there is no row of the split online")
    assert view(ranker([old])).verdict.key == "no_data"
    assert view(ranker([*pictured_models.unnamed(), old])).verdict.key == "ok"
    own = gap("test_online", "", Status.NO_DATA, samples=0, detail="there is no row of the split test")
    served = split("online", 0.7, "", 900)
    assert view(ranker([own, *served])).verdict.key == "no_data"
    assert view(ranker([own, *served])).summary == "1 AUC gap could not be judged"


def test_a_measure_of_a_model_in_error_makes_its_recommender_an_error():
    auc = pictures.metric("auc", status=Status.ERROR, labels={"split": "online", "model": ""}, detail="cut")
    shown = view(ranker([auc]))
    assert shown.verdict.key == "error"
    assert [(row.name, row.note, row.sentence) for row in shown.problems] == [
        ("auc", "split online, model (no name)", "cut")
    ]


def test_the_feature_that_surely_differs_most_comes_first():
    found = view().models[0].features
    assert [one.name for one in found] == [FEATURE, "price_band", "age"]
    assert found[0].skew is not None
    assert (plain(found[0].skew.value), plain(found[0].skew.interval)) == ("42 %", "41 % to 43 %")
    values = [None if one is None else one.value or one.verdict.key for one in found[0].distances]
    assert values == ["0.1", "0.03444", "undefined"]
    assert found[1].notes[0] == "6200 of 20000 pairs differ: mostly '0' online"


def test_features_without_pairs_are_ordered_by_distance_and_those_beyond_the_page_are_counted():
    many = []
    for index in range(23):
        labels = {"model": "v", "feature": f"f{index:02}"}
        many.append(pictures.metric("feature_distance", "jensen_shannon", value=index / 100, labels=labels))
    model = only(many)
    assert [one.name for one in model.features][:2] == ["f22", "f21"]
    assert (len(model.features), model.left_out) == (20, 3)
    assert model.features[0].skew is None


def test_the_page_says_why_features_cannot_be_compared():
    assert view().models[1].lacking == (
        "no offline row of the model: log the same requests over again with the split `offline`",
    )
    assert only([violated_gap("v"), *features("v")]).lacking == ()


def test_the_silence_of_a_model_without_a_name_is_no_silence_of_the_whole_recommender():
    failed = Result(
        kind=ResultKind.MODEL, metric="auc", labels={"split": "test", "model": ""}, status=Status.ERROR,
        definition="1", detail="it broke",
    )  # fmt: skip
    one = pictures.series(failed, recommender="ranker", check="models")
    assert alert_labels(one) == {"alertname": "RecsysMetricError", "recommender": "ranker"}
