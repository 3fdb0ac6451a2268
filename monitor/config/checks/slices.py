"""Can the metrics be sliced? Each dimension is named once, is in a given log, and has few values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from monitor.config.checks.objectives import needs_whole_lists, unknown_metric
from monitor.config.problems import Problem
from monitor.core.columns import (
    CATALOG,
    CREATED_AT,
    EXPOSURES,
    ITEM_ID,
    POSITION,
    PROPENSITY,
    REQUEST_ID,
    SCORE,
    TS,
    USER_ID,
    USERS,
    VECTOR,
)
from monitor.core.text import SETTING_LENGTH, visible
from monitor.metrics.catalogue import SPECS
from monitor.settings.recommender import NEW_ITEM, RecommenderSettings, sliced_column

_TOO_MANY = {
    EXPOSURES: (REQUEST_ID, USER_ID, ITEM_ID, TS, SCORE, PROPENSITY),
    CATALOG: (ITEM_ID, CREATED_AT, VECTOR),
    USERS: (USER_ID,),
}


def check_slices(where: str, settings: RecommenderSettings) -> Iterator[Problem]:
    """A problem for each slice that can never have a value."""
    for number, name in enumerate(settings.slices.metrics):
        place = f"{where}.metrics[{number}]"
        if name not in SPECS:
            yield unknown_metric(place, name)
        elif not SPECS[name].sliced:
            yield Problem(place, f"{name} is never sliced")
        elif not SPECS[name].of_rows and set(settings.slices.by) == {POSITION}:
            yield needs_whole_lists(place, name)
    yield from check_dimensions(f"{where}.by", settings.slices.by, settings)


def check_dimensions(where: str, by: Sequence[str], settings: RecommenderSettings) -> Iterator[Problem]:
    """A problem for each name of a slice that can never have a value."""
    logs = settings.logs.named()
    for number, name in enumerate(by):
        place = f"{where}[{number}]"
        log, column = sliced_column(name) or (CATALOG if name == NEW_ITEM else EXPOSURES, None)
        if name in by[:number]:
            yield Problem(place, f"{name!r} is named twice")
        elif log not in logs:
            yield Problem(place, f"{visible(name, SETTING_LENGTH)} needs logs.{log}, which is not given")
        elif column is None:
            continue
        elif not column:
            yield Problem(place, "must name a column")
        elif column in _TOO_MANY[log]:
            instead = {EXPOSURES: "scene", CATALOG: "catalog.category or new_item", USERS: "users.plan"}[log]
            text = f"{name} has too many values to slice by; use a column with few values, such as {instead}"
            yield Problem(place, text)
        else:
            ours = {theirs: ours for ours, theirs in logs[log].columns.items()}
            if column in ours and column not in logs[log].columns:
                yield Problem(
                    place, f"logs.{log}.columns gives this column the name {ours[column]!r}; use that"
                )
