"""Can a health score ever be given? Its parts, and the series that they are made of."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.config.checks.objectives import check_series
from monitor.config.problems import Problem
from monitor.core.text import quoted
from monitor.settings.recommender import RecommenderSettings


def check_health(where: str, settings: RecommenderSettings) -> Iterator[Problem]:
    """Every part that could never have a value, or could not be told from another."""
    first: dict[str, int] = {}
    for number, part in enumerate(settings.health.parts if settings.health else ()):
        place = f"{where}.parts[{number}]"
        yield from check_series(place, part.metric, part.labels, settings)
        if part.title in first:
            yield Problem(
                place,
                f"{quoted(part.title)} is already the name of parts[{first[part.title]}]; give this "
                "part a name",
            )
        first.setdefault(part.title, number)
