"""One window through every check."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import duckdb

from monitor.core.columns import EXPOSURES, FEEDBACK, SAMPLES
from monitor.core.results import Result, Status
from monitor.engines.duckdb import DeadlineExceeded, deadline
from monitor.experiments import arms_check as experiment_arms
from monitor.experiments import split_check as experiments
from monitor.experiments.assignments import Assignments
from monitor.history.errors import StoreError
from monitor.history.kept import KeptPairs
from monitor.history.record import CheckRun
from monitor.judging import feedback_check as feedback
from monitor.judging import log_check as logs
from monitor.judging import metrics_check as exposure
from monitor.judging.lost_rows import as_late, with_violations
from monitor.judging.metrics_check import MetricsCheck
from monitor.judging.runtime import Runtime
from monitor.judging.unattributed import judge_unattributed
from monitor.logs.index import readable
from monitor.logs.source import Source
from monitor.logs.windows import Due, Part, Parts
from monitor.metrics.plans import Plans
from monitor.models import check as models
from monitor.models.check import ModelsCheck
from monitor.models.samples import Samples
from monitor.rules import check as rules
from monitor.rules.suites import LoadedRule
from monitor.settings.recommender import RecommenderSettings
from monitor.window.tables import WindowTables, prepare
from monitor.window.verdicts import apply_objectives, mark_late, window_status

log = logging.getLogger(__name__)

CHECKS_OF: dict[Part, tuple[str, ...]] = {
    EXPOSURES: (logs.NAME, rules.NAME, exposure.NAME, experiments.NAME),
    FEEDBACK: (feedback.NAME, experiment_arms.NAME),
    SAMPLES: (models.NAME,),
}
CHECKS = tuple(name for names in CHECKS_OF.values() for name in names)
MARKERS: dict[Part, str] = {EXPOSURES: logs.NAME, FEEDBACK: feedback.NAME, SAMPLES: models.NAME}
"""The check whose stored run marks each part of a window as judged."""


@dataclass(slots=True)
class Evaluation:
    """What all checks found in a window; `costs` are the seconds of each part."""

    due: Due
    runs: list[CheckRun] = field(default_factory=list)
    costs: dict[str, float] = field(default_factory=dict)

    @property
    def results(self) -> list[Result]:
        return [result for run in self.runs for result in run.results]


class Evaluator:
    """Judges the windows of one recommender. Belongs to the thread that owns the runtime."""

    def __init__(
        self, settings: RecommenderSettings, rules_of: Sequence[LoadedRule], kept: KeptPairs, salt: str
    ) -> None:
        self.settings = settings
        self.rules = tuple(rules_of)
        self.source = Source(settings.logs, settings)
        self.parts = Parts.of(
            self.source,
            settings.metrics.attribution,
            settings.models.over,
            joined=settings.models.online == EXPOSURES,
        )
        self.models = ModelsCheck(settings, Samples(settings, self.source, self.parts))
        self.kept = kept
        self.assignments = Assignments(settings, kept.folder)
        self.salt = salt
        self._tables: WindowTables | None = None
        self._plans: dict[Part, Plans] = {part: Plans() for part in (EXPOSURES, FEEDBACK)}

    def keep(self, due: Due, before: Sequence[CheckRun]) -> Evaluation:
        """What is said of a window that lost rows once it was judged; `before` is what it said until then."""
        kept = as_late([run for run in before if run.check != logs.NAME], due.late or "")
        if due.part == EXPOSURES:
            now = logs.check_logs(self.source, due.window, self.settings.slices)
            kept.insert(0, CheckRun(check=logs.NAME, results=now, status=window_status(now)))
        return Evaluation(due, kept)

    def evaluate(self, runtime: Runtime, due: Due, before: Sequence[CheckRun] = ()) -> Evaluation:
        """Run every check on one window. A check that fails or takes too long does not stop the others.

        `before` is what the history says of the window. A violation of it stays where the window cannot be
        judged now.

        Raises duckdb.InterruptException where the runtime was interrupted from outside, and StoreError where
        what later windows need of this one cannot be kept; then the window is not judged.
        """
        evaluation = Evaluation(due)
        runtime.judged += 1
        self._tables = None
        try:
            for name, work, failed in self._checks(runtime, evaluation):
                evaluation.runs.append(self._run(runtime, name, work, failed, due))
            self._remember(runtime, due)
        finally:
            self._release(runtime)
        evaluation.runs = with_violations(evaluation.runs, before, lost=due.lost)
        return evaluation

    def _checks(
        self, runtime: Runtime, evaluation: Evaluation
    ) -> list[tuple[str, Callable[[], list[Result]], Callable[[str], list[Result]]]]:
        """Each check: its name, its work, and what it says when the work could not be done."""
        settings, due = self.settings, evaluation.due
        if due.part == SAMPLES:
            return [(models.NAME, lambda: self.models.run(runtime.engine, due.window), self.models.failed)]

        def check_rules() -> list[Result]:
            return rules.check_rules(
                runtime.rules, runtime.engine, self.rules, self._prepared(runtime, due),
                rows=settings.evidence.rows, salt=self.salt if settings.evidence.hash_users else None,
                seconds=evaluation.costs,
            )  # fmt: skip

        measured = exposure if due.part == EXPOSURES else feedback
        metrics = MetricsCheck(settings.metrics, measured.FAMILIES, evaluation.costs, settings.slices.metrics)
        names = {spec.name for family in measured.FAMILIES for spec, _ in family.outputs}
        objectives = [one for one in settings.objectives if one.metric in names]

        def check_metrics() -> list[Result]:
            tables = self._prepared(runtime, due)
            found = apply_objectives(metrics.run(tables), objectives, settings.metrics)
            if due.part != FEEDBACK or due.late:  # of an incomplete window any action may still find its list
                return found
            around = self.parts.span(due.window, due.part)
            return judge_unattributed(
                found, settings, runtime.engine, self.source, tables, due.window, around
            )

        def metrics_failed(why: str) -> list[Result]:
            # What was measured before the failure is judged too: unjudged, it would end a violation. Where
            # nothing was, no result at all leaves every series its place, with the status of the window.
            found = metrics.failed(why)
            return found and apply_objectives(
                found, objectives, settings.metrics, otherwise=(Status.ERROR, why)
            )

        def check_split() -> list[Result]:
            tables = self._prepared(runtime, due) if due.rows else None
            return experiments.check_split(
                runtime.engine, self.source, tables, settings, self.assignments, due.window
            )

        def check_arms() -> list[Result]:
            tables = self._prepared(runtime, due)
            return experiment_arms.check_arms(
                runtime.engine, self.source, tables, settings, self.assignments, due.window, due.rows
            )

        def nothing(_why: str) -> list[Result]:
            return []  # every series keeps its place, with the status of the window

        if due.part == FEEDBACK:
            arms = [(experiment_arms.NAME, check_arms, nothing)] if settings.experiments else []
            return [(feedback.NAME, check_metrics, metrics_failed), *arms]
        split = [(experiments.NAME, check_split, nothing)] if settings.experiments else []
        return [
            (logs.NAME, lambda: logs.check_logs(self.source, due.window, settings.slices), logs.failed),
            (rules.NAME, check_rules, lambda why: rules.failed(self.rules, why)),
            (exposure.NAME, check_metrics, metrics_failed),
            *split,
        ]

    def _run(
        self,
        runtime: Runtime,
        name: str,
        work: Callable[[], list[Result]],
        failed: Callable[[str], list[Result]],
        due: Due,
    ) -> CheckRun:
        started = time.perf_counter()
        outcome = "ok"
        try:
            with deadline(self.settings.deadline.total_seconds(), runtime.interrupt):
                results = work()
        except DeadlineExceeded as exc:
            log.warning("%s: check %s of %s %s", self.settings.name, name, due.window.start, exc)
            outcome, results = "interrupted", failed(str(exc))
            runtime.renew()
            self._tables = None
        except (duckdb.InterruptException, StoreError):
            raise  # stopped from outside, or nothing can be kept: the window is judged again later
        except Exception as exc:
            log.exception("%s: check %s of %s failed", self.settings.name, name, due.window.start)
            outcome, results = "error", failed(readable(exc))
        if due.late and name != logs.NAME:
            joined = due.part == FEEDBACK or (due.part == SAMPLES and self.parts.joined)
            results = mark_late(results, due.late, a_sample=not joined)
        status = window_status(results)
        if outcome != "ok" and status is not Status.VIOLATED:
            status = Status.ERROR  # however much of it was done
        return CheckRun(
            check=name,
            results=results,
            status=status,
            seconds=time.perf_counter() - started,
            outcome=outcome,
        )

    def _prepared(self, runtime: Runtime, due: Due) -> WindowTables:
        if self._tables is None:
            around = self.parts.span(due.window, due.part) if due.part == FEEDBACK else None
            self._tables = prepare(
                runtime.engine, self.source, due.window, self.settings, self.kept, around,
                plans=self._plans[due.part],
            )  # fmt: skip
        return self._tables

    def _remember(self, runtime: Runtime, due: Due) -> None:
        """Keep who was shown what, for the windows to come."""
        if due.part != EXPOSURES:
            return
        if due.rows and self._tables is not None:
            shown = runtime.engine.relation(self._tables.shared.user_items())
            self.kept.keep(due.window, shown, runtime.engine.cursor, distinct=True)
        else:  # what was kept of it may be of rows that are gone; who needs it makes it from the log
            self.kept.forget(due.window)

    def _release(self, runtime: Runtime) -> None:
        if self._tables is not None:
            runtime.engine.drop(*self._tables.made)
        self.source.release(runtime.engine)
        self._tables = None
