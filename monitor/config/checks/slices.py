"""Can the metrics be sliced as asked? Each dimension once, of a log that is given, and of few values."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.config.problems import Problem, nearest
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
from monitor.core.text import quoted
from monitor.metrics.catalogue import SPECS
from monitor.settings.recommender import NEW_ITEM, RecommenderSettings, sliced_column

_TOO_MANY = {
    EXPOSURES: (REQUEST_ID, USER_ID, ITEM_ID, TS, SCORE, PROPENSITY),
    CATALOG: (ITEM_ID, CREATED_AT, VECTOR),
    USERS: (USER_ID,),
}


def check_slices(where: str, settings: RecommenderSettings) -> Iterator[Problem]:
    """Every slice that could never say anything, with the reason."""
    for number, name in enumerate(settings.slices.metrics):
        place = f"{where}.metrics[{number}]"
        if name not in SPECS:
            close = nearest(name, SPECS)
            hint = f"did you mean {close}?" if close else "docs/metrics/README.md lists them"
            yield Problem(place, f"no metric is called {quoted(name)}; {hint}")
        elif not SPECS[name].sliced:
            yield Problem(place, f"{name} is never sliced")
        elif not SPECS[name].of_rows and set(settings.slices.by) == {POSITION}:
            yield Problem(place, f"{name} cannot be sliced by position: it needs whole lists or users")
    by = settings.slices.by
    logs = settings.logs.named()
    for number, name in enumerate(by):
        place = f"{where}.by[{number}]"
        log, column = sliced_column(name) or (CATALOG if name == NEW_ITEM else EXPOSURES, None)
        if name in by[:number]:
            yield Problem(place, f"{name!r} is named twice")
        elif log not in logs:
            yield Problem(place, f"{name[:80]} needs logs.{log}, which is not given")
        elif column is None:
            continue
        elif not column:
            yield Problem(place, "must name a column")
        elif column in _TOO_MANY[log]:
            yield Problem(
                place,
                f"{name} has too many values to slice by; use a column with few values, such as {_hint(log)}",
            )
        else:
            ours = {theirs: ours for ours, theirs in logs[log].columns.items()}
            if column in ours and column not in logs[log].columns:
                yield Problem(
                    place, f"logs.{log}.columns gives this column the name {ours[column]!r}; use that"
                )


def _hint(log: str) -> str:
    return {EXPOSURES: "scene", CATALOG: "catalog.category or new_item", USERS: "users.plan"}[log]
