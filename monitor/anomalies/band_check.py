"""The check of bands: is each number of a window where its own past says it should be?

It reads nothing but the history: what the window was measured to be, and what the windows before it were. So
it runs after them, in the order of time, and a window that is judged again gets its band anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from monitor.anomalies.causes import EXPOSURE_CAUSES, FEEDBACK_CAUSES, Cause
from monitor.anomalies.explain import SliceKey, anomalies
from monitor.anomalies.memory import LastBands, last, lost, standing, unseen
from monitor.anomalies.model_changes import model_changes
from monitor.anomalies.neighbours import DAY, Neighbours, neighbours
from monitor.anomalies.past import Floats, PastWindow, PastWindows, SeriesName, markers
from monitor.anomalies.results import Banded
from monitor.anomalies.series import BandedSeries
from monitor.anomalies.specs import ANOMALY, DEVIATION
from monitor.anomalies.table import Table, begun_anew, just_changed, left_out, tabled
from monitor.core.digest import digest
from monitor.core.results import Result, Status, Window
from monitor.history import schema
from monitor.history.rows import evidence_of
from monitor.history.store import Store
from monitor.metrics.catalogue import EXPOSURE_CHECK, FEEDBACK_CHECK
from monitor.models.specs import CAUSE_LABEL
from monitor.settings.bands import BandSettings
from monitor.statistics.bands.band import band, deviation, limits
from monitor.statistics.bands.false_alarms import EASIER, bounds, decide
from monitor.statistics.bands.past import Level, Past
from monitor.statistics.bands.scales import Scale
from monitor.window.check import HISTORY, Check, HistoryJob, Recommender
from monitor.window.verdicts import is_judged, window_status

Bools = npt.NDArray[np.bool_]

NAME: Final = "bands"
OF_FEEDBACK: Final = "bands_feedback"
MEASURED: Final[Mapping[str, str]] = {NAME: EXPOSURE_CHECK, OF_FEEDBACK: FEEDBACK_CHECK}
"""Of each check of bands the check whose numbers it judges."""
_CAUSES: Final[Mapping[str, tuple[Cause, ...]]] = {NAME: EXPOSURE_CAUSES, OF_FEEDBACK: FEEDBACK_CAUSES}
_LATEST: Final = 48  # windows that make a past while no day is over
REMEMBERED: Final = 3
"""Windows back in which a series may have left its band."""
_WEEK: Final = timedelta(days=7)
_HALF_OF_95: Final = 1.959964  # half of a 95 % interval, in standard errors
_DUST: Final = 0.001
"""What is no count and rises by less, rises for nobody: from 0, any rise is a large part of what was."""
CHECKS: Final = 4  # two of bands and two of drift share the false alarms that are allowed
_OF_OLD: Final = "its last band: what stands out since then leaves too little for another"
_LEVELS: Final = {
    Level.WEEKDAY: "the same time of the same weekday",
    Level.DAY_TYPE: "the same time of such days",
    Level.ANY_DAY: "the same time of any day",
    Level.ANY_WINDOW: "any window",
}


class BandCheck(Check[HistoryJob]):
    """One of the checks of bands of a recommender; for one thread, since it keeps what it read last."""

    part = HISTORY

    def __init__(self, recommender: str, name: str, settings: BandSettings) -> None:
        self.name = name
        self._recommender = recommender
        self._settings = settings
        self._measured = PastWindows(recommender, MEASURED[name])
        self._judged = PastWindows(recommender, name, DEVIATION.name)
        self._told = PastWindows(recommender, NAME, ANOMALY.name)
        self._kept = LastBands(recommender, name)
        content = settings.model_dump_json(exclude={"changes", "holidays"})
        self._band_definition = f"3;of={digest(content, 12)}"

    @classmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        settings = recommender.settings
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
            told = self._judged.names(connection, np.unique(np.concatenate(numbers))) if numbers else {}
        now = measured.pop(window.end)
        around = around.only(measured.keys())
        past = [measured[end] for end in around.ends]
        calm = np.array([not _is_quiet(end, length, quiet) for end in around.ends], dtype=np.bool_)
        verdicts = [judged.get(end) for end in around.ends]
        missed = lost(verdicts, told, around, settings)
        table = tabled(now, past, names, settings, around, calm, missed)
        before = left_out(table, verdicts, told)
        found = self._judge(store, window, table, around, calm, before)
        results = [result for one in found for result in one.results(self._band_definition)]
        recent = np.array([_is_recent(end, window) for end in around.ends], dtype=np.bool_)
        starts = [end - length for end in around.ends]
        found += unseen(table, verdicts, told, starts, recent, _places(now, names), window.end, settings)
        return results + anomalies(
            found,
            _CAUSES[self.name],
            version=self._band_definition,
            before=self._standing(store, window) if self.name == OF_FEEDBACK else {},
            notes=self._notes(window, [now, *past], names),
        )

    def status(self, results: Sequence[Result]) -> Status:
        is_any = any(one.metric == DEVIATION.name and is_judged(one) for one in results)
        return window_status(results) if is_any else Status.NO_DATA

    def _judge(
        self,
        store: Store,
        window: Window,
        table: Table,
        around: Neighbours,
        calm: Bools,
        before: tuple[Floats, Bools],
    ) -> list[Banded]:
        settings, past = self._settings, table.past
        deviations, departed = before
        starts = [end - window.length for end in around.ends]
        anew = begun_anew(table.series, starts, window.end, settings)
        out = past.violated | departed | anew | ~calm[:, None]
        made = band(
            Past(
                values=np.where(out, np.nan, past.value),
                samples=past.samples,
                age=around.age,
                same_weekday=around.same_weekday,
                same_day_type=around.same_day_type,
                near=around.near,
            ),
            np.array([int(one.scale) for one in table.series], dtype=np.int64),
            table.samples,
            least=settings.least,
        )
        errors = table.error / _HALF_OF_95
        far = deviation(made, table.value, errors)
        recent = np.array([_is_recent(end, window) for end in around.ends], dtype=np.bool_)
        was, was_out = last(deviations[recent], (departed & ~anew)[recent])
        newest, still_out = last(deviations, departed & ~anew)
        # Of what stands out less and less past is left. It is not back because its band gets wide.
        stood, has_stood = standing(deviations, departed & ~anew & np.isfinite(past.value), around)
        kept = has_stood & ~np.isin(made.level, (Level.WEEKDAY, Level.DAY_TYPE))
        was, was_out = np.where(kept, stood, was), was_out | kept
        tests = max(1, int((np.isfinite(far) | kept).sum())) * (_WEEK / window.length)
        df = np.where(was_out | has_stood, np.fmax(settings.history / DAY, made.df), made.df)
        bound = bounds(tests, df, budget=settings.false_alarms / CHECKS)
        expected, (lower, upper) = made.expected, limits(made, bound.pair, errors)
        if kept.any():
            order = np.lexsort((~around.same_day_type, around.near != 0))
            ends = [around.ends[place] for place in order]
            band_of = self._kept.read(store, table, kept, ends, window.length)
            far = np.where(kept, band_of.deviation(table.value, bound.pair), far)
            expected = np.where(kept, band_of.expected, expected)
            lower, upper = np.where(kept, band_of.lower, lower), np.where(kept, band_of.upper, upper)
        again = decide(far, np.where(has_stood, stood, np.nan), bound)  # as yesterday at this time
        fires = (decide(far, was, bound) | again) & self._matters(table, expected) & ~kept
        stays = was_out & (np.sign(far) == np.sign(was)) & (np.abs(far) > bound.clear)
        stays &= self._matters(table, expected, EASIER)
        learns = last(deviations, departed & anew)[1] & (made.level == Level.NONE)
        learns &= just_changed(table.series, window, settings)
        at_last = np.where(was_out, was, np.where(still_out | learns, newest, np.nan))
        return [
            Banded(
                series=one,
                measured=float(table.value[place]),
                expected=float(expected[place]),
                lower=float(lower[place]),
                upper=float(upper[place]),
                deviation=float(far[place]),
                points=int(made.seen[place]),
                reached=float(bound.pair[place]),
                departed=bool(fires[place] or stays[place]),
                why=_OF_OLD
                if kept[place]
                else self._why(Level(int(made.level[place])), int(made.seen[place])),
                was=float(at_last[place]),
                learns=bool(learns[place]),
            )
            for place, one in enumerate(table.series)
        ]

    def _matters(self, table: Table, expected: Floats, part: float = 1.0) -> Bools:
        """Whether the change is large enough for anybody to care, however sure it is; or a part of that."""
        count = np.array([one.scale is Scale.COUNT for one in table.series], dtype=np.bool_)
        least = np.where(count, self._settings.least_volume_change, self._settings.least_change)
        share = np.array([one.scale is Scale.SHARE for one in table.series], dtype=np.bool_)
        size = np.where(share, np.minimum(np.abs(expected), np.abs(1 - expected)), np.abs(expected))
        change = table.value - expected
        is_dust = ~count & (change >= 0) & (change < _DUST * part)
        return np.asarray((np.abs(change) >= part * least * size) & ~is_dust)

    def _why(self, level: Level, seen: int) -> str:
        if level is Level.NONE:
            return (
                f"{seen} windows of the past can be used, and {self._settings.least} over a day make a band"
            )
        return f"from {_LEVELS[level]}"

    def _standing(self, store: Store, window: Window) -> dict[str, set[SliceKey]]:
        """The causes that stand by the exposures of this window, and where: their evidence says it."""
        with store.reading() as connection:
            found = markers(connection, self._recommender, NAME, [window.end], window.length)
            told = evidence_of(connection, schema.results.c.window_id.in_([one.id for one in found]))
            names = self._told.names(connection, np.array([number for _, number in told], dtype=np.int64))
        return {
            names[number].labels[CAUSE_LABEL]: {(row["dimension"], row["value"]) for row in rows}
            for (_, number), rows in told.items()
            if names[number].metric == ANOMALY.name
        }

    def _notes(
        self, window: Window, windows: Sequence[PastWindow], names: Mapping[int, SeriesName]
    ) -> list[str]:
        """What was changed in the day before, as far as it is known."""
        known = [
            f"{one.what} since {one.at:%Y-%m-%d %H:%M} UTC"
            for one in self._settings.changes
            if window.end - DAY <= one.at < window.end
        ]
        return known + model_changes(window, windows, names)


def _places(window: PastWindow, names: Mapping[int, SeriesName]) -> set[SliceKey]:
    """The slices that have any number in the window."""
    series = (BandedSeries.named(names[one]) for one in window.series[np.isfinite(window.value)].tolist())
    return {(one.dimension, one.value) for one in series}


def _is_quiet(end: datetime, length: timedelta, quiet: Sequence[Window]) -> bool:
    return any(one.start < end and end - length < one.end for one in quiet)


def _is_recent(end: datetime, window: Window) -> bool:
    return window.end - end <= REMEMBERED * window.length
