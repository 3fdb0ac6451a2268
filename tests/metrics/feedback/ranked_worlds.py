"""Lists and the actions on them, and the way to the metrics of lists at k."""

from __future__ import annotations

from datetime import timedelta

from monitor.settings.metrics import MetricSettings
from tests.metrics.worlds import START, World, by_name, results_of

NAMES = (
    "precision",
    "precision_strict",
    "recall",
    "f_score",
    "adjusted_precision",
    "hit_rate",
    "reciprocal_rank",
    "average_precision",
    "average_precision_full",
    "ndcg",
)
MINUTE = timedelta(minutes=1)


def liked(request, items, event="click", user="u"):
    """Actions on items of a list, a letter each."""
    number = int(request.removeprefix("r"))
    return [
        {
            "user_id": user,
            "item_id": item,
            "ts": START + (number + 1) * MINUTE,
            "event": event,
            "request_id": request,
        }
        for item in items
    ]


def world(exposures, feedback, columns=("position", "score", "scene", "shelf")):
    return World(exposures, feedback=feedback, columns=columns)


def measured(
    exposures, feedback, dimensions=None, columns=("position", "score", "scene", "shelf"), **settings
):
    """(metric, by, k) -> result."""
    shown = world(exposures, feedback, columns)
    return by_name(results_of(shown, MetricSettings(**settings), dimensions, only=NAMES))


def values(*args, **settings):
    return {key: result.value for key, result in measured(*args, **settings).items()}
