"""What is shown: one immutable snapshot, made of the history and of what only the running daemon knows."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from monitor.config.checks.check import Checked
from monitor.core.columns import LOGS
from monitor.core.results import ResultKind, Status
from monitor.experiments.specs import EXPERIMENT
from monitor.history.errors import StoreError
from monitor.history.read_snapshot import KeptPoints, read_snapshot
from monitor.history.snapshot import MaintenanceState, RecommenderState, RuleInfo, Series, Snapshot
from monitor.history.store import Store
from monitor.metrics.feedback.attribution_health import LOST
from monitor.service.tally import Tally
from monitor.service.watch import Watch
from monitor.settings.maintenance import Maintenance, began_within, now_quiet
from monitor.settings.recommender import RecommenderSettings

log = logging.getLogger(__name__)

_SHORTEST: Final = timedelta(seconds=1)  # a recommender whose window is shorter cannot be run
_ASK_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Running:
    """What the daemon runs. A reload replaces the whole of it, so no picture is half old and half new."""

    names: Sequence[str]
    watches: Mapping[str, Watch]
    broken: Mapping[str, Checked]  # the recommenders that cannot be run, with their problems
    loaded_at: datetime
    refused: str = ""  # why a newer config was not taken

    def settings(self, name: str) -> RecommenderSettings | None:
        """What is asked of a recommender, also of one that cannot be run."""
        found = self.watches.get(name) or self.broken.get(name)
        return None if found is None else found.settings

    def error(self, name: str) -> str | None:
        """Why a recommender cannot be run, or why its last run saw nothing."""
        if name in self.broken:
            return "; ".join(map(str, self.broken[name].problems))
        return self.watches[name].error if name in self.watches else None


class SnapshotPublisher:
    """Takes snapshots, from any thread; `current` is the last one, and never waits.

    Each snapshot is made of what was last read of the history, and never of an earlier snapshot: what the
    daemon adds is added once, however long the history cannot be read.

    Raises StoreError where the very first reading fails.
    """

    def __init__(self, store: Store, tally: Tally, running: Running, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._tally = tally
        self._clock = clock
        self._lock = threading.Lock()
        self._worked_at = clock()
        self.running = running
        self._points: KeptPoints = {}
        self._read_error = self._write_error = ""
        self._asked_at = time.monotonic()  # when it was last asked whether the history works
        self._asking = threading.Lock()
        self._read = self._reading()
        self._shown = self._dressed()

    def current(self) -> Snapshot:
        """What is shown now."""
        return self._shown

    def publish(self, *, worked: bool = False) -> None:
        """Show the state of now; `worked` comes from the thread that judges and shows that it lives."""
        with self._lock:  # or an older picture could take the place of a newer one
            if worked:
                self._worked_at = self._clock()
            try:
                self._read = self._reading()
            except StoreError as exc:
                self._read_error = str(exc)
                self._tally.store_failed(exc)
                log.error("the history cannot be read; the page shows the last state that was read: %s", exc)
            self._shown = self._dressed()

    def write_counters(self) -> None:
        """Write what was counted since: not while a picture is taken, or it could show a count twice."""
        with self._lock:
            try:
                self._tally.write()
                self._write_error = ""
            except StoreError as exc:
                self._write_error = str(exc)
                log.error("the counters cannot be written to the history; the next run tries again: %s", exc)

    def history_error(self) -> str:
        """Why the history cannot be read or written, or nothing where it can.

        Asks the history itself where nobody did for some seconds, in the thread of the caller. One caller
        asks at a time; the others are given the last answer.
        """
        if time.monotonic() - self._asked_at >= _ASK_SECONDS and self._asking.acquire(blocking=False):
            try:
                self._ask()
            finally:
                self._asked_at = time.monotonic()
                self._asking.release()
        return self._read_error or self._write_error

    def _ask(self) -> None:
        try:
            self._store.counters()
        except StoreError as exc:
            with self._lock:
                self._read_error = str(exc)
                self._shown = self._dressed()
            return
        if self._read_error:
            self.publish()
        # A write may wait long for a lock, so that is left to the worker's next turn.

    def _reading(self) -> Snapshot:
        """The history as it is now."""
        names = list(dict.fromkeys(self.running.names))
        read = read_snapshot(self._store, names, self._clock(), kept=self._points)
        self._tally.read(read.counters)
        self._read_error = ""
        return read

    def _dressed(self) -> Snapshot:
        """What was last read, with what only the running daemon knows."""
        running, now = self.running, self._clock()
        known = {state.name: state for state in self._read.recommenders}
        return replace(
            self._read,
            recommenders=tuple(
                _completed(known.get(name) or RecommenderState(name), running, now)
                for name in dict.fromkeys(running.names)
            ),
            counters=self._tally.shown(),
            config_loaded_at=running.loaded_at,
            config_error=running.refused or None,
            worked_at=self._worked_at,
            history_error=self._read_error or self._write_error,
        )


def _completed(state: RecommenderState, running: Running, now: datetime) -> RecommenderState:
    """A recommender's state with what only the running daemon knows."""
    watch, settings = running.watches.get(state.name), running.settings(state.name)
    asked = state.series if watch is None else _asked_for(state.series, watch)
    return replace(
        state,
        series=tuple(_excused(asked, settings.maintenance if settings else ())),
        logs=tuple(
            replace(one, stalled_after=watch.stalled_after.get(one.log) if watch else None)
            for one in state.logs
            if one.log in LOGS
        ),
        last_run=watch.last_run if watch and watch.last_run else state.last_run,
        pending_windows=watch.pending if watch else 0,
        error=running.error(state.name),
        maintenance=_maintenance(settings, now),
        rules=tuple(
            RuleInfo(one.name, one.kind, one.description, one.owner, one.runbook)
            for one in (watch.rules if watch else ())
        ),
    )


