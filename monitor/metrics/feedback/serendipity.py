"""Serendipity: the distance of items acted on from the user's earlier actions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial, reduce
from operator import add

import ibis
import ibis.expr.types as ir

from monitor.core.columns import CATEGORY, ITEM_ID, TS, USER_ID
from monitor.core.results import Result
from monitor.metrics.attribution import RELEVANCE, acted
from monitor.metrics.exposure.categories import CODE, with_categories
from monitor.metrics.exposure.concentration import of_events
from monitor.metrics.exposure.similarity import item_vectors, no_similarity, range_of, similarity_of
from monitor.metrics.family import AggregateRow, Family, MetricSpec, make
from monitor.metrics.history import WINDOW
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings

SERENDIPITY = MetricSpec(
    name="serendipity",
    better="higher",
    of_rows=True,
    help="How different the items that users act on are from their earlier actions; 0: the same again.",
    interval="Wilson of means",
    range=(0.0, 1.0),
    parameters=("similarity", "history", "action_events", "events", "attribution"),
    formula="mean over exposures that were acted on of 1 - the largest similarity between the item and "
    "the items of the user's earlier actions (similarity as in intra_list_diversity; by vector, the values "
    "are from 0 to 2). Acted on is what an event of a grade above 0 belongs to (see attribution); earlier "
    "actions are those of `action_events`.",
    answers="Does the recommender find items that users like and would not find by themselves?",
    misleads="A short history of actions makes everything look surprising. Users without earlier "
    "actions are left out (and counted), as are items without a usable vector.",
    requires=("exposures", "feedback", "catalog.vector or catalog.category", "history of actions"),
    samples="exposures acted on by users with earlier actions",
    no_data="no exposure was acted on; no earlier actions; nobody who acted has any",
)
WEIGHT = "weight"
_PAIR = (USER_ID, ITEM_ID)


class Serendipity(Family):
    """One minus the largest similarity to the user's earlier actions."""

    name = "serendipity"
    outputs = ((SERENDIPITY, ()),)
    needs = ("catalog", "feedback")

    def reason_not(self, shared: Shared, settings: MetricSettings) -> str | None:
        return super().reason_not(shared, settings) or no_similarity(shared, settings)

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        by = listed(key)
        done = _done(shared, settings, key)
        every = done.aggregate(by=by, acted=done[WEIGHT].sum())
        history = shared.history_actions
        if history is None:
            return shared.side_by_side(key, every).mutate(history=0, exposures=0, total=0.0, squares=0.0)
        history = of_events(history, settings)
        history = history.filter([history[USER_ID].notnull(), history[ITEM_ID].notnull()])
        if key == WINDOW:
            known = _any_by_window(shared, history, settings)
        else:
            known = history.limit(1).aggregate(history=ibis._.count())
        valued = _closest(shared, settings, history, key)
        valued = valued.mutate(distance=1.0 - valued.closest)
        sums = valued.aggregate(
            by=by,
            exposures=valued[WEIGHT].sum(),
            total=(valued[WEIGHT] * valued.distance).sum(),
            squares=(valued[WEIGHT] * valued.distance * valued.distance).sum(),
        )
        if key == WINDOW:
            return shared.side_by_side(key, every, sums, known)
        return shared.side_by_side(key, every, sums).cross_join(known)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        builder = replace(make(SERENDIPITY, settings), bounds=range_of(settings))
        acted, n = int(row["acted"] or 0), int(row["exposures"] or 0)
        if acted == 0:
            yield builder.no_data("no exposure was acted on")
        elif not row["history"]:
            yield builder.no_data("the history has no earlier actions yet")
        else:
            left_out = (
                f"{acted - n:,} of {acted:,} exposures acted on have nothing to compare with"
                if n < acted
                else ""
            )
            nothing = "nobody who acted has earlier actions to compare with"
            yield builder.mean(n, row["total"], row["squares"], nothing, detail=left_out)


def _done(shared: Shared, settings: MetricSettings, key: str | None) -> ir.Table:
    """`_acted`, grouped once for all slices."""
    build = partial(_acted, shared, settings)
    return shared.grouped("serendipity_acted", key, _PAIR, build, by_list=True)


