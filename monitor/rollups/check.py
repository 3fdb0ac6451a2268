"""The check `rollups`: the metrics of the days and weeks that end with a day, and the objectives on them.

It is of days and not of windows, and it reads what the windows keep. `monitor.service.rollup_days` says when
a day is due.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from monitor.core.digest import digest
from monitor.core.results import Result, Status
from monitor.engines.duckdb import Engine
from monitor.metrics.plans import Plans
from monitor.rollups.kept import VERSION, KeptRollups
from monitor.rollups.measure import RollUp, Span, length_label
from monitor.settings.recommender import ROLLUP
from monitor.window.check import HISTORY, Check, Recommender
from monitor.window.verdicts import apply_objectives

NAME: Final = "rollups"
TOO_SHORT: Final = "the log begins after the first of these days, so not all of them are there yet"
"""Why a span has no metrics on a day that is added up."""


@dataclass(frozen=True, slots=True)
class RollupJob:
    """The spans to roll up, all with the same end; none if the log is younger than the shortest."""

    engine: Engine
    spans: Sequence[Span]


class RollupCheck(Check[RollupJob]):
    """Measures each span, and judges its objectives."""

    name = NAME
    part = HISTORY

    def __init__(self, recommender: Recommender) -> None:
        settings = recommender.settings
        self._recommender = recommender
        self._metrics = settings.metrics
        self._objectives = [one for one in settings.objectives if one.labels.get("dimension") == ROLLUP]
        self._plans = Plans()
        self.kept = KeptRollups(recommender.kept, settings.metrics)
        self.definition = f"{VERSION};{digest(repr((self.kept.folder.name, settings.rollups)), 12)}"

    @classmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        if recommender.settings.rollups:
            yield cls(recommender)

    @property
    def has_objectives(self) -> bool:
        """Whether a day without a span says something: the objectives have no data, and why."""
        return bool(self._objectives)

    def run(self, job: RollupJob) -> list[Result]:
        of = self._recommender
        roll_up = RollUp(job.engine, of.source, self.kept, of.kept, self._metrics, self._plans)
        found = [result for span in job.spans for result in roll_up.measure(span)]
        lengths = {length_label(span.length) for span in job.spans}
        reached = [one for one in self._objectives if one.labels.get("value") in lengths]
        judged = apply_objectives(found, reached, self._metrics)
        beyond = [one for one in self._objectives if one not in reached]
        return apply_objectives(judged, beyond, self._metrics, otherwise=(Status.NO_DATA, TOO_SHORT))
