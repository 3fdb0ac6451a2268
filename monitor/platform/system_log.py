"""One system whose totals come from a log: its complete windows, and the sums of the kept ones by day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

from monitor.core.results import Status, Window
from monitor.core.text import plural
from monitor.engines.duckdb import Engine
from monitor.logs.log import Log
from monitor.logs.source import Source
from monitor.logs.windows import completeness
from monitor.metrics.family import round12
from monitor.platform.days import DAY, Reading, day_of
from monitor.platform.kept import KeptTotals
from monitor.settings.logs import TimeSettings
from monitor.settings.platform import TotalSettings


class SystemLog:
    """Used by one thread.

    Args:
        system: its name.
        source: has the log.
        log: the name of the log in the source.
        totals: how rows of the log become each total.
        time: when a window is complete.
        beside: the folder of the recommender's kept windows.
        by_user: whether the totals of each user are kept as well.
    """

    def __init__(
        self,
        system: str,
        source: Source,
        log: str,
        totals: Mapping[str, TotalSettings],
        time: TimeSettings,
        beside: Path,
        *,
        by_user: bool,
    ) -> None:
        self.system, self.source, self.totals = system, source, dict(totals)
        self.error = ""  # why its rows cannot be added up
        self._name, self._time = log, time
        settings = self.log.settings
        read_as = [settings.columns, settings.only, settings.timezone]
        self.kept = KeptTotals(beside, system, list(totals.values()), by_user=by_user, read_as=read_as)

    @property
    def log(self) -> Log:
        return self.source.logs[self._name]

    def due(self, now: datetime, since: datetime, watched_since: datetime) -> list[list[Window]]:
        """The complete windows from `since` on that are not kept, or changed since; in lists of a day.

        The first window of the log is left out: its beginning may be in a file that is gone. A window that
        was rotated away stays as it was kept.
        """
        log, length = self.log, self._time.window
        buckets = [start for entry in log.read_entries for start in entry.buckets]
        if not buckets or log.watermark is None:
            return []
        begin = datetime.fromtimestamp(min(buckets), UTC) + length
        known = self.kept.known(length)
        recent = log.watermark - self._time.catch_up * length
        found = []
        start = Window.of(max(begin, since), length).start
        while start + length <= log.watermark:
            window = Window(start, start + length)
            start = window.end
            kept = known.get(window)
            if kept is not None and self.kept.by_user and not kept.by_user:
                kept = None
            if kept is not None and window.end < recent:
                continue
            if log.has_rotated(window) or log.lost(window) is not None:
                continue
            if kept is not None and kept.fingerprint == log.fingerprint(window):
                continue
            ready, late = completeness(log, window, now, self._time, watched_since=watched_since)
            if ready and late is None:
                found.append(window)
        return [list(group) for _, group in groupby(found, key=lambda one: Window.of(one.start, DAY))]

    def keep(self, engine: Engine, windows: Sequence[Window]) -> None:
        """Add up these windows and keep them. Raises StoreError if they cannot be kept."""
        span = Window(windows[0].start, windows[-1].end)
        held = any(self.log.rows(window) for window in windows)
        marks = {window: self.log.fingerprint(window) for window in windows}
        try:
            rows = self.source.load(engine, self._name, span, table="platform_rows") if held else None
            if rows is not None and (lack := [one for one in self.kept.needs() if one not in rows.columns]):
                self.error = f"the log has no column {lack[0]}, which its totals need"
                return
            self.kept.keep(engine, rows, marks)
            self.error = ""
        finally:
            engine.drop("platform_rows")
            self.source.release(engine)

    def reading(self, days: Sequence[date], zone: ZoneInfo, now: datetime) -> Reading:
        """The totals of each day: the sum of its windows if all of them are kept."""
        if self.error or (self.log.error and not self.log.entries):
            failed = self.error or str(self.log.error)
            return Reading.without(list(self.totals), len(days), Status.ERROR, failed)
        values = np.full((len(days), len(self.totals)), np.nan)
        status: list[Status] = []
        why: dict[str, list[str]] = {total: [] for total in self.totals}
        known = self.kept.known(self._time.window)
        for number, day in enumerate(days):
            span = day_of(day, zone)
            windows = list(_windows(span, self._time.window))
            sums = [known[one] for one in windows if one in known]
            if len(sums) == len(windows):
                values[number] = [round12(float(one)) for one in np.sum([one.values for one in sums], axis=0)]
                bad = sum(one.bad for one in sums)
                status.append(Status.OK)
                text = f"{plural(bad, 'row')} without a value that can be added up" if bad else ""
                for total, settings in self.totals.items():
                    why[total].append(text if settings.add == "value" else "")
                continue
            state, reason = self._why(span, len(windows) - len(sums), len(windows), now)
            status.append(state)
            for texts in why.values():
                texts.append(reason)
        by_total = {total: values[:, place] for place, total in enumerate(self.totals)}
        return Reading(by_total, tuple(status), {total: tuple(texts) for total, texts in why.items()})

    def _why(self, span: Window, lacking: int, whole: int, now: datetime) -> tuple[Status, str]:
        """Why a day has no value: what is missing may still come, or never will."""
        are = "is" if lacking == 1 else "are"
        log, part = self.log, f"{lacking:,} of its {plural(whole, 'window')} {are} missing"
        if log.watermark is None:
            return Status.LATE, "the log has no row yet"
        if log.watermark < span.end + self._time.lateness:
            return Status.LATE, f"{part}: the log has reached {log.watermark:%Y-%m-%d %H:%M}Z"
        windows = list(_windows(span, self._time.window))
        if any(log.awaits(one) or log.unread(one) for one in windows):
            return Status.LATE, f"{part}: files that may hold them cannot be read yet"
        if now < span.end + self._time.max_wait:
            return Status.LATE, f"{part}: they may still come"
        return Status.NO_DATA, f"{part}, so the day has no total"


def _windows(span: Window, length: timedelta) -> Iterator[Window]:
    start = span.start
    while start < span.end:
        yield Window(start, start + length)
        start += length
