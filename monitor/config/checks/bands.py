"""Can the bands be computed? Their metrics, and how much of the past they need."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from monitor.config.checks.objectives import unknown_metric
from monitor.config.problems import Problem
from monitor.core.settings import show_duration
from monitor.metrics.catalogue import SPECS
from monitor.platform.specs import AMOUNT
from monitor.settings.recommender import RecommenderSettings

_DAY: Final = timedelta(days=1)


def check_bands(where: str, settings: RecommenderSettings, retention: timedelta) -> Iterator[Problem]:
    """Unknown metrics, and a history that is too short or not kept for long enough."""
    bands = settings.bands
    if bands is None:
        return
    named = [
        *((f"{where}.sliced[{place}]", name) for place, name in enumerate(bands.sliced)),
        *((f"{where}.without[{place}]", name) for place, name in enumerate(bands.without)),
        *(
            (f"{where}.changes[{number}].metrics[{place}]", name)
            for number, change in enumerate(bands.changes)
            for place, name in enumerate(change.metrics)
        ),
    ]
    for place, name in named:
        if name not in SPECS and not (".changes[" in place and name == AMOUNT.name):
            yield unknown_metric(place, name)
    if bands.history < bands.least * settings.window:
        yield Problem(
            f"{where}.history",
            f"holds fewer than `least` ({bands.least}) windows of {show_duration(settings.window)}: no band "
            "could ever be computed",
        )
    if settings.window < _DAY and _DAY % settings.window != timedelta(0):
        yield Problem(
            where,
            f"windows of {show_duration(settings.window)} do not divide a day, so no day could be judged for "
            "drift; choose a `window` that divides a day",
        )
    if bands.history > retention:
        yield Problem(f"{where}.history", f"is longer than history.retention ({show_duration(retention)})")
