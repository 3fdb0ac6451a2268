"""The check of bands: is each value of a window in the range that its own past predicts?

It reads only the history: the results of this window and of the windows before it. So windows are judged in
the order of time, and a window that is measured again is judged again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Self

import numpy as np

from monitor.anomalies.band_verdicts import BandJob, judge_bands
from monitor.anomalies.causes import EXPOSURE_CAUSES, FEEDBACK_CAUSES, Cause
from monitor.anomalies.explain import SliceKey, anomalies
from monitor.anomalies.memory import BandValues, Bools, LastBands, lost, unseen
from monitor.anomalies.model_changes import model_changes
from monitor.anomalies.neighbours import DAY, neighbours
from monitor.anomalies.past import PastWindow, PastWindows, SeriesName, markers
from monitor.anomalies.series import BandedSeries
from monitor.anomalies.specs import ANOMALY, DEVIATION
from monitor.anomalies.table import left_out, tabled
from monitor.core.digest import digest
from monitor.core.results import Result, Status, Window
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
_LATEST: Final = 48  # recent windows of any time of day that are read as well
REMEMBERED: Final = 3
"""How many windows back a departure still counts for the verdict on a window."""


class BandCheck(Check[HistoryJob]):
    """A check of bands of a recommender. Not thread-safe: it caches what it read last."""

    part = HISTORY

    def __init__(self, recommender: str, name: str, settings: BandSettings) -> None:
        self.name = name
        self._recommender = recommender
        self._settings = settings
        self._measured = PastWindows(recommender, MEASURED[name])
        self._judged = PastWindows(recommender, name, DEVIATION.name)
        self._anomalies = PastWindows(recommender, NAME, ANOMALY.name)
        self._last = LastBands(recommender, name)
        content = settings.model_dump_json(exclude={"changes", "holidays"})
        self._band_definition = f"3;of={digest(content, 12)}"

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
        settings, length = self._settings, window.length
        latest = max(_LATEST, settings.least)
        around = neighbours(window, settings.history, latest, settings.holidays, settings.zone)
        with store.reading() as connection:
            measured = self._measured.read(connection, [window.end, *around.ends], length)
            judged = self._judged.read(connection, around.ends, length)
            every = np.unique(np.concatenate([one.series for one in measured.values()]))
            names = self._measured.names(connection, every)
            numbers = [one.series for one in judged.values()]
            judged_names = (
                self._judged.names(connection, np.unique(np.concatenate(numbers))) if numbers else {}
            )
        now = measured.pop(window.end)
        around = around.only(measured.keys())
        past = [measured[end] for end in around.ends]
        calm = np.array([not _is_quiet(end, length, quiet) for end in around.ends], dtype=np.bool_)
        verdicts = [judged.get(end) for end in around.ends]
        missed = lost(verdicts, judged_names, around, settings)
        table = tabled(now, past, names, settings, around, calm, missed)
        recent = np.array([_is_recent(end, window) for end in around.ends], dtype=np.bool_)
        bands = BandJob(
            window, settings, table, around, calm, recent, *left_out(table, verdicts, judged_names)
        )
        banded = judge_bands(bands, partial(self._last_bands, store, bands))
        results = [result for one in banded for result in one.results(self._band_definition)]
        starts = [end - length for end in around.ends]
        banded += unseen(
            table, verdicts, judged_names, starts, recent, _places(now, names), window.end, settings
        )
        return results + anomalies(
            banded,
            _CAUSES[self.name],
            version=self._band_definition,
            before=self._standing(store, window) if self.name == OF_FEEDBACK else {},
            notes=self._notes(window, [now, *past], names),
        )

    def status(self, results: Sequence[Result]) -> Status:
        is_any = any(one.metric == DEVIATION.name and is_judged(one) for one in results)
        return window_status(results) if is_any else Status.NO_DATA

    def _last_bands(self, store: Store, job: BandJob, wanted: Bools) -> BandValues:
        """The last band of each wanted series: same time and day type first, then same time, then any."""
        around = job.around
        order = np.lexsort((~around.same_day_type, around.near != 0))
        ends = [around.ends[place] for place in order]
        return self._last.read(store, job.table, wanted, ends, job.window.length)

    def _standing(self, store: Store, window: Window) -> dict[str, set[SliceKey]]:
        """The violated causes of the exposures of this window, with their places, from their evidence."""
        with store.reading() as connection:
            windows = markers(connection, self._recommender, NAME, [window.end], window.length)
            evidence = evidence_of(connection, [one.id for one in windows])
            names = self._anomalies.names(
                connection, np.array([number for _, number in evidence], dtype=np.int64)
            )
        return {
            names[number].labels[CAUSE_LABEL]: {(row["dimension"], row["value"]) for row in rows}
            for (_, number), rows in evidence.items()
            if names[number].metric == ANOMALY.name
        }

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


def _places(window: PastWindow, names: Mapping[int, SeriesName]) -> set[SliceKey]:
    """The slices that have any value in the window."""
    series = (BandedSeries.named(names[one]) for one in window.series[np.isfinite(window.value)].tolist())
    return {(one.dimension, one.value) for one in series}


def _is_quiet(end: datetime, length: timedelta, quiet: Sequence[Window]) -> bool:
    return any(one.start < end and end - length < one.end for one in quiet)


def _is_recent(end: datetime, window: Window) -> bool:
    return window.end - end <= REMEMBERED * window.length
