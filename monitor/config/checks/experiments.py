"""Can an experiment be judged? Its name, its columns, and the logs that it needs."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.config.problems import Problem
from monitor.core.columns import FEEDBACK, ITEM_ID, POSITION, PROPENSITY, REQUEST_ID, SCORE, TS, USER_ID
from monitor.settings.recommender import RecommenderSettings

_NO_ARM = (REQUEST_ID, USER_ID, ITEM_ID, TS, POSITION, SCORE, PROPENSITY)


def check_experiments(where: str, settings: RecommenderSettings) -> Iterator[Problem]:
    """A problem for each experiment that can never be judged, or that has the name of another one."""
    first: dict[str, int] = {}
    for number, one in enumerate(settings.experiments):
        place = f"{where}[{number}]"
        if one.name in first:
            yield Problem(f"{place}.name", f"{one.name!r} is already the name of {where}[{first[one.name]}]")
        first.setdefault(one.name, number)
        yield from _column(f"{place}.column", one.column, settings)
        if one.buckets is not None:
            yield from _column(f"{place}.buckets.column", one.buckets.column, settings)
            if one.buckets.column == one.column:
                yield Problem(
                    f"{place}.buckets.column",
                    "is also the column of the arms; buckets need a column of their own",
                )
        if "metrics" in one.model_fields_set and one.metrics and FEEDBACK not in settings.logs.named():
            yield Problem(f"{place}.metrics", "needs logs.feedback, which is not given")


def _column(place: str, name: str, settings: RecommenderSettings) -> Iterator[Problem]:
    columns = settings.logs.exposures.columns if settings.logs.exposures else {}
    renamed = {theirs: ours for ours, theirs in columns.items()}
    if name in _NO_ARM:
        yield Problem(place, f"{name} identifies rows or users; it cannot hold arms or buckets")
    elif name in renamed and name not in columns:
        yield Problem(place, f"logs.exposures.columns gives this column the name {renamed[name]!r}; use that")
