"""When the forecasts of a recommender are judged: once a day, when a day is over and its actions are in."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from monitor.core.results import Status
from monitor.forecast.check import ForecastCheck
from monitor.forecast.days import last_day, span_of, zone_of
from monitor.history.errors import StoreError
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.logs.index import readable
from monitor.settings.recommender import RecommenderSettings
from monitor.window.check import Check, HistoryJob, run_check

log = logging.getLogger(__name__)


class ForecastScheduler:
    """Belongs to the worker thread."""

    def __init__(self, settings: RecommenderSettings, store: Store, checks: Iterable[Check[Any]]) -> None:
        self._settings = settings
        self._store = store
        self._checks = [one for one in checks if isinstance(one, ForecastCheck)]

    def turn(self, now: datetime, recorded: Callable[[], None] = lambda: None) -> None:
        """Judge the last day if it has not been judged under this config.

        A failure is recorded as an error, and the next day is judged again. Raises StoreError if the history
        cannot be read or written; then the day stays due.
        """
        for check in self._checks:
            last = last_day(self._store, self._settings)
            if last is None:
                continue
            day = span_of(last, 1, zone_of(self._settings))
            known = self._store.evaluated(self._settings.name, check.name, start=day.start, end=day.end)
            if any(one.window == day and one.definition == check.definition for one in known):
                continue
            self._store.record_window(
                self._settings.name, day, [self._run(check, HistoryJob(day, self._store))],
                fingerprint=check.definition, rows=0, evaluated_at=now,
            )  # fmt: skip
            recorded()

    def _run(self, check: ForecastCheck, job: HistoryJob) -> CheckRun:
        started = time.perf_counter()
        try:
            return run_check(check, job)
        except StoreError:
            raise  # the day stays due
        except Exception as exc:
            log.exception("%s: check %s of %s failed", self._settings.name, check.name, job.window.start)
            return CheckRun(
                check=check.name, results=check.failed(readable(exc)), status=Status.ERROR,
                definition=check.definition, seconds=time.perf_counter() - started, outcome="error",
            )  # fmt: skip
