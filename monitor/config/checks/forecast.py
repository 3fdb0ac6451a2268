"""Can the forecast be computed? Its targets, its metrics, and how much of the past it needs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from monitor.config.checks.objectives import check_series
from monitor.config.problems import Problem, nearest
from monitor.core.columns import SAMPLES
from monitor.core.settings import show_duration
from monitor.core.text import quoted
from monitor.metrics.catalogue import SPECS
from monitor.metrics.family import SPLIT_LABEL
from monitor.models.specs import MODEL_SPECS
from monitor.settings.forecast import SeriesSettings
from monitor.settings.recommender import RecommenderSettings

_DAY: Final = timedelta(days=1)


def check_forecast(where: str, settings: RecommenderSettings, retention: timedelta) -> Iterator[Problem]:
    """Metrics that can never have a value, names given twice, and a history that is too short."""
    forecast = settings.forecast
    if forecast is None:
        return
    first: dict[str, int] = {}
    for number, target in enumerate(forecast.targets):
        place = f"{where}.targets[{number}]"
        if target.name in first:
            yield Problem(
                f"{place}.name",
                f"{quoted(target.name)} is already the name of targets[{first[target.name]}]",
            )
        first.setdefault(target.name, number)
        yield from _series(place, target, settings)
        for at, one in enumerate(target.used):
            yield from _series(f"{place}.used[{at}]", one, settings)
            if (one.metric, one.labels) == (target.metric, target.labels):
                yield Problem(f"{place}.used[{at}]", "is the target itself, which says nothing about it")
    for number, one in enumerate(forecast.offline):
        yield from _series(f"{where}.offline[{number}]", one, settings)
    if forecast.days * _DAY > retention:
        yield Problem(f"{where}.days", f"is longer than history.retention ({show_duration(retention)})")
    if settings.window > _DAY or _DAY % settings.window != timedelta(0):
        yield Problem(
            where,
            f"windows of {show_duration(settings.window)} do not divide a day, so no day has a value; "
            "choose a `window` that divides a day",
        )


def _series(place: str, one: SeriesSettings, settings: RecommenderSettings) -> Iterator[Problem]:
    """The reasons why a series has no value: a metric of the logs, or one of the samples."""
    if SPLIT_LABEL not in one.labels:
        yield from check_series(place, one.metric, one.labels, settings)
        return
    if (SPECS | MODEL_SPECS).get(one.metric) is None:
        close = nearest(one.metric, [*SPECS, *MODEL_SPECS])
        hint = f"did you mean {close}?" if close else "docs/metrics/README.md lists them"
        yield Problem(f"{place}.metric", f"no metric of the samples is called {quoted(one.metric)}; {hint}")
    elif SAMPLES not in settings.logs.named():
        yield Problem(f"{place}.metric", f"{one.metric} by split needs logs.samples, which is not given")