def _maintenance(asked: RecommenderSettings | None, now: datetime) -> MaintenanceState | None:
    """What holds alerts back now. By the clock alone: a history that cannot be read must not prolong it.

    Nor must it end where the recommender cannot be run, for that is told too, and work may be why.
    """
    if asked is None:
        return None
    window = max(asked.window, _SHORTEST)
    one = now_quiet(asked.maintenance, now, window=window, lateness=asked.lateness)
    return None if one is None else MaintenanceState(one.until, one.reason)


def _excused(series: Iterable[Series], spans: Sequence[Maintenance]) -> Iterator[Series]:
    """The series, with what was seen in maintenance alone marked as such."""
    for one in series:
        well = one.standing is Status.OK or not began_within(spans, one.window, one.since)
        yield one if well else replace(one, excused=True)


def _asked_for(series: Sequence[Series], watch: Watch) -> Iterator[Series]:
    """The series without verdicts, and without a score, that nobody asks for any more.

    The last window was judged by the config of its time. Who takes out a rule or an objective that pages
    must not wait for the next window, which may be a day away.
    """
    rules = {(one.name, one.kind.value) for one in watch.rules}
    experiments = {one.name for one in watch.settings.experiments}
    for one in series:
        result = one.result
        if result.kind is ResultKind.HEALTH and watch.settings.health is None:
            continue
        if result.kind.is_of_the_past and watch.settings.bands is None:
            continue
        if result.kind is ResultKind.RULE:
            if (result.labels.get("rule"), result.labels.get("kind")) in rules:
                yield one
        elif (
            result.threshold is None
            or result.kind.is_of_models  # its bounds are no objectives, nor are those of the next two
            or result.kind.is_of_the_past
            or result.labels.get(EXPERIMENT) in experiments
            or (result.metric == LOST.name and watch.settings.metrics.max_unattributed is not None)
            or any(
                each.metric == result.metric and each.labels == result.labels
                for each in watch.settings.objectives
            )
        ):
            yield one
        else:
            yield _unjudged(one)


def _unjudged(series: Series) -> Series:
    """The series of a metric whose objective is gone: what was measured stays."""

    def well(status: Status) -> Status:
        return Status.OK if status is Status.VIOLATED else status

    result = series.result
    held = result.status is Status.VIOLATED
    bare = replace(
        result,
        status=well(result.status),
        detail="" if held else result.detail,
        threshold=None,
        bound=None,
        clear=None,
    )
    return replace(series, result=bare, standing=well(series.standing), violation=None)
