"""All systems of one platform: their logs and queries, and the table of their totals by day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from monitor.core.columns import FEEDBACK, NEIGHBOUR
from monitor.core.results import Status
from monitor.logs.source import Source
from monitor.platform.answers import Answer
from monitor.platform.days import DailyTotals, Reading, zone_of
from monitor.platform.fetching import PATIENCE, Fetching, all_answers
from monitor.platform.prometheus import fetch_prometheus
from monitor.platform.sql import fetch_sql
from monitor.platform.system_log import SystemLog
from monitor.settings.platform import DEMAND, OWN, Measured, PlatformSettings
from monitor.settings.recommender import RecommenderSettings

RETRY: Final = timedelta(minutes=10)
"""How long after an answer that lacks a day, or a failure, the query is made again."""
WAITING: Final = "the query is still running"


class Systems:
    """The systems of one recommender's platform. Used by one thread; queries run in threads of their own.

    Args:
        settings: the recommender.
        platform: its platform.
        source: the recommender's logs.
        beside: the folder of its kept windows.
    """

    def __init__(
        self, settings: RecommenderSettings, platform: PlatformSettings, source: Source, beside: Path
    ) -> None:
        self._settings, self._platform = settings, platform
        self._zone = zone_of(settings, platform)
        self.logs: dict[str, SystemLog] = {}
        self.queries: dict[str, _Query] = {}
        self.sources: dict[str, Source] = {}
        by_user = bool(settings.experiments)
        for name, one in platform.measured.items():
            if one is None or one.log is not None:
                of = source if one is None else Source({NEIGHBOUR: one.log}, settings)  # type: ignore[dict-item]
                if one is not None:
                    self.sources[name] = of
                totals = platform.totals_of(one)
                log = FEEDBACK if one is None else NEIGHBOUR
                with_users = by_user and name != DEMAND
                self.logs[name] = SystemLog(name, of, log, totals, settings, beside, by_user=with_users)
            else:
                totals_given = platform.given_by(one)
                self.queries[name] = _Query(totals_given, partial(self._fetch, one, totals_given))

    def _fetch(self, one: Measured, totals: Sequence[str], days: Sequence[date]) -> Answer:
        if one.sql is not None:
            return fetch_sql(one.sql, totals, days, self._zone, self._platform.timeout)
        assert one.prometheus is not None
        return fetch_prometheus(one.prometheus, totals, days, self._zone, self._platform.timeout)

    def ask(self, days: Sequence[date], now: datetime, patience: float = PATIENCE) -> None:
        """Make the queries whose answers lack these days or have failed, and wait a moment for them."""
        for query in self.queries.values():
            query.ask(days, now, self._platform.timeout)
        all_answers([one.running for one in self.queries.values() if one.running is not None], patience)

    def table(self, days: Sequence[date], now: datetime) -> DailyTotals:
        """The totals of all systems on these days, as far as they are known."""
        found: dict[str, Reading] = {}
        for name, log in self.logs.items():
            found[name] = log.reading(days, self._zone, now)
        for name, query in self.queries.items():
            found[name] = query.reading(days)
        own, demand = found.pop(OWN), found.pop(DEMAND, None)
        return DailyTotals(tuple(days), own, found, demand)


class _Query:
    """The query of one system, its last answer, the last one without an error, and what is under way."""

    def __init__(self, totals: Sequence[str], fetch: Callable[[Sequence[date]], Answer]) -> None:
        self._totals, self._fetch = tuple(totals), fetch
        self.running: Fetching | None = None
        self._answer: Answer | None = None
        self._good: Answer | None = None
        self._asked: tuple[date, ...] = ()
        self._asked_at: datetime | None = None

    def ask(self, days: Sequence[date], now: datetime, timeout: timedelta) -> None:
        self._collect()
        if self.running is not None and self.running.is_running:
            return
        if self._answer is not None and self._asked_at is not None and self._asked == tuple(days):
            last = self._answer.reading(self._totals, days[-1:]).status[-1]
            waits = last in (Status.LATE, Status.ERROR)
            if not waits or now - self._asked_at < RETRY:
                return
        self._asked, self._asked_at = tuple(days), now
        self.running = Fetching(partial(self._fetch, tuple(days)), timeout)

    def _collect(self) -> None:
        running = self.running
        if running is None or (answer := running.answer) is None:
            return
        self._answer = answer.of(self._asked)
        self._good = self._good if answer.error else self._answer
        if not running.is_running:
            self.running = None

    def reading(self, days: Sequence[date]) -> Reading:
        self._collect()
        if self._answer is None:
            return Reading.without(self._totals, len(days), Status.LATE, WAITING)
        last = self._answer.reading(self._totals, days)
        if not self._answer.error or self._good is None:
            return last
        return last.after(self._good.reading(self._totals, days))
