"""From series out of their bands to the reported causes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monitor.anomalies.causes import CAUSES, FEEDBACK_CAUSES, OTHER
from monitor.anomalies.explain import ROWS, WHOLE, anomalies
from monitor.anomalies.results import Banded
from monitor.anomalies.series import BandedSeries
from monitor.core.results import Status
from monitor.metrics.catalogue import SPECS
from tests.anomalies.departures import EVERY, anomaly_results, missing, out, violated_causes, within


@pytest.mark.parametrize(
    ("departure", "cause"),
    [
        (out("volume", "below", "requests"), "traffic_lost"),
        (out("volume", "below", "users"), "users_lost"),
        (out("volume", "below", "users", slice_="home"), "users_lost"),
        (out("volume", "above", "exposures"), "traffic_surge"),
        (out("volume", "above", "requests", slice_="home"), "traffic_surge"),
        (out("volume", "below", "requests", slice_="home"), "scene_lost"),
        (out("failure", "above", "pv"), "lists_empty"),
        (out("failure", "above", "uv", slice_="search"), "lists_empty"),
        (out("coverage", "below", "pv"), "lists_empty"),
        (out("list_length", "below"), "lists_short"),
        (out("volume", "below", "exposures"), "lists_short"),
        (out("volume", "below", "exposures", slice_="home"), "lists_short"),
        (out("list_length", "above"), "lists_long"),
        (out("catalog_items", "below"), "catalog_changed"),
        (out("catalog_items", "above"), "catalog_changed"),
        (out("coverage_unknown_items", "above"), "catalog_changed"),
        (out("personalization", "below"), "not_personal"),
        (out("category_entropy", "below", "pv"), "category_takeover"),
        (out("intra_list_diversity", "below"), "category_takeover"),
        (out("gini", "above"), "few_items"),
        (out("coverage", "below", "item"), "few_items"),
        (out("volume", "below", "items"), "few_items"),
        (out("popularity_share", "above", "top_item"), "few_items"),
        (out("update_rate", "below", "refresh"), "lists_stale"),
        (out("novelty", "below", "item"), "lists_repeat"),
        (out("score_health", "above", "nan"), "scores_changed"),
        (out("score_health", "below", "distinct"), "scores_changed"),
        (out("score_health", "above", "distinct"), OTHER),
        (out("action_rate", "below", "exposure", "event=click"), "clicks_lost"),
        (out("action_volume", "below", "", "event=click"), "clicks_lost"),
        (out("top_user_share", "above", "top_user", "event=click"), "few_clickers"),
        (out("action_volume", "above", "", "event=click"), "clicks_surge"),
        (out("attribution", "below", "request", "event=click"), "attribution_lost"),
        (out("attribution", "above", "unattributed", "event=click"), "attribution_lost"),
        (out("attribution", "below", "unattributed", "event=click"), OTHER),
        (out("unattributed", "above"), "attribution_lost"),
        (out("ndcg", "below", "macro", "k=10"), "ranking_worse"),
        (out("log_loss", "above"), "ranking_worse"),
        (out("gini", "below"), OTHER),
        (out("failure", "below", "pv"), OTHER),
        (out("personalization", "above"), OTHER),
    ],
    ids=lambda value: value if isinstance(value, str) else value.departure().title(),
)
def test_each_pattern_gives_its_cause(departure: Banded, cause: str) -> None:
    assert violated_causes([departure]) == [cause]


def test_every_metric_of_a_sign_is_in_the_catalogue() -> None:
    named = {sign.metric for cause in EVERY for sign in cause.signs}
    assert named <= set(SPECS)
    for cause in EVERY:
        for sign in cause.signs:
            assert set(sign.by) <= set(SPECS[sign.metric].by), (cause.name, sign)


def test_a_cause_follows_only_from_earlier_causes() -> None:
    names = [cause.name for cause in EVERY]
    assert len(set(names)) == len(names)
    assert list(CAUSES) == [*names, OTHER]
    for place, cause in enumerate(EVERY):
        assert set(cause.follows) <= set(names[:place]), cause.name


def test_a_cause_that_follows_from_another_is_ok_and_names_it() -> None:
    gone = [out("volume", "below", "requests"), out("volume", "below", "requests", slice_="home")]
    found = anomaly_results([*gone, out("action_volume", "below", of="event=click")])
    assert found["traffic_lost"].status is Status.VIOLATED
    for name in ("scene_lost", "clicks_lost"):
        assert found[name].status is Status.OK
        assert found[name].value == 1.0
        assert found[name].detail.startswith("follows from traffic_lost; ")
        assert found[name].evidence == ()


def test_a_cause_in_the_exposures_explains_causes_in_the_feedback() -> None:
    lost = [out("action_volume", "below", of="event=click")]
    assert violated_causes(lost, FEEDBACK_CAUSES) == ["clicks_lost"]
    assert violated_causes(lost, FEEDBACK_CAUSES, before={"lists_empty": [WHOLE]}) == []
    assert violated_causes(lost, FEEDBACK_CAUSES, before={"lists_empty": [("scene", "home")]}) == [
        "clicks_lost"
    ]


def test_a_lost_scene_explains_only_the_series_of_that_scene() -> None:
    gone = out("volume", "below", "requests", slice_="old")
    of_the_scene = out("list_length", "below", slice_="old")
    of_another = out("list_length", "below", slice_="home")
    of_the_whole = out("action_rate", "below", "pv", "event=click")
    assert violated_causes([gone, of_the_scene]) == ["scene_lost"]
    assert violated_causes([gone, of_the_scene, of_another]) == ["scene_lost", "lists_short"]
    assert violated_causes([gone, of_the_whole]) == ["scene_lost", "clicks_lost"]


def test_lost_users_are_not_severe_and_do_not_explain_lists() -> None:
    users = out("volume", "below", "users", measured=0.0, expected=100.0)
    shown = anomalies([users, out("update_rate", "below", "refresh")], EVERY, version="1")
    stands = [one.labels["cause"] for one in shown if one.status is Status.VIOLATED]
    assert stands == ["users_lost", "lists_stale"]
    assert not [one for one in shown if one.metric == "anomaly_severity" and one.value]
    assert violated_causes([users, out("volume", "below", "requests")]) == ["traffic_lost"]


def test_all_causes_are_ok_if_no_series_left_its_band_and_no_data_without_bands() -> None:
    assert {one.status for one in anomaly_results([]).values()} == {Status.OK}
    assert set(anomaly_results([])) == {*CAUSES}
    learning = anomaly_results([], usual=())
    assert {one.status for one in learning.values()} == {Status.NO_DATA}
    assert {one.detail for one in learning.values()} == {"no series has enough past windows for a band yet"}
    assert not [one for one in anomalies([], EVERY, version="1") if one.metric != "anomaly"]


def test_a_cause_is_no_data_if_none_of_its_series_is_judged() -> None:
    found = anomaly_results([], usual=[BandedSeries("gini", "", "")])
    assert {name for name, one in found.items() if one.status is Status.OK} == {"few_items", OTHER}
    detail = "none of its series has both a value and a band"
    assert found["lists_empty"].detail == detail


def test_a_cause_is_no_data_if_its_series_left_the_band_and_has_no_value_now() -> None:
    found = anomaly_results([missing("failure", "above", "pv", "home"), missing("gini", "below")])
    assert {name for name, one in found.items() if one.status is Status.NO_DATA} == {"lists_empty", OTHER}
    assert found["lists_empty"].detail == (
        "failure by pv where scene is home was out of its band and has no value now"
    )
    both = [missing("failure", "above", "pv"), out("failure", "above", "uv")]
    assert violated_causes(both) == ["lists_empty"]


def test_a_cause_without_a_verdict_still_explains_others() -> None:
    lost = [out("action_volume", "below", of="event=click")]
    assert violated_causes([missing("failure", "above", "pv"), *lost]) == []
    assert violated_causes([missing("failure", "above", "pv", "home"), *lost]) == ["clicks_lost"]


@pytest.mark.parametrize(("side", "over"), [("above", "few_items"), ("below", OTHER)])
def test_a_known_change_ends_a_cause_and_leaves_the_others_without_data(side: str, over: str) -> None:
    learns = missing("gini", side)
    found = anomalies([replace(learns, learns=True)], EVERY, version="1")
    statuses = {one.labels["cause"]: one.status for one in found if one.metric == "anomaly"}
    assert statuses.pop(over) is Status.OK
    assert set(statuses.values()) == {Status.NO_DATA}


def test_the_worst_series_comes_first_and_evidence_is_bounded() -> None:
    many = [out("gini", "above", of=f"k={place}", deviation=5.0 + place) for place in range(ROWS + 5)]
    found = anomaly_results(many)["few_items"]
    assert found.value == ROWS + 5
    assert len(found.evidence) == ROWS
    assert found.evidence[0]["of"] == f"k={ROWS + 4}"
    assert found.detail.endswith(f"gini (k={ROWS + 4}) is 1, expected 2 (1.5 to 2.5), and {ROWS + 4} more")


def test_notes_are_added_to_the_detail_of_a_violated_cause() -> None:
    found = anomaly_results([out("gini", "above")], notes=["model m2 serves most since 10:00"])
    assert found["few_items"].detail.endswith("; model m2 serves most since 10:00")
    assert found["lists_empty"].detail == ""


@pytest.mark.parametrize(
    ("departures", "cause", "gone"),
    [
        ([out("volume", "below", "requests", measured=30.0, expected=100.0)], "traffic_lost", 0.7),
        ([out("failure", "above", "pv", measured=0.6, expected=0.1)], "lists_empty", 0.5),
        ([out("failure", "above", "pv", slice_="a", measured=0.9, expected=0.1)], "lists_empty", 0.0),
        ([out("coverage", "below", "pv")], "lists_empty", 0.0),
        ([out("action_volume", "below", measured=0.0, expected=40.0)], "clicks_lost", 1.0),
        ([out("action_volume", "below", measured=0.0, expected=0.0)], "clicks_lost", 0.0),
        *(
            (
                [
                    out("action_volume", "below", of="event=click", measured=50.0, expected=100.0),
                    within(
                        BandedSeries("action_rate", "exposure", "event=click"), measured=rate, expected=0.04
                    ),
                ],
                "clicks_lost",
                gone,
            )
            for rate, gone in (
                (0.04, 0.0),  # half of the exposures are gone, and nothing else
                (0.05, 0.0),
                (0.03, 0.25),  # a third of them is, and a quarter of the actions on the rest
                (0.02, 0.5),
                (0.01, 0.5),  # twice the exposures, by robots: no more than what is missing
                (0.0, 0.5),
            )
        ),
        (  # a rare event is gone: few of all actions
            [
                out("action_volume", "below", of="event=order", measured=0.0, expected=40.0),
                within(BandedSeries("action_volume", "", "event=click"), measured=950.0, expected=960.0),
            ],
            "clicks_lost",
            0.05,
        ),
    ],
)
def test_severity_is_the_missing_share_of_the_whole(departures, cause: str, gone: float) -> None:
    found = anomalies(departures, EVERY, version="1")
    severity = {one.labels["cause"]: one.value for one in found if one.metric == "anomaly_severity"}
    assert severity[cause] == pytest.approx(gone)
    assert "few_items" not in severity or severity["few_items"] == 0.0


def test_the_order_of_the_series_changes_nothing() -> None:
    some = [out("gini", "above"), out("failure", "above", "pv"), out("novelty", "below", "item")]
    some.append(replace(some[0], series=BandedSeries("gini", "", "k=2")))
    some[1] = replace(some[1], departed=False, deviation=float("nan"), was=9.0)
    assert anomalies(some, EVERY, version="1") == anomalies(some[::-1], EVERY, version="1")
