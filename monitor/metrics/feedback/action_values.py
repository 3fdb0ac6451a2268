"""The value of actions: sums and means, and the share of plays that reach the end of an item."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ibis.expr.types as ir

from monitor.core.results import Result
from monitor.metrics.attribution import COMPLETABLE, COMPLETED, COUNT, VALUES, lengths_known, of_event
from monitor.metrics.family import NO_REQUESTS, AddsUp, AggregateRow, Family, make
from monitor.metrics.feedback.business import (
    BUSINESS_USERS,
    MEANT,
    REQUESTS,
    USERS,
    VALUE,
    action_spec,
    ratio_columns,
    ratio_sums,
    users,
)
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings
from monitor.statistics.effects import ratio_delta, ratio_within

ACTION_VALUE = action_spec(
    name="action_value",
    better="higher",
    of_rows=True,
    help="Sum and mean of the values of the event's actions (of orders: GMV; of plays: dwell time).",
    by=("sum", "mean"),
    interval="delta",
    without_interval=("sum",),
    formula="sum: sum of the values; 0 where there are requests and no action. mean: sum of the values / "
    f"values, with users as the units of the interval. Values that are null, NaN or infinite are left out; "
    f"{MEANT}",
    answers="How much value do the actions have?",
    misleads="The sum grows with the traffic: compare windows of the same kind. A single large order moves "
    "both. The values are as logged: cancelled orders and players left running count. The unit is that of "
    "the column, and mixed currencies are added up as if they were one.",
    requires=("exposures", "feedback.value"),
    samples="finite values",
    no_data="no requests; actions, but none with a finite value; no action (mean)",
    undefined="the sums run out of the range of float64",
)

COMPLETION = action_spec(
    name="completion",
    better="higher",
    of_rows=True,
    help="Share of the event's actions whose value reaches enough of the item's length (plays to the end).",
    unit="ratio",
    interval="Wilson of means",
    parameters=("events", "attribution"),
    formula="actions with value >= `complete` x the item's length / actions with a finite value on an item "
    "whose length is a finite number above 0; `complete` and `length` of the event's settings; "
    f"{MEANT}. {USERS}.",
    answers="Do users finish what they start?",
    misleads="Short items are completed more often: a shift to them looks like success. Several plays of "
    "one item are several actions: an item that was finished on the second day has one unfinished play. "
    "Actions without a value, or on an item whose length is missing or is no number (`n/a`), are left out "
    "(and counted).",
    requires=("exposures", "feedback.value", "catalog"),
    samples="actions with a value and a length",
    no_data="no action has both a finite value and a length above 0",
)

_MEAN, _SHARE = "mean", "share"


def _no_values(shared: Shared) -> str | None:
    return None if VALUE in shared.responses.columns else "needs the column value of the log feedback"


class ActionValue(Family):
    """The sum and the mean of the values of each event."""

    name = "action_value"
    outputs = ((ACTION_VALUE, ACTION_VALUE.by),)
    needs = ("feedback",)
    adds_up = AddsUp(tables=(BUSINESS_USERS,))

    def reason_not(self, shared: Shared, settings: MetricSettings) -> str | None:
        return super().reason_not(shared, settings) or _no_values(shared)

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        every = users(shared, settings, key)
        sums: dict[str, Any] = {REQUESTS: every[REQUESTS].sum()}
        for number in self.events(settings).values():
            count, value, values = (every[of_event(c, number)] for c in (COUNT, VALUE, VALUES))
            sums |= ratio_columns(of_event(_MEAN, number), value, values)
            sums[of_event(COUNT, number)] = count.sum()
        return shared.side_by_side(key, every.aggregate(by=listed(key), **sums))

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        for event, number in self.events(settings).items():
            whole, mean = (make(ACTION_VALUE, settings, by, event=event) for by in ACTION_VALUE.by)
            sums = ratio_sums(row, of_event(_MEAN, number))
            actions, values = int(row[of_event(COUNT, number)] or 0), int(sums.denominator)
            if not row[REQUESTS]:
                yield from (builder.no_data(NO_REQUESTS) for builder in (whole, mean))
            elif not actions:
                # Lists were shown and nothing was earned: a measured 0, on which an alert can fire.
                yield whole.value(0.0, 0)
                yield mean.no_data("there is no action of the event")
            elif not values:
                nothing = f"none of {actions} actions has a finite value"
                yield from (builder.no_data(nothing) for builder in (whole, mean))
            else:
                lost = actions - values
                left_out = f"left out: {lost:,} of {actions:,} actions without a finite value" if lost else ""
                yield whole.value(sums.numerator, values, detail=left_out)
                estimate = ratio_delta(sums)
                interval = estimate and estimate.interval
                yield mean.value(sums.numerator / values, values, interval, detail=left_out)


class Completion(Family):
    """The share of started items that are finished."""

    name = "completion"
    outputs = ((COMPLETION, ()),)
    needs = ("feedback", "catalog")
    adds_up = AddsUp(tables=(BUSINESS_USERS,))

    def events(self, settings: MetricSettings) -> dict[str, int]:
        """The events whose settings name the column of the item's length."""
        every = super().events(settings)
        return {event: number for event, number in every.items() if settings.events[event].length}

    def reason_not(self, shared: Shared, settings: MetricSettings) -> str | None:
        lacking = super().reason_not(shared, settings) or _no_values(shared)
        if lacking or lengths_known(shared, settings):
            return lacking
        named = [one.length for one in settings.events.values() if one.length]
        if named:
            return f"needs the column {named[0]} of the log catalog"
        return "needs a length in one of metrics.events"

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        every = users(shared, settings, key)
        sums: dict[str, Any] = {}
        for number in self.events(settings).values():
            count, completable, completed = (
                every[of_event(c, number)] for c in (COUNT, COMPLETABLE, COMPLETED)
            )
            sums |= ratio_columns(of_event(_SHARE, number), completed, completable)
            sums[of_event(COUNT, number)] = count.sum()
        return shared.side_by_side(key, every.aggregate(by=listed(key), **sums))

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        for event, number in self.events(settings).items():
            builder = make(COMPLETION, settings, event=event)
            sums = ratio_sums(row, of_event(_SHARE, number))
            actions, completable = int(row[of_event(COUNT, number)] or 0), int(sums.denominator)
            if not completable:
                yield builder.no_data(
                    f"none of {actions} actions has both a value and the item's length"
                    if actions
                    else "there is no action of the event"
                )
                continue
            lost = actions - completable
            left_out = (
                f"left out: {lost:,} of {actions:,} actions without a value or a length" if lost else ""
            )
            value = sums.numerator / completable
            yield builder.value(value, completable, ratio_within(sums), detail=left_out)
