"""Novelty, self-information and average popularity: exposures compared with earlier exposures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import ibis
import ibis.expr.types as ir

from monitor.core.columns import CATEGORY, ITEM_ID, TAGS, USER_ID
from monitor.core.results import Result
from monitor.metrics.exposure.categories import CODE, UNKNOWN, item_categories, user_categories
from monitor.metrics.exposure.concentration import of_events
from monitor.metrics.family import NOTHING_SHOWN, AggregateRow, Family, MetricSpec, make
from monitor.metrics.history import EXPOSURES, USERS
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings

NOVELTY = MetricSpec(
    name="novelty",
    help="Share of shown items that are new to the user; by user: share of users who are shown anything new.",
    unit="ratio",
    by=("item", "user", "category", "tag"),
    by_help="any other catalog column of the setting `novelty` by its own name",
    interval="Wilson",
    parameters=("history",),
    formula="distinct (user, item) pairs shown whose user was not shown the item in the `history` "
    "before the window / distinct pairs shown. By user: users shown at least one item that is new to them "
    "/ users shown an item. By category, tag or another column: pairs of a user and a value of it; an item "
    "without a value makes no pair.",
    answers="Do users see items that are new to them, and how many see nothing new at all?",
    misleads="Everything is new to a user without a history, so new users raise it. Less stored history "
    "than `history` (a monitor that just started) raises it too. Pairs of one user are not independent.",
    requires=("exposures", "history", "catalog.category, catalog.tags (category, tag)"),
    samples="distinct pairs shown; by user: users shown an item",
    no_data="no history yet; no user was shown an item; no item shown has a value",
)
SELF_INFORMATION = MetricSpec(
    name="self_information",
    of_rows=True,
    help="How surprising the shown items are, in bits: 1 bit more means that half as many users had seen "
    "them.",
    unit="bits",
    interval="normal",
    range=(0.0, math.inf),
    parameters=("history",),
    formula="mean over exposures of -log2(users of the history who were shown the item / users of the "
    "history); an item new to the history takes 1 user",
    answers="Does the recommender reach into the long tail?",
    misleads="Its maximum is log2 of the number of users in the history, so it grows with them. Exposures "
    "of one item are not independent, so the interval is too narrow.",
    requires=("exposures", "history"),
    samples="exposures",
    no_data="no history yet; no exposures",
)
AVERAGE_POPULARITY = MetricSpec(
    name="average_popularity",
    of_rows=True,
    help="How often the items now shown were shown (or acted on) in the history, on average.",
    parameters=("history", "popularity", "action_events"),
    formula="mean over exposures of the item's count in the history: of exposures, or of actions "
    "(`action_events`) with `popularity: actions`; an item new to the history counts 0",
    answers="Does the recommender fall back to popular items?",
    misleads="It grows with traffic and with the history's length: compare equal spans. A few very popular "
    "items dominate the mean.",
    requires=("exposures", "history"),
    samples="exposures",
    no_data="no history yet; no exposures",
)

NO_HISTORY = "the history has no earlier exposures yet"
_ALWAYS = ("item", "user")
_LABELS = {CATEGORY: "category", TAGS: "tag"}


class Novelty(Family):
    """The share of new pairs of users with items or catalog values, and of users who see anything new."""

    name = "novelty"
    outputs = ((NOVELTY, _ALWAYS),)
    looks_back = True

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        history = shared.history
        pairs = shared.user_items(key)
        if history is None:
            counts = pairs.aggregate(
                by=listed(key), item_pairs=pairs.count(), user_pairs=pairs[USER_ID].nunique()
            )
            unknown = {f"{column}_pairs": ibis.literal(0) for column in self._columns(shared, settings)}
            return shared.side_by_side(key, counts).mutate(history=ibis.literal(0), **unknown)
        mine, own = history.owner, key if history.owner else None
        new = pairs.anti_join(history.known(), [*mine, USER_ID, ITEM_ID])
        tables = [
            pairs.aggregate(by=listed(key), item_pairs=pairs.count(), user_pairs=pairs[USER_ID].nunique()),
            new.aggregate(by=listed(key), item_new=new.count(), user_new=new[USER_ID].nunique()),
        ]
        for column in self._columns(shared, settings):
            values = item_categories(shared, column).select(ITEM_ID, CODE)
            now = user_categories(shared, column, key)
            now = now.filter(now[CODE] != UNKNOWN)
            before = shared.once(
                f"history_values_{column}",
                own,
                lambda v=values: _valued(history.of_users(shared.user_items(own)), v, mine),  # type: ignore[misc]
            )
            tables += _counted_new(now, before, column, CODE, key, mine)
        if mine:
            return shared.side_by_side(key, *tables, history.any())
        return shared.side_by_side(key, *tables).cross_join(history.any())

    def series(self, settings: MetricSettings) -> Iterator[tuple[MetricSpec, dict[str, str]]]:
        for name in (*_ALWAYS, *settings.novelty):
            yield NOVELTY, {"by": _LABELS.get(name, name)}

    @staticmethod
    def _columns(shared: Shared, settings: MetricSettings) -> list[str]:
        if shared.catalog is None:
            return []
        return [column for column in dict.fromkeys(settings.novelty) if column in shared.catalog.columns]

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        for name in [c.removesuffix("_pairs") for c in row if c.endswith("_pairs")]:
            builder = make(NOVELTY, settings, _LABELS.get(name, name))
            if not row["history"]:
                yield builder.no_data(NO_HISTORY)
            else:
                nothing = (
                    "no user was shown an item" if name in _ALWAYS else f"no item shown has a value of {name}"
                )
                yield builder.share(row[f"{name}_new"], row[f"{name}_pairs"], nothing)


def _valued(pairs: ir.Table, values: ir.Table, mine: Sequence[str]) -> ir.Table:
    """The distinct pairs of a user (and window) and a value of their items."""
    return pairs.join(values, ITEM_ID).select(*mine, USER_ID, CODE).distinct()


def _counted_new(
    now: ir.Table, before: ir.Table, name: str, what: str, key: str | None, mine: Sequence[str]
) -> list[ir.Table]:
    new = now.anti_join(before, [*mine, USER_ID, what])
    return [
        now.aggregate(by=listed(key), **{f"{name}_pairs": now.count()}),
        new.aggregate(by=listed(key), **{f"{name}_new": new.count()}),
    ]


class Popularity(Family):
    """Self-information and average popularity of what is shown."""

    name = "popularity"
    outputs = ((SELF_INFORMATION, ()), (AVERAGE_POPULARITY, ()))
    looks_back = True

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        counts = shared.item_counts(key)
        n = counts[EXPOSURES].cast("float64")
        rows = counts.select(ITEM_ID, *listed(key), n=n)
        mine = () if shared.history is None else shared.history.owner
        known = rows.left_join(history_items(shared, settings), [*mine, ITEM_ID])
        known = known.select(*listed(key), "n", users=known.users, popularity=known.popularity)
        everyone, anything = _history_users(shared), _any_popularity(shared, settings)
        known = known.join(everyone, list(mine)) if mine else known.cross_join(everyone)
        seen_by = ibis.greatest(known.users.fill_null(1), 1).cast("float64")
        valued = known.mutate(
            bits=-(seen_by / known.history_users.cast("float64").nullif(0.0)).log2(),
            popularity=known.popularity.fill_null(0).cast("float64"),
        )
        sums = valued.aggregate(
            by=listed(key),
            exposures=valued.n.sum(),
            bits=(valued.n * valued.bits).sum(),
            bits_squares=(valued.n * valued.bits * valued.bits).sum(),
            popularity=(valued.n * valued.popularity).sum(),
        )
        if mine:
            return shared.side_by_side(key, sums, everyone, anything)
        return shared.side_by_side(key, sums).cross_join(everyone).cross_join(anything)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        n = int(row["exposures"] or 0)
        information = make(SELF_INFORMATION, settings)
        if not row["history_users"]:
            yield information.no_data(NO_HISTORY)
        else:
            yield information.mean(n, row["bits"], row["bits_squares"], NOTHING_SHOWN)
        popularity = make(AVERAGE_POPULARITY, settings)
        if not row["popularity_rows"]:
            actions = settings.popularity == "actions"
            yield popularity.no_data("the history has no earlier actions yet" if actions else NO_HISTORY)
        else:
            yield popularity.mean(n, row["popularity"], None, NOTHING_SHOWN)


def _any_popularity(shared: Shared, settings: MetricSettings) -> ir.Table:
    """One row with the column `popularity_rows`: 1 if the history has what popularity counts, else 0."""
    if settings.popularity == "exposures":
        if shared.history is None:
            return shared.nothing().aggregate(popularity_rows=ibis._.count())
        return shared.history.any().rename(popularity_rows="history")

    def build() -> ir.Table:
        return _earlier(shared, settings).limit(1).aggregate(popularity_rows=ibis._.count())

    return shared.once("any_popularity_rows", None, build)


def _earlier(shared: Shared, settings: MetricSettings) -> ir.Table:
    """The earlier actions that count."""
    actions = shared.history_actions
    return shared.nothing() if actions is None else of_events(actions, settings)


def _history_users(shared: Shared) -> ir.Table:
    """One row: `history_users`, the number of users in the history."""
    if shared.history is None:
        return shared.nothing().aggregate(history_users=ibis._.count())
    return shared.history.number_of_users()


def history_items(shared: Shared, settings: MetricSettings) -> ir.Table:
    """One row an item of the history: `users` who were shown it, and its `popularity`."""
    by_item = _shown_items(shared)
    if settings.popularity == "exposures":
        return by_item.rename(popularity=EXPOSURES)

    def build() -> ir.Table:
        actions = _earlier(shared, settings)
        counts = actions.aggregate(by=ITEM_ID, popularity=actions.count()).rename(acted=ITEM_ID)
        shown_items = _shown_items(shared).drop(EXPOSURES)
        joined = shown_items.outer_join(counts, shown_items[ITEM_ID] == counts.acted)
        return joined.select(
            **{ITEM_ID: ibis.coalesce(joined[ITEM_ID], joined.acted)},
            users=joined.users,
            popularity=joined.popularity,
        )

    return shared.once("history_items_by_actions", None, build)


def _shown_items(shared: Shared) -> ir.Table:
    if shared.history is not None:
        return shared.history.by_item()
    none = shared.nothing()
    return none.aggregate(by=ITEM_ID, **{EXPOSURES: none.count(), USERS: none.count()})
