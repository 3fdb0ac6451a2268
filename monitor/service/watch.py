"""One watched recommender: index its logs, judge the windows that are due, record the verdicts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from monitor.anomalies.clock_change import ClockChangeCheck
from monitor.anomalies.schedule import BandScheduler
from monitor.core.columns import EXPOSURES, FEEDBACK
from monitor.core.results import Result, Status, Window, worst_status
from monitor.core.text import plural
from monitor.forecast.schedule import ForecastScheduler
from monitor.health.score import HealthCheck
from monitor.history.kept import KeptPairs
from monitor.history.reads import Evaluated, StoredResult
from monitor.history.record import CheckRun
from monitor.history.snapshot import Change
from monitor.history.store import Store
from monitor.history.sums import Sums
from monitor.history.watched import JUDGED, WATCHING
from monitor.judging.evaluate import Evaluation, Evaluator
from monitor.judging.registry import CHECKS_OF, MARKERS, of_history
from monitor.judging.runtime import Runtime
from monitor.logs.listing import no_file
from monitor.logs.log import Log, Scan
from monitor.logs.windows import Due, Part, candidate_windows, due_windows, was_accepted
from monitor.platform.platform_check import PlatformCheck
from monitor.report.table import verdict_counts
from monitor.rollups.check import RollupCheck
from monitor.rules.rule import LoadedRule
from monitor.service.changed_files import changed_files
from monitor.service.changes import ListChanges
from monitor.service.file_index import StoredIndex, restore
from monitor.service.platform_days import PlatformDays
from monitor.service.rollup_days import RollupDays
from monitor.settings.maintenance import covers
from monitor.settings.recommender import RecommenderSettings
from monitor.window.check import ResultsJob, run_check
from monitor.window.counted import drop_counts
from monitor.window.verdicts import window_status

log = logging.getLogger(__name__)

WINDOWS_A_TURN = 10
MOST_REPORTED = 5  # warnings of one kind per look

News = frozenset[str]
"""What a turn tells while it goes on: the checks that recorded a window; none if it found new files."""


@dataclass(frozen=True, slots=True)
class WatchState:
    """What the last turn of a recommender found; for the status page and the exported gauges.

    Attributes:
        last_run: when it ended.
        pending: windows that are due and not judged yet.
        stalled_after: by log, how old its newest row may get, if known.
        lists_changed_at: when a list file of a rule had another content.
        scanned_at: log -> its last look without an error.
        error: why the log cannot be read, or the run failed.
        changes: of the files beside the log.
        clock_change: why `bands.timezone` seems wrong.
        needed_from: start of the oldest window that may still be judged; None if the logs are not indexed.
    """

    last_run: datetime | None = None
    pending: int = 0
    stalled_after: Mapping[str, timedelta] = field(default_factory=dict)
    lists_changed_at: datetime | None = None
    scanned_at: Mapping[str, datetime] = field(default_factory=dict)
    error: str | None = None
    changes: tuple[Change, ...] = ()
    clock_change: str = ""
    needed_from: datetime | None = None


class Watch:
    """Used by the thread that judges, alone; others read its `state`."""

    def __init__(
        self,
        settings: RecommenderSettings,
        rules: Sequence[LoadedRule],
        store: Store,
        state: Path,
        salt: str,
    ) -> None:
        self.settings = settings
        self.rules = tuple(rules)
        self.store = store
        self.last_run: datetime | None = None
        self.pending = 0
        self.stalled_after: dict[str, timedelta] = {}  # by log, if known
        self.lists = ListChanges()
        self.scanned_at: dict[str, datetime] = {}  # log -> its last look without an error
        self.error: str | None = None
        self.changes: tuple[Change, ...] = ()  # of the files beside the log
        self.clock_change = ""  # why `bands.timezone` seems wrong
        self.retry_files = False  # set by a reload: the next look retries unreadable files at once
        self._needed_from: datetime | None = None
        self._has_news = False  # the last look has written another index
        self.evaluator = Evaluator(settings, rules, KeptPairs(state, settings.name), salt)
        self.band_scheduler = BandScheduler(settings, store, of_history(self.evaluator.checks))
        self._platforms = [
            PlatformDays(settings, check, store)
            for check in self.evaluator.checks
            if isinstance(check, PlatformCheck)
        ]
        self._rollups = [
            RollupDays(settings, check, self.evaluator, store)
            for check in self.evaluator.checks
            if isinstance(check, RollupCheck)
        ]
        self._forecasts = ForecastScheduler(settings, store, of_history(self.evaluator.checks))
        self._clock_changes = ClockChangeCheck(settings, store)
        self._restored = False
        self._unsaved: set[str] = set()  # logs whose index is newer than the stored one
        self._stored = {name: StoredIndex(store, settings.name, name) for name in self.evaluator.source.logs}
        self._reported: dict[str, set[str]] = {}

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def state(self) -> WatchState:
        """What it knows now."""
        return WatchState(
            last_run=self.last_run,
            pending=self.pending,
            stalled_after=self.stalled_after,
            lists_changed_at=self.lists.changed_at,
            scanned_at=self.scanned_at,
            error=self.error,
            changes=self.changes,
            clock_change=self.clock_change,
            needed_from=self._needed_from,
        )

    def turn(
        self,
        runtime: Runtime,
        now: datetime,
        stopping: Callable[[], bool] = lambda: False,
        news: Callable[[News], None] = lambda _: None,
        alive: Callable[[], None] = lambda: None,
    ) -> bool:
        """Index the logs and judge the newest due windows. True if windows are left for another turn.

        `news` is called after each window, and after a look that found something new. `alive` is called
        often: before each check, and while files are read.

        Raises StoreError if the history cannot be written. Nothing is lost then: the window stays due.
        """

        def recorded() -> None:
            news(self.store.written(self.name))

        self._restore(now)
        self.lists.look(self.rules, now)
        is_complete = self.look(runtime, now, alive)
        if self._has_news:  # shown before the windows, which may take long
            news(frozenset())
        if not is_complete:
            return True
        self.changes = tuple(changed_files(self.evaluator.source.logs, self.rules))
        all_due = self.due(now)
        self.pending = len(all_due)
        now_due = all_due[:WINDOWS_A_TURN]
        measured = {} if stopping() else self.evaluator.measure_together(runtime, now_due, alive)
        for due in now_due:
            if stopping():
                return True
            before = self._stored_runs(due)
            if due.is_kept:
                evaluation = self.evaluator.keep(due, before)
            else:
                once = measured.pop((due.window, due.part), None)
                evaluation = self.evaluator.evaluate(runtime, due, before, alive, once)
                if self._lost_rows_meanwhile(runtime, due, now):
                    return True
            self.record(evaluation, now)
            self.pending -= 1
            recorded()
        # A band needs the windows before its own, so it waits until older windows have caught up.
        left = self.pending > 0
        left = left or self.band_scheduler.turn(now, self._catch_up_start(now), stopping, recorded)
        for platform in self._platforms:
            since = self.store.watermarks(self.name)[WATCHING]
            left = platform.turn(runtime, now, since, stopping, recorded) or left
        for rollups in self._rollups if not left else ():
            judged = [due.window for due in all_due]
            left = rollups.turn(runtime, now, judged, stopping, lambda *_: recorded()) or left
        if all_due:
            runtime.give_back()
        if not left:  # anomalies and drifts decide which days it leaves out
            self._forecasts.turn(now, recorded)
            self.clock_change = self._clock_changes.look(now)
        self.last_run = now
        self._needed_from = self.needed_from(now)
        self.error = self._log_error()
        return left

    def _stored_runs(self, due: Due) -> list[CheckRun]:
        """The stored runs of a part of a window that is judged again; none the first time."""
        runs = [run for run in self._evaluated(due.window) if run.check in CHECKS_OF[due.part]]
        results: dict[str, list[Result]] = {}
        for stored in self._stored_results(due.window) if runs else ():
            results.setdefault(stored.check, []).append(stored.result)
        return [
            CheckRun(
                check=run.check,
                results=results.get(run.check, []),
                status=run.status,
                definition=run.definition,
                seconds=run.seconds,
            )
            for run in runs
        ]

    def _stored_results(self, window: Window) -> list[StoredResult]:
        """Every stored result of a window, and not of shorter windows in it: `window` may have changed."""
        found = self.store.results(recommenders=[self.name], start=window.start, end=window.end)
        return [one for one in found if one.window == window]

    def _evaluated(self, window: Window, check: str | None = None) -> list[Evaluated]:
        """The stored runs of a window, as `_stored_results`."""
        found = self.store.evaluated(self.name, check, start=window.start, end=window.end)
        return [run for run in found if run.window == window]

    def look(self, runtime: Runtime, now: datetime, alive: Callable[[], None] = lambda: None) -> bool:
        """Update and store the index of every log's files. True if all files were read in time."""
        is_complete, self._has_news = True, False
        retry, self.retry_files = self.retry_files, False
        for each in self.evaluator.source.logs.values():
            if retry:
                each.retry()
            scan = each.refresh(runtime.index, now, lambda _: alive())
            self._report(each, scan)
            if scan.differs:
                self._unsaved.add(each.name)
            if each.name in self._unsaved:
                self._stored[each.name].write(each)
                self._unsaved.discard(each.name)
                self._has_news = True
            is_complete = is_complete and not scan.is_cut
            if not (scan.error or scan.is_cut or each.unlisted):
                self.scanned_at = {**self.scanned_at, each.name: now}  # another thread may read the old one
        self._update_stalled_after(now)
        return is_complete

    def _update_stalled_after(self, now: datetime) -> None:
        """Update how old the newest row of each log may get, except for logs that have stalled.

        A longer silence may be allowed at night. It must not resolve an alert that fired by day.
        """
        allowed = {}
        for name in (EXPOSURES, FEEDBACK):
            each, known = self.evaluator.source.logs.get(name), self.stalled_after.get(name)
            if each is None:
                continue
            has_stalled = known and each.watermark and now - each.watermark > known
            silence = known if has_stalled else each.allowed_silence(now, self.settings.every)
            if silence is not None:
                allowed[name] = silence
        self.stalled_after = allowed

    def _lost_rows_meanwhile(self, runtime: Runtime, due: Due, now: datetime) -> bool:
        """Whether rows were lost while the window was judged. Its verdict cannot be trusted then.

        If a file is overwritten while it is read, the engine sees fewer rows, often without an error. The
        window stays due, and the next turn knows which rows are lost.
        """
        parts = self.evaluator.parts
        if due.lost or not parts.has_changed(due.window, due.part):
            return False
        self.look(runtime, now)
        is_unknown = due.correction and parts.is_settled(due.window, due.part)
        if not is_unknown and parts.lost(due.window, due.part) is None:
            return False
        log.warning("%s: rows of %s were lost while it was judged", self.name, due.window.start)
        return True

    def _report(self, each: Log, scan: Scan) -> None:
        """Log new errors of a scan, each once and not at every look."""
        errors = [scan.error] if scan.error else []
        errors += [f"{each.name}: {unlisted}" for unlisted in each.unlisted]
        reported, self._reported[each.name] = self._reported.get(each.name, set()), set(errors)
        new = [error for error in errors if error not in reported]
        for error in new[:MOST_REPORTED]:
            log.warning("%s: %s", self.name, error)
        if (more := len(new) - MOST_REPORTED) > 0:
            paths = plural(more, "more path")
            log.warning("%s: %s: %s cannot be listed", self.name, each.name, paths)
        for entry in scan.changed:
            if entry.reason:
                log.warning("%s: skipped %s: %s", self.name, entry.file.path, entry.reason)
        lost = [loss for loss in scan.lost if not loss.is_growing and not each.is_rotated(loss)]
        for loss in lost[:MOST_REPORTED]:
            rows = plural(loss.rows, "indexed row")
            log.warning("%s: %s: the log has lost %s: %s", self.name, each.name, rows, loss)
        if (more := len(lost) - MOST_REPORTED) > 0:
            log.warning("%s: %s: %s lost rows", self.name, each.name, plural(more, "more file"))

    def due(self, now: datetime) -> list[Due]:
        """The windows to judge, newest first. Of each window, the exposures come before the other parts."""
        since = self.store.watermarks(self.name)[WATCHING]
        parts = self.evaluator.parts
        asked = {part: candidate_windows(parts, part, now, since) for part in parts.names}
        asked = {part: candidates for part, candidates in asked.items() if candidates}
        if not asked:
            return []
        evaluated = self.store.evaluated_by_check(
            self.name,
            {MARKERS[part] for part in asked},
            start=min(parts.span(candidates[-1], part).start for part, candidates in asked.items()),
            end=max(candidates[0].end for candidates in asked.values()),
        )
        found = [
            due
            for part, candidates in asked.items()
            for due in self._due_of(part, now, since, candidates, evaluated[MARKERS[part]])
        ]
        return sorted(found, key=lambda due: (due.window, due.part == EXPOSURES), reverse=True)

    def _due_of(
        self,
        part: Part,
        now: datetime,
        since: datetime,
        candidates: Sequence[Window],
        all_evaluated: Sequence[Evaluated],
    ) -> list[Due]:
        parts = self.evaluator.parts
        first, end = parts.span(candidates[-1], part).start, candidates[0].end
        evaluated = [one for one in all_evaluated if first <= one.window.start and one.window.end <= end]
        judged = {run.window: run.fingerprint for run in evaluated}
        self._accept_losses(part, judged)
        all_due = due_windows(parts, part, now, candidates, judged, since)
        # Retention deletes the oldest files of a log. The stored verdict on their windows was given on all of
        # the rows. A verdict on the remaining rows must not replace it.
        rows = {run.window: run.rows for run in evaluated}
        timeline = parts.timeline(part)
        oldest = min(timeline.windows(), default=None)
        if oldest is None:  # all files have been moved away, as log rotation does at midnight
            return [due for due in all_due if rows.get(due.window, 0) == 0]
        is_partial = timeline.known_rows(oldest) < rows.get(oldest, 0)
        has_deletions = is_partial or any(window < oldest for window in rows)
        complete_from = oldest.end if is_partial else oldest.start

        def is_complete(due: Due) -> bool:
            if due.window not in rows:
                return True
            if part == EXPOSURES:
                return due.window != oldest or not is_partial
            return not has_deletions or parts.span(due.window, part).start >= complete_from

        return [due for due in all_due if is_complete(due)]

    def _accept_losses(self, part: Part, judged: Mapping[Window, str]) -> None:
        """Forget the lost rows of windows that `backfill` has judged without them."""
        parts = self.evaluator.parts
        logs = [self.evaluator.source.logs[name] for name in parts.names_of(part)]
        if not any(each.losses for each in logs):
            return
        for window, known in judged.items():
            if parts.lost(window, part) and was_accepted(parts, part, window, known):
                self._unsaved |= {each.name for each in logs if each.accept(window)}

    def record(self, evaluation: Evaluation, now: datetime) -> None:
        """Store a judged window in one transaction."""
        due, runs = evaluation.due, [*evaluation.runs, *self._health(evaluation)]
        recorded = self.store.record_window(
            self.name, due.window, runs,
            fingerprint=due.fingerprint, rows=due.rows, evaluated_at=now,
            in_maintenance=covers(self.settings.maintenance, due.window),
        )  # fmt: skip
        if not due.is_kept and evaluation.is_without_error:
            self.store.set_watermark(self.name, JUDGED + due.part, now)
        verdict = worst_status(run.status or window_status(run.results) for run in runs)
        count, counts = verdict_counts(result for run in runs for result in run.results)
        said = f"{verdict} ({counts})" if count else verdict
        log.info(
            "%s: judged %s of %s to %s: %s, %s%s%s",
            self.name, due.part, due.window.start, due.window.end,
            "nothing to judge by" if said == Status.OK else said, self._read(due),
            ", late" if due.late else "", ", corrected" if recorded.corrected else "",
        )  # fmt: skip

    def _read(self, due: Due) -> str:
        """How many rows of its own log a part of a window has."""
        if due.part == FEEDBACK:
            return plural(self.evaluator.source.logs[FEEDBACK].rows(due.window), "event")
        return plural(due.rows, "row")

    def _health(self, evaluation: Evaluation) -> list[CheckRun]:
        """The health score, if every part of the window that it needs has been judged."""
        due = evaluation.due
        runs = []
        for check in self.evaluator.checks:
            if not isinstance(check, HealthCheck) or due.part not in check.needs:
                continue
            others = check.needs - {due.part}
            if all(self._evaluated(due.window, MARKERS[part]) for part in others):
                now_run = {run.check for run in evaluation.runs}
                stored = self._stored_results(due.window)
                before = [one.result for one in stored if one.check not in now_run]
                runs.append(run_check(check, ResultsJob([*before, *evaluation.results])))
        return runs

    def needed_from(self, now: datetime) -> datetime:
        """Start of the oldest window that may still be judged or corrected. The history must keep it.

        A deleted window would be due again: its violations would be counted, and would page, a second time.
        """
        if self.last_run is None:  # the logs are not indexed yet
            return datetime.min.replace(tzinfo=UTC)
        since = self.store.watermarks(self.name)[WATCHING]
        parts = self.evaluator.parts
        windows = [window for part in parts.names for window in candidate_windows(parts, part, now, since)]
        return min((window.start for window in windows), default=now)

    def _catch_up_start(self, now: datetime) -> datetime:
        """Start of the time in which missed windows are still judged. Older windows get no bands either."""
        settings = self.settings
        reached = self.evaluator.source.main.watermark or now
        waits = self.evaluator.parts.reach + settings.max_wait
        return min(now, reached) - waits - (settings.catch_up + 1) * settings.window

    def forget(self, now: datetime) -> None:
        """Drop stored items, users and index entries that no window needs any more."""
        span = max(self.settings.metrics.history, timedelta(days=2), *(one.reach for one in self._rollups))
        reached = self.evaluator.source.main.watermark
        if reached is not None:
            oldest = min(now, reached) - span - self.settings.catch_up * self.settings.window
            self.evaluator.kept.drop_before(oldest)
            Sums(self.evaluator.kept).drop_before(oldest)
            drop_counts(self.evaluator.kept, now - max(timedelta(days=3), 4 * self.settings.window))
        self.evaluator.assignments.forget()
        for platform in self._platforms:
            platform.forget(now)
        for rollups in self._rollups:
            rollups.forget(now)
        if self.last_run is not None:
            oldest_window = Window.of(self.needed_from(now), self.settings.window)
            parts = self.evaluator.parts
            before = min((parts.span(oldest_window, part).start for part in parts.names), default=now)
            self._unsaved |= {
                each.name for each in self.evaluator.source.logs.values() if each.forget(before)
            }

    def _log_error(self) -> str | None:
        """Why the main log cannot be read, if so. No window is judged then, and no rule can be violated."""
        log = self.evaluator.source.main
        if log.error is not None or log.entries:
            return log.error
        if log.unlisted:
            return f"{log.name}: {log.unlisted[0]}"
        return no_file(log.settings)

    def _restore(self, now: datetime) -> None:
        if self._restored:
            return
        for each in self.evaluator.source.logs.values():
            restore(each, self.store, self.name, each.name)
        if WATCHING not in self.store.watermarks(self.name):
            self.store.set_watermark(self.name, WATCHING, now)
        self._restored = True
