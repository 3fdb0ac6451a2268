"""The check of bands: is each value of a window in the range that its own past predicts?

It reads only the history: the results of this window and of the windows before it. So windows are judged in
the order of time, and a window that is measured again is judged again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Self

import numpy as np

from monitor.anomalies.band_past import BandPast
from monitor.anomalies.band_state import BandState, Step
from monitor.anomalies.causes import EXPOSURE_CAUSES, FEEDBACK_CAUSES, Cause
from monitor.anomalies.explain import SliceKey, anomalies
from monitor.anomalies.model_changes import model_changes
from monitor.anomalies.moments import DAY
from monitor.anomalies.past import PastWindow, PastWindows, SeriesName, markers, read_windows
from monitor.anomalies.results import Banded
from monitor.anomalies.specs import ANOMALY, ANOMALY_SEVERITY, DEVIATION
from monitor.core.digest import digest
from monitor.core.results import Result, Status, Window
from monitor.core.text import plural
from monitor.history.rows import evidence_of
from monitor.history.store import Store
from monitor.metrics.catalogue import EXPOSURE_CHECK, FEEDBACK_CHECK
from monitor.models.specs import CAUSE_LABEL
from monitor.settings.bands import BandSettings
from monitor.settings.recommender import RecommenderSettings
from monitor.window.check import HISTORY, Check, HistoryJob, Recommender
from monitor.window.verdicts import is_judged, window_status

NAME: Final = "bands"
OF_FEEDBACK: Final = "bands_feedback"
MEASURED: Final[Mapping[str, str]] = {NAME: EXPOSURE_CHECK, OF_FEEDBACK: FEEDBACK_CHECK}
"""For each check of bands, the check whose results it judges."""
_CAUSES: Final[Mapping[str, tuple[Cause, ...]]] = {NAME: EXPOSURE_CAUSES, OF_FEEDBACK: FEEDBACK_CAUSES}


class BandCheck(Check[HistoryJob]):
    """A check of bands of a recommender. Not thread-safe: it keeps what the windows so far taught."""

    part = HISTORY

    def __init__(self, recommender: str, name: str, settings: BandSettings) -> None:
        self.name = name
        self._recommender = recommender
        self._settings = settings
        self._past = BandPast(recommender, MEASURED[name], name, settings)
        self._last_day = PastWindows(recommender, MEASURED[name])
        self._anomalies = PastWindows(recommender, NAME, ANOMALY.name)
        content = settings.model_dump_json(
            exclude={"changes", "holidays", "country", "working_days", "seasons"}
        )
        self._band_definition = f"12;of={digest(content, 12)}"

    @classmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        return cls.of_settings(recommender.settings)

    @classmethod
    def of_settings(cls, settings: RecommenderSettings) -> Iterable[Self]:
        """Its checks of bands; none without `bands`."""
        if settings.bands is not None:
            for name in MEASURED:
                yield cls(settings.name, name, settings.bands)

    def run(self, job: HistoryJob) -> list[Result]:
        """Judge a window that has been measured. Raises StoreError."""
        store, window, quiet = job.store, job.window, job.quiet

        def is_calm(one: Window) -> bool:
            return not any(span.start < one.end and one.start < span.end for span in quiet)

        with store.reading() as connection:
            count = max(1, math.ceil((DAY + window.length) / window.length))
            ends = [window.end - number * window.length for number in range(count)]
            day = self._last_day.read(connection, ends, window.length)
            now = day[window.end]
            names = self._past.names(
                connection, {one for past in day.values() for one in past.series.tolist()}
            )
            state = self._past.before(connection, window, is_calm)
            step = state.step(now, window, names, calm=is_calm(window))
            self._past.keep(connection, window, state)
        banded = _banded(state, step, state.least)
        results = [result for one in banded for result in one.results(self._band_definition)]
        banded += [
            Banded.unseen(state.series[column], float(state.departures.side[column]))
            for column in state.unseen(step)
        ]
        standing, gone = self._standing(store, window) if self.name == OF_FEEDBACK else ({}, {})
        return results + anomalies(
            banded,
            _CAUSES[self.name],
            version=self._band_definition,
            before=standing,
            gone=gone,
            notes=self._notes(window, list(day.values()), names),
        )

    def status(self, results: Sequence[Result]) -> Status:
        """Violated if a cause is. A series that is out of its band only because of the requests has none."""
        is_any = any(one.metric == DEVIATION.name and is_judged(one) for one in results)
        causes = [one for one in results if one.metric != DEVIATION.name]
        return window_status(causes) if is_any else Status.NO_DATA

    def _standing(self, store: Store, window: Window) -> tuple[dict[str, set[SliceKey]], dict[str, float]]:
        """The violated causes of the exposures of this window.

        Returns their places, from their evidence, and the missing share of each that has one.
        """
        with store.reading() as connection:
            windows = markers(connection, self._recommender, NAME, [window.end], window.length)
            evidence = evidence_of(connection, [one.id for one in windows])
            severe = read_windows(connection, windows, ANOMALY_SEVERITY.name) if evidence else []
            named = [*(number for _, number in evidence), *(n for one in severe for n in one.series.tolist())]
            names = self._anomalies.names(connection, np.array(named, dtype=np.int64))
        places = {
            names[number].labels[CAUSE_LABEL]: {(row["dimension"], row["value"]) for row in rows}
            for (_, number), rows in evidence.items()
            if names[number].metric == ANOMALY.name
        }
        shares = {
            names[number].labels[CAUSE_LABEL]: share
            for one in severe
            for number, share in zip(one.series.tolist(), one.value.tolist(), strict=True)
        }
        return places, {name: one for name, one in shares.items() if name in places and math.isfinite(one)}

    def _notes(
        self, window: Window, windows: Sequence[PastWindow], names: Mapping[int, SeriesName]
    ) -> list[str]:
        """Notes on known changes and new models in the day before the window's end."""
        known = [
            f"{one.what} since {one.at:%Y-%m-%d %H:%M} UTC"
            for one in self._settings.changes
            if window.end - DAY <= one.at < window.end
        ]
        return known + model_changes(window, windows, names)


def _banded(state: BandState, step: Step, least: int) -> list[Banded]:
    """The series that have a result in the window, in the order of their names."""
    return [
        Banded(
            series=state.series[column],
            measured=float(step.values[column]),
            expected=float(step.forecast.expected[column]) if step.has_band[column] else math.nan,
            lower=float(step.lower[column]),
            upper=float(step.upper[column]),
            deviation=float(step.deviation[column]),
            windows=int(step.span[column]),
            change=float(step.change[column]),
            points=int(step.points[column]),
            reached=float(step.bound[column]),
            departed=bool(step.departed[column]),
            follows=bool(step.follows[column]),
            why="" if step.has_band[column] else _why_none(int(step.points[column]), least),
            was=float(step.was[column]),
            learns=bool(step.learns[column]),
        )
        for column in sorted(np.flatnonzero(step.judged).tolist(), key=lambda column: state.series[column])
    ]


def _why_none(points: int, least: int) -> str:
    return f"{plural(points, 'past window')} can be used; a band needs {least} over a day"
