"""The platform in the daemon: adds up the windows of its logs, and judges each day that has its totals.

A day that still lacks a system is judged without it once it has waited for `wait`, as late, and again when
its total comes. A judged day keeps its totals while a system is late or fails. What fails here stops neither
the windows of the recommender nor the other systems.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import duckdb

from monitor.core.digest import digest
from monitor.core.redaction import redact
from monitor.core.results import Status, Window
from monitor.engines.duckdb import DeadlineExceeded, deadline
from monitor.history.errors import StoreError
from monitor.history.reads import values_of
from monitor.history.store import Store
from monitor.judging.runtime import Runtime
from monitor.logs.index import readable
from monitor.logs.log import Log
from monitor.platform import specs
from monitor.platform.days import DAY, DailyTotals, day_of, days_until, last_day
from monitor.platform.platform_check import DayJob, PlatformCheck
from monitor.platform.system_log import SystemLog
from monitor.platform.systems import RETRY
from monitor.service.day_runs import record_day
from monitor.service.file_index import StoredIndex, restore
from monitor.settings.recommender import RecommenderSettings

log = logging.getLogger(__name__)

CATCH_UP: Final = 7
"""Days before the last one that are judged later, or again where a total has changed."""
_DAYS_A_TURN: Final = 10  # of a log that are added up in one turn
_PAUSE: Final = timedelta(hours=1)  # after a log took too long
_LONGEST: Final = timedelta(days=180)  # of an experiment whose users are remembered
_INDEX: Final = "neighbour:"


class PlatformDays:
    """Belongs to the worker thread."""

    def __init__(self, settings: RecommenderSettings, check: PlatformCheck, store: Store) -> None:
        self._settings, self._check, self._store = settings, check, store
        self._stored = {
            system: StoredIndex(store, settings.name, f"{_INDEX}{system}") for system in check.systems.sources
        }
        self._restored: set[str] = set()
        self._unread: dict[str, str] = {}  # system -> why its log could not be looked at
        self._paused: dict[str, datetime] = {}

    @property
    def _reach(self) -> timedelta:
        """How far back totals are needed for the days that may be judged."""
        return (self._check.judge.days + CATCH_UP + 2) * DAY

    def _since(self, now: datetime) -> datetime:
        """From when on windows are added up: for the days that are compared, and for experiments."""
        begins = [one.begins(self._settings.window) for one in self._settings.experiments]
        known = [max(one, now - _LONGEST) for one in begins if one is not None]
        return min([now - self._reach, *known])

    def turn(
        self,
        runtime: Runtime,
        now: datetime,
        watched_since: datetime,
        stopping: Callable[[], bool] = lambda: False,
        recorded: Callable[[], None] = lambda: None,
    ) -> bool:
        """Add up what is complete and judge the days that are due. True if some is left for another turn.

        Raises StoreError if the history cannot be written; the day stays due.
        """
        try:
            self._look(runtime, now)
            if self._keep(runtime, now, watched_since, stopping):
                return True
            self._judge(runtime, now, stopping, recorded)
        except (StoreError, duckdb.InterruptException):
            raise
        except Exception:
            log.exception("%s: the platform could not be judged", self._settings.name)
        return False

    def _look(self, runtime: Runtime, now: datetime) -> None:
        """Update the index of the logs of other systems. A failure is the error of this system alone."""
        name = self._settings.name
        for system, source in self._check.systems.sources.items():
            each = self._check.systems.logs[system]
            try:
                self._look_at(runtime, now, system, each.log)
                if each.error == self._unread.pop(system, None):
                    each.error = ""
            except (duckdb.InterruptException, StoreError):
                raise
            except Exception as exc:
                log.warning("%s: %s: its log cannot be read: %s", name, system, readable(exc))
                each.error = self._unread[system] = readable(exc)
                self._paused.setdefault(system, now + RETRY)
            finally:
                source.release(runtime.index)

    def _look_at(self, runtime: Runtime, now: datetime, system: str, each: Log) -> None:
        """Update the index of a log, and store it."""
        name, key = self._settings.name, f"{_INDEX}{system}"
        if system not in self._restored:
            restore(each, self._store, name, key)
            self._restored.add(system)
        scan = each.refresh(runtime.index, now)
        if scan.error:
            log.warning("%s: %s: %s", name, system, redact(scan.error))
        for entry in scan.changed:
            if entry.reason:
                log.warning("%s: %s: skipped %s: %s", name, system, entry.file.path, entry.reason)
        if scan.differs:
            self._stored[system].write(each)

    def _keep(
        self, runtime: Runtime, now: datetime, watched_since: datetime, stopping: Callable[[], bool]
    ) -> bool:
        """Add up the windows that are complete. True if some are left."""
        left = False
        for system, each in self._check.systems.logs.items():
            if now < self._paused.get(system, now):
                continue
            self._paused.pop(system, None)
            due = each.due(now, self._since(now), watched_since)
            for windows in due[-_DAYS_A_TURN:]:
                if stopping():
                    return True
                if not self._add_up(runtime, system, each, windows, now):
                    break
            left = left or (len(due) > _DAYS_A_TURN and not each.error)
        return left

    def _add_up(
        self, runtime: Runtime, system: str, each: SystemLog, windows: Sequence[Window], now: datetime
    ) -> bool:
        """Keep the totals of these windows. A failure is the error of this system alone."""
        try:
            with deadline(self._settings.deadline.total_seconds(), runtime.interrupt):
                each.keep(runtime.index, windows)
        except DeadlineExceeded as exc:
            each.error = f"adding up its rows {exc}"
            self._paused[system] = now + _PAUSE
            runtime.renew()
        except (duckdb.InterruptException, StoreError):
            raise
        except Exception as exc:
            log.warning(
                "%s: %s: its totals cannot be added up: %s", self._settings.name, system, readable(exc)
            )
            each.error = readable(exc)
        if each.error:
            self._paused.setdefault(system, now + RETRY)
        return not each.error

    def _judge(
        self, runtime: Runtime, now: datetime, stopping: Callable[[], bool], recorded: Callable[[], None]
    ) -> None:
        check, name = self._check, self._settings.name
        last = last_day(now - self._settings.lateness, check.zone)
        days = days_until(last, check.judge.days + CATCH_UP)
        check.systems.ask(days, now)
        table = check.systems.table(days, now)
        start = day_of(days[-CATCH_UP - 1], check.zone).start
        judged = {one.window: one for one in self._store.evaluated(name, check.name, start=start)}
        measured = _Measured(self._store, check, name, Window(start, day_of(last, check.zone).end))
        for back in reversed(range(CATCH_UP + 1)):
            part = table.between(CATCH_UP - back, len(days) - back)
            window = day_of(part.days[-1], check.zone)
            states = [one.status[-1] for one in part.readings.values()]
            if back and all(one is Status.NO_DATA for one in states):
                continue  # before the platform was watched
            waits = any(one is Status.LATE for one in states) and now < window.end + check.platform.wait
            fingerprint = _fingerprint(part)
            known = judged.get(window)
            is_known = known is not None and (known.fingerprint, known.definition) == (
                fingerprint,
                check.definition,
            )
            if waits or is_known or stopping():
                continue
            if known is not None and measured.loses(part, window, known.definition):
                continue
            record_day(
                check, DayJob(part, window.end, runtime.index), window, self._settings, self._store, runtime,
                fingerprint=fingerprint, now=now,
            )  # fmt: skip
            log.info("%s: judged the platform of %s", name, part.days[-1])
            recorded()

    def forget(self, now: datetime) -> None:
        """Delete the kept windows that no day and no experiment needs."""
        if any(one.start is None for one in self._settings.experiments):
            return
        for each in self._check.systems.logs.values():
            each.kept.drop_before(min(self._since(now), now - self._reach))


class _Measured:
    """The amounts that the history has of the days that may be judged again."""

    def __init__(self, store: Store, check: PlatformCheck, recommender: str, span: Window) -> None:
        self._store, self._check, self._recommender, self._span = store, check, recommender, span
        self._known: dict[tuple[str, str], set[Window]] = {}

    def loses(self, table: DailyTotals, day: Window, definition: str) -> bool:
        """Whether a new judgement of a judged day would only lose an amount that a system does not give now.

        A system that is late gives it later. One that fails does too, unless the config asks for something
        else since then.
        """
        gone = [Status.LATE, *([Status.ERROR] if definition == self._check.definition else [])]
        return any(
            day in self._windows(total, system)
            for system, reading in table.readings.items()
            if reading.status[-1] in gone
            for total, values in reading.values.items()
            if not math.isfinite(values[-1])
        )

    def _windows(self, total: str, system: str) -> set[Window]:
        """The days on which the history has an amount."""
        if (total, system) not in self._known:
            series = self._check.judge.builder(specs.AMOUNT, total=total, system=system).no_data("")
            with self._store.reading() as connection:
                found = values_of(
                    connection, self._recommender, self._check.name, series, self._span.start, self._span.end
                )
            self._known[total, system] = {window for window, _ in found}
        return self._known[total, system]


def _fingerprint(table: DailyTotals) -> str:
    """Changes when a total of one of the days changes, or the reason why there is none."""
    values = {
        name: [
            {total: [repr(float(one)) for one in series] for total, series in reading.values.items()},
            [status.value for status in reading.status],
            {total: texts[-1] for total, texts in reading.why.items()},
        ]
        for name, reading in table.readings.items()
    }
    return digest(json.dumps([str(table.days[-1]), values], sort_keys=True), 32)
