"""Lists at k: precision, recall, F, hit rate, reciprocal rank, average precision and NDCG at several k."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import REQUEST_ID, USER_ID
from monitor.core.results import Result
from monitor.metrics.attribution import RELEVANCE
from monitor.metrics.exposure.list_users import LIST_USERS, list_users
from monitor.metrics.family import AddsUp, AggregateRow, Family, MetricSpec, Theme, make
from monitor.metrics.feedback.ranked import FOUND, IDEAL, PLACE, no_order, relevant_places
from monitor.metrics.shared import LENGTH, Shared, listed
from monitor.settings.metrics import MetricSettings

_MEANT = (
    "T = the items that the list's actions are on with a grade above 0, shown by it or not; l = its length"
)
_MEAN = "mean over users of the mean over a user's lists with |T| > 0"
_BOTH = ("macro", "micro")
_HOW = ("events", "attribution", "unrated")
_USERS = "users with a list with |T| > 0"
_EITHER = f"{_USERS} (macro); lists with |T| > 0 (micro)"
_NO_T = "no list; no list with |T| > 0"
_NO_USER = f"{_NO_T}; none of a known user"
_ALL_EMPTY = "every list with |T| > 0 is empty"
_SEEN_ONLY = (
    "Users act on items that they are shown: an item further down, or never shown, had little chance to be "
    "in T"
)

_at_k = partial(
    MetricSpec,
    theme=Theme.LISTS,
    unit="ratio",
    labels=("k",),
    interval="Wilson of means",
    parameters=_HOW,
    requires=("exposures.position or exposures.score", "feedback"),
)
_of_both = partial(
    _at_k, by=_BOTH, without_interval=("micro",), samples=_EITHER,
    no_data=f"{_NO_T}; none of a known user (macro)",
)  # fmt: skip
_of_users = partial(_at_k, samples=_USERS, no_data=_NO_USER)

PRECISION = _of_both(
    name="precision",
    better="higher",
    help="Share of the first k places of a list that hold a relevant item; short lists are not penalized.",
    formula=f"hits / k' of a list, k' = min(k, l); {_MEANT}. macro: {_MEAN}. micro: sum of hits / sum of k'.",
    answers="How many of the items that users see first do they want?",
    misleads=f"{_SEEN_ONLY}. A list of one item that hits has the best precision there is. It cannot reach 1 "
    "where |T| < k. Lists without items have none and are left out of macro (and counted).",
    undefined=_ALL_EMPTY,
)
PRECISION_STRICT = _of_both(
    name="precision_strict",
    better="higher",
    help="Hits in the first k places of a list over k; an empty place is a miss.",
    formula=f"hits / k of a list; {_MEANT}. macro: {_MEAN}. micro: sum of hits / (k times the lists).",
    answers="How many of the k places have a good item?",
    misleads="If lists are shorter than k by design, it measures their length, not their quality.",
)
RECALL = _of_both(
    name="recall",
    better="higher",
    help="Share of a list's relevant items that stand in its first k places.",
    formula=f"hits / |T| of a list; {_MEANT}. macro: {_MEAN}. micro: sum of hits / sum of |T|. Together with "
    "precision over several k it is the precision-recall curve.",
    answers="How many of the relevant items did the first k places have?",
    misleads=f"{_SEEN_ONLY}, so recall from a log is higher than the true one. It cannot reach 1 where "
    "|T| > k; adjusted_precision can.",
)
F_SCORE = _of_both(
    name="f_score",
    better="higher",
    help="Precision and recall of the first k places in one number, their weighted harmonic mean.",
    parameters=(*_HOW, "beta"),
    formula="(1 + b^2) P R / (b^2 P + R) with b = `beta`, P = precision, R = recall of a list, which is "
    f"(1 + b^2) hits / (b^2 |T| + k') and so 0 without a hit; {_MEANT}. macro: {_MEAN}. micro: the same of "
    "the micro precision and recall.",
    answers="Are the first places both good and complete?",
    misleads="Two lists with the same value can be good in opposite ways: look at precision and recall. The "
    "mean of F is not the F of the means.",
    undefined=_ALL_EMPTY,
)
ADJUSTED_PRECISION = _of_both(
    name="adjusted_precision",
    better="higher",
    help="Hits in the first k places over the most hits that there could be; also called adjusted recall.",
    formula=f"hits / min(k, |T|) of a list; {_MEANT}. macro: {_MEAN}. micro: sum of hits / sum of "
    "min(k, |T|).",
    answers="How close are the first k places to the best possible ones?",
    misleads="With one relevant item a list, which is what most logs hold, it is the same as recall: 0 or 1.",
)
HIT_RATE = _at_k(
    name="hit_rate",
    better="higher",
    help="Relevant items found in the first k places, of all of them; or lists with at least one.",
    by=("micro", "any"),
    interval="Wilson",
    without_interval=("micro",),
    formula="micro: sum of hits / sum of |T| over lists. any: lists with a hit / lists with |T| > 0; "
    f"{_MEANT}.",
    answers="How often is anything relevant in the first k places?",
    misleads="A longer k always looks better. The interval (only for any) treats lists as independent, but "
    "lists of one user are not. micro equals recall by micro; other tools use this name for it.",
    samples="relevant items (micro); lists with |T| > 0 (any)",
    no_data=_NO_T,
)
RECIPROCAL_RANK = _of_users(
    name="reciprocal_rank",
    better="higher",
    help="How high the first relevant item stands: 1 at the top, 1/2 one below, 0 where not in the first k.",
    formula="1 / place of the list's first hit, 0 where the first k places hold none; "
    f"{_MEANT}; {_MEAN} (MRR).",
    answers="How far must users look until they find something?",
    misleads="Only the first hit counts. From place 1 to 2 it loses as much as from 2 to never.",
)
AVERAGE_PRECISION = _of_users(
    name="average_precision",
    better="higher",
    help="Precision at each hit of the first k places, over the most hits that there could be.",
    formula="sum over hits in the first k places of (hits up to there / place), divided by min(k, |T|); "
    f"{_MEANT}; {_MEAN} (MAP).",
    answers="Are the relevant items above the others?",
    misleads="Several formulas go by this name: divided by min(k, |T|) as here, by |T| "
    "(average_precision_full), by k, or by the hits. Two libraries rarely compute the same.",
)
AVERAGE_PRECISION_FULL = _of_users(
    name="average_precision_full",
    better="higher",
    help="Precision at each hit of the first k places, over all relevant items.",
    formula="sum over hits in the first k places of (hits up to there / place), divided by |T|; "
    f"{_MEANT}; {_MEAN}.",
    answers="Do the relevant items stand above the others, and are all of them there?",
    misleads="It cannot reach 1 where |T| > k, so it falls when people get more active.",
)
NDCG = _of_users(
    name="ndcg",
    better="higher",
    help="Relevance in the first k places, discounted by place, over that of the best possible list.",
    parameters=(*_HOW, "gain"),
    formula="DCG / ideal DCG, DCG = sum over the first k places i of gain / log2(i + 1), gain = 2^rel - 1 or "
    "rel (`gain`), rel = the grade of the event with the highest one; ideal: the best min(k, |T|) of T in "
    f"order; {_MEANT}; {_MEAN}.",
    answers="Are the most relevant items at the top?",
    misleads="With the exponential gain the highest grade dominates: grades 1 and 5 have the gains 1 and "
    "31. A list of one relevant item at the top has 1 however bad the rest is.",
    undefined="every gain is too small for float64",
)


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
RANKED_USERS: Final = "ranked_users"
_OF_LIST = tuple(spec.name for spec in _MACRO)
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
    adds_up = AddsUp(tables=(RANKED_USERS, LIST_USERS))

    def reason_not(self, shared: Shared, settings: MetricSettings) -> str | None:
        return super().reason_not(shared, settings) or no_order(shared)

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        by = listed(key)
        every = list_users(shared, settings, key)
        every = every.aggregate(by=by, every_list=every.requests.sum(), every_user=every[USER_ID].count())
        users = ranked_users(shared, settings, key)
        sums = [name for name in users.columns if name.startswith("sum_")]
        known = users[USER_ID].notnull()
        means = {
            name: ibis.ifelse(known, _mean_of(users, name), ibis.null("float64"))
            for name in (f"mean_{metric}_{k}" for k in settings.k for metric in _OF_LIST)
        }
        totals = users.aggregate(
            by=by,
            **{name: users[name].sum() for name in sums},
            users=known.cast("int64").sum(),
            lists_without_user=ibis.ifelse(known, 0, users["sum_lists"]).sum(),
            **{f"n_{name}": value.count() for name, value in means.items()},
            **{f"total_{name}": value.sum() for name, value in means.items()},
            **{f"squares_{name}": (value * value).sum() for name, value in means.items()},
        )
        return shared.side_by_side(key, every, totals)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        for k in settings.k:
            for spec in _MACRO:
                yield _macro(spec, row, settings, k)
            yield from _micro(row, settings, k)


def ranked_users(shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
    """One row a user (and group): the sums over their lists with a relevant item, and of each metric too.

    The lists without a user are one row with a null. A metric has its sum over the lists that have it, and
    their number.
    """

    def build(key: str | None) -> ir.Table:
        lists = _lists(relevant_places(shared, settings, key), settings, key)
        return lists.aggregate(
            by=[USER_ID, *listed(key)], **_sums(lists, settings), **_of_lists(lists, settings)
        )

    return shared.grouped(RANKED_USERS, key, (USER_ID,), build, by_list=True)


def _mean_of(users: ir.Table, name: str) -> ir.Value:
    return users[f"{name}_total"] / users[f"{name}_lists"].nullif(0).cast("float64")


def _lists(places: ir.Table, settings: MetricSettings, key: str | None) -> ir.Table:
    """One row a list with a relevant item: the inputs of its metrics at every k."""
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
            # Counted in whole numbers: Spark reads 1.0 as a decimal, and would compute in decimals.
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
    """The value of each metric for one list, null if it has none."""
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


def _of_lists(lists: ir.Table, settings: MetricSettings) -> dict[str, Any]:
    """The sum of each metric over the lists that have it, and their number."""
    return {
        f"mean_{name}_{k}_{part}": found
        for k in settings.k
        for name, value in _of_list(lists, settings, k).items()
        for part, found in (("total", value.sum()), ("lists", value.count()))
    }


def _sums(lists: ir.Table, settings: MetricSettings) -> dict[str, Any]:
    """The sums over lists for the micro metrics."""
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


def _macro(spec: MetricSpec, row: AggregateRow, settings: MetricSettings, k: int) -> Result:
    """The mean over users."""
    builder = make(spec, settings, "macro" if spec.by else "", k=str(k))
    if not row["sum_lists"]:
        return builder.no_data(NO_RELEVANT)
    if not row["users"]:
        return builder.no_data(NO_USERS)
    name = f"mean_{spec.name}_{k}"
    if not row[f"n_{name}"]:
        return builder.undefined(_NO_GAIN if spec is NDCG else _EMPTY, int(row["users"]))
    empty = int(row["sum_empty"]) if spec in (PRECISION, F_SCORE) else 0
    detail = _left_out(row, empty, of_users=True)
    n, total, squares = row[f"n_{name}"], row[f"total_{name}"], row[f"squares_{name}"]
    return builder.mean(n, total, squares, NO_USERS, detail=detail)


def _micro(row: AggregateRow, settings: MetricSettings, k: int) -> Iterator[Result]:
    """The metrics that are sums over lists."""
    lists = int(row["sum_lists"] or 0)
    builders = {
        spec: make(spec, settings, "micro", k=str(k))
        for spec in (PRECISION, PRECISION_STRICT, RECALL, F_SCORE, ADJUSTED_PRECISION, HIT_RATE)
    }
    any_hit = make(HIT_RATE, settings, "any", k=str(k))
    if lists == 0:
        yield from (builder.no_data(NO_RELEVANT) for builder in (*builders.values(), any_hit))
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
            yield builders[spec].undefined(_EMPTY, samples)
        else:
            yield builders[spec].value(value, samples, detail=detail)
    yield any_hit.share(row[f"sum_any_{k}"], lists, NO_RELEVANT, detail=detail)


def _left_out(row: AggregateRow, empty: int = 0, *, of_users: bool = False) -> str:
    """A sentence with the lists and users that do not count."""
    judged = int(row["sum_lists"])
    parts = []
    if judged < row["every_list"]:
        parts.append(f"{row['every_list'] - judged:,} of {row['every_list']:,} lists without a relevant item")
    if of_users:
        if row["users"] < row["every_user"]:
            parts.append(f"{row['every_user'] - row['users']:,} of {row['every_user']:,} users without one")
        if row["lists_without_user"]:
            parts.append(f"{row['lists_without_user']:,} of {judged:,} lists with one have no user")
    if empty:
        parts.append(f"{empty:,} of {judged:,} lists with one are empty")
    return f"left out: {'; '.join(parts)}" if parts else ""


def _at_most(number: Any, k: int) -> Any:
    return ibis.ifelse(number < k, number, float(k))
