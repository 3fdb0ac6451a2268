"""The history of one recommender: its windows are recorded and judged as by the monitor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from sqlalchemy import delete, func, select

from benchmarks.scoreboard.alerts import Alert, read_alerts
from benchmarks.scoreboard.selectors import lookback, selectors
from benchmarks.scoreboard.series import Key, Recorded
from monitor.anomalies.band_check import BandCheck
from monitor.anomalies.drift_check import DriftCheck
from monitor.anomalies.past import SeriesName
from monitor.anomalies.schedule import BandScheduler
from monitor.anomalies.series import BandedSeries
from monitor.anomalies.specs import ANOMALY, ANOMALY_SEVERITY, DEVIATION, DRIFT
from monitor.core.results import Result, Status, Window
from monitor.history import schema
from monitor.history.database import Database
from monitor.history.record import CheckRun
from monitor.history.record import Recorded as Written
from monitor.history.snapshot import RecommenderState, Series, Snapshot
from monitor.history.standing import Standing, fold, signal_of
from monitor.history.store import Store
from monitor.metrics.catalogue import EXPOSURE_CHECK, FEEDBACK_CHECK
from monitor.models.specs import CAUSE_LABEL
from monitor.report.past_alerts import SEVERE
from monitor.service.prometheus.families import all_families
from monitor.service.prometheus.values import snapshot_values
from monitor.settings.history import parse_url
from monitor.settings.recommender import RecommenderSettings
from monitor.window.verdicts import window_status

ALERTS: Final = ("RecsysAnomaly", "RecsysAnomalySevere", "RecsysDrift")
REQUESTS: Final = BandedSeries("volume", "requests", "")
KEPT: Final = timedelta(days=90)
"""How much of the history is kept: that of the default settings."""
_ALERTED_ON: Final = (ANOMALY.name, ANOMALY_SEVERITY.name, DRIFT.name)


def alerts() -> list[Alert]:
    """The shipped rules of the alerts that come from bands."""
    return [one for one in read_alerts() if one.name in ALERTS]


@dataclass(frozen=True, slots=True)
class Judged:
    """What is known of a window once it is judged.

    `tickets` are the causes and drifts that are violated now, `pages` the causes that are severe, `deviation`
    that of the requests, None where it has none.
    """

    tickets: frozenset[str]
    pages: frozenset[str]
    deviation: float | None


_SeriesKey = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(slots=True)
class _Shown:
    """The newest results that alerts read, and their standings."""

    results: dict[str, dict[_SeriesKey, tuple[Window, Result]]] = field(default_factory=dict)
    standings: dict[_SeriesKey, Standing] = field(default_factory=dict)

    def copy(self) -> _Shown:
        return _Shown(dict(self.results), dict(self.standings))

    def take(self, window: Window, run: CheckRun) -> None:
        results = [one for one in run.results if one.metric in _ALERTED_ON]
        if not results:
            return
        newest = {(one.metric, tuple(sorted(one.labels.items()))): (window, one) for one in results}
        for key, (_, result) in newest.items():
            self.standings[key] = fold([(window, signal_of(result))], self.standings.get(key))
        self.results[run.check] = newest

    def series(self, name: str) -> list[Series]:
        return [
            Series(name, check, window, result, window.end, standing.status, standing.since.start)
            for check, newest in self.results.items()
            for key, (window, result) in newest.items()
            for standing in [self.standings[key]]
        ]


class _WatchedStore(Store):
    """A store that remembers what was recorded last."""

    runs: list[tuple[Window, CheckRun]]

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.runs = []

    def record_window(
        self, recommender: str, window: Window, runs: Sequence[CheckRun], **given: Any
    ) -> Written:
        """As the store does."""
        self.runs += [(window, run) for run in runs]
        return super().record_window(recommender, window, runs, **given)


class Watched:
    """A recommender whose windows come one after the other."""

    def __init__(self, folder: Path, settings: RecommenderSettings) -> None:
        self._settings = settings
        self._database = Database(parse_url(f"sqlite:///{(folder / 'history.db').absolute()}"))
        self.store = _WatchedStore(self._database)
        assert settings.bands is not None
        checks = [
            *(BandCheck(settings.name, name, settings.bands) for name in ("bands", "bands_feedback")),
            *(
                DriftCheck(settings.name, name, settings.bands, settings.window)
                for name in ("drift", "drift_feedback")
            ),
        ]
        self._scheduler = BandScheduler(settings, self.store, checks)
        self._shown = _Shown()
        self.recorded = Recorded()
        self._read = selectors(one.expr for one in alerts())
        self._labels = {name: one.labels for name, one in all_families().items()}

    def close(self) -> None:
        self.store.close()

    def judge(
        self, window: Window, exposures: Sequence[Result], feedback: Sequence[Result], data: str = "real"
    ) -> Judged:
        """Record what was measured of a window, and let bands, drift and causes judge it.

        `data` tells an incident's rows from the real ones.
        """
        self.store.runs.clear()
        self.measure(window, exposures, feedback, data)
        self._scheduler.turn(window.end, window.start)
        for judged, run in self.store.runs:
            self._shown.take(judged, run)
        self._scrape(window)
        return self._judged()

    def measure(
        self, window: Window, exposures: Sequence[Result], feedback: Sequence[Result], data: str = "real"
    ) -> None:
        """Record what was measured of a window, as before the bands are switched on."""
        runs = [
            CheckRun(check=check, results=results, status=window_status(results), outcome="ok")
            for check, results in ((EXPOSURE_CHECK, exposures), (FEEDBACK_CHECK, feedback))
        ]
        self.store.record_window(
            self._settings.name, window, runs,
            fingerprint=f"{window.start:%Y%m%d%H}-{data}", rows=1, evaluated_at=window.end,
        )  # fmt: skip

    @contextmanager
    def fork(self) -> Iterator[Recorded]:
        """What is judged in the block is forgotten at its end; gives what the alerts see meanwhile."""
        with self._database.reading() as connection:
            newest = connection.scalar(select(func.max(schema.windows.c.id))) or 0
        shown, recorded = self._shown, self.recorded
        self._shown = shown.copy()
        self.recorded = Recorded({key: known[-1:] for key, known in recorded.segments.items()})
        try:
            yield self.recorded
        finally:
            self._shown, self.recorded = shown, recorded
            with self._database.writing() as connection:
                connection.execute(delete(schema.windows).where(schema.windows.c.id > newest))

    def forget(self, window: Window) -> None:
        """Drop what is older than the bands read."""
        self.store.drop_before(window.end - KEPT)

    def _scrape(self, window: Window) -> None:
        name = self._settings.name
        state = RecommenderState(name, series=tuple(self._shown.series(name)))
        values = snapshot_values(Snapshot(window.end, (state,)))
        found: dict[Key, float] = {}
        for family, series in values.items():
            if family not in self._read:
                continue
            for labels, value in series.items():
                key = family, tuple(zip(self._labels[family], labels, strict=True))
                if lookback(self._read, family, dict(key[1])) is not None:
                    found[key] = value
        violated = {
            dict(labels).get(CAUSE_LABEL)
            for (family, labels), value in found.items()
            if family == "recsys_anomaly_status" and value
        }
        # A series that is 0 says as much as none, and would be most of what Prometheus reads.
        wanted = {
            key: value
            for key, value in found.items()
            if (value if key[0].endswith("_status") else dict(key[1]).get(CAUSE_LABEL) in violated)
        }
        self.recorded.take(int(window.end.timestamp()) // 60, wanted)

    def _judged(self) -> Judged:
        standing = {
            key: one
            for newest in self._shown.results.values()
            for key, (_, one) in newest.items()
            if self._shown.standings[key].status is Status.VIOLATED
        }
        causes = {dict(key[1])[CAUSE_LABEL] for key in standing if key[0] == ANOMALY.name}
        severities = [
            one
            for newest in self._shown.results.values()
            for _, one in newest.values()
            if one.metric == ANOMALY_SEVERITY.name and (one.value or 0.0) >= SEVERE
        ]
        return Judged(
            frozenset(dict(key[1]).get(CAUSE_LABEL, str(key)) for key in standing),
            frozenset(one.labels[CAUSE_LABEL] for one in severities if one.labels[CAUSE_LABEL] in causes),
            self._deviation(),
        )

    def _deviation(self) -> float | None:
        for _, run in self.store.runs:
            for one in run.results:
                if (
                    one.metric == DEVIATION.name
                    and BandedSeries.banded(SeriesName("", dict(one.labels))) == REQUESTS
                ):
                    return one.value
        return None
