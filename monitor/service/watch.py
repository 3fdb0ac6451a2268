"""One recommender under watch: look at its logs, judge what is due, write it down."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from monitor.anomalies.schedule import BandScheduler
from monitor.core.columns import EXPOSURES, FEEDBACK
from monitor.core.results import Result, Window
from monitor.health.score import HealthCheck
from monitor.history.kept import KeptPairs
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.history.sums import Sums
from monitor.history.watched import WATCHING
from monitor.judging.evaluate import Evaluation, Evaluator
from monitor.judging.registry import CHECKS_OF, MARKERS, of_history
from monitor.judging.runtime import Runtime
from monitor.logs.listing import no_file
from monitor.logs.log import Log, Scan
from monitor.logs.windows import Due, Part, candidate_windows, due_windows, was_accepted
from monitor.rules.suites import LoadedRule
from monitor.service.file_index import from_history, index_of, loss_from_history
from monitor.settings.maintenance import covers
from monitor.settings.recommender import RecommenderSettings
from monitor.window.check import ResultsJob, run_check

log = logging.getLogger(__name__)

WINDOWS_A_TURN = 10
MOST_TOLD = 5  # files that lost rows, and paths that cannot be listed, in the log of one look


class Watch:
    """Belongs to the worker thread, but for its plain attributes, which anyone may read."""

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
        self.stalled_after: dict[str, timedelta] = {}  # by log; the logs of which it is known
        self.error: str | None = None
        self.retry_files = False  # set by a reload: files that cannot be read are tried at once
        self.evaluator = Evaluator(settings, rules, KeptPairs(state, settings.name), salt)
        self.band_scheduler = BandScheduler(settings, store, of_history(self.evaluator.checks))
        self._restored = False
        self._unsaved: set[str] = set()  # logs whose index the history does not have yet
        self._said: dict[str, set[str]] = {}

    @property
    def name(self) -> str:
        return self.settings.name

    def turn(
        self,
        runtime: Runtime,
        now: datetime,
        stopping: Callable[[], bool] = lambda: False,
        recorded: Callable[[], None] = lambda: None,
    ) -> bool:
        """Look at the logs and judge the newest windows that are due; True where more are left.

        Raises StoreError where the history cannot be written: then nothing is lost, the window stays due.
        """
        self._restore(now)
        if not self.look(runtime, now):
            return True
        due = self.due(now)
        self.pending = len(due)
        for one in due[:WINDOWS_A_TURN]:
            if stopping():
                return True
            before = self._before(one)
            if one.is_kept:
                evaluation = self.evaluator.keep(one, before)
            else:
                evaluation = self.evaluator.evaluate(runtime, one, before)
                if self._lost_meanwhile(runtime, one, now):
                    return True
            self.record(evaluation, now)
            self.pending -= 1
            recorded()
        # A band rests on the windows before its own, so while older ones are still caught up it waits.
        left = self.pending > 0
        left = left or self.band_scheduler.turn(now, self._caught_up_from(now), stopping, recorded)
        if due:
            runtime.give_back()
        self.last_run = now
        self.error = self._blind()
        return left

    def _before(self, due: Due) -> list[CheckRun]:
        """What the history says of the part of a window that is to be judged again."""
        start, end = due.window.start, due.window.end
        results: dict[str, list[Result]] = {}
        for kept in self.store.results(recommenders=[self.name], start=start, end=end):
            if kept.window == due.window:
                results.setdefault(kept.check, []).append(kept.result)
        return [
            CheckRun(
                check=one.check,
                results=results.get(one.check, []),
                status=one.status,
                definition=one.definition,
                seconds=one.seconds,
            )
            for one in self.store.evaluated(self.name, start=start, end=end)
            if one.window == due.window and one.check in CHECKS_OF[due.part]
        ]

    def look(self, runtime: Runtime, now: datetime) -> bool:
        """Bring the index of every log's files up to date, and keep it; whether all files were looked at."""
        is_whole = True
        retry, self.retry_files = self.retry_files, False
        for one in self.evaluator.source.logs.values():
            if retry:
                one.retry()
            scan = one.refresh(runtime.index, now)
            self._tell(one, scan)
            if scan.differs:
                self._unsaved.add(one.name)
            if one.name in self._unsaved:
                self.store.replace_files(self.name, one.name, index_of(one), watermark=one.watermark)
                self._unsaved.discard(one.name)
            is_whole = is_whole and not scan.is_cut
        self._allow_silence(now)
        return is_whole

    def _allow_silence(self, now: datetime) -> None:
        """Say anew how old the newest row of each log may get, but not of a log that has stalled.

        More silence may be allowed at night; that must not end an alert that began by day.
        """
        allowed = {}
        for name in (EXPOSURES, FEEDBACK):
            one, known = self.evaluator.source.logs.get(name), self.stalled_after.get(name)
            if one is None:
                continue
            has_stalled = known and one.watermark and now - one.watermark > known
            silence = known if has_stalled else one.allowed_silence(now, self.settings.every)
            if silence is not None:
                allowed[name] = silence
        self.stalled_after = allowed

    def _lost_meanwhile(self, runtime: Runtime, due: Due, now: datetime) -> bool:
        """Whether rows were lost while a window was judged: then its verdict is not to be trusted.

        A file that is overwritten while it is read gives the engine fewer rows, and often no error. The
        window stays due, and the next turn knows what was lost.
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

    def _tell(self, one: Log, scan: Scan) -> None:
        """Write what cannot be read to the log, once and not at every look."""
        said = self._said.get(one.name, set())
        errors = [scan.error] if scan.error else []
        errors += [f"{one.name}: {each}" for each in one.unlisted]
        new = [each for each in errors if each not in said]
        for sentence in new[:MOST_TOLD]:
            log.warning("%s: %s", self.name, sentence)
        if len(new) > MOST_TOLD:
            log.warning("%s: %s: %d more paths cannot be listed", self.name, one.name, len(new) - MOST_TOLD)
        self._said[one.name] = set(errors)
        for entry in scan.changed:
            if entry.reason:
                log.warning("%s: skipped %s: %s", self.name, entry.file.path, entry.reason)
        lost = [loss for loss in scan.lost if not loss.is_growing and not one.is_rotated(loss)]
        for loss in lost[:MOST_TOLD]:
            log.warning("%s: %s: %d indexed rows are lost: %s", self.name, one.name, loss.rows, loss)
        if len(lost) > MOST_TOLD:
            log.warning("%s: %s: %d more files lost rows", self.name, one.name, len(lost) - MOST_TOLD)

    def due(self, now: datetime) -> list[Due]:
        """The windows to judge, newest first; of one window the part that rests on exposures alone first."""
        since = self.store.watermarks(self.name)[WATCHING]
        parts = self.evaluator.parts
        found = [one for part in parts.names for one in self._due(part, now, since)]
        return sorted(found, key=lambda one: (one.window, one.part == EXPOSURES), reverse=True)

    def _due(self, part: Part, now: datetime, since: datetime) -> list[Due]:
        parts = self.evaluator.parts
        candidates = candidate_windows(parts, part, now, since)
        if not candidates:
            return []
        first = parts.span(candidates[-1], part).start
        evaluated = self.store.evaluated(self.name, MARKERS[part], start=first, end=candidates[0].end)
        judged = {one.window: one.fingerprint for one in evaluated}
        self._accept(part, judged)
        due = due_windows(parts, part, now, candidates, judged, since)
        # At its old end a log loses files for their age. What the history says of that window rests on all of
        # its rows, and must not give way to what a part of them says.
        rows = {one.window: one.rows for one in evaluated}
        timeline = parts.timeline(part)
        oldest = min(timeline.windows(), default=None)
        if oldest is None:  # all files have been moved away, as log rotation does at midnight
            return [one for one in due if rows.get(one.window, 0) == 0]
        is_partial = timeline.known_rows(oldest) < rows.get(oldest, 0)
        lost = is_partial or any(window < oldest for window in rows)
        whole_from = oldest.end if is_partial else oldest.start

        def is_whole(one: Due) -> bool:
            if one.window not in rows:
                return True
            if part == EXPOSURES:
                return one.window != oldest or not is_partial
            return not lost or parts.span(one.window, part).start >= whole_from

        return [one for one in due if is_whole(one)]

    def _accept(self, part: Part, judged: Mapping[Window, str]) -> None:
        """Forget the lost rows of windows that somebody has judged without them, by `backfill`."""
        parts = self.evaluator.parts
        logs = [self.evaluator.source.logs[name] for name in parts.names_of(part)]
        if not any(one.losses for one in logs):
            return
        for window, known in judged.items():
            if parts.lost(window, part) and was_accepted(parts, part, window, known):
                self._unsaved |= {one.name for one in logs if one.accept(window)}

    def record(self, evaluation: Evaluation, now: datetime) -> None:
        """Write a judged window down, all of it or nothing."""
        due = evaluation.due
        recorded = self.store.record_window(
            self.name, due.window, [*evaluation.runs, *self._health(evaluation)],
            fingerprint=due.fingerprint, rows=due.rows, evaluated_at=now,
            in_maintenance=covers(self.settings.maintenance, due.window),
        )  # fmt: skip
        log.info(
            "%s: judged %s of %s to %s, %d rows%s%s",
            self.name, due.part, due.window.start, due.window.end, due.rows,
            ", late" if due.late else "", ", corrected" if recorded.corrected else "",
        )  # fmt: skip

    def _health(self, evaluation: Evaluation) -> list[CheckRun]:
        """The score of the window, once all that it is made of has been judged, now or before."""
        due = evaluation.due
        start, end = due.window.start, due.window.end
        runs = []
        for check in self.evaluator.checks:
            if not isinstance(check, HealthCheck) or due.part not in check.needs:
                continue
            others = check.needs - {due.part}
            markers = [self.store.evaluated(self.name, MARKERS[one], start=start, end=end) for one in others]
            if all(markers):
                now = {run.check for run in evaluation.runs}
                kept = self.store.results(recommenders=[self.name], start=start, end=end)
                before = [one.result for one in kept if one.check not in now]
                runs.append(run_check(check, ResultsJob([*before, *evaluation.results])))
        return runs

    def wanted_from(self, now: datetime) -> datetime:
        """From when on windows may still be judged or corrected, and must not leave the history.

        One that left it would be due again, and its violations would be counted, and page, a second time.
        """
        if self.last_run is None:  # the logs have not been looked at yet
            return datetime.min.replace(tzinfo=UTC)
        since = self.store.watermarks(self.name)[WATCHING]
        parts = self.evaluator.parts
        found = [window for part in parts.names for window in candidate_windows(parts, part, now, since)]
        return min((window.start for window in found), default=now)

    def _reads_from(self, now: datetime) -> datetime:
        """From when on the rows of the logs can still change a verdict."""
        oldest = Window.of(self.wanted_from(now), self.settings.window)
        parts = self.evaluator.parts
        return min((parts.span(oldest, part).start for part in parts.names), default=now)

    def _caught_up_from(self, now: datetime) -> datetime:
        """From when on windows are judged that were missed; those before it have no bands either."""
        settings = self.settings
        reached = self.evaluator.source.main.watermark or now
        waits = self.evaluator.parts.reach + settings.max_wait
        return min(now, reached) - waits - (settings.catch_up + 1) * settings.window

    def forget(self, now: datetime) -> None:
        """Drop what is remembered and no window will ask for again: shown items, users of experiments."""
        span = max(self.settings.metrics.history, timedelta(days=2))
        reached = self.evaluator.source.main.watermark
        if reached is not None:
            oldest = min(now, reached) - span - self.settings.catch_up * self.settings.window
            self.evaluator.kept.drop_before(oldest)
            Sums(self.evaluator.kept).drop_before(oldest)
        self.evaluator.assignments.forget()
        if self.last_run is not None:
            before = self._reads_from(now)
            self._unsaved |= {one.name for one in self.evaluator.source.logs.values() if one.forget(before)}

    def _blind(self) -> str | None:
        """Why there is nothing to look at, if so: then no window is judged, and no rule can be violated."""
        log = self.evaluator.source.main
        if log.error is not None or log.entries:
            return log.error
        if log.unlisted:
            return f"{log.name}: {log.unlisted[0]}"
        return no_file(log.settings)

    def _restore(self, now: datetime) -> None:
        if self._restored:
            return
        for one in self.evaluator.source.logs.values():
            entries = [from_history(kept) for kept in self.store.files(self.name, one.name).values()]
            gaps = self.store.gaps(self.name, one.name)
            losses = [loss_from_history(kept) for kept in gaps if kept.status != "unlisted"]
            one.restore(entries, losses)
        if WATCHING not in self.store.watermarks(self.name):
            self.store.set_watermark(self.name, WATCHING, now)
        self._restored = True
