"""From many series out of their bands to the few causes that people can act on.

Three hundred series that leave their bands together are one incident. Each cause is a pattern of such series,
looked for in this order; a cause that follows from one before it is not told a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from monitor.checks.departure import Departure, Side
from monitor.metrics.band_specs import ANOMALY, ANOMALY_SEVERITY
from monitor.metrics.model_specs import CAUSE_LABEL
from monitor.results import Result, Status

OTHER: Final = "other"
ROWS: Final = 20  # of evidence


@dataclass(frozen=True, slots=True)
class Sign:
    """Series that speak for a cause: of this metric, out of the band on this side (None: on either)."""

    metric: str
    side: Side | None
    by: tuple[str, ...] = ()  # empty: any
    sliced: bool | None = None  # True: slices alone, False: the whole alone

    def fits(self, one: Departure) -> bool:
        return (
            one.metric == self.metric
            and self.side in (None, one.side)
            and (not self.by or one.by in self.by)
            and self.sliced in (None, bool(one.dimension))
        )


@dataclass(frozen=True, slots=True)
class Cause:
    """A named cause: what it says, the series that speak for it, and the causes that it may follow from."""

    name: str
    says: str
    signs: tuple[Sign, ...] = field(repr=False)
    follows: tuple[str, ...] = ()


def _all(side: Side | None, *metrics: str) -> tuple[Sign, ...]:
    return tuple(Sign(metric, side) for metric in metrics)


_REQUESTS: Final = ("requests", "users", "exposures")
_TRAFFIC: Final = ("traffic_lost", "traffic_surge")

EXPOSURE_CAUSES: Final = (
    Cause(
        "traffic_lost",
        "fewer requests than at this time of the week: traffic or its log is lost",
        (Sign("volume", "below", ("requests",), sliced=False), Sign("volume", "below", ("users",), False)),
    ),
    Cause(
        "traffic_surge",
        "more requests or rows than at this time of the week: rows written twice, robots, or a rush",
        (Sign("volume", "above", _REQUESTS),),
    ),
    Cause(
        "scene_lost",
        "a part of the traffic is gone while the rest is there",
        (Sign("volume", "below", ("requests", "users"), sliced=True),),
        ("traffic_lost",),
    ),
    Cause(
        "lists_empty",
        "more lists are empty or below the valid length than usual",
        (Sign("failure", "above"), Sign("coverage", "below", ("pv", "uv"))),
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
        "few categories take more of the lists than usual",
        _all("below", "category_entropy", "intra_list_diversity"),
    ),
    Cause(
        "few_items",
        "few items take more of the exposures than usual",
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
        "a user's next list differs less from the one before than usual: a cache may be frozen",
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
        _all("above", "score_health", "low_propensity"),
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
    ),
    Cause(
        "few_clickers",
        "few users make more of the actions than usual: fraud or robots",
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
        "fewer actions than usual can be joined to what was shown",
        (*_all("below", "attribution"), *_all("above", "actions_without_item", "other_events")),
    ),
    Cause(
        "ranking_worse",
        "what users act on stands lower in the lists than usual, or is scored worse",
        (
            *_all("below", "precision", "precision_strict", "recall", "f_score", "adjusted_precision"),
            *_all("below", "hit_rate", "reciprocal_rank", "average_precision", "average_precision_full"),
            *_all("below", "ndcg", "auc", "user_auc", "item_to_item_recall", "serendipity"),
            *_all("above", "log_loss", "mae", "rmse", "nmae", "nrmse", "distortion"),
            *_all(None, "calibration"),
        ),
        ("clicks_lost", "clicks_surge", "few_clickers"),
    ),
)
_REST: Final = Cause(OTHER, "series that belong to no named cause are out of their bands", ())
CAUSES: Final[Mapping[str, str]] = {one.name: one.says for one in (*EXPOSURE_CAUSES, *FEEDBACK_CAUSES, _REST)}


def anomalies(
    departures: Sequence[Departure],
    causes: Sequence[Cause],
    *,
    banded: int,
    version: str,
    before: Iterable[str] = (),
    notes: Sequence[str] = (),
) -> list[Result]:
    """One result for each cause: violated with its series, ok, or `no_data` while no series has a band.

    Args:
        departures: the series that stand out of their bands.
        causes: those that this part of a window can show, in their order.
        banded: how many series could be judged.
        version: the definition of the results.
        before: causes that stand by another part of the same window.
        notes: known changes near the window, told beside a cause.
    """
    standing = set(before)
    results: list[Result] = []
    left = list(departures)
    for cause in (*causes, _REST):
        mine = [one for one in departures if any(sign.fits(one) for sign in cause.signs)]
        if cause is _REST:
            mine = left
        left = [one for one in left if one not in mine]
        by = [name for name in cause.follows if name in standing]
        if mine and not by:
            standing.add(cause.name)
        results += _results(cause, mine, by, banded, version, notes)
    return results


def _results(
    cause: Cause,
    mine: Sequence[Departure],
    by: Sequence[str],
    banded: int,
    version: str,
    notes: Sequence[str],
) -> Iterator[Result]:
    labels = {CAUSE_LABEL: cause.name}
    if not banded:
        yield Result(
            metric=ANOMALY.name, labels=labels, definition=version, status=Status.NO_DATA, samples=0,
            detail="no series has enough of a past for a band yet",
        )  # fmt: skip
        return
    worst = sorted(mine, key=lambda one: (-abs(one.deviation), one.title()))
    violated = bool(mine) and not by
    if violated:
        detail = f"{cause.says}; {_worst(worst)}" + "".join(f"; {note}" for note in notes)
    else:
        detail = f"follows from {', '.join(by)}; {_worst(worst)}" if mine else ""
    yield Result(
        metric=ANOMALY.name,
        labels=labels,
        definition=version,
        status=Status.VIOLATED if violated else Status.OK,
        value=float(len(mine)),
        samples=banded,
        detail=detail,
        threshold=0.0,
        evidence=tuple(map(_row, worst[:ROWS])) if violated else (),
    )
    severity = _severity(cause.name, mine) if violated else 0.0
    if severity is not None:
        yield Result(
            metric=ANOMALY_SEVERITY.name, labels=labels, definition=version, status=Status.OK, value=severity
        )


def _worst(worst: Sequence[Departure]) -> str:
    first = worst[0]
    more = f", and {len(worst) - 1} more" if len(worst) > 1 else ""
    return (
        f"{first.title()} is {first.measured:.4g}, expected {first.expected:.4g} "
        f"({first.lower:.4g} to {first.upper:.4g}){more}"
    )


def _row(one: Departure) -> Mapping[str, Any]:
    return {name: getattr(one, name) for name in (
        "metric", "by", "of", "dimension", "value", "measured", "expected", "lower", "upper", "deviation",
    )}  # fmt: skip


def _severity(cause: str, mine: Sequence[Departure]) -> float | None:
    """The share of what was expected that is gone, of the whole; None for a cause that has no such share."""
    whole = [one for one in mine if not one.dimension]
    if cause in ("traffic_lost", "clicks_lost"):
        names = ("volume", "action_volume")
        gone = [1 - one.measured / one.expected for one in whole if one.metric in names and one.expected > 0]
    elif cause == "lists_empty":
        gone = [one.measured - one.expected for one in whole if (one.metric, one.by) == ("failure", "pv")]
    else:
        return None
    return min(1.0, max([0.0, *gone]))
