"""Roll-ups in the daemon: each day that is over is added up, once all of its windows have been judged.

What a window of the day does not have yet is made from its log: after `rollups` was switched on, or where a
window was not judged. A day is added up again when one of its windows was corrected. One that was added up
from windows of a former length stays as it is: the log may no longer hold all of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import duckdb

from monitor.core.columns import EXPOSURES
from monitor.core.digest import digest
from monitor.core.results import Window
from monitor.engines.duckdb import DeadlineExceeded, deadline
from monitor.history.errors import StoreError
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.judging.evaluate import Evaluator
from monitor.judging.registry import MARKERS
from monitor.judging.runtime import Runtime
from monitor.logs.index import readable
from monitor.logs.windows import Part, is_late
from monitor.platform.days import DAY, day_of, days_until, last_day
from monitor.rollups.check import RollupCheck, RollupJob
from monitor.rollups.measure import Span
from monitor.service.day_runs import record_day
from monitor.settings.recommender import RecommenderSettings

log = logging.getLogger(__name__)

CATCH_UP: Final = 7
"""Days before the last one that are added up later, or again where a window was corrected."""
_WINDOWS_A_TURN: Final = 10
_PATIENCE: Final = timedelta(hours=6)
"""How long after its end a day waits for a window that is not judged, beyond the time that windows wait."""


class RollupDays:
    """Belongs to the worker thread."""

    def __init__(
        self, settings: RecommenderSettings, check: RollupCheck, evaluator: Evaluator, store: Store
    ) -> None:
        self._settings, self._check, self._evaluator, self._store = settings, check, evaluator, store
        bands = settings.bands
        self._zone = ZoneInfo(bands.timezone if bands is not None else "UTC")
        self._failed: set[tuple[Part, Window]] = set()  # what could not be made from the log
        self._looked: datetime | None = None  # the hour of the last look that left nothing to do

    @property
    def _parts(self) -> list[Part]:
        return [part for part in self._evaluator.parts.names if part in self._check.kept.sums]

    @property
    def reach(self) -> timedelta:
        """How far back windows are needed."""
        return max(self._settings.rollups) + (CATCH_UP + 2) * DAY

    def turn(
        self,
        runtime: Runtime,
        now: datetime,
        judged: Sequence[Window],
        stopping: Callable[[], bool] = lambda: False,
        recorded: Callable[[Window, CheckRun], None] = lambda _day, _run: None,
    ) -> bool:
        """Add up the last days, as far as they are due. True if some are left for another turn.

        To look costs a query for all windows of two weeks. So it looks once an hour, and when one of the
        `judged` windows of this turn is of a day that is over.

        Raises StoreError if the history or a file cannot be written; the day stays due.
        """
        last, hour = self.last(now), now.replace(minute=0, second=0, microsecond=0)
        over = day_of(last, self._zone).end
        if self._looked == hour and not any(window.start < over for window in judged):
            return False
        self._looked = None
        try:
            left = self.roll_up(runtime, days_until(last, CATCH_UP + 1), now, stopping, recorded)
            self._looked = None if left else hour
            return left
        except (StoreError, duckdb.InterruptException):
            raise
        except Exception:
            log.exception("%s: the days could not be rolled up", self._settings.name)
            return False

    def last(self, now: datetime) -> date:
        """The last day that is over."""
        return last_day(now - self._settings.lateness, self._zone)

    def days_in(self, span: Window, now: datetime) -> tuple[date, ...]:
        """The days that end in a span and are over, oldest first."""
        last = min(self.last(now), last_day(span.end, self._zone))
        return days_until(last, max(0, (last - last_day(span.start, self._zone)).days))

    def roll_up(
        self,
        runtime: Runtime,
        days: Sequence[date],
        now: datetime,
        stopping: Callable[[], bool] = lambda: False,
        recorded: Callable[[Window, CheckRun], None] = lambda _day, _run: None,
    ) -> bool:
        """Add up these days, oldest first, as far as they are due. True if it has to go on.

        Raises StoreError if the history or a file cannot be written; the day stays due.
        """
        if not days:
            return False
        longest = max(self._settings.rollups)
        first = self._span(days[0], longest).start
        known = self._known(Window(first, self._span(days[-1], DAY).end))
        before = {
            one.window: (one.fingerprint, one.definition)
            for one in self._store.evaluated(self._settings.name, self._check.name, start=first)
        }
        left = _WINDOWS_A_TURN
        for day in days:
            window = self._span(day, DAY)
            lengths = sorted(one for one in self._settings.rollups if known.reaches(self._span(day, one)))
            awaits = self._check.has_objectives and known.reaches(window)  # these say what they wait for
            if not (lengths or awaits) or not self._is_ready(window, known, now):
                continue
            span = self._span(day, lengths[-1] if lengths else DAY)
            fingerprint = known.fingerprint(span)
            of_before, definition = before.get(window, ("", ""))
            if definition == self._check.definition and (
                of_before == fingerprint or known.has_former(window)
            ):
                continue
            for part, missing in self._missing(span, known):
                if stopping() or not left:
                    return True
                left -= 1
                self._make(runtime, part, missing)
            every = ((self._span(day, length), length) for length in lengths)
            spans = [Span(one, length, known.count(one), known.late(one)) for one, length in every]
            run = record_day(
                self._check, RollupJob(runtime.index, spans), window, self._settings, self._store, runtime,
                fingerprint=fingerprint, now=now,
            )  # fmt: skip
            log.info("%s: rolled up %s", self._settings.name, day)
            recorded(window, run)
            if stopping():
                return True
        return False

    def _known(self, span: Window) -> _Known:
        name = self._settings.name
        evaluated = {
            part: self._store.evaluated(name, MARKERS[part], start=span.start, end=span.end)
            for part in self._parts
        }
        length = self._settings.window
        judged = {
            part: {one.window: one.fingerprint for one in every if one.window.length == length}
            for part, every in evaluated.items()
        }
        former = {one.window for one in evaluated[EXPOSURES] if one.window.length != length}
        held = self._evaluator.source.exposures.windows()
        begins = min((one.start for one in (*held, *judged[EXPOSURES])), default=None)
        return _Known(judged, former, {one for one in held if _is_in(one, span)}, begins)

    def _span(self, day: date, length: timedelta) -> Window:
        """The span of this length that ends with a day."""
        first = day - length + DAY
        return Window(day_of(first, self._zone).start, day_of(day, self._zone).end)

    def _is_ready(self, day: Window, known: _Known, now: datetime) -> bool:
        """Whether the last window of a day was judged in every part, or has had its time."""
        last = Window.of(day.end - self._settings.window, self._settings.window)
        waits = self._evaluator.parts.reach + self._settings.max_wait + _PATIENCE
        return all(last in windows for windows in known.judged.values()) or now >= day.end + waits

    def _missing(self, span: Window, known: _Known) -> list[tuple[Part, Window]]:
        """What the windows of a span do not have, apart from what could not be made and from lost rows."""
        length, kept, shown = self._settings.window, self._check.kept, self._evaluator.source.exposures
        in_log = [one for one in known.with_rows if _is_in(one, span) and shown.rows(one)]
        pairs = self._evaluator.kept.paths(span.start, span.end, length)
        found: list[tuple[Part, Window]] = []
        for part in self._parts:
            there = kept.present(part, span, length)
            there = there & pairs.keys() if part == EXPOSURES else there
            found += [(part, one) for one in in_log if one not in there]
        return sorted(set(found) - self._failed, key=lambda one: one[1].start)

    def _make(self, runtime: Runtime, part: Part, window: Window) -> None:
        """Keep what a window adds up to, from its log. A failure leaves it out."""
        try:
            with deadline(self._settings.deadline.total_seconds(), runtime.interrupt):
                self._evaluator.add_up(runtime, part, window)
            return
        except DeadlineExceeded as error:
            why = str(error)
            runtime.renew()
        except (duckdb.InterruptException, StoreError):
            raise
        except Exception as error:
            why = readable(error)
        self._failed.add((part, window))
        log.warning("%s: %s of %s is not in the roll-ups: %s", self._settings.name, part, window.start, why)

    def forget(self, now: datetime) -> None:
        """Delete the files of windows that no day needs."""
        self._check.kept.drop_before(now - self.reach)


@dataclass(frozen=True, slots=True)
class _Known:
    """The windows of some days.

    Attributes:
        judged: part -> the judged windows, with the fingerprints of their rows.
        former: judged windows of another length, from before a change of `window`. They add up to no span.
        with_rows: those of which the log has exposures now.
        begins: the start of the first window of all that are known.
    """

    judged: Mapping[Part, Mapping[Window, str]]
    former: Set[Window]
    with_rows: Set[Window]
    begins: datetime | None

    def reaches(self, span: Window) -> bool:
        """Whether a span does not begin before the first window."""
        return self.begins is not None and self.begins <= span.start

    def has_former(self, span: Window) -> bool:
        """Whether windows of a former length were judged in a span."""
        return any(_is_in(one, span) for one in self.former)

    def count(self, span: Window) -> int:
        """The windows of a span that add up to it."""
        return sum(_is_in(one, span) for one in self.with_rows | self.judged[EXPOSURES].keys())

    def late(self, span: Window) -> int:
        """The windows of a span that were judged on rows that may be incomplete, in any part."""
        found = (
            one
            for windows in self.judged.values()
            for one, fingerprint in windows.items()
            if is_late(fingerprint) and _is_in(one, span)
        )
        return len(set(found))

    def fingerprint(self, span: Window) -> str:
        """Changes when a window of the span is judged, or judged again on other rows."""
        judged = [
            (part, one.start.isoformat(), fingerprint)
            for part, windows in self.judged.items()
            for one, fingerprint in windows.items()
            if _is_in(one, span)
        ]
        others = self.with_rows - self.judged[EXPOSURES].keys()
        more = [one.start.isoformat() for one in others if _is_in(one, span)]
        return digest(repr((sorted(judged), sorted(more))), 32)


def _is_in(window: Window, span: Window) -> bool:
    return span.start <= window.start and window.end <= span.end
