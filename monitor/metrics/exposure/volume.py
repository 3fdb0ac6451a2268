"""Volume: the counts of a window, and the length of its lists."""

from __future__ import annotations

import math
from collections.abc import Iterator

import ibis.expr.types as ir

from monitor.core.columns import USER_ID
from monitor.core.results import Result
from monitor.metrics.exposure.list_users import LIST_USERS, list_users
from monitor.metrics.family import NO_REQUESTS, NOTHING_SHOWN, AddsUp, AggregateRow, Family, MetricSpec, make
from monitor.metrics.history import EXPOSURES
from monitor.metrics.shared import ITEM_COUNTS, Shared, listed
from monitor.settings.metrics import MetricSettings

VOLUME = MetricSpec(
    name="volume",
    is_count=True,
    of_rows=True,
    help="How many requests, users, exposures and distinct items the window holds.",
    by=("requests", "users", "exposures", "items"),
    formula="requests: distinct request ids. users: distinct user ids of the requests. exposures: items "
    "shown, each as often as it was shown. items: distinct items shown. A window without rows has 0, and "
    "the state no_data",
    answers="Is there as much traffic as expected, and does all of it reach the log?",
    misleads="It follows the hour and the weekday: compare it with the same hour of other days. A file that "
    "is delivered twice with different bytes doubles the exposures, but not the requests. Requests without "
    "a user are in requests and not in users.",
    requires=("exposures",),
    samples="requests (requests, users); exposures (exposures, items)",
    no_data="the window holds no exposures; then the value is 0",
)
LIST_LENGTH = MetricSpec(
    name="list_length",
    help="Mean number of items that a request gets.",
    interval="normal",
    range=(0.0, math.inf),
    formula="mean over requests of l, empty lists (l = 0) and repeated items included. Normal interval over "
    "the requests",
    answers="Are the lists cut short, or did they grow?",
    misleads="Many empty lists and slightly shorter ones give the same mean: see failure. If scenes have "
    "lists of different lengths, it moves with the traffic of the scenes: see its slices.",
    requires=("exposures",),
    samples="requests",
    no_data="no requests",
)
CATALOG_ITEMS = MetricSpec(
    name="catalog_items",
    is_count=True,
    help="Distinct items that the catalog holds.",
    formula="size of I; an empty catalog has 0, and the state no_data",
    answers="Did the catalog shrink, stop growing, or lose a part?",
    misleads="It does not change if items are replaced by equally many others: see coverage_unknown_items.",
    requires=("catalog",),
    samples="items of the catalog",
    no_data="an empty catalog; then the value is 0",
    sliced=False,
)


class Volume(Family):
    """The counts of a window, and the mean length of its lists."""

    name = "volume"
    outputs = ((VOLUME, VOLUME.by), (LIST_LENGTH, ()))
    adds_up = AddsUp(tables=(LIST_USERS, ITEM_COUNTS))

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        users, items, by = list_users(shared, settings, key), shared.item_counts(key), listed(key)
        lists = users.aggregate(
            by=by,
            requests=users.requests.sum(),
            users=users[USER_ID].count(),
            length=users.length.sum(),
            length_squared=users.length_squared.sum(),
        )
        shown = items.aggregate(by=by, exposures=items[EXPOSURES].sum(), items=items.count())
        return shared.side_by_side(key, lists, shown)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        counts = {by: int(row[by] or 0) for by in VOLUME.by}
        requests, exposures = counts["requests"], counts["exposures"]
        rests_on = {"requests": requests, "users": requests, "exposures": exposures, "items": exposures}
        is_empty = not any(counts.values())
        for by, count in counts.items():
            builder = make(VOLUME, settings, by)
            yield builder.count(count, rests_on[by], NOTHING_SHOWN if is_empty else "")
        yield make(LIST_LENGTH, settings).mean(requests, row["length"], row["length_squared"], NO_REQUESTS)


class CatalogSize(Family):
    """The number of items in the catalog. Not sliced: the catalog has no requests."""

    name = "catalog_size"
    outputs = ((CATALOG_ITEMS, ()),)
    needs = ("catalog",)
    sliced = False

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        size = shared.catalog_items.aggregate(items=shared.catalog_items.count())
        return size if key is None else shared.groups(key).cross_join(size)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        size = int(row["items"])
        yield make(CATALOG_ITEMS, settings).count(size, size, "" if size else "the catalog holds no items")
