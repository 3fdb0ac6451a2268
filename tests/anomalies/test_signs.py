"""Every sign of a cause, written out: one series out of its band on this side gives this cause."""

from __future__ import annotations

import pytest

from monitor.anomalies.results import Side
from tests.anomalies.departures import EVERY, out, violated_causes

SIGNS: dict[str, dict[Side, tuple[str, ...]]] = {
    "traffic_lost": {"below": ("volume by requests in the whole",)},
    "traffic_surge": {"above": ("volume by requests", "volume by users", "volume by exposures")},
    "scene_lost": {"below": ("volume by requests in a slice",)},
    "users_lost": {"below": ("volume by users",)},
    "lists_empty": {"above": ("failure",), "below": ("coverage by pv", "coverage by uv")},
    "lists_short": {"below": ("list_length", "volume by exposures")},
    "lists_long": {"above": ("list_length",)},
    "catalog_changed": {
        "above": ("catalog_items", "coverage_unknown_items", "unknown_category"),
        "below": ("catalog_items",),
    },
    "not_personal": {"below": ("personalization",)},
    "category_takeover": {"below": ("category_entropy", "intra_list_diversity")},
    "few_items": {
        "above": ("popularity_share", "gini", "gini_exposed", "average_popularity"),
        "below": ("self_information", "coverage by item", "volume by items"),
    },
    "lists_stale": {"below": ("update_rate",)},
    "lists_repeat": {"below": ("novelty",)},
    "scores_changed": {
        "above": (
            "score_health by null",
            "score_health by nan",
            "score_health by infinite",
            "score_health by out_of_range",
            "score_health by zero",
            "score_health by one",
            "score_health by denormal",
            "score_health by all_equal_lists",
            "low_propensity",
        ),
        "below": ("score_health by distinct",),
    },
    "clicks_lost": {
        "below": ("action_volume", "action_rate", "conversion", "actions_per_user", "trimmed_action_rate")
    },
    "few_clickers": {"above": ("top_user_share",)},
    "clicks_surge": {"above": ("action_volume", "action_rate", "conversion", "actions_per_user")},
    "attribution_lost": {
        "above": (
            "attribution by user",
            "attribution by not_shown",
            "attribution by unattributed",
            "unattributed",
            "actions_without_item",
            "other_events",
        ),
        "below": ("attribution by request", "attribution by user"),
    },
    "ranking_worse": {
        "above": ("log_loss", "mae", "rmse", "nmae", "nrmse", "distortion", "calibration"),
        "below": (
            *("precision", "precision_strict", "recall", "f_score", "adjusted_precision", "hit_rate"),
            *("reciprocal_rank", "average_precision", "average_precision_full", "ndcg", "auc", "user_auc"),
            *("item_to_item_recall", "serendipity", "calibration"),
        ),
    },
}
"""The signs of each cause, by side. Without a place they hold for the whole and for slices."""
PLACES = {True: " in a slice", False: " in the whole", None: ""}
WRITTEN = [
    (cause, side, sign) for cause, sides in SIGNS.items() for side, signs in sides.items() for sign in signs
]
SIDES: tuple[Side, ...] = ("above", "below")


def signs_of_the_table() -> list[tuple[str, str, str]]:
    """Each sign of the monitor as it is written here; one of either side, or of several `by`, is several."""
    return [
        (cause.name, side, sign.metric + (f" by {by}" if by else "") + PLACES[sign.sliced])
        for cause in EVERY
        for sign in cause.signs
        for side in SIDES
        if sign.side in (None, side)
        for by in sign.by or ("",)
    ]


def test_the_signs_are_exactly_those_in_this_file() -> None:
    assert sorted(signs_of_the_table()) == sorted(WRITTEN)
    assert list(SIGNS) == [cause.name for cause in EVERY]


@pytest.mark.parametrize(("cause", "side", "sign"), WRITTEN)
def test_each_sign_alone_gives_its_cause(cause: str, side: Side, sign: str) -> None:
    series, _, place = sign.partition(" in ")
    metric, _, by = series.partition(" by ")
    for slice_ in {"": ("", "home"), "the whole": ("",), "a slice": ("home",)}[place]:
        assert violated_causes([out(metric, side, by, slice_=slice_)]) == [cause]


def test_what_harms_nobody_is_a_sign_of_nothing_and_its_other_side_is() -> None:
    for metric, side, by in (("top_user_share", "below", "top_user"), ("update_rate", "above", "day")):
        assert violated_causes([out(metric, side, by)]) == []
    assert violated_causes([out("update_rate", "below", "day")]) == ["lists_stale"]
    assert violated_causes([out("update_rate", "above", "refresh")]) == ["other"]
