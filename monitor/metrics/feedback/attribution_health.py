"""How the window's actions were attributed to lists, and which actions count in no metric."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ibis
import ibis.expr.types as ir

from monitor.core.columns import EVENT, ITEM_ID, REQUEST_ID, USER_ID
from monitor.core.results import Result
from monitor.metrics.attribution import (
    ACTION,
    BY_REQUEST,
    BY_USER,
    COUNT,
    FOUND,
    NOT_SHOWN,
    UNATTRIBUTED,
    attributed,
)
from monitor.metrics.family import NOTHING_SHOWN, AggregateRow, Family, MetricSpec, Theme, make
from monitor.metrics.feedback.business import ratio_columns, ratio_sums
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings
from monitor.statistics.effects import ratio_within

_LOST = "lost"
_WAYS = (BY_REQUEST, BY_USER, NOT_SHOWN, UNATTRIBUTED)

ATTRIBUTION = MetricSpec(
    name="attribution",
    theme=Theme.ACTIONS,
    help="Share of an event's actions, by how their list was found.",
    unit="ratio",
    by=_WAYS,
    labels=("event",),
    interval="Wilson",
    parameters=("attribution",),
    formula="actions found this way / actions of the event. request: the list that the action's request id "
    "names held the item. user: the latest list with the item that was shown to the user within "
    "`attribution` before. not_shown: the list that is named, or else the user's latest, did not hold the "
    "item. unattributed: there is no list. Every action is in one window: that of its list, without one "
    "that of its own time.",
    answers="Do feedback and exposures still match, so that the other metrics can be trusted?",
    misleads="An action that is matched by user may come from elsewhere, such as search. With a short "
    "`attribution`, late actions are unattributed. The interval treats actions as independent, but actions "
    "of one user are not.",
    requires=("exposures", "feedback"),
    samples="actions of the event, each as often as it was logged",
    no_data="no action of the event",
)
LOST = MetricSpec(
    name="unattributed",
    theme=Theme.SCORES,
    help="Share of the actions, of all judged events together, that join no list.",
    unit="ratio",
    interval="Wilson of means",
    parameters=("events", "attribution"),
    formula="actions without a list (`unattributed` in attribution) / actions, of all events that `events` "
    "names. Users are the units of the interval; an action without a user counts as a user of its own.",
    answers="Do feedback and exposures match at all, so that the other metrics can be trusted?",
    misleads="If most actions start outside the lists, as in a shop with a search box, it is high and "
    "nothing is wrong: set `max_unattributed` accordingly. It is violated if its whole interval is above "
    "`max_unattributed`; the detail has the likely reason. It is small if users have a list at any time. "
    "Therefore it is also violated if a time shift would make most actions join; see docs/feedback.md.",
    requires=("exposures", "feedback"),
    samples="actions of the judged events, each as often as it was logged",
    no_data="nothing was shown",
    undefined="no action of a judged event",
    sliced=False,
)
OTHER_EVENTS = MetricSpec(
    name="other_events",
    is_count=True,
    theme=Theme.SCORES,
    help="Actions of the window whose event is not judged.",
    formula="rows of feedback whose event is null or that `events` does not name",
    answers="Does the log have an event that was renamed, is new, or is missing in the config?",
    misleads="Events that are left out on purpose count here as well: watch for changes, not for 0.",
    requires=("exposures", "feedback"),
    parameters=("events",),
    samples="rows of feedback",
    no_data="no feedback in the window",
)
WITHOUT_ITEM = MetricSpec(
    name="actions_without_item",
    is_count=True,
    theme=Theme.SCORES,
    help="Actions of the window without an item id; they belong to no list.",
    formula="rows of feedback of an event that `events` names, with item_id null",
    answers="Does the client still log the clicked item?",
    misleads="An item id of another system is not null, and shows up as not_shown or unattributed instead.",
    requires=("exposures", "feedback"),
    parameters=("events",),
    samples="rows of feedback",
    no_data="no feedback in the window",
)


def lost_actions(
    actions: ir.Table, ways: tuple[str, ...] = (UNATTRIBUTED,), key: str | None = None
) -> ir.Table:
    """One row (a group): the sums by user of actions found in these ways and of all; see `ratio_sums`."""
    lost = ibis.ifelse(actions[FOUND].isin(ways), actions[COUNT], 0)
    owners = _owners(actions)
    owned = actions.mutate(**owners)
    users = owned.aggregate(by=[*owners, *listed(key)], lost=lost.sum(), every=owned[COUNT].sum())
    lost, every = users.lost.cast("float64"), users.every.cast("float64")
    return users.aggregate(by=listed(key), **ratio_columns(_LOST, lost, every))


def _owners(actions: ir.Table) -> dict[str, ir.Value]:
    """Keys that the actions of one user share; without a user those of one request, else an action alone.

    Each kind of id has a key of its own: a user and a request may have the same number.
    """
    keys: dict[str, ir.Value] = {}
    owned: ir.BooleanValue = ibis.literal(False)
    for column in (USER_ID, REQUEST_ID, ACTION):
        if column in actions.columns:
            value = actions[column]
            keys[f"owner_{column}"] = ibis.ifelse(owned, ibis.null(value.type()), value)
            owned = owned | value.notnull()
    return keys


class AttributionHealth(Family):
    """The ways of attribution by event, and the actions without a list."""

    name = "attribution"
    outputs = ((ATTRIBUTION, _WAYS), (LOST, ()), (OTHER_EVENTS, ()), (WITHOUT_ITEM, ()))
    needs = ("feedback",)
    sliced = False  # an action without an exposure has no value of a slice

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        actions = attributed(shared, settings)
        sums: dict[str, Any] = {}
        for number, event in enumerate(settings.events):
            for way in _WAYS:
                mine = (actions[EVENT] == event) & (actions[FOUND] == way)
                sums[f"{way}_{number}"] = ibis.ifelse(mine, actions[COUNT], 0).sum()
        by, rows = listed(key), shared.actions(key)
        judged = rows[EVENT].isin(list(settings.events)).fill_null(False)
        every = rows.aggregate(
            by=by,
            rows=rows.count(),
            other_events=ibis.ifelse(judged, 0, 1).sum(),
            without_item=ibis.ifelse(judged & rows[ITEM_ID].isnull(), 1, 0).sum(),
        )
        exposures = shared.rows(key)
        shown = exposures.aggregate(by=by, shown=exposures.count())
        found = actions.aggregate(by=by, **sums)
        return shared.side_by_side(key, every, shown, found, lost_actions(actions, key=key))

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        for number, event in enumerate(settings.events):
            found = {way: int(row[f"{way}_{number}"] or 0) for way in _WAYS}
            for way in _WAYS:
                builder = make(ATTRIBUTION, settings, way, event=event)
                yield builder.share(found[way], sum(found.values()), "no action of this event")
        lost, builder = ratio_sums(row, _LOST), make(LOST, settings)
        if lost.denominator:
            yield builder.value(lost.numerator / lost.denominator, int(lost.denominator), ratio_within(lost))
        elif row["shown"]:
            yield builder.undefined("there is no action of a judged event", 0)
        else:
            yield builder.no_data(NOTHING_SHOWN)
        for spec, name in ((OTHER_EVENTS, "other_events"), (WITHOUT_ITEM, "without_item")):
            builder = make(spec, settings)
            if row["rows"]:
                yield builder.value(float(row[name]), int(row["rows"]))
            else:
                yield builder.no_data("no feedback in the window")
