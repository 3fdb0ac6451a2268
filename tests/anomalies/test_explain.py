"""Which causes explain which others: in a chain, by the number of rows, and by their evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monitor.anomalies.causes import CAUSES, DRIVEN_BY_VOLUME, EXPOSURE_CAUSES, FEEDBACK_CAUSES, OTHER
from monitor.anomalies.explain import ROWS, WHOLE
from monitor.core.results import MOST_EVIDENCE, Status
from monitor.history.rows import sanitize_result
from monitor.metrics.catalogue import SPECS
from tests.anomalies.departures import anomaly_results, missing, out, violated_causes

SURGE = out("volume", "above", "requests")
LOSS = out("volume", "below", "requests")
FEW_CLICKS = out("action_volume", "below", of="event=click")
EMPTY = out("failure", "above", "pv", measured=0.5, expected=0.002)
MANY_CLICKS = out("action_volume", "above", of="event=click")
FRAUD = out("top_user_share", "above", "top_1_percent", "event=click")
WORSE = out("ndcg", "below", of="k=10")


@pytest.mark.parametrize(
    ("found", "first"),
    [
        ([LOSS, FEW_CLICKS, FRAUD, WORSE], "traffic_lost"),
        ([EMPTY, FEW_CLICKS, FRAUD, WORSE], "lists_empty"),
        ([SURGE, MANY_CLICKS, WORSE], "traffic_surge"),
        ([SURGE, WORSE], "traffic_surge"),
    ],
)
def test_a_chain_of_causes_is_reported_as_the_first(found, first) -> None:
    assert violated_causes(found) == [first]
    assert violated_causes(found[1:]) != []  # without the first cause, the next is reported


def test_a_cause_in_one_scene_explains_only_that_scene() -> None:
    gone = out("volume", "below", "requests", slice_="old")
    clicks, worse = (replace(one, series=replace(one.series, dimension="scene", value="old"))
                     for one in (FEW_CLICKS, WORSE))  # fmt: skip
    assert violated_causes([gone, clicks, worse]) == ["scene_lost"]
    assert violated_causes([gone, clicks, WORSE]) == ["scene_lost", "ranking_worse"]


def test_a_detail_shows_a_large_number_with_all_digits_before_the_point() -> None:
    lost = out("volume", "below", "requests", measured=14049.0, expected=21000.0, lower=18000.4, upper=1e5)
    detail = anomaly_results([lost])["traffic_lost"].detail
    assert "is 14,049, expected 21,000 (18,000 to 100,000)" in detail


@pytest.mark.parametrize(("empty", "both"), [(0.09, False), (0.08, True), (0.005, True)])
def test_a_few_empty_lists_do_not_explain_that_a_sixth_of_the_actions_is_gone(
    empty: float, both: bool
) -> None:
    some = out("failure", "above", "pv", measured=empty, expected=0.0)
    lost = ["clicks_lost"] if both else []
    assert violated_causes([some, FEW_CLICKS]) == ["lists_empty", *lost]
    before = {"lists_empty": [WHOLE]}
    assert violated_causes([FEW_CLICKS], FEEDBACK_CAUSES, before=before, gone={"lists_empty": empty}) == lost
    in_a_scene = replace(FEW_CLICKS, series=replace(FEW_CLICKS.series, dimension="scene", value="home"))
    assert violated_causes([some, in_a_scene]) == ["lists_empty"]  # how many are gone there is not known
    too_short = out("coverage", "below", "pv")  # has no share of empty lists
    assert violated_causes([too_short, FEW_CLICKS]) == ["lists_empty"]


MOVED = [  # series that more rows move; the cause of each alone, above and below
    (out("volume", "above", "items"), OTHER, "few_items"),
    (out("coverage", "above", "item"), OTHER, "few_items"),
    (out("coverage_unknown_items", "above"), "catalog_changed", OTHER),
    (out("effective_sample_size", "above"), OTHER, OTHER),
    (out("score_health", "below", "distinct"), OTHER, "scores_changed"),
    (out("actions_without_item", "above"), "attribution_lost", OTHER),
    (out("other_events", "above"), "attribution_lost", OTHER),
]
OF_A_USER = [  # series that more requests of the same users move
    out("action_rate", "above", "uv", "event=click"),
    out("conversion", "above", of="event=click"),
    out("actions_per_user", "above", of="event=click"),
    out("failure", "above", "uv"),
    out("coverage", "above", "uv"),
]


@pytest.mark.parametrize(("one", "above", "below"), MOVED, ids=lambda one: getattr(one, "series", one))
def test_a_series_that_the_number_of_rows_moves_is_no_sign_beside_a_traffic_cause(one, above, below) -> None:
    down = one if one.side == "below" else replace(one, deviation=-one.deviation)
    up = one if one.side == "above" else replace(one, deviation=-one.deviation)
    assert violated_causes([up]) == [above]
    assert violated_causes([down]) == [below]
    more, fewer = (up, down) if one.side == "above" else (down, up)
    assert violated_causes([SURGE, more]) == ["traffic_surge"]
    assert violated_causes([LOSS, fewer]) == ["traffic_lost"]
    of_surge = anomaly_results([SURGE, more])[above if one.side == "above" else below]
    assert of_surge.status is Status.OK
    assert of_surge.detail.startswith("follows from traffic_surge; ")


@pytest.mark.parametrize("more", OF_A_USER, ids=lambda one: one.series.title())
def test_what_users_who_ask_more_often_do_more_often_is_no_sign_beside_a_traffic_cause(more) -> None:
    fewer = replace(more, deviation=-more.deviation)
    for one in (more, fewer):
        assert len(violated_causes([one])) == 1
    assert violated_causes([SURGE, more]) == ["traffic_surge"]
    assert violated_causes([LOSS, fewer]) == ["traffic_lost"]


def test_empty_lists_are_reported_beside_more_traffic() -> None:
    assert violated_causes([SURGE, out("failure", "above", "pv")]) == ["traffic_surge", "lists_empty"]


def test_that_no_user_stands_out_is_a_sign_of_nothing() -> None:
    calm = replace(FRAUD, deviation=-FRAUD.deviation)
    assert violated_causes([FRAUD], FEEDBACK_CAUSES) == ["few_clickers"]
    found = anomaly_results([calm], FEEDBACK_CAUSES)
    assert {one.status for one in found.values()} <= {Status.OK, Status.NO_DATA}
    assert violated_causes([calm, WORSE], FEEDBACK_CAUSES) == ["ranking_worse"]
    unseen = anomaly_results([missing("top_user_share", "below")], FEEDBACK_CAUSES)
    assert unseen[OTHER].status is not Status.VIOLATED


def test_more_rows_do_not_explain_the_effects_of_fewer() -> None:
    assert violated_causes([SURGE, out("effective_sample_size", "below")]) == ["traffic_surge", OTHER]
    assert violated_causes([LOSS, out("coverage_unknown_items", "above")]) == [
        "traffic_lost",
        "catalog_changed",
    ]


def test_the_number_of_rows_explains_series_only_in_its_own_place() -> None:
    home = out("volume", "above", "requests", slice_="home")
    assert violated_causes([home, out("coverage", "above", "item")]) == ["traffic_surge", OTHER]
    assert violated_causes([home, out("coverage", "above", "item", slice_="home")]) == ["traffic_surge"]
    found = anomaly_results([LOSS, out("score_health", "above", "distinct"), out("gini", "below")])[OTHER]
    assert found.status is Status.VIOLATED
    assert found.value == 1.0
    assert [row["metric"] for row in found.evidence] == ["gini"]
    gone = out("volume", "below", "requests", slice_="home")
    assert violated_causes([gone, out("volume", "below", "items", slice_="home")]) == ["scene_lost"]
    assert violated_causes([out("list_length", "below"), out("volume", "below", "items")]) == ["lists_short"]


def test_counts_by_list_are_no_sign_while_the_length_of_lists_is_out_of_its_band() -> None:
    short, diverse = out("list_length", "below"), out("intra_list_diversity", "below")
    assert violated_causes([diverse, out("update_rate", "below", "day")]) == [
        "category_takeover",
        "lists_stale",
    ]
    assert violated_causes([short, diverse, out("update_rate", "below", "day")]) == ["lists_short"]
    assert violated_causes([out("list_length", "above"), out("category_entropy", "below", "pv")]) == [
        "lists_long"
    ]
    assert violated_causes([short, out("category_entropy", "below", "overall")]) == [
        "lists_short",
        "category_takeover",
    ]
    before = {"lists_short": [WHOLE]}
    clicks, precise = (
        out("action_rate", "above", "exposure", "event=click"),
        out("precision", "above", "macro", "k=5"),
    )
    assert violated_causes([clicks, precise], FEEDBACK_CAUSES) == ["clicks_surge", OTHER]
    assert violated_causes([clicks, precise], FEEDBACK_CAUSES, before=before) == []
    concentrated = out("matthew_effect", "above")
    assert violated_causes([concentrated], FEEDBACK_CAUSES) == [OTHER]
    assert violated_causes([concentrated], FEEDBACK_CAUSES, before=before) == []
    auc = out("auc", "below")
    assert violated_causes([clicks, auc], FEEDBACK_CAUSES, before=before) == ["ranking_worse"]


def test_a_series_that_the_number_of_rows_moves_does_not_explain_others() -> None:
    before = {"traffic_lost": [WHOLE]}
    assert violated_causes([FRAUD, MANY_CLICKS], FEEDBACK_CAUSES) == ["few_clickers"]
    assert violated_causes([FRAUD, MANY_CLICKS], FEEDBACK_CAUSES, before=before) == ["clicks_surge"]


def test_a_missing_series_makes_its_cause_no_data_even_if_the_number_of_rows_moves_another() -> None:
    found = anomaly_results(
        [SURGE, out("coverage_unknown_items", "above"), missing("catalog_items", "below")]
    )
    assert found["catalog_changed"].status is Status.NO_DATA


def test_the_signs_driven_by_volume_name_real_metrics_and_causes() -> None:
    assert set(DRIVEN_BY_VOLUME) <= set(CAUSES)
    for name, sign in ((name, sign) for name, signs in DRIVEN_BY_VOLUME.items() for sign in signs):
        assert set(sign.by) <= set(SPECS[sign.metric].by)
        assert sign.side in ("above", "below") or name in ("lists_short", "lists_long")


def evidence(found, cause="scene_lost"):
    """The places of a cause, as the history stores them."""
    kept = sanitize_result(anomaly_results(found, EXPOSURE_CAUSES)[cause])
    return {(row["dimension"], row["value"]) for row in kept.evidence}


def test_evidence_has_every_place_of_a_cause_so_that_it_explains_them_all() -> None:
    places = [f"s{place:02}" for place in range(ROWS + 5)]
    gone = [out("volume", "below", "requests", slice_=one, deviation=-50.0) for one in places]
    clicks = [out("action_rate", "below", "pv", "event=click", slice_=one) for one in places]
    before = {"scene_lost": evidence(gone)}
    assert violated_causes(clicks, FEEDBACK_CAUSES) == ["clicks_lost"]
    assert violated_causes(clicks, FEEDBACK_CAUSES, before=before) == []
    elsewhere = out("action_rate", "below", "pv", "event=click", slice_="home")
    assert violated_causes([*clicks, elsewhere], FEEDBACK_CAUSES, before=before) == ["clicks_lost"]


def test_a_place_with_a_long_name_is_recognised_by_its_shortened_name() -> None:
    name = "x" * 700
    before = {"scene_lost": evidence([out("volume", "below", "requests", slice_=name)])}
    clicks = out("action_rate", "below", "pv", "event=click", slice_=name)
    assert violated_causes([clicks], FEEDBACK_CAUSES, before=before) == []
    other = out("action_rate", "below", "pv", "event=click", slice_="x" * 400)
    assert violated_causes([other], FEEDBACK_CAUSES, before=before) == ["clicks_lost"]


def test_evidence_has_one_row_of_each_place_first_and_is_bounded() -> None:
    home = [out("failure", "above", "pv", f"k={place}", "home", deviation=90.0) for place in range(ROWS + 5)]
    rest = [out("failure", "above", "pv", slice_=f"s{place:03}") for place in range(MOST_EVIDENCE + 5)]
    found = anomaly_results([*home, *rest[:4]])["lists_empty"].evidence
    assert [row["value"] for row in found] == ["home"] * (ROWS - 4) + ["s000", "s001", "s002", "s003"]
    found = anomaly_results([*rest, out("failure", "above", "pv", deviation=5.0)])["lists_empty"].evidence
    assert len(found) == MOST_EVIDENCE
    assert found[-1]["dimension"] == ""  # the whole explains most
