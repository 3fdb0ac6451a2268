"""Bands and drift of one recommender: judged from the history, after the windows and in the order of time."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from monitor.anomalies import band_check as bands
from monitor.anomalies import drift_check as drift
from monitor.anomalies.band_check import BandCheck
from monitor.anomalies.drift_check import DriftCheck
from monitor.anomalies.moments import DAY
from monitor.core.digest import digest
from monitor.core.results import Status, Window
from monitor.history.errors import StoreError
from monitor.history.reads import Evaluated
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.logs.index import readable
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics.bands.spans import LONGEST
from monitor.window.check import Check, HistoryJob, run_check

log = logging.getLogger(__name__)

CHECKS: Final = (*bands.MEASURED, *drift.BANDS)
_DAYS: Final = 28 * DAY  # the past days that get daily values in the first turn


@dataclass(frozen=True, slots=True)
class _Known:
    """The windows that each check has evaluated, oldest first."""

    by_check: Mapping[str, Sequence[Evaluated]]

    def of(self, check: str, start: datetime) -> list[Evaluated]:
        """Those that begin at `start` or later."""
        return [one for one in self.by_check[check] if one.window.start >= start]


class BandScheduler:
    """Belongs to the worker thread."""

    def __init__(
        self, settings: RecommenderSettings, store: Store, checks: Iterable[Check[HistoryJob]]
    ) -> None:
        checks = tuple(checks)
        self._settings = settings
        self._store = store
        self._bands = [one for one in checks if isinstance(one, BandCheck)]
        self._drifts = [one for one in checks if isinstance(one, DriftCheck)]
        self._quiet = [one.span for one in settings.maintenance]
        self._caught_up: set[str] = set()  # checks of drift that have judged all past days

    def turn(
        self,
        now: datetime,
        since: datetime,
        stopping: Callable[[], bool] = lambda: False,
        recorded: Callable[[], None] = lambda: None,
    ) -> bool:
        """Judge every window from `since` on whose band is missing or rests on other data, oldest first.

        True if some are left. A window that fails is recorded as an error, and the others are judged. Raises
        StoreError if the history cannot be read or written; then the window stays due.
        """
        known = self._known(since)
        is_new = False
        for check in self._bands:
            for one in self._due(check, since, known):
                if stopping():
                    return True
                run = self._run(check, one.window)
                self._store.record_window(
                    self._settings.name, one.window, [run],
                    fingerprint=one.fingerprint, rows=one.rows, evaluated_at=now,
                )  # fmt: skip
                recorded()
                is_new = True
        if is_new:
            known = self._known(since)
        for each in self._drifts:
            for day, fingerprint in self._days(each, since, known):
                if stopping():
                    return True
                run = self._run(each, day)
                self._store.record_window(
                    self._settings.name, day, [run], fingerprint=fingerprint, rows=0, evaluated_at=now
                )
                recorded()
            self._caught_up.add(each.name)
        return False

    def _run(self, check: Check[HistoryJob], window: Window) -> CheckRun:
        """Judge one window. One that fails does not stop the later ones, and is not tried at every turn."""
        started = time.perf_counter()
        try:
            return run_check(check, HistoryJob(window, self._store, self._quiet))
        except StoreError:
            raise  # the window stays due
        except Exception as exc:
            log.exception("%s: check %s of %s failed", self._settings.name, check.name, window.start)
            return CheckRun(
                check=check.name, results=check.failed(readable(exc)), status=Status.ERROR,
                definition=check.definition, seconds=time.perf_counter() - started, outcome="error",
            )  # fmt: skip

    def _known(self, since: datetime, start: datetime | None = None) -> _Known:
        """What the history knows that any check may need, in one query: most turns find nothing to do."""
        settings = self._settings
        every = drift.step(settings.window)
        if start is None:
            start = min(since - LONGEST * settings.window, _whole(since, every) - every)
        checks = {one.name for one in (*self._bands, *self._drifts)}
        checks |= {bands.MEASURED[one] for one in checks & bands.MEASURED.keys()}
        return _Known(self._store.evaluated_by_check(settings.name, checks, start=start) if checks else {})

    def _due(self, check: BandCheck, since: datetime, known: _Known) -> list[Evaluated]:
        """The measured windows that have no band of the same data yet, oldest first.

        A verdict compares the LONGEST span with its forecast, so late data makes that many later windows due
        again. The fingerprint of each covers them all.
        """
        length = self._settings.window
        measured = known.of(bands.MEASURED[check.name], since - LONGEST * length)
        own = {one.window: one.fingerprint for one in measured}
        judged = {one.window: one.fingerprint for one in known.of(check.name, since)}
        wanted = [
            replace(one, fingerprint=_with_before(one.window, own, length))
            for one in measured
            if one.window.start >= since
        ]
        return [one for one in wanted if judged.get(one.window) != one.fingerprint]

    def _days(self, check: DriftCheck, since: datetime, known: _Known) -> list[tuple[Window, str]]:
        """The days that are over and due, oldest first, each with a fingerprint.

        One begins with every step of `drift.step`, and is due where it has not been judged, or where one of
        its bands has been judged anew. Then all later days are due too, since a day is compared with those
        before it: its fingerprint is of its bands and of the fingerprint of the day before. The first time
        the days of four weeks are looked at; of those that end before `since`, whose windows do not change
        any more, the history may have dropped a part.
        """
        of_bands, every = drift.BANDS[check.name], drift.step(self._settings.window)
        whole = _whole(since, every)
        newest = known.of(of_bands, whole)
        if not newest:
            return []
        last = Window.of(newest[-1].window.end, every).start - DAY
        first = whole
        if check.name not in self._caught_up:
            first = min(whole, last - _DAYS)
            known = self._known(since, first - every)
        measured = known.of(bands.MEASURED[of_bands], first)
        drifts = {one.window: one for one in known.of(check.name, first - every)}
        own: dict[datetime, list[str]] = {}
        for one in known.of(of_bands, first):
            own.setdefault(Window.of(one.window.start, every).start, []).append(one.fingerprint)
        begin = max(first, Window.of(measured[0].window.start, DAY).start)
        days = [Window(begin + number * every, begin + number * every + DAY)
                for number in range((last - begin) // every + 1)]  # fmt: skip
        due = []
        before = drifts.get(Window(begin - every, begin - every + DAY))
        fingerprint = "" if before is None else before.fingerprint
        for day in days:
            judged = drifts.get(day)
            if judged is not None and judged.definition == drift.DEFINITION and day.start < whole:
                fingerprint = judged.fingerprint
                continue
            fingerprint = _digest([fingerprint, *_within(own, day.start, every)])
            if judged is None or (judged.definition, judged.fingerprint) != (drift.DEFINITION, fingerprint):
                due.append((day, fingerprint))
        return due


def _whole(since: datetime, every: timedelta) -> datetime:
    """The start of the first day of drift that holds a window from `since` on."""
    return Window.of(since, every).end - DAY


def _within(parts: Mapping[datetime, list[str]], start: datetime, every: timedelta) -> list[str | None]:
    """What belongs to a day that begins there, of what is known by the start of each of its parts."""
    return [one for number in range(DAY // every) for one in parts.get(start + number * every, ())]


def _with_before(window: Window, own: Mapping[Window, str], length: timedelta) -> str:
    """A fingerprint of a window's data and of that of the windows of the longest span before it."""
    remembered = [
        Window(window.start - back * length, window.end - back * length) for back in range(LONGEST + 1)
    ]
    return _digest([own.get(one) for one in remembered])


def _digest(fingerprints: Sequence[str | None]) -> str:
    return digest(json.dumps(fingerprints), 32)
