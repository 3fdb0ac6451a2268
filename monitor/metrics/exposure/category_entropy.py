"""Category entropy: how evenly exposures spread over the catalog's categories."""

from __future__ import annotations

import math
from collections.abc import Iterator

import ibis
import ibis.expr.types as ir

from monitor.core.columns import CATEGORY
from monitor.core.results import Result
from monitor.metrics.exposure.categories import category_totals, list_spread, overall_spread, user_spread
from monitor.metrics.family import LARGEST, NOTHING_SHOWN, AddsUp, AggregateRow, Family, MetricSpec, make
from monitor.metrics.shared import ITEM_COUNTS, USER_ITEMS, Shared, listed
from monitor.settings.metrics import MetricSettings

CATEGORY_ENTROPY = MetricSpec(
    name="category_entropy",
    help="How evenly exposures spread over the categories; 0: one category has all, 1: all are equal.",
    by=("overall", "pv", "uv"),
    interval="Wilson of means",
    without_interval=("overall",),
    range=(0.0, math.inf),
    formula="H / ln(m), H = -sum p ln p over the categories' shares of the exposures, m = categories in "
    "I. pv, uv: the same within one list (one user's exposures), divided by ln(min(m, l)), mean over "
    "lists (users) with l >= 2. An item with k categories gives 1 / k of its exposures to each. Items "
    "without a category, or not in I, form one category of their own, which counts in m where I has an "
    "item of it. Where a list (user) passes 1, the interval is the normal one from 0 on.",
    answers="Does the recommender narrow down to a few categories, overall or for one user?",
    misleads="With few categories, high values are easy to reach. Lists of items with several categories, "
    "or with items that are not in I, can exceed 1. The interval (pv and uv only) treats lists as "
    "independent, but lists of one user are not.",
    requires=("exposures", "catalog.category"),
    samples="exposures; lists with l >= 2; users with l >= 2",
    no_data="no exposures; no list, no user with two items",
    undefined="one category only",
    version="2",
)
UNKNOWN_CATEGORY = MetricSpec(
    name="unknown_category",
    better="lower",
    of_rows=True,
    help="Share of exposures whose item has no known category.",
    unit="ratio",
    formula="exposures of items without a category, or not in I / exposures",
    answers="Can the metrics by category be trusted in this window?",
    misleads="It counts items that the catalog lacks and items without a category alike: see "
    "coverage_unknown_items.",
    requires=("exposures", "catalog.category"),
    samples="exposures",
    no_data="no exposures",
)

_LISTS = "lists"
_OF_LISTS = tuple(f"{_LISTS}{end}" for end in ("", "_sum", "_squares", LARGEST))
ONE_CATEGORY = "there is one category only, and nothing to spread over"


class CategoryEntropy(Family):
    """The entropy overall, by list and by user, and the share of exposures without a category."""

    name = "category_entropy"
    outputs = ((CATEGORY_ENTROPY, ("overall", "pv", "uv")), (UNKNOWN_CATEGORY, ()))
    needs = ("catalog", "catalog.category")
    adds_up = AddsUp(tables=(ITEM_COUNTS, USER_ITEMS), columns=_OF_LISTS)

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        overall, sizes = _overall(shared, key)
        lists = _mean_entropy(list_spread(shared, CATEGORY, key), sizes, key, _LISTS)
        return shared.side_by_side(key, overall, lists, _of_users(shared, sizes, key))

    def measure_kept(self, shared: Shared, settings: MetricSettings) -> ir.Table:
        overall, sizes = _overall(shared, None)
        return shared.side_by_side(None, overall, _of_users(shared, sizes, None))

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        n, m = row["exposures"] or 0, row["m"] or 0
        overall = make(CATEGORY_ENTROPY, settings, "overall")
        if n == 0:
            yield overall.no_data(NOTHING_SHOWN)
        elif m < 2:
            yield overall.undefined(ONE_CATEGORY, n)
        else:
            yield overall.value(max(0.0, math.log(n) - row["entropy_sum"] / n) / math.log(m), n)
        for by, owners in (("pv", "lists"), ("uv", "users")):
            builder = make(CATEGORY_ENTROPY, settings, by).up_to(row[f"{owners}{LARGEST}"])
            count = row[owners] or 0
            if count and m < 2:
                yield builder.undefined(ONE_CATEGORY, count)
            else:
                sums = row[f"{owners}_sum"], row[f"{owners}_squares"]
                yield builder.mean(count, *sums, f"no {owners[:-1]} was shown two items or more")
        yield make(UNKNOWN_CATEGORY, settings).share(row["unknown"], n, NOTHING_SHOWN)


def _overall(shared: Shared, key: str | None) -> tuple[ir.Table, ir.Table]:
    """The spread of everything, with `m`, the number of categories; and `m` alone."""
    overall = overall_spread(shared, CATEGORY, key).cross_join(category_totals(shared, CATEGORY))
    # From the catalog alone: one exposure of an item outside it would add a category and make every list
    # less even.
    uncategorised = overall.uncategorised.fill_null(0) > 0
    overall = overall.mutate(m=overall.categories + uncategorised.cast("int64"))
    return overall, overall.select("m", *listed(key))


def _of_users(shared: Shared, sizes: ir.Table, key: str | None) -> ir.Table:
    return _mean_entropy(user_spread(shared, CATEGORY, key), sizes, key, "users")


def _mean_entropy(spread: ir.Table, sizes: ir.Table, key: str | None, name: str) -> ir.Table:
    """The count, sum, sum of squares and largest of the normalised entropies of the owners with l >= 2."""
    spread = spread.filter(spread.length >= 2)
    both = spread.cross_join(sizes) if key is None else spread.join(sizes, key)
    length = both.length.cast("float64")
    largest = ibis.least(both.m, both.length).nullif(0).cast("float64").ln().nullif(0.0)
    # With one category the difference is about -1e-16 in place of 0.
    entropy = ibis.greatest(length.ln() - both.entropy_sum / length, 0.0) / largest
    valued = both.mutate(entropy=entropy)
    return valued.aggregate(
        by=listed(key),
        **{
            name: valued.count(),
            f"{name}_sum": valued.entropy.sum(),
            f"{name}_squares": (valued.entropy * valued.entropy).sum(),
            f"{name}{LARGEST}": valued.entropy.max(),
        },
    )
