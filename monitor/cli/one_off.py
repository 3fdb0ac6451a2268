"""Judges windows without a daemon: for `check`, `backfill` and `diagnose`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from monitor.cli import share
from monitor.cli.interrupt import end_if_asked
from monitor.cli.scratch import engine_scratch
from monitor.config.checks.check import Checked
from monitor.core.results import Window
from monitor.health.score import HealthCheck
from monitor.history.kept import KeptPairs
from monitor.judging.evaluate import Evaluation, Evaluator
from monitor.judging.runtime import Runtime
from monitor.judging.runtimes import open_runtime
from monitor.logs.windows import Due, windows_between, windows_of_log
from monitor.settings.config import Config
from monitor.window.check import ResultsJob, run_check
from monitor.window.together import MOST_WINDOWS

Progress = Callable[[str], None]


@contextmanager
def one_off(
    config: Config,
    checked: Checked,
    salt: str,
    state: Path | None = None,
    frames: Mapping[str, pa.Table] | None = None,
) -> Iterator[OneOff]:
    """A recommender's evaluator with its own engines. Without `state` it leaves no files behind.

    `frames` are the rows of logs that are tables in memory and no files.
    """
    with engine_scratch(config) as folder:
        runtime = open_runtime(config.engine, folder / "spill")
        if frames is None and runtime.index.spread is None:
            runtime.index.spread = share.shared_by(share.most_processes(config.engine))
        try:
            kept = KeptPairs(state or folder, checked.settings.name)
            evaluator = Evaluator(checked.settings, checked.rules, kept, salt, frames, in_a_row=True)
            if state is None:
                evaluator.rollups = None  # no day is added up, so nothing is kept for one
            yield OneOff(runtime, evaluator, folder)
        finally:
            runtime.close()


class OneOff:
    """Judges any windows, once; `scratch` is a folder for files that nobody needs afterwards."""

    def __init__(self, runtime: Runtime, evaluator: Evaluator, scratch: Path) -> None:
        self.runtime = runtime
        self.evaluator = evaluator
        self.scratch = scratch

    def look(self, now: datetime, progress: Progress = lambda _: None) -> None:
        """Index the files of every log."""
        for log in self.evaluator.source.logs.values():
            while log.refresh(self.runtime.index, now, progress).is_cut:
                pass  # the next refresh skips the file that took too long
            end_if_asked()  # an interrupted file looks like an unreadable one

    def windows(
        self, start: datetime | None, end: datetime | None, now: datetime
    ) -> tuple[list[Window], list[Window]]:
        """The windows from `start` to `end`, and the long gaps that are skipped if there is no `start`.

        Default: from the first to the last row of the log. A window that has not begun is left out.
        """
        log = self.evaluator.source.main
        last = None if end is None else min(end, now)
        if start is None:
            return windows_of_log(log, last)
        return windows_between(log, start, last), []

    def judge(
        self,
        windows: Sequence[Window],
        now: datetime,
        *,
        watched_since: datetime | None = None,
        for_history: bool = False,
    ) -> Iterator[Evaluation]:
        """Run every check on every window, in the given order, one part of a window after the other.

        Each window gets the same verdict as from the daemon; see `monitor.logs.windows.completeness`.

        Args:
            windows: the windows.
            now: the time on the clock.
            watched_since: when the daemon began to watch this recommender, None if it never did.
            for_history: leave windows that still wait for rows to the daemon. Otherwise they are judged on
                the rows so far, as `late`.
        """
        since = now if watched_since is None else watched_since
        for first in range(0, len(windows), MOST_WINDOWS):
            some = [self._dues(one, now, since, for_history) for one in windows[first : first + MOST_WINDOWS]]
            measured = self.evaluator.measure_together(self.runtime, [due for dues in some for due in dues])
            end_if_asked()
            for dues in some:
                done: list[Evaluation] = []
                for due in dues:
                    once = measured.pop((due.window, due.part), None)
                    done.append(self.evaluator.evaluate(self.runtime, due, measured=once))
                    end_if_asked()  # an interrupted check looks like one that failed
                    for check in self.evaluator.checks:
                        judged = {evaluation.due.part for evaluation in done}
                        if isinstance(check, HealthCheck) and due.part in check.needs <= judged:
                            results = [result for evaluation in done for result in evaluation.results]
                            done[-1].runs.append(run_check(check, ResultsJob(results)))
                    yield done[-1]

    def _dues(self, window: Window, now: datetime, since: datetime, for_history: bool) -> list[Due]:
        """The parts of a window that are to be judged."""
        parts, found = self.evaluator.parts, []
        for part in parts.names:
            ready, late = parts.completeness(window, part, now, since)
            if ready or not for_history:
                fingerprint, rows = parts.fingerprint(window, part, late), parts.timeline(part).rows(window)
                found.append(Due(window, fingerprint, rows, late, part=part))
        return found
