"""Lists at k: precision, recall, F, hit rate, reciprocal rank, average precision and NDCG at several k."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ibis
import ibis.expr.types as ir

from monitor.core.columns import REQUEST_ID, USER_ID
from monitor.core.results import Result
from monitor.metrics.attribution import RELEVANCE
from monitor.metrics.family import Family, Maker, MetricSpec, Row, make
from monitor.metrics.feedback.ranked import FOUND, IDEAL, PLACE, no_order, relevant_places
from monitor.metrics.feedback.ranking_specs import (
    ADJUSTED_PRECISION,
    AVERAGE_PRECISION,
    AVERAGE_PRECISION_FULL,
    F_SCORE,
    HIT_RATE,
    NDCG,
    PRECISION,
    PRECISION_STRICT,
    RECALL,
    RECIPROCAL_RANK,
)
from monitor.metrics.shared import LENGTH, Shared, listed
from monitor.settings.metrics import MetricSettings

_BOTH = ("macro", "micro")
_MACRO = (
    PRECISION,
    PRECISION_STRICT,
    RECALL,
    F_SCORE,
    ADJUSTED_PRECISION,
    RECIPROCAL_RANK,
    AVERAGE_PRECISION,
    AVERAGE_PRECISION_FULL,
    NDCG,
)
NO_RELEVANT = "no list has a relevant item"
NO_USERS = "no list with a relevant item has a known user"
_EMPTY = "every list with a relevant item is empty"
_NO_GAIN = "the gains of the relevant items are too small for float64"


class Ranking(Family):
    """Every metric of lists at k, from one table of places."""

    name = "ranking"
    outputs = (
        (PRECISION, _BOTH),
        (PRECISION_STRICT, _BOTH),
        (RECALL, _BOTH),
        (F_SCORE, _BOTH),
        (ADJUSTED_PRECISION, _BOTH),
        (HIT_RATE, ("micro", "any")),
        (RECIPROCAL_RANK, ()),
        (AVERAGE_PRECISION, ()),
        (AVERAGE_PRECISION_FULL, ()),
        (NDCG, ()),
    )
    needs = ("feedback",)

    def reason_not(self, shared: Shared, settings: MetricSettings) -> str | None:
        return super().reason_not(shared, settings) or no_order(shared)

    def series(self, settings: MetricSettings) -> Iterator[tuple[MetricSpec, dict[str, str]]]:
        for spec, labels in super().series(settings):
            for k in settings.k:
                yield spec, {**labels, "k": str(k)}

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        by = listed(key)
        every = shared.requests(key)
        every = every.aggregate(by=by, every_list=every.count(), every_user=every[USER_ID].nunique())
        lists = _lists(relevant_places(shared, settings, key), settings, key)
        users = lists.aggregate(by=[USER_ID, *by], **_sums(lists, settings), **_means(lists, settings))
        sums = [name for name in users.columns if name.startswith("sum_")]
        means = [name for name in users.columns if name.startswith("mean_")]
        known = users[USER_ID].notnull()
        of_known = {name: ibis.ifelse(known, users[name], ibis.null("float64")) for name in means}
        totals = users.aggregate(
            by=by,
            **{name: users[name].sum() for name in sums},
            users=known.cast("int64").sum(),
            lists_without_user=ibis.ifelse(known, 0, users["sum_lists"]).sum(),
            **{f"n_{name}": value.count() for name, value in of_known.items()},
            **{f"total_{name}": value.sum() for name, value in of_known.items()},
            **{f"squares_{name}": (value * value).sum() for name, value in of_known.items()},
        )
        return shared.side_by_side(key, every, totals)

    def outcomes(self, row: Row, settings: MetricSettings) -> Iterator[Result]:
        for k in settings.k:
            for spec in _MACRO:
                yield _macro(spec, row, settings, k)
            yield from _micro(row, settings, k)


def _lists(places: ir.Table, settings: MetricSettings, key: str | None) -> ir.Table:
    """One row a list with a relevant item: what its metrics at every k are made of."""
    place = places[PLACE].cast("float64")
    gain = places[RELEVANCE]
    if settings.gain == "exponential":
        gain = ibis.literal(2.0) ** gain - 1.0
    precision = places[FOUND].cast("float64") / place
    discounted = gain / (place + 1.0).log2()
    ideal = gain / (places[IDEAL].cast("float64") + 1.0).log2()
    sums: dict[str, Any] = {}
    for k in settings.k:
        within = places[PLACE] <= k
        sums |= {
            # Counted in whole numbers: Spark reads 1.0 as a decimal, and would add up and divide decimals.
            f"hits_{k}": ibis.ifelse(within, 1, 0).sum().cast("float64"),
            f"precisions_{k}": ibis.ifelse(within, precision, 0.0).sum(),
            f"dcg_{k}": ibis.ifelse(within, discounted, 0.0).sum(),
            f"ideal_{k}": ibis.ifelse(places[IDEAL] <= k, ideal, 0.0).sum(),
        }
    return places.aggregate(
        by=[REQUEST_ID, *listed(key)],
        **{USER_ID: places[USER_ID].min(), LENGTH: places[LENGTH].min()},
        relevant=places.count().cast("float64"),
        first=places[PLACE].min(),
        **sums,
    )


def _of_list(lists: ir.Table, settings: MetricSettings, k: int) -> dict[str, Any]:
    """The value of each metric for one list, null where it has none."""
    hits, relevant = lists[f"hits_{k}"], lists["relevant"]
    filled = _at_most(lists[LENGTH].cast("float64"), k).nullif(0.0)
    possible = _at_most(relevant, k)
    weight = settings.beta**2
    first = lists["first"]
    return {
        PRECISION.name: hits / filled,
        PRECISION_STRICT.name: hits / k,
        RECALL.name: hits / relevant,
        F_SCORE.name: (1.0 + weight) * hits / (weight * relevant + filled),
        ADJUSTED_PRECISION.name: hits / possible,
        RECIPROCAL_RANK.name: ibis.ifelse(first <= k, 1.0 / first.cast("float64"), 0.0),
        AVERAGE_PRECISION.name: lists[f"precisions_{k}"] / possible,
        AVERAGE_PRECISION_FULL.name: lists[f"precisions_{k}"] / relevant,
        NDCG.name: lists[f"dcg_{k}"] / lists[f"ideal_{k}"].nullif(0.0),
    }


def _means(lists: ir.Table, settings: MetricSettings) -> dict[str, Any]:
    """The mean of each metric over the lists that are grouped, as `mean_{metric}_{k}`."""
    return {
        f"mean_{name}_{k}": value.mean()
        for k in settings.k
        for name, value in _of_list(lists, settings, k).items()
    }


def _sums(lists: ir.Table, settings: MetricSettings) -> dict[str, Any]:
    """The sums over lists that the micro metrics are made of."""
    sums = {
        "sum_lists": lists.count(),
        "sum_relevant": lists["relevant"].sum(),
        "sum_empty": (lists[LENGTH] == 0).cast("int64").sum(),
    }
    for k in settings.k:
        sums |= {
            f"sum_hits_{k}": lists[f"hits_{k}"].sum(),
            f"sum_any_{k}": (lists["first"] <= k).fill_null(False).cast("int64").sum(),
            f"sum_filled_{k}": _at_most(lists[LENGTH].cast("float64"), k).sum(),
            f"sum_possible_{k}": _at_most(lists["relevant"], k).sum(),
        }
    return sums


def _macro(spec: MetricSpec, row: Row, settings: MetricSettings, k: int) -> Result:
    """The mean over users."""
    maker = _maker(spec, "macro" if spec.by else "", settings, k)
    if not row["sum_lists"]:
        return maker.no_data(NO_RELEVANT)
    if not row["users"]:
        return maker.no_data(NO_USERS)
    name = f"mean_{spec.name}_{k}"
    if not row[f"n_{name}"]:
        return maker.undefined(_NO_GAIN if spec is NDCG else _EMPTY, int(row["users"]))
    empty = int(row["sum_empty"]) if spec in (PRECISION, F_SCORE) else 0
    detail = _left_out(row, empty, of_users=True)
    return maker.mean(row[f"n_{name}"], row[f"total_{name}"], row[f"squares_{name}"], NO_USERS, detail=detail)


def _micro(row: Row, settings: MetricSettings, k: int) -> Iterator[Result]:
    """The metrics that are sums over lists."""
    lists = int(row["sum_lists"] or 0)
    makers = {
        spec: _maker(spec, "micro", settings, k)
        for spec in (PRECISION, PRECISION_STRICT, RECALL, F_SCORE, ADJUSTED_PRECISION, HIT_RATE)
    }
    any_hit = _maker(HIT_RATE, "any", settings, k)
    if lists == 0:
        yield from (maker.no_data(NO_RELEVANT) for maker in (*makers.values(), any_hit))
        return
    hits, relevant, filled = row[f"sum_hits_{k}"], row["sum_relevant"], row[f"sum_filled_{k}"]
    weight = settings.beta**2
    values = {
        PRECISION: hits / filled if filled else None,
        PRECISION_STRICT: hits / (k * lists),
        RECALL: hits / relevant,
        F_SCORE: (1 + weight) * hits / (weight * relevant + filled) if filled else None,
        ADJUSTED_PRECISION: hits / row[f"sum_possible_{k}"],
        HIT_RATE: hits / relevant,
    }
    detail = _left_out(row)
    for spec, value in values.items():
        samples = int(relevant) if spec is HIT_RATE else lists
        if value is None:
            yield makers[spec].undefined(_EMPTY, samples)
        else:
            yield makers[spec].value(value, samples, detail=detail)
    yield any_hit.share(row[f"sum_any_{k}"], lists, NO_RELEVANT, detail=detail)


def _left_out(row: Row, empty: int = 0, *, of_users: bool = False) -> str:
    """What does not count, in words."""
    judged = int(row["sum_lists"])
    parts = []
    if judged < row["every_list"]:
        parts.append(f"{row['every_list'] - judged} of {row['every_list']} lists without a relevant item")
    if of_users:
        if row["users"] < row["every_user"]:
            parts.append(f"{row['every_user'] - row['users']} of {row['every_user']} users without one")
        if row["lists_without_user"]:
            parts.append(f"{row['lists_without_user']} of {judged} lists with one have no user")
    if empty:
        parts.append(f"{empty} of {judged} lists with one are empty")
    return f"left out: {'; '.join(parts)}" if parts else ""


def _at_most(number: Any, k: int) -> Any:
    return ibis.ifelse(number < k, number, float(k))


def _maker(spec: MetricSpec, by: str, settings: MetricSettings, k: int) -> Maker:
    return make(spec, settings, by, k=str(k))
