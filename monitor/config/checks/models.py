"""Can the models be judged? Their settings, and the logs that these need."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.config.problems import Problem
from monitor.core.columns import EXPOSURES, FEEDBACK, LABEL, SAMPLES, SCORE, SPLIT, TS
from monitor.core.text import quoted
from monitor.settings.models import DiagnosedModels
from monitor.settings.recommender import RecommenderSettings

_NO_FEATURE = (SPLIT, SCORE, LABEL, TS)
_OF_EXPOSURES = ("rules", "objectives", "experiments", "health", "slices")


def check_models(where: str, settings: RecommenderSettings) -> Iterator[Problem]:
    """A problem for each setting of the models that can have no effect."""
    models, logs = settings.models, settings.logs.named()
    if models != DiagnosedModels() and SAMPLES not in logs:
        yield Problem(where, "needs logs.samples, which is not given")
        return
    if models.online == EXPOSURES:
        for log in (EXPOSURES, FEEDBACK):
            if log not in logs:
                yield Problem(f"{where}.online", f"exposures as online samples need logs.{log}")
    for name, columns in (("features", models.features or ()), ("by", models.by)):
        for number, column in enumerate(columns):
            if column in _NO_FEATURE:
                yield Problem(f"{where}.{name}[{number}]", f"{column} has another role in the samples")
            elif column in columns[:number]:
                yield Problem(f"{where}.{name}[{number}]", f"{quoted(column)} is named twice")
    for feature in models.feature_times:
        if models.features is not None and feature not in models.features:
            yield Problem(f"{where}.feature_times", f"{quoted(feature)} is not in models.features")


def check_without_exposures(where: str, settings: RecommenderSettings) -> Iterator[Problem]:
    """A problem for each setting that needs the exposures of a recommender without them."""
    logs = settings.logs.named()
    if EXPOSURES in logs:
        return
    if SAMPLES not in logs:
        yield Problem(
            f"{where}.logs.exposures", "is required, unless logs.samples is given to watch only models"
        )
        return
    for name in _OF_EXPOSURES:
        if name in settings.model_fields_set and getattr(settings, name):
            yield Problem(f"{where}.{name}", "needs logs.exposures, which is not given")
    for name in logs:
        if name != SAMPLES:
            yield Problem(f"{where}.logs.{name}", "has no effect without logs.exposures, which is not given")
