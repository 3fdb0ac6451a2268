"""What changed shortly before a problem began: a model, the config, a list, the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from monitor.anomalies.series import DIMENSION, DIMENSION_OTHER, SLICE_VALUE, VOLUME
from monitor.core.columns import MODEL
from monitor.core.results import Window
from monitor.core.text import visible
from monitor.history.snapshot import Change, RecommenderState, Series, Snapshot
from monitor.report import rows
from monitor.report.views import ChangeView

_BEFORE: Final = timedelta(days=1)
_MOST: Final = 8


def changes_beside(
    state: RecommenderState, snapshot: Snapshot, began: datetime, now: datetime
) -> tuple[ChangeView, ...]:
    """The changes from a day before `began` until now, the newest first; of many, the nearest to `began`."""
    known = [*state.changes, *new_models(state.series)]
    if snapshot.config_loaded_at is not None:
        known.append(Change(snapshot.config_loaded_at, "the config was read, at a start or a reload"))
    near = {one for one in known if began - _BEFORE <= one.at <= now}
    shown = sorted(near, key=lambda one: abs(one.at - began))[:_MOST]
    newest_first = sorted(shown, key=lambda one: one.at, reverse=True)
    return tuple(ChangeView(visible(one.what), rows.moment(one.at, now)) for one in newest_first)


def new_models(series: Iterable[Series]) -> Iterator[Change]:
    """The windows in which another model began to serve most. It needs `model` in `slices.by`."""
    requests: dict[Window, dict[str, float]] = {}
    for one in series:
        labels = one.result.labels
        if counts_a_model(one.result.metric, labels):
            for point in one.past:
                requests.setdefault(point.window, {})[labels[SLICE_VALUE]] = point.value or 0.0
    for window, model, _ in most_served(requests):
        yield Change(window.start, f"model {rows.model_name(model)} serves the most requests")


def most_served(requests: Mapping[Window, Mapping[str, float]]) -> Iterator[tuple[Window, str, str]]:
    """Each window since which another model serves the most requests, that model, and the one before it.

    Args:
        requests: of each window by model.

    >>> from datetime import UTC
    >>> hours = [Window.of(datetime(2026, 1, 1, hour, tzinfo=UTC), timedelta(hours=1)) for hour in range(3)]
    >>> served = ({"a": 9.0, "b": 1.0}, {"a": 0.0}, {"a": 4.0, "b": 6.0})
    >>> [(one.start.hour, *models) for one, *models in most_served(dict(zip(hours, served)))]
    [(2, 'b', 'a')]
    """
    before = None
    for window, by_model in sorted(requests.items()):
        most = max(by_model, key=lambda model: (by_model[model], model))
        if not by_model[most]:
            continue
        if before is not None and most != before:
            yield window, most, before
        before = most


def counts_a_model(metric: str, labels: Mapping[str, str]) -> bool:
    """Whether a series counts the requests of a model. The slice of all beyond the budget is no model."""
    found = (metric, labels.get("by"), labels.get(DIMENSION))
    return found == (VOLUME, "requests", MODEL) and labels.get(SLICE_VALUE) != DIMENSION_OTHER
