"""What the pages say of the causes read from bands, of drift, and of what is still learnt."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import unquote

import pytest

from monitor.anomalies.causes import CAUSES
from monitor.core.results import Result, Status, Window
from monitor.history.snapshot import RecommenderState, Snapshot, Violation
from monitor.report.anomaly import AnomalyPage, anomaly_page
from monitor.report.links import Sites
from monitor.report.page import RecommenderView, recommender_page
from monitor.report.runbooks import runbook_text
from monitor.report.views import AnomaliesView
from tests.service import pictured_bands, pictures
from tests.service.made import HOUR, LAST, NOW, metric, series
from tests.service.pictured_bands import FOUND, NAME, anomaly, feeds


def plain(text: str) -> str:
    return text.replace("\xa0", " ")


def view(state: RecommenderState) -> RecommenderView:
    page = recommender_page(Snapshot(NOW, (state,)), state.name, NOW)
    assert page is not None
    return page.recommender


def anomalies(state: RecommenderState) -> AnomaliesView:
    found = view(state).anomalies
    assert found is not None
    return found


def page(state: RecommenderState, cause: str = "lists_empty") -> AnomalyPage | None:
    return anomaly_page(Snapshot(NOW, (state,)), NAME, cause, NOW, "https://git.test/main")


def test_a_found_cause_comes_first_and_links_to_its_evidence():
    shown = anomalies(feeds())
    (row,) = shown.found
    assert (row.name, row.verdict.key, row.counted, row.evidence) == (
        "lists empty",
        "violated",
        "3 series",
        3,
    )
    assert row.href == "recommenders/feeds/anomalies/lists_empty"
    assert row.since is not None
    assert row.since.text == "2026-03-09 11:00 UTC"
    assert row.detail.startswith("more lists are empty than usual; failure by pv is 0.41")
    assert shown.summary == f"{len(CAUSES) - 1} other causes checked, none found."
    assert [one.name.replace(" ", "_") for one in shown.quiet] == [c for c in CAUSES if c != "lists_empty"]


def test_violated_causes_and_drifts_need_attention_and_are_counted():
    shown = view(feeds())
    assert (shown.verdict.key, shown.summary) == ("violated", "1 anomaly · 1 drift")
    assert [(row.name, row.note) for row in shown.problems] == [
        ("lists empty", "anomaly"),
        ("action_rate by exposure (event=click)", "drift"),
    ]
    (drift,) = anomalies(feeds()).drifts
    assert shown.problems[1].sentence == drift.detail
    assert (drift.detail, drift.value, drift.bound) == (
        "fell from 0.031 to 0.027 in three days", "-6.1", "at least -4.5"
    )  # fmt: skip


def test_bands_are_not_listed_as_metrics_objectives_or_slices():
    shown = view(feeds())
    assert shown.objectives == ()
    assert {group.name for group in shown.metrics} == {"volume", "coverage", "failure", "gini", "action_rate"}
    assert [(group.name, len(group.rows)) for group in shown.slices] == [("scene", 1)]
    (of_slice,) = shown.slices[0].rows
    assert of_slice.band is not None
    assert (of_slice.band.deviation, of_slice.band.verdict.key) == ("61.3 sd above", "violated")
    assert "\n" not in of_slice.name


def test_a_recommender_without_bands_has_no_anomalies_to_speak_of():
    assert view(pictures.news()).anomalies is None


def without_drift(state: RecommenderState) -> RecommenderState:
    return replace(state, series=tuple(one for one in state.series if one.result.metric != "drift"))


def test_a_recommender_whose_causes_are_all_ok_is_well():
    state = without_drift(feeds(anomaly("lists_empty")))
    shown = view(replace(state, series=(*state.series, *pictures.news().series)))
    assert (shown.verdict.key, shown.problems) == ("ok", ())
    assert shown.anomalies is not None
    assert shown.anomalies.summary == f"{len(CAUSES)} causes checked, none found."
    assert (shown.anomalies.found, shown.anomalies.drifts, shown.anomalies.steady) == ((), (), "")


def test_while_bands_are_learned_nothing_alerts_and_the_page_shows_the_progress():
    waiting = [
        anomaly(name, Status.NO_DATA, None, detail="no series has enough past windows for a band yet")
        for name in CAUSES
    ]
    state = without_drift(feeds(*waiting))
    young = [one for one in state.series if one.result.metric not in ("expected", "deviation")]
    gini = pictured_bands.learning(metric("gini", value=0.6))
    state = replace(state, series=(*young, *gini, *pictures.news().series))
    shown = view(state)
    assert shown.verdict.key == "ok"
    assert shown.anomalies is not None
    assert shown.anomalies.summary == "No cause can be searched for yet: no series has enough past windows."
    assert shown.anomalies.learning == "0 of 1 series have a band; the others need more past windows."
    assert anomalies(feeds()).learning == "5 of 6 series have a band; the others need more past windows."


def test_causes_that_could_not_be_looked_for_are_counted_apart():
    shown = anomalies(feeds(anomaly("clicks_lost", Status.NO_DATA, None), anomaly("lists_empty")))
    assert shown.summary == f"{len(CAUSES) - 1} causes checked, none found; 1 could not be checked yet."


def test_a_window_that_could_not_be_compared_is_one_line_and_not_one_a_cause():
    failed = [anomaly(name, Status.ERROR, None, detail="interrupted") for name in CAUSES]
    shown = view(without_drift(feeds(*failed)))
    assert shown.verdict.key == "error"
    assert [(row.name, row.sentence, row.href) for row in shown.problems] == [
        ("anomalies", "interrupted", "")
    ]


def test_a_failed_check_of_bands_leads_to_its_own_alert_and_to_no_cause():
    failed = [anomaly(name, Status.ERROR, None, detail="interrupted") for name in CAUSES]
    state = without_drift(feeds(*failed))
    sites = Sites(alertmanager="https://alerts.test")
    (row,) = RecommenderView(state, Snapshot(NOW, (state,)), NOW, sites).problems
    assert row.runbook == "runbooks/RecsysCheckError"
    assert unquote(row.silence).partition("filter=")[2] == (
        f'{{alertname="RecsysCheckError",recommender="{NAME}",check="bands"}}'
    )


def test_the_worse_of_two_series_of_one_cause_is_shown():
    second = series(
        anomaly("other", Status.VIOLATED, 1.0, detail="odd"), recommender=NAME, check="bands_feedback"
    )
    state = feeds(anomaly("lists_empty"))
    for order in ((*state.series, second), (second, *state.series)):
        shown = anomalies(replace(state, series=order))
        assert [(row.name, row.detail) for row in shown.found] == [("other", "odd")]
        assert "other" not in [row.name for row in shown.quiet]


def test_the_page_of_a_cause_shows_the_series_with_their_bands_and_pasts():
    found = page(feeds())
    assert found is not None
    assert [(one.name, one.slice, one.deviation) for one in found.series] == [
        (
            "failure by pv",
            "scene = <script>document.title='pwned'</script>[LF][U+202E]",
            "61.3 sd above",
        ),
        ("failure by pv", "", "55.1 sd above"),
        ("coverage by pv", "", "55.1 sd below"),
    ]
    first = found.series[1]
    assert (plain(first.measured), plain(first.expected), plain(first.between)) == (
        "41 %", "1.02 %", "0.52 % to 1.52 %"
    )  # fmt: skip
    assert all(one.spark is not None and one.spark.bands for one in found.series)
    assert (found.shown, found.samples, found.empty) == ("3 series", "41", "")
    assert (found.evidence_window, found.evidence_is_older) == ("2026-03-09 13:00 to 14:00 UTC", False)
    assert found.runbook == "https://git.test/main/docs/runbooks/causes/lists_empty.md"
    assert found.means == CAUSES["lists_empty"]
    assert first.source == "from 112 past windows"


def test_every_cause_has_a_runbook_of_its_own_and_an_unknown_one_that_of_the_alert():
    for cause in CAUSES:
        found = page(feeds(), cause)
        assert found is not None
        assert found.runbook == f"https://git.test/main/docs/runbooks/causes/{cause}.md"
        assert runbook_text(f"causes/{cause}")
    found = page(feeds(anomaly("of_an_older_version")), "of_an_older_version")
    assert found is not None
    assert found.runbook == "https://git.test/main/docs/runbooks/RecsysAnomaly.md"
    assert found.means == ""


def test_the_meaning_of_a_cause_is_not_repeated():
    told = replace(FOUND, detail=f"{CAUSES['lists_empty']}; failure is 0.4")
    found = page(feeds(told))
    assert found is not None
    assert found.means == ""


def test_a_cause_that_is_over_still_shows_the_series_of_the_window_it_was_found_in():
    state = feeds(anomaly("lists_empty"))
    earlier = Window(LAST.start - 2 * HOUR, LAST.end - 2 * HOUR)
    over = tuple(
        replace(one, violation=Violation(earlier, FOUND))
        if one.result.labels.get("cause") == "lists_empty"
        else one
        for one in state.series
    )
    found = page(replace(state, series=over))
    assert found is not None
    assert (found.evidence_is_older, len(found.series)) == (True, 3)
    assert found.evidence_window == "2026-03-09 11:00 to 12:00 UTC"
    assert found.empty == "It was checked in this window, and not found."


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (anomaly("lists_empty"), "not found"),
        (anomaly("lists_empty", value=2.0, detail="follows from traffic_lost"), "another cause explains"),
        (anomaly("lists_empty", Status.NO_DATA, None), "could not be checked"),
        (anomaly("lists_empty", Status.ERROR, None), "could not be compared"),
    ],
)
def test_a_cause_without_series_says_why(result: Result, why: str):
    found = page(feeds(result))
    assert found is not None
    assert found.series == ()
    assert why in found.empty


def test_a_series_that_is_measured_no_more_keeps_its_row_without_a_drawing():
    gone = {"metric": "score_health", "by": "nan", "of": "", "dimension": None, "value": None}
    row = {**gone, "measured": 0.5, "expected": None, "lower": None, "upper": 0.1, "deviation": None}
    found = page(feeds(replace(FOUND, evidence=(row,), value=30.0)))
    assert found is not None
    (one,) = found.series
    assert (one.name, plain(one.measured), one.expected, one.between, one.deviation, one.spark) == (
        "score_health by nan", "50 %", "", "", "", None
    )  # fmt: skip
    assert found.shown == "1 of 30 series"


@pytest.mark.parametrize(
    ("name", "cause"), [("nobody", "lists_empty"), (NAME, "nonsense"), (NAME, ""), ("news", "lists_empty")]
)
def test_an_unknown_cause_has_no_page(name: str, cause: str):
    snapshot = Snapshot(NOW, (feeds(), pictures.news()))
    assert anomaly_page(snapshot, name, cause, NOW) is None
