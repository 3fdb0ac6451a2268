"""Personalization: how different the items of different users are."""

from __future__ import annotations

from collections.abc import Iterator

import ibis.expr.types as ir

from monitor.core.columns import ITEM_ID, USER_ID
from monitor.core.results import Result
from monitor.metrics.family import AddsUp, AggregateRow, Family, MetricSpec, make, round12
from monitor.metrics.shared import USER_ITEMS, Shared, listed
from monitor.settings.metrics import MetricSettings

PERSONALIZATION = MetricSpec(
    name="personalization",
    help="Mean dissimilarity of the items of two users; 0: all see the same, 1: nothing in common.",
    formula="1 - mean over unordered pairs of different users of the cosine between their 0/1 item "
    "vectors. With v_u the unit vectors and U users the mean cosine is (|sum v_u|^2 - U) / (U (U - 1)): "
    "exact, in time linear in the distinct (user, item) pairs.",
    answers="Does the recommender still personalize, or does everybody get the same list?",
    misleads="Users who see few items of a large catalog look personalized by chance alone. Long "
    "windows raise the overlap: compare windows of one length.",
    requires=("exposures",),
    samples="users who were shown an item",
    no_data="no user was shown an item",
    undefined="one user only",
)


class Personalization(Family):
    """One minus the mean cosine between users."""

    name = "personalization"
    outputs = ((PERSONALIZATION, ()),)
    adds_up = AddsUp(tables=(USER_ITEMS,))

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        pairs = shared.user_items(key)
        by = listed(key)
        users = pairs.aggregate(by=[USER_ID, *by], weight=1.0 / pairs.count().cast("float64").sqrt())
        weighted = pairs.join(users, [USER_ID, *by])
        items = weighted.aggregate(by=[ITEM_ID, *by], weight=weighted.weight.sum())
        return shared.side_by_side(
            key,
            users.aggregate(by=by, users=users.count()),
            items.aggregate(by=by, squares=(items.weight * items.weight).sum()),
        )

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        users = row["users"] or 0
        builder = make(PERSONALIZATION, settings)
        if users == 0:
            yield builder.no_data("no user was shown an item")
        elif users == 1:
            yield builder.undefined("there is only one user, and nobody to compare with", 1)
        else:
            cosine = (row["squares"] - users) / (users * (users - 1.0))
            # Rounded first, so that the value is exactly 0 if all users see the same items.
            yield builder.value(min(1.0, max(0.0, 1.0 - round12(cosine))), users)
