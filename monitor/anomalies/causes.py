"""The causes of anomalies, and the series out of their bands that are signs of each.

Three hundred series that leave their bands together are one incident. Each cause is a pattern of such series.
The causes are checked in this order. A cause that follows from an earlier one is not reported again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from monitor.anomalies.results import Side
from monitor.anomalies.series import BandedSeries
from monitor.anomalies.severity import Severity, empty_lists, lost_actions, lost_requests

OTHER: Final = "other"


@dataclass(frozen=True, slots=True)
class Sign:
    """Series that are signs of a cause: of this metric, out of the band on this side (None: on either)."""

    metric: str
    side: Side | None
    by: tuple[str, ...] = ()  # empty: any
    sliced: bool | None = None  # True: only slices, False: only the whole

    def is_of(self, one: BandedSeries) -> bool:
        """Whether this series can be a sign of the cause."""
        return (
            one.metric == self.metric
            and (not self.by or one.by in self.by)
            and self.sliced in (None, bool(one.dimension))
        )

    def fits(self, one: BandedSeries, side: Side) -> bool:
        """Whether this series is a sign of the cause if it is out of its band on this side."""
        return self.side in (None, side) and self.is_of(one)


@dataclass(frozen=True, slots=True)
class Cause:
    """A named cause: its message, its signs, and the earlier causes that it may follow from.

    `severity` measures the missing share, None if the cause has no such share.
    """

    name: str
    says: str
    signs: tuple[Sign, ...] = field(repr=False)
    follows: tuple[str, ...] = ()
    severity: Severity | None = field(default=None, repr=False)

    def is_read_from(self, one: BandedSeries) -> bool:
        """Whether this series can be a sign of it."""
        return any(sign.is_of(one) for sign in self.signs)

    def fits(self, one: BandedSeries, side: Side) -> bool:
        """Whether this series is a sign of it if it is out of its band on this side."""
        return any(sign.fits(one, side) for sign in self.signs)


def _all(side: Side | None, *metrics: str) -> tuple[Sign, ...]:
    return tuple(Sign(metric, side) for metric in metrics)


_REQUESTS: Final = ("requests", "users", "exposures")
_TRAFFIC: Final = ("traffic_lost", "traffic_surge")
_BROKEN_SCORES: Final = (
    "null", "nan", "infinite", "out_of_range", "zero", "one", "denormal", "all_equal_lists",
)  # fmt: skip

EXPOSURE_CAUSES: Final = (
    Cause(
        "traffic_lost",
        "fewer requests than at this time of the week: traffic or its log is lost",
        (Sign("volume", "below", ("requests",), sliced=False),),
        severity=lost_requests,
    ),
    Cause(
        "traffic_surge",
        "more requests or rows than at this time of the week: rows written twice, robots, or a rush",
        (Sign("volume", "above", _REQUESTS),),
    ),
    Cause(
        "scene_lost",
        "a part of the traffic is gone, and the rest is there",
        (Sign("volume", "below", ("requests",), sliced=True),),
        ("traffic_lost",),
    ),
    Cause(
        "users_lost",
        "fewer users than usual while requests are in their band: ids are lost, or some of the users",
        (Sign("volume", "below", ("users",)),),
        ("traffic_lost", "scene_lost"),
    ),
    Cause(
        "lists_empty",
        "more lists are empty or below the valid length than usual",
        (Sign("failure", "above"), Sign("coverage", "below", ("pv", "uv"))),
        severity=empty_lists,
    ),
    Cause(
        "lists_short",
        "lists are shorter than usual",
        (Sign("list_length", "below"), Sign("volume", "below", ("exposures",))),
        ("lists_empty", "traffic_lost", "scene_lost"),
    ),
    Cause("lists_long", "lists are longer than usual", _all("above", "list_length"), ("traffic_surge",)),
    Cause(
        "catalog_changed",
        "the catalog has far more or fewer items than before, or items are shown that it does not hold",
        (*_all(None, "catalog_items"), *_all("above", "coverage_unknown_items", "unknown_category")),
    ),
    Cause(
        "not_personal",
        "users see more of the same items as each other than usual",
        _all("below", "personalization"),
        _TRAFFIC,
    ),
    Cause(
        "category_takeover",
        "a few categories take a larger share of the lists than usual",
        _all("below", "category_entropy", "intra_list_diversity"),
    ),
    Cause(
        "few_items",
        "a few items take a larger share of the exposures than usual",
        (
            *_all("above", "popularity_share", "gini", "gini_exposed", "average_popularity"),
            *_all("below", "self_information"),
            Sign("coverage", "below", ("item",)),
            Sign("volume", "below", ("items",)),
        ),
        _TRAFFIC,
    ),
    Cause(
        "lists_stale",
        "a user's next list differs less from the previous one than usual: a cache may be frozen",
        _all("below", "update_rate"),
        _TRAFFIC,
    ),
    Cause(
        "lists_repeat",
        "users are shown more items that they were shown before than usual",
        _all("below", "novelty"),
        (*_TRAFFIC, "lists_stale"),
    ),
    Cause(
        "scores_changed",
        "more scores than usual are missing, not finite, at the edge of their range, or alike",
        (
            Sign("score_health", "above", _BROKEN_SCORES),
            Sign("score_health", "below", ("distinct",)),
            *_all("above", "low_propensity"),
        ),
    ),
)
FEEDBACK_CAUSES: Final = (
    Cause(
        "clicks_lost",
        "fewer actions on what was shown than usual: their log, or the lists, have become worse",
        _all(
            "below", "action_volume", "action_rate", "conversion", "actions_per_user", "trimmed_action_rate"
        ),
        ("traffic_lost", "scene_lost", "lists_empty", "lists_short"),
        severity=lost_actions,
    ),
    Cause(
        "few_clickers",
        "a few users make a larger share of the actions than usual: fraud or robots",
        _all("above", "top_user_share"),
        ("clicks_lost",),
    ),
    Cause(
        "clicks_surge",
        "more actions than usual: rows written twice, robots, or a rush",
        _all("above", "action_volume", "action_rate", "conversion", "actions_per_user"),
        ("traffic_surge", "few_clickers"),
    ),
    Cause(
        "attribution_lost",
        "fewer actions than usual can be joined to what was shown: the log lacks lists, or ids changed",
        (
            Sign("attribution", "below", ("request", "user")),
            Sign("attribution", "above", ("user", "not_shown", "unattributed")),
            *_all("above", "unattributed", "actions_without_item", "other_events"),
        ),
    ),
    Cause(
        "ranking_worse",
        "items that users act on are lower in the lists than usual, or have worse scores",
        (
            *_all("below", "precision", "precision_strict", "recall", "f_score", "adjusted_precision"),
            *_all("below", "hit_rate", "reciprocal_rank", "average_precision", "average_precision_full"),
            *_all("below", "ndcg", "auc", "user_auc", "item_to_item_recall", "serendipity"),
            *_all("above", "log_loss", "mae", "rmse", "nmae", "nrmse", "distortion"),
            *_all(None, "calibration"),
        ),
        ("traffic_surge", "attribution_lost", "clicks_lost", "clicks_surge", "few_clickers"),
    ),
)

# Series that more rows move whatever their content: counts, and shares of distinct values.
_MORE_ROWS: Final = (
    Sign("volume", "above", ("items",)),
    Sign("coverage", "above", ("item",)),
    *_all("above", "coverage_unknown_items", "effective_sample_size"),
    Sign("score_health", "below", ("distinct",)),
)
_MORE_ACTIONS: Final = (
    *_all("above", "actions_without_item", "other_events"),
    *_all("below", "top_user_share"),
)
# A user who asks more often acts more often, and sees both a full list and a failed one more often.
_MORE_OF_A_USER: Final = (
    *(Sign(metric, "above", ("uv",)) for metric in ("action_rate", "coverage", "failure")),
    *_all("above", "conversion", "actions_per_user"),
)


# Metrics by list or by exposure move with the length of lists, some up and some down.
_BY_LENGTH: Final = (
    *_all(None, "intra_list_diversity", "update_rate", "serendipity", "action_rate", "trimmed_action_rate"),
    *_all(None, "matthew_effect"),
    Sign("category_entropy", None, ("pv", "uv")),
    *_all(None, "precision", "precision_strict", "recall", "f_score", "adjusted_precision", "hit_rate"),
    *_all(None, "reciprocal_rank", "average_precision", "average_precision_full", "ndcg", "log_loss"),
)


def _opposite(signs: tuple[Sign, ...]) -> tuple[Sign, ...]:
    return tuple(replace(one, side="below" if one.side == "above" else "above") for one in signs)


_MORE: Final = (*_MORE_ROWS, *_MORE_ACTIONS, *_MORE_OF_A_USER)
DRIVEN_BY_VOLUME: Final[Mapping[str, tuple[Sign, ...]]] = {
    "traffic_lost": _opposite(_MORE),
    "traffic_surge": _MORE,
    "scene_lost": _opposite(_MORE),
    "lists_empty": _opposite(_MORE_ROWS),
    "lists_short": (*_opposite(_MORE_ROWS), *_BY_LENGTH),
    "lists_long": (*_MORE_ROWS, *_BY_LENGTH),
}
"""For causes that change the number of rows: series that are no sign of other causes while it is violated."""
NO_SIGN: Final = (*_all("below", "top_user_share"), Sign("update_rate", "above", ("day",)))
"""Departures that are a sign of nothing: that no user stands out, or that users see more that is new."""
REST: Final = Cause(OTHER, "series that belong to no named cause are out of their bands", ())
CAUSES: Final[Mapping[str, str]] = {one.name: one.says for one in (*EXPOSURE_CAUSES, *FEEDBACK_CAUSES, REST)}
