"""Can a band ever be drawn as it is asked for? Its metrics, its past, its slices."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from monitor.config.problems import Problem, nearest, show_duration
from monitor.core.text import quoted
from monitor.metrics.catalogue import SPECS
from monitor.settings.recommender import RecommenderSettings

_DAY: Final = timedelta(days=1)


def check_bands(where: str, settings: RecommenderSettings, retention: timedelta) -> Iterator[Problem]:
    """Metrics that are none, and a past that is too short or is not kept."""
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
        if name not in SPECS:
            close = nearest(name, SPECS)
            hint = f"did you mean {close}?" if close else "docs/metrics/README.md lists them"
            yield Problem(place, f"no metric is called {quoted(name)}; {hint}")
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
        yield Problem(
            f"{where}.history",
            f"is longer than history.retention ({show_duration(retention)})",
        )
