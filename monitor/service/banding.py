"""Bands and drift of one recommender: judged from the history, after the windows and in the order of time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from monitor.checks import bands, drift
from monitor.checks.bands import BandCheck
from monitor.checks.drift import DAY, DriftCheck
from monitor.checks.settings import RecommenderSettings
from monitor.history.reads import Evaluated
from monitor.history.store import Store
from monitor.results import Window

CHECKS: Final = (*bands.MEASURED, *drift.BANDS)
_DAYS: Final = 28 * DAY  # of the past that get their daily values when somebody first asks for them


class Banding:
    """Belongs to the worker thread."""

    def __init__(self, settings: RecommenderSettings, store: Store) -> None:
        self._settings = settings
        self._store = store
        asked = settings.bands
        self._bands: list[BandCheck] = []
        self._drifts: list[DriftCheck] = []
        self._quiet = [one.span for one in settings.maintenance]
        if asked is None:
            return
        self._bands = [BandCheck(settings.name, name, asked) for name in bands.MEASURED]
        if settings.window <= DAY:
            self._drifts = [DriftCheck(settings.name, name, asked, settings.window) for name in drift.BANDS]
        self._days_until: dict[str, datetime] = {}  # check of drift -> the end of the newest day that is done

    def turn(
        self,
        now: datetime,
        since: datetime,
        stopping: Callable[[], bool] = lambda: False,
        recorded: Callable[[], None] = lambda: None,
    ) -> bool:
        """Judge every window from `since` on whose band is missing or rests on other data, the oldest first.

        True where some are left. Raises StoreError where the history cannot be read or written; then the
        window stays due.
        """
        for check in self._bands:
            for one in self._due(check, since):
                if stopping():
                    return True
                run = check.run(self._store, one.window, self._quiet)
                self._store.record_window(
                    self._settings.name, one.window, [run],
                    fingerprint=one.fingerprint, rows=one.rows, evaluated_at=now,
                )  # fmt: skip
                recorded()
        for each in self._drifts:
            for day in self._days(each, since):
                if stopping():
                    return True
                self._store.record_window(
                    self._settings.name, day, [each.run(self._store, day)],
                    fingerprint="", rows=0, evaluated_at=now,
                )  # fmt: skip
                self._days_until[each.name] = day.end
                recorded()
        return False

    def _due(self, check: BandCheck, since: datetime) -> list[Evaluated]:
        """The windows that were measured and have no band of the same data yet, oldest first.

        A verdict remembers the windows before its own, so these are of its data as well: late data judges as
        many windows again, and no more. Each comes with the fingerprint of them all.
        """
        name, length = self._settings.name, self._settings.window
        first = since - bands.REMEMBERED * length
        measured = self._store.evaluated(name, bands.MEASURED[check.name], start=first)
        own = {one.window: one.fingerprint for one in measured}
        known = self._store.evaluated(name, check.name, start=since)
        judged = {one.window: one.fingerprint for one in known}
        wanted = [
            replace(one, fingerprint=_with_before(one.window, own, length))
            for one in measured
            if one.window.start >= since
        ]
        return [one for one in wanted if judged.get(one.window) != one.fingerprint]

    def _days(self, check: DriftCheck, since: datetime) -> list[Window]:
        """The days that are over and have not been judged: their last window has its band, oldest first."""
        judged = self._store.evaluated(self._settings.name, drift.BANDS[check.name], start=since)
        if not judged:
            return []
        last = Window.of(judged[-1].window.end, DAY).start
        done = self._days_until.get(check.name)
        if done is None:
            name, oldest = self._settings.name, last - _DAYS
            known = self._store.evaluated(name, check.name, start=oldest)
            measured = self._store.evaluated(name, bands.MEASURED[drift.BANDS[check.name]], start=oldest)
            done = known[-1].window.end if known else Window.of(measured[0].window.start, DAY).start
            self._days_until[check.name] = done
        return [Window(done + back * DAY, done + (back + 1) * DAY) for back in range((last - done) // DAY)]


def _with_before(window: Window, own: Mapping[Window, str], length: timedelta) -> str:
    """A fingerprint of a window's data and of that of the remembered windows before it."""
    remembered = [
        Window(window.start - back * length, window.end - back * length)
        for back in range(bands.REMEMBERED + 1)
    ]
    content = json.dumps([own.get(one) for one in remembered])
    return hashlib.sha256(content.encode()).hexdigest()[:32]
