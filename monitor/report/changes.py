"""What changed shortly before a problem began: a model, the config, a list, the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from monitor.anomalies.series import DIMENSION_OTHER
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
    """The changes from a day before `began` until now, the newest first."""
    known = [*state.changes, *new_models(state.series)]
    if snapshot.config_loaded_at is not None:
        known.append(Change(snapshot.config_loaded_at, "the config was read, at a start or a reload"))
    near = sorted({one for one in known if began - _BEFORE <= one.at <= now}, key=lambda one: one.at)
    return tuple(ChangeView(visible(one.what), rows.moment(one.at, now)) for one in reversed(near[-_MOST:]))


def new_models(series: Iterable[Series]) -> Iterator[Change]:
    """The windows in which another model began to serve most. It needs `model` in `slices.by`.

    The slice of all models beyond the budget is no model.
    """
    requests: dict[Window, dict[str, float]] = {}
    for one in series:
        labels = one.result.labels
        if not _counts_a_model(one.result.metric, labels):
            continue
        for point in one.past:
            if point.value:
                requests.setdefault(point.window, {})[labels["value"]] = point.value
    before = None
    for window, by_model in sorted(requests.items()):
        first = max(by_model, key=lambda model: (by_model[model], model))
        if before not in (None, first):
            yield Change(window.start, f"model {rows.model_name(first)} serves the most requests")
        before = first


def _counts_a_model(metric: str, labels: Mapping[str, str]) -> bool:
    is_of_models = metric == "volume" and labels.get("by") == "requests" and labels.get("dimension") == MODEL
    return is_of_models and labels["value"] != DIMENSION_OTHER
