"""Which causes explain which others: in a row, by the number of rows alone, and by their evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monitor.anomalies.causes import CAUSES, DRIVEN_BY_VOLUME, EXPOSURE_CAUSES, FEEDBACK_CAUSES, OTHER
from monitor.anomalies.explain import ROWS, WHOLE
from monitor.core.results import MOST_EVIDENCE, Status
from monitor.history.rows import sanitize_result
from monitor.metrics.catalogue import SPECS
from tests.anomalies.departures import missing, out, standing, told

SURGE = out("volume", "above", "requests")
LOSS = out("volume", "below", "requests")
FEW_CLICKS = out("action_volume", "below", of="event=click")
MANY_CLICKS = out("action_volume", "above", of="event=click")
FRAUD = out("top_user_share", "above", "top_1_percent", "event=click")
WORSE = out("ndcg", "below", of="k=10")


@pytest.mark.parametrize(
    ("found", "first"),
    [
        ([LOSS, FEW_CLICKS, FRAUD, WORSE], "traffic_lost"),
        ([out("failure", "above", "pv"), FEW_CLICKS, FRAUD, WORSE], "lists_empty"),
        ([SURGE, MANY_CLICKS, WORSE], "traffic_surge"),
        ([SURGE, WORSE], "traffic_surge"),
    ],
)
def test_what_follows_from_a_cause_explains_what_follows_from_itself(found, first) -> None:
    assert standing(found) == [first]
    assert standing(found[1:]) != []  # without the first of them the next one is told


def test_what_follows_explains_no_more_than_where_it_is() -> None:
    gone = out("volume", "below", "requests", slice_="old")
    clicks, worse = (replace(one, series=replace(one.series, dimension="scene", value="old"))
                     for one in (FEW_CLICKS, WORSE))  # fmt: skip
    assert standing([gone, clicks, worse]) == ["scene_lost"]
    assert standing([gone, clicks, WORSE]) == ["scene_lost", "ranking_worse"]


MOVED = [  # by more rows alone, and what each is a sign of by itself, above and below
    (out("volume", "above", "items"), OTHER, "few_items"),
    (out("coverage", "above", "item"), OTHER, "few_items"),
    (out("coverage_unknown_items", "above"), "catalog_changed", OTHER),
    (out("effective_sample_size", "above"), OTHER, OTHER),
    (out("score_health", "below", "distinct"), OTHER, "scores_changed"),
    (out("actions_without_item", "above"), "attribution_lost", OTHER),
    (out("other_events", "above"), "attribution_lost", OTHER),
    (out("top_user_share", "below", "top_user", "event=click"), "few_clickers", OTHER),
]


@pytest.mark.parametrize(("one", "above", "below"), MOVED, ids=lambda one: getattr(one, "series", one))
def test_what_the_number_of_rows_moves_is_told_alone_and_not_beside_the_traffic(one, above, below) -> None:
    down = one if one.side == "below" else replace(one, deviation=-one.deviation)
    up = one if one.side == "above" else replace(one, deviation=-one.deviation)
    assert standing([up]) == [above]
    assert standing([down]) == [below]
    more, fewer = (up, down) if one.side == "above" else (down, up)
    assert standing([SURGE, more]) == ["traffic_surge"]
    assert standing([LOSS, fewer]) == ["traffic_lost"]
    of_surge = told([SURGE, more])[above if one.side == "above" else below]
    assert of_surge.status is Status.OK
    assert of_surge.detail.startswith("follows from traffic_surge; ")


def test_more_rows_do_not_explain_what_fewer_would() -> None:
    assert standing([SURGE, out("effective_sample_size", "below")]) == ["traffic_surge", OTHER]
    assert standing([LOSS, out("coverage_unknown_items", "above")]) == ["traffic_lost", "catalog_changed"]


def test_what_rows_move_is_explained_where_they_are_and_beside_a_sign_of_its_own() -> None:
    home = out("volume", "above", "requests", slice_="home")
    assert standing([home, out("coverage", "above", "item")]) == ["traffic_surge", OTHER]
    assert standing([home, out("coverage", "above", "item", slice_="home")]) == ["traffic_surge"]
    found = told([LOSS, out("score_health", "above", "distinct"), out("gini", "below")])[OTHER]
    assert found.status is Status.VIOLATED
    assert found.value == 1.0
    assert [row["metric"] for row in found.evidence] == ["gini"]
    gone = out("volume", "below", "requests", slice_="home")
    assert standing([gone, out("volume", "below", "items", slice_="home")]) == ["scene_lost"]
    assert standing([out("list_length", "below"), out("volume", "below", "items")]) == ["lists_short"]


def test_what_goes_by_the_length_of_lists_speaks_for_nothing_while_that_has_changed() -> None:
    short, diverse = out("list_length", "below"), out("intra_list_diversity", "below")
    assert standing([diverse, out("update_rate", "below", "day")]) == ["category_takeover", "lists_stale"]
    assert standing([short, diverse, out("update_rate", "below", "day")]) == ["lists_short"]
    assert standing([out("list_length", "above"), out("category_entropy", "below", "pv")]) == ["lists_long"]
    assert standing([short, out("category_entropy", "below", "overall")]) == [
        "lists_short",
        "category_takeover",
    ]
    before = {"lists_short": [WHOLE]}
    clicks, precise = (
        out("action_rate", "above", "exposure", "event=click"),
        out("precision", "above", "macro", "k=5"),
    )
    assert standing([clicks, precise], FEEDBACK_CAUSES) == ["clicks_surge", OTHER]
    assert standing([clicks, precise], FEEDBACK_CAUSES, before=before) == []
    auc = out("auc", "below")
    assert standing([clicks, auc], FEEDBACK_CAUSES, before=before) == ["ranking_worse"]


def test_what_rows_move_explains_nothing_itself() -> None:
    before = {"traffic_lost": [WHOLE]}
    assert standing([FRAUD, MANY_CLICKS], FEEDBACK_CAUSES) == ["few_clickers"]
    assert standing([FRAUD, MANY_CLICKS], FEEDBACK_CAUSES, before=before) == ["clicks_surge"]


def test_a_series_that_is_missing_leaves_no_verdict_beside_one_that_rows_move() -> None:
    found = told([SURGE, out("coverage_unknown_items", "above"), missing("catalog_items", "below")])
    assert found["catalog_changed"].status is Status.NO_DATA


def test_every_series_that_rows_move_is_in_the_catalogue_and_every_cause_of_it_is_one() -> None:
    assert set(DRIVEN_BY_VOLUME) <= set(CAUSES)
    for name, sign in ((name, sign) for name, signs in DRIVEN_BY_VOLUME.items() for sign in signs):
        assert set(sign.by) <= set(SPECS[sign.metric].by)
        assert sign.side in ("above", "below") or name in ("lists_short", "lists_long")


def evidence(found, cause="scene_lost"):
    """The places of a cause as the history gives them back."""
    kept = sanitize_result(told(found, EXPOSURE_CAUSES)[cause])
    return {(row["dimension"], row["value"]) for row in kept.evidence}


def test_every_place_of_a_cause_is_in_its_evidence_and_explains_what_happens_there() -> None:
    places = [f"s{place:02}" for place in range(ROWS + 5)]
    gone = [out("volume", "below", "requests", slice_=one, deviation=-50.0) for one in places]
    clicks = [out("action_rate", "below", "pv", "event=click", slice_=one) for one in places]
    before = {"scene_lost": evidence(gone)}
    assert standing(clicks, FEEDBACK_CAUSES) == ["clicks_lost"]
    assert standing(clicks, FEEDBACK_CAUSES, before=before) == []
    elsewhere = out("action_rate", "below", "pv", "event=click", slice_="home")
    assert standing([*clicks, elsewhere], FEEDBACK_CAUSES, before=before) == ["clicks_lost"]


def test_a_place_with_a_long_name_is_known_by_what_is_kept_of_it() -> None:
    name = "x" * 700
    before = {"scene_lost": evidence([out("volume", "below", "requests", slice_=name)])}
    clicks = out("action_rate", "below", "pv", "event=click", slice_=name)
    assert standing([clicks], FEEDBACK_CAUSES, before=before) == []
    other = out("action_rate", "below", "pv", "event=click", slice_="x" * 400)
    assert standing([other], FEEDBACK_CAUSES, before=before) == ["clicks_lost"]


def test_evidence_has_one_of_each_place_before_a_second_and_is_bounded() -> None:
    home = [out("failure", "above", "pv", f"k={place}", "home", deviation=90.0) for place in range(ROWS + 5)]
    rest = [out("failure", "above", "pv", slice_=f"s{place:03}") for place in range(MOST_EVIDENCE + 5)]
    found = told([*home, *rest[:4]])["lists_empty"].evidence
    assert [row["value"] for row in found] == ["home"] * (ROWS - 4) + ["s000", "s001", "s002", "s003"]
    found = told([*rest, out("failure", "above", "pv", deviation=5.0)])["lists_empty"].evidence
    assert len(found) == MOST_EVIDENCE
    assert found[-1]["dimension"] == ""  # the whole explains most, and is among them
