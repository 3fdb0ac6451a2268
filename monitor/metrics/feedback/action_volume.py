"""The number of actions of each event in a window, with or without a list."""

from __future__ import annotations

from collections.abc import Iterator

import ibis
import ibis.expr.types as ir

from monitor.core.columns import EVENT
from monitor.core.results import Result
from monitor.metrics.attribution import COUNT, of_event
from monitor.metrics.family import ALL, AddsUp, AggregateRow, Family, MetricSpec, make
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings

NO_FEEDBACK = "no feedback in the window"

ACTION_VOLUME = MetricSpec(
    name="action_volume",
    is_count=True,
    help="Number of actions of an event in the window, with or without a list.",
    labels=("event",),
    formula="rows of feedback with the event whose own time is in the window, each as often as it was "
    "logged. A window without feedback of any event has 0, and the state no_data",
    answers="Does the client still log all actions, and do all of them arrive?",
    misleads="It follows the traffic: with fewer users there are fewer actions. action_rate shows whether "
    "each user acts less. An action just after the window's end counts in the next window, even if its list "
    "is in this one. It has no slices, since an action without a list has no exposure to take a slice's "
    "value from: see action_rate.",
    requires=("feedback",),
    samples="rows of feedback",
    no_data="no feedback in the window; then the value is 0",
    sliced=False,
)


class ActionVolume(Family):
    """The rows of the feedback by event, as they were logged."""

    name = "action_volume"
    outputs = ((ACTION_VOLUME, ()),)
    needs = ("feedback",)
    sliced = False
    adds_up = AddsUp(columns=(ALL,))

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        rows = shared.actions(key)
        counts = {
            of_event(COUNT, number): ibis.ifelse((rows[EVENT] == event).fill_null(False), 1, 0).sum()
            for event, number in self.events(settings).items()
        }
        return shared.side_by_side(key, rows.aggregate(by=listed(key), rows=rows.count(), **counts))

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        every = int(row["rows"] or 0)
        for event, number in self.events(settings).items():
            count = int(row[of_event(COUNT, number)] or 0)
            yield make(ACTION_VOLUME, settings, event=event).count(count, every, "" if every else NO_FEEDBACK)
