"""Can a survey be read as its settings ask? Who was asked, the slices, and the metrics of single users."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from monitor.config.checks.objectives import unknown_metric
from monitor.config.checks.slices import check_dimensions
from monitor.config.problems import Problem
from monitor.core.columns import CATALOG, POSITION, REQUIRED, SURVEY, USERS
from monitor.core.text import quoted
from monitor.metrics.catalogue import FAMILIES, SPECS
from monitor.settings.recommender import (
    HOUR,
    ITEM_POPULARITY,
    NEW_ITEM,
    WEEKDAY,
    RecommenderSettings,
    sliced_column,
)

_OF_ROWS: Final = (ITEM_POPULARITY, NEW_ITEM, HOUR, WEEKDAY, POSITION)


def check_survey(where: str, settings: RecommenderSettings) -> Iterator[Problem]:
    """A problem for each setting of the survey that can have no effect."""
    if SURVEY not in settings.logs.named():
        if "survey" in settings.model_fields_set:
            yield Problem(where, "needs logs.survey, which is not given")
        return
    yield from _invited(f"{where}.invited", settings)
    by = settings.survey.by
    for number, name in enumerate(by):
        if name in REQUIRED[SURVEY]:
            yield Problem(f"{where}.by[{number}]", f"{name} has another role in the survey")
        elif name in by[:number]:
            yield Problem(f"{where}.by[{number}]", f"{quoted(name)} is named twice")
    yield from _weight_by(f"{where}.weight_by", settings)
    yield from _metrics(f"{where}.metrics", settings)


def _invited(place: str, settings: RecommenderSettings) -> Iterator[Problem]:
    invited = settings.survey.invited
    if invited is None or invited == SURVEY:
        return
    log, column = sliced_column(invited) or ("", "")
    if log in ("", CATALOG) or not column:
        text = f"{quoted(invited)} is no column of the exposures or the users"
        yield Problem(place, f"{text}; write asked, users.asked or {SURVEY}")
    elif log not in settings.logs.named():
        yield Problem(place, f"needs logs.{log}, which is not given")


def _weight_by(place: str, settings: RecommenderSettings) -> Iterator[Problem]:
    yield from check_dimensions(place, settings.survey.weight_by, settings)
    for number, name in enumerate(settings.survey.weight_by):
        if name in _OF_ROWS or (sliced_column(name) or ("",))[0] == CATALOG:
            yield Problem(
                f"{place}[{number}]",
                f"{quoted(name)} tells items or times apart, not users; name a column such as {USERS}.plan",
            )


def _metrics(where: str, settings: RecommenderSettings) -> Iterator[Problem]:
    names = settings.survey.metrics
    of_users = {
        spec.name for family in FAMILIES if family.sliced for spec, _ in family.outputs if spec.sliced
    }
    for number, name in enumerate(names):
        place = f"{where}[{number}]"
        if name not in SPECS:
            yield unknown_metric(place, name)
        elif name not in of_users:
            yield Problem(place, f"{name} is never measured by user")
        elif name in settings.metrics.disable:
            yield Problem(place, f"{name} is not measured: metrics.disable names it")
        elif name in names[:number]:
            yield Problem(place, f"{name} is named twice")
