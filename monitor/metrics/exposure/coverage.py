"""Coverage and failure: do requests, users and items get anything shown at all?"""

from __future__ import annotations

from collections.abc import Iterator

import ibis.expr.types as ir

from monitor.core.columns import ITEM_ID, USER_ID
from monitor.core.results import Result
from monitor.metrics.exposure.list_users import LIST_USERS, list_users
from monitor.metrics.family import NO_REQUESTS, AddsUp, AggregateRow, Family, MetricSpec, make
from monitor.metrics.shared import ITEM_COUNTS, Shared, listed
from monitor.settings.metrics import MetricSettings

COVERAGE = MetricSpec(
    name="coverage",
    better="higher",
    help="Share of requests, users or catalog items that recommendations reach.",
    unit="ratio",
    by=("pv", "uv", "item"),
    interval="Wilson",
    without_interval=("item",),
    parameters=("valid_list_length",),
    formula="pv: requests with l >= c / requests. uv: users with at least one request with l >= c / "
    "users. item: distinct items shown that are in I / size of I. c = `valid_list_length`.",
    answers="Does every visitor get a usable list, and is the whole catalog shown?",
    misleads="A list of the wrong items counts as well as one of the right items. Coverage by item "
    "grows with the window's length: compare windows of one length. It has no interval.",
    requires=("exposures", "catalog (item)"),
    samples="requests; users; items of the catalog",
    no_data="no requests; no user id; no exposures (item)",
    undefined="an empty catalog (item)",
)
UNKNOWN_ITEMS = MetricSpec(
    name="coverage_unknown_items",
    better="lower",
    is_count=True,
    help="Distinct items shown that the catalog does not hold.",
    formula="|distinct items shown that are not in I|",
    answers="Does the recommender show items that were removed, or is the catalog stale?",
    misleads="A catalog read before the newest items were added counts them as unknown.",
    requires=("exposures", "catalog"),
    samples="distinct items shown",
    no_data="no exposures",
)
FAILURE = MetricSpec(
    name="failure",
    better="lower",
    help="Share of requests, or of users, that got an empty list.",
    unit="ratio",
    by=("pv", "uv"),
    interval="Wilson",
    formula="pv: requests with l = 0 / requests. uv: users with at least one request with l = 0 / users.",
    answers="How often does the recommender return nothing at all?",
    misleads="A request that failed before it was logged is not seen here.",
    requires=("exposures",),
    samples="requests; users",
    no_data="no requests; no user id",
)

NO_USERS = "no request carries a user id"


class ListCoverage(Family):
    """Coverage and failure by request (pv) and by user (uv)."""

    name = "coverage"
    outputs = ((COVERAGE, ("pv", "uv")), (FAILURE, ("pv", "uv")))
    adds_up = AddsUp(tables=(LIST_USERS,))

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        users, by = list_users(shared, settings, key), listed(key)
        known = users[USER_ID].notnull()
        counts = users.aggregate(
            by=by,
            requests=users.requests.sum(),
            valid=users.valid.sum(),
            failed=users.failed.sum(),
            without_user=users.requests.sum(where=~known),
            users=known.sum(),
            users_valid=(known & (users.valid > 0)).sum(),
            users_failed=(known & (users.failed > 0)).sum(),
        )
        return shared.side_by_side(key, counts)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        n = row["requests"] or 0
        left_out = row["without_user"] or 0
        detail = f"{left_out:,} of {n:,} requests carry no user id and are left out" if left_out else ""
        nobody = NO_USERS if n else NO_REQUESTS
        yield make(COVERAGE, settings, "pv").share(row["valid"], n, NO_REQUESTS)
        yield make(COVERAGE, settings, "uv").share(row["users_valid"], row["users"], nobody, detail=detail)
        yield make(FAILURE, settings, "pv").share(row["failed"], n, NO_REQUESTS)
        yield make(FAILURE, settings, "uv").share(row["users_failed"], row["users"], nobody, detail=detail)


class ItemCoverage(Family):
    """The share of the catalog that was shown, and the shown items outside the catalog."""

    name = "item_coverage"
    outputs = ((COVERAGE, ("item",)), (UNKNOWN_ITEMS, ()))
    needs = ("catalog",)
    adds_up = AddsUp(tables=(ITEM_COUNTS,))

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        shown = shared.item_counts(key)
        known = shown.semi_join(shared.catalog_items, ITEM_ID)
        by = listed(key)
        size = shared.catalog_items.aggregate(catalog_items=shared.catalog_items.count())
        counts = shared.side_by_side(
            key, shown.aggregate(by=by, shown=shown.count()), known.aggregate(by=by, known=known.count())
        )
        return counts.cross_join(size)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        shown, known, size = row["shown"] or 0, row["known"] or 0, row["catalog_items"]
        coverage = make(COVERAGE, settings, "item")
        unknown = make(UNKNOWN_ITEMS, settings)
        if shown == 0:
            yield coverage.no_data("the window shows no items")
            yield unknown.no_data("the window shows no items")
            return
        if size == 0:
            yield coverage.undefined("the catalog holds no items", 0)
        else:
            yield coverage.value(known / size, size)
        yield unknown.value(float(shown - known), shown)
