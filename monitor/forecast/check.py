"""The check of the forecasts, once a day: do the offline metrics that are used still predict?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Self

from monitor.core.digest import digest
from monitor.core.results import Result, Status, worst_status
from monitor.forecast.outcomes import Calibration, calibration, newly_decided
from monitor.forecast.specs import (
    FORECAST_CAME_TRUE,
    FORECAST_CORRELATION,
    FORECAST_DAYS,
    FORECAST_ERROR,
    FORECAST_SKILL,
    REASON_LABEL,
    ROLE_LABEL,
    TARGET_LABEL,
    TRIED,
    USED,
)
from monitor.forecast.study import Pair, Study, band_of, study
from monitor.metrics.family import MetricSpec, round12
from monitor.settings.recommender import RecommenderSettings
from monitor.window.check import HISTORY, Check, HistoryJob, Recommender

NAME: Final = "forecast"
_VERSION: Final = "1"
_PICTURED: Final = 1  # pairs of a target beside the used ones whose days are stored for a picture
_BAND: Final = 9
_DAYS: Final = 90
"""The newest days of a picture; with its band it fits the evidence of one result."""


class ForecastCheck(Check[HistoryJob]):
    """Judges the last day that is over: the relations of all days up to it."""

    name = NAME
    part = HISTORY

    def __init__(self, settings: RecommenderSettings) -> None:
        self._settings = settings
        assert settings.forecast is not None  # see `of`
        content = settings.forecast.model_dump_json()
        self.definition = f"{_VERSION};{digest(content, 12)}"

    @classmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        """None without `forecast`."""
        if recommender.settings.forecast is not None:
            yield cls(recommender.settings)

    def run(self, job: HistoryJob) -> list[Result]:
        """Look at all pairs, and decide the forecasts whose candidates are online. Raises StoreError."""
        found = study(job.store, self._settings, job.window.end)
        decided = newly_decided(job.store, found, (), datetime.now(UTC))
        if decided:
            job.store.decide_forecasts(decided)
        stored = job.store.forecasts(recommenders=[self._settings.name])
        results = list(self._of_days(found))
        for target in found.forecast.targets:
            pairs = found.of(target.name)
            shown = [one for one in pairs if one.is_used or one.relation is not None]
            tried = [one.series for one in shown if not one.is_used][:_PICTURED]
            for pair in shown:
                results += self._of_pair(pair, pictured=pair.is_used or pair.series in tried)
            results.append(self._of_record(target.name, calibration(stored, target.name)))
        return results

    def status(self, results: Sequence[Result]) -> Status:
        """The worst verdict on a pair that is used; ok if none is."""
        judged = [
            one.status
            for one in results
            if one.metric == FORECAST_CORRELATION.name and one.labels.get(ROLE_LABEL) == USED
        ]
        return worst_status(judged, default=Status.OK)

    def _of_days(self, found: Study) -> Iterator[Result]:
        if found.table is None:
            yield self._result(FORECAST_DAYS, {REASON_LABEL: USED}, Status.NO_DATA, detail=found.why)
            return
        counts = {USED: found.used_days, **found.table.left_out()}
        for reason, count in counts.items():
            yield self._result(
                FORECAST_DAYS, {REASON_LABEL: reason}, Status.OK, value=float(count),
                samples=len(found.table.days),
            )  # fmt: skip

    def _of_pair(self, pair: Pair, *, pictured: bool) -> Iterator[Result]:
        labels = {
            TARGET_LABEL: pair.target.name, **pair.series.own_labels(),
            ROLE_LABEL: USED if pair.is_used else TRIED,
        }  # fmt: skip
        interval = pair.interval
        rows = tuple(_rows(pair, self._confidence)) if pictured else ()
        yield self._result(
            FORECAST_CORRELATION, labels, pair.status,
            value=None if pair.correlation is None else round12(pair.correlation.value),
            lower=None if interval is None else round12(interval.lower),
            upper=None if interval is None else round12(interval.upper),
            samples=pair.points, detail=pair.detail(), evidence=rows,
        )  # fmt: skip
        if pair.relation is None:
            return
        for spec, value in ((FORECAST_SKILL, pair.relation.skill), (FORECAST_ERROR, pair.relation.error)):
            yield self._result(spec, labels, Status.OK, value=round12(value), samples=pair.points)

    def _of_record(self, target: str, record: Calibration) -> Result:
        pending = f"{record.pending} more not yet known" if record.pending else ""
        if record.share is None or record.interval is None:
            why = FORECAST_CAME_TRUE.no_data + (f"; {pending}" if pending else "")
            return self._result(FORECAST_CAME_TRUE, {TARGET_LABEL: target}, Status.NO_DATA, detail=why)
        return self._result(
            FORECAST_CAME_TRUE, {TARGET_LABEL: target}, Status.OK, value=round12(record.share),
            lower=round12(record.interval.lower), upper=round12(record.interval.upper),
            samples=record.decided, detail=pending,
        )  # fmt: skip

    @property
    def _confidence(self) -> float:
        assert self._settings.forecast is not None
        return self._settings.forecast.confidence

    def _result(self, spec: MetricSpec, labels: Mapping[str, str], status: Status, **more: Any) -> Result:
        return Result(
            kind=spec.kind, metric=spec.name, labels=labels, definition=self.definition, status=status, **more
        )


def _rows(pair: Pair, confidence: float) -> Iterator[dict[str, Any]]:
    """The days of a pair and the band around its line, as they are kept for the picture."""
    for at, found in band_of(pair, confidence, _BAND):
        yield {
            "x": round12(at), "y": round12(found.value), "lower": round12(found.lower),
            "upper": round12(found.upper),
        }  # fmt: skip
    for dot in pair.dots[-_DAYS:]:
        yield {
            "day": dot.day.isoformat(), "x": round12(dot.x), "y": round12(dot.y), "model": dot.model,
            "reason": dot.reason,
        }  # fmt: skip
