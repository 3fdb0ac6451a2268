"""When something changed that may move the numbers: the model, a list of a rule, or what was declared.

Dashboards draw these times beside the graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from monitor.anomalies.series import DIMENSION, SLICE_VALUE, VOLUME
from monitor.core.columns import ITEM_ID, MODEL
from monitor.history.snapshot import Series
from monitor.rules.list_files import FILES, ListFileError
from monitor.rules.rule import LoadedRule
from monitor.settings.recommender import RecommenderSettings

OF_MODEL: Final = "model"
OF_LIST: Final = "list"
DECLARED: Final = "declared"
KINDS: Final = (OF_MODEL, OF_LIST, DECLARED)


class ListChanges:
    """Notices that a list file of a rule, such as a blacklist, has another content."""

    def __init__(self) -> None:
        self.changed_at: datetime | None = None
        self._versions: dict[tuple[str, str], str] = {}  # of a column of a file

    def look(self, rules: Iterable[LoadedRule], now: datetime) -> None:
        """Compare the lists of these rules with those of the last look. What cannot be read is skipped."""
        for rule in rules:
            path = rule.kwargs.get("list_path")
            if not isinstance(path, str):
                continue
            column = getattr(rule.expectation, "list_column", ITEM_ID)
            try:
                version = FILES.read(path, column, allow_empty=True).version
            except ListFileError:
                continue
            if self._versions.setdefault((path, column), version) != version:
                self._versions[path, column] = version
                self.changed_at = now


def changed_at(
    series: Sequence[Series], settings: RecommenderSettings, lists: datetime | None, now: datetime
) -> Mapping[str, datetime]:
    """Kind of change -> when the newest one took effect; without the kinds of which none is known."""
    declared = [one.at for one in settings.bands.changes if one.at <= now] if settings.bands else []
    found = {OF_MODEL: model_changed_at(series), OF_LIST: lists, DECLARED: max(declared, default=None)}
    return {kind: moment for kind, moment in found.items() if moment is not None}


def model_changed_at(series: Sequence[Series]) -> datetime | None:
    """Start of the first window in which the model that now serves most requests did so.

    None if it always did, in the windows that are shown, or if no model has more than half of the requests.
    It needs `model` in `slices.by`.
    """
    requests = [
        one for one in series if one.result.metric == VOLUME and one.result.labels.get("by") == "requests"
    ]
    total = {
        point.window: point.value
        for one in requests
        if DIMENSION not in one.result.labels
        for point in one.past
        if point.value
    }
    leaders: dict[datetime, str] = {}
    for one in requests:
        if one.result.labels.get(DIMENSION) == MODEL:
            for point in one.past:
                whole = total.get(point.window)
                if whole and point.value and point.value > whole / 2:
                    leaders[point.window.start] = one.result.labels.get(SLICE_VALUE, "")
    newest = max(leaders, default=None)
    if newest is None:
        return None
    began: datetime | None = None
    for window in sorted(total, key=lambda one: one.start):
        leader = leaders.get(window.start)
        if leader != leaders[newest]:
            began = None
        elif began is None:
            began = window.start
    return None if began == min(total).start else began
