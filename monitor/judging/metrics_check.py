"""The checks of the metrics: those of exposures, and those that need feedback, overall and by slice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Self

from monitor.core.columns import EXPOSURES, FEEDBACK
from monitor.core.results import Result, Status
from monitor.judging.unattributed import UnattributedVerdict
from monitor.metrics.catalogue import (
    EXPOSURE_CHECK,
    EXPOSURE_FAMILIES,
    FEEDBACK_CHECK,
    FEEDBACK_FAMILIES,
)
from monitor.metrics.family import Family
from monitor.metrics.measure import measure_all, resolved
from monitor.metrics.shared import Shared
from monitor.settings.recommender import ROLLUP, RecommenderSettings
from monitor.window.check import Check, Recommender, WindowJob
from monitor.window.verdicts import apply_objectives


class MetricsCheck(Check[WindowJob]):
    """Measures some families of metrics; what was measured before a failure is kept and judged."""

    families: ClassVar[tuple[Family, ...]]

    def __init__(self, settings: RecommenderSettings) -> None:
        self._settings = settings
        names = {spec.name for family in self.families for spec, _ in family.outputs}
        self._objectives = [
            one
            for one in settings.objectives
            if one.metric in names and one.labels.get("dimension") != ROLLUP
        ]
        self._begin()

    def _begin(self) -> None:
        self._found: list[Result] = []
        self._done: set[str] = set()  # families
        self._shared: Shared | None = None

    def run(self, job: WindowJob) -> list[Result]:
        """The metrics that the logs at hand can give, in the catalogue's order."""
        self._begin()
        metrics = self._settings.metrics
        self._shared, dimensions = self._logs(job)
        before = {} if job.together is None else job.together.seconds
        for measured in measure_all(
            self._shared, metrics, dimensions, families=self.families, sliced=self._settings.slices.metrics
        ):
            self._found += sorted(measured.results, key=_slice)  # a GROUP BY gives them in any order
            self._done.add(measured.family)
            job.costs[measured.family] = measured.seconds + before.get(measured.family, 0.0)
        return apply_objectives(self._found, self._objectives, metrics)

    def _logs(self, job: WindowJob) -> tuple[Shared, Mapping[str, str]]:
        """The window's logs and slices; its own tables are made only if something is left to measure."""
        once = job.together
        if once is not None and once.is_whole and not (self._settings.slices.by or self._settings.rollups):
            once.shared.take(once.rows)
            return once.shared, {}
        tables = job.tables()
        if once is not None:
            tables.shared.take(once.rows)
        return tables.shared, tables.dimensions()

    def failed(self, why: str) -> Sequence[Result]:
        """The results so far, and an error for each metric that the logs could have given.

        The results so far are judged too: an unjudged result would end a violation. If the tables could not
        be made there are no results, so that every series stays, with the status of the window.
        """
        shared = self._shared
        if shared is None:
            return ()
        settings = resolved(self._settings.metrics, shared)
        left = [
            family
            for family in self.families
            if family.name not in self._done and family.reason_not(shared, settings) is None
        ]
        errors = [one for family in left for one in family.without_rows(settings, Status.ERROR, why)]
        found = self._found + errors
        metrics, otherwise = self._settings.metrics, (Status.ERROR, why)
        return found and apply_objectives(found, self._objectives, metrics, otherwise=otherwise)


class ExposureMetrics(MetricsCheck):
    """Every metric that needs no feedback."""

    name = EXPOSURE_CHECK
    part = EXPOSURES
    families = EXPOSURE_FAMILIES

    @classmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        return [cls(recommender.settings)]


class FeedbackMetrics(MetricsCheck):
    """Every metric that needs feedback: what users did with the lists."""

    name = FEEDBACK_CHECK
    part = FEEDBACK
    families = FEEDBACK_FAMILIES

    def __init__(self, recommender: Recommender) -> None:
        super().__init__(recommender.settings)
        self._source = recommender.source
        self._parts = recommender.parts

    @classmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        return [cls(recommender)]

    def run(self, job: WindowJob) -> list[Result]:
        results = super().run(job)
        if job.due.late:  # while the window is incomplete, any action may still find its list
            return results
        around = self._parts.span(job.window, self.part)
        return UnattributedVerdict(
            self._settings, job.engine, self._source, job.tables, job.window, around
        ).apply(results)


def _slice(result: Result) -> tuple[str, str]:
    return result.labels.get("dimension", ""), result.labels.get("value", "")
