"""Can a health score be computed? Its parts, and the series behind them."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.config.checks.objectives import check_series
from monitor.config.problems import Problem
from monitor.core.text import quoted
from monitor.settings.recommender import ROLLUP, RecommenderSettings


def check_health(where: str, settings: RecommenderSettings) -> Iterator[Problem]:
    """A problem for each part that can never have a value, or that has the name of another one."""
    first: dict[str, int] = {}
    for number, part in enumerate(settings.health.parts if settings.health else ()):
        place = f"{where}.parts[{number}]"
        if part.labels.get("dimension") == ROLLUP:
            yield Problem(f"{place}.labels", "a part is a value of one window; a roll-up is of many")
        yield from check_series(place, part.metric, part.labels, settings)
        if part.title in first:
            taken = f"{quoted(part.title)} is already the name of parts[{first[part.title]}]"
            yield Problem(place, f"{taken}; give this part a name")
        first.setdefault(part.title, number)