def _closest(shared: Shared, settings: MetricSettings, history: ir.Table, key: str | None) -> ir.Table:
    """`_acted` with `closest`, the largest similarity to an earlier action, where there is one to compare."""

    def build(key: str | None) -> ir.Table:
        done = _done(shared, settings, key)
        # Only of those who acted: the actions of others are compared with nothing.
        if key == WINDOW:
            earlier = _of_windows(shared, history, done, settings)
        else:
            earlier = history.select(USER_ID, ITEM_ID).semi_join(done, USER_ID).distinct()
        by_vector = similarity_of(shared, settings) == "vector"
        return (_closest_by_vector if by_vector else _closest_by_category)(shared, done, earlier, key)

    return shared.grouped("serendipity_closest", key, _PAIR, build, by_list=True)


def _acted(shared: Shared, settings: MetricSettings, key: str | None) -> ir.Table:
    """One row for each user, item (and group) acted on, with the number of such exposures as weight."""
    done = acted(shared, settings, key)
    done = done.filter(done[RELEVANCE] > 0, done[USER_ID].notnull())
    return done.aggregate(by=[USER_ID, ITEM_ID, *listed(key)], **{WEIGHT: done.count().cast("float64")})


def _any_by_window(shared: Shared, history: ir.Table, settings: MetricSettings) -> ir.Table:
    """The windows that have earlier actions, with the column `history`: 1."""
    first, last = _looked_back_on_from(shared, history[TS], settings)
    spans = history.select(first=first, last=last).distinct()
    groups = shared.groups(WINDOW)
    found = groups.join(spans, [groups[WINDOW] >= spans["first"], groups[WINDOW] <= spans["last"]])
    return found.select(WINDOW).distinct().mutate(history=ibis.literal(1))


def _of_windows(shared: Shared, history: ir.Table, done: ir.Table, settings: MetricSettings) -> ir.Table:
    """The items of the earlier actions of each user and window of `done`."""
    owners = done.select(WINDOW, owner=done[USER_ID]).distinct()
    first, last = _looked_back_on_from(shared, history[TS], settings)
    earlier = history.select(USER_ID, ITEM_ID, first=first, last=last).distinct()
    mine = earlier.join(
        owners,
        [
            earlier[USER_ID] == owners["owner"],
            owners[WINDOW] >= earlier["first"],
            owners[WINDOW] <= earlier["last"],
        ],
    )
    return mine.select(USER_ID, ITEM_ID, WINDOW).distinct()


def _looked_back_on_from(
    shared: Shared, moment: ir.Column, settings: MetricSettings
) -> tuple[ir.IntegerValue, ir.IntegerValue]:
    """The first and the last window whose history has a time."""
    reach = ibis.interval(seconds=int(settings.history.total_seconds()))
    return shared.number_of(moment) + 1, shared.number_of(moment + reach)


def _closest_by_category(shared: Shared, acted: ir.Table, history: ir.Table, key: str | None) -> ir.Table:
    owner = [USER_ID, ITEM_ID, *listed(key)]
    now = with_categories(shared, acted, CATEGORY).select(*owner, CODE, "unit")
    before = with_categories(shared, history, CATEGORY)
    mine = _compared_within(key)
    before = before.select(*mine, CODE, earlier=before[ITEM_ID], earlier_unit=before.unit)
    both = now.join(before, [*mine, CODE])
    alike = both.aggregate(by=[*owner, "earlier"], cosine=(both.unit * both.earlier_unit).sum())
    most = alike.aggregate(by=owner, closest=alike.cosine.max())
    comparable = acted.semi_join(history, mine)
    joined = comparable.left_join(most, owner)
    # Without a common category the similarity is 0; sums of shares can round to just above 1.
    return joined.select(*owner, WEIGHT, closest=ibis.least(joined.closest.fill_null(0.0), 1.0))


def _closest_by_vector(shared: Shared, acted: ir.Table, history: ir.Table, key: str | None) -> ir.Table:
    vectors, columns = item_vectors(shared)
    now = acted.join(vectors, ITEM_ID)
    before = history.join(vectors, ITEM_ID).drop(ITEM_ID).rename({f"earlier_{c}": c for c in columns})
    both = now.join(before, _compared_within(key))
    products = (both[c] * both[f"earlier_{c}"] for c in columns)
    cosine = ibis.least(reduce(add, products), 1.0) if columns else ibis.literal(0.0)
    both = both.select(USER_ID, ITEM_ID, WEIGHT, *listed(key), cosine=cosine)
    return both.aggregate(
        by=[USER_ID, ITEM_ID, *listed(key)], **{WEIGHT: both[WEIGHT].max()}, closest=both.cosine.max()
    )


def _compared_within(key: str | None) -> list[str]:
    """The columns of whose actions are compared: a window has a history of its own, a slice has not."""
    return [USER_ID, WINDOW] if key == WINDOW else [USER_ID]
