"""One window through every check."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import duckdb
import pyarrow as pa

from monitor.core.columns import EXPOSURES, FEEDBACK, SAMPLES
from monitor.core.digest import digest
from monitor.core.results import Result, Status
from monitor.engines.duckdb import DeadlineExceeded, deadline
from monitor.experiments.assignments import Assignments
from monitor.history.counters import RunEnd
from monitor.history.errors import StoreError
from monitor.history.kept import KeptPairs
from monitor.history.record import CheckRun
from monitor.judging.log_check import LogCheck
from monitor.judging.lost_rows import as_late, with_violations
from monitor.judging.registry import checks_of
from monitor.judging.runtime import Runtime
from monitor.logs.index import readable
from monitor.logs.source import Source
from monitor.logs.windows import Due, Part, Parts
from monitor.metrics.plans import Plans
from monitor.models.check import ModelsCheck
from monitor.rules.rule import LoadedRule
from monitor.settings.recommender import RecommenderSettings
from monitor.window.check import Check, Recommender, WindowJob
from monitor.window.tables import WindowTables, prepare
from monitor.window.verdicts import mark_late, window_status

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Evaluation:
    """The runs of all checks on a window; `costs` are the seconds of each part."""

    due: Due
    runs: list[CheckRun] = field(default_factory=list)
    costs: dict[str, float] = field(default_factory=dict)

    @property
    def results(self) -> list[Result]:
        return [result for run in self.runs for result in run.results]

    @property
    def is_without_error(self) -> bool:
        """Whether every check ran to its end, and none of its results is an error."""
        return all(
            run.outcome in (None, "ok") and run.status is not Status.ERROR for run in self.runs
        ) and all(result.status is not Status.ERROR for result in self.results)


class Evaluator:
    """Judges the windows of one recommender. Belongs to the thread that owns the runtime."""

    def __init__(
        self,
        settings: RecommenderSettings,
        rules_of: Sequence[LoadedRule],
        kept: KeptPairs,
        salt: str,
        frames: Mapping[str, pa.Table] | None = None,
    ) -> None:
        """`frames` are the rows of logs that are tables in memory and no files."""
        self.settings = settings
        self.rules = tuple(rules_of)
        # `survey` alone reads the answers: an hour has too few, and the windows must not wait for them.
        self.source = Source(settings.logs.model_copy(update={"survey": None}), settings, frames)
        self.parts = Parts.of(
            self.source,
            settings.metrics.attribution,
            settings.models.over,
            joined=settings.models.online == EXPOSURES,
        )
        self.kept = kept
        self.assignments = Assignments(settings, kept.folder)
        self.checks = checks_of(
            Recommender(settings, self.source, self.parts, kept, tuple(rules_of), salt),
        )
        self.models = next(one for one in self.checks if isinstance(one, ModelsCheck))
        self._logs = next(one for one in self.checks if isinstance(one, LogCheck))
        self._tables: WindowTables | None = None
        form = _form(settings, self.rules)
        self._plans: dict[Part, Plans] = {part: Plans((form, part)) for part in (EXPOSURES, FEEDBACK)}

    def keep(self, due: Due, before: Sequence[CheckRun]) -> Evaluation:
        """The evaluation of a judged window that lost rows; `before` are its runs until now."""
        kept = as_late([run for run in before if run.check != LogCheck.name], due.late or "")
        if due.part == EXPOSURES:
            now = self._logs.look(due.window)
            kept.insert(0, CheckRun(check=LogCheck.name, results=now, status=window_status(now)))
        return Evaluation(due, kept)

    def evaluate(
        self,
        runtime: Runtime,
        due: Due,
        before: Sequence[CheckRun] = (),
        alive: Callable[[], None] = lambda: None,
    ) -> Evaluation:
        """Run every check on one window. A check that fails or takes too long does not stop the others.

        Args:
            runtime: the engines of this thread.
            due: the window and its part.
            before: the runs in the history. Their violations stay if the window cannot be judged now.
            alive: called before each check.

        Raises:
            duckdb.InterruptException: the runtime was interrupted from outside.
            StoreError: the files that later windows need cannot be written. The window is not judged then.
        """
        evaluation = Evaluation(due)
        runtime.judged += 1
        self._tables = None
        try:
            for check in self.checks:
                if check.part == due.part:
                    alive()
                    evaluation.runs.append(self._run(runtime, check, due, evaluation.costs))
            self._remember(runtime, due)
        finally:
            self._release(runtime)
        evaluation.runs = with_violations(evaluation.runs, before, lost=due.lost)
        return evaluation

    def _run(self, runtime: Runtime, check: Check[WindowJob], due: Due, costs: dict[str, float]) -> CheckRun:
        name = check.name
        tables = partial(self._prepared, runtime, due)
        started = time.perf_counter()
        outcome: RunEnd = "ok"
        try:
            with deadline(self.settings.deadline.total_seconds(), runtime.interrupt):
                # A new job for each check: after an exceeded deadline the engines are new ones.
                results = check.run(WindowJob(due, runtime.engine, runtime.rules, tables, costs))
        except DeadlineExceeded as exc:
            log.warning("%s: check %s of %s %s", self.settings.name, name, due.window.start, exc)
            outcome, results = "interrupted", check.failed(str(exc))
            runtime.renew()
            self._tables = None
        except (duckdb.InterruptException, StoreError):
            raise  # stopped from outside, or nothing can be stored: the window is judged again later
        except Exception as exc:
            log.exception("%s: check %s of %s failed", self.settings.name, name, due.window.start)
            outcome, results = "error", check.failed(readable(exc))
        if due.late and name != LogCheck.name:
            joined = due.part == FEEDBACK or (due.part == SAMPLES and self.parts.joined)
            results = mark_late(results, due.late, a_sample=not joined)
        status = check.status(results)
        if outcome != "ok" and status is not Status.VIOLATED:
            status = Status.ERROR  # even if some of its results are good
        return CheckRun(
            check=name,
            results=results,
            status=status,
            definition=check.definition,
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
        """Keep who was shown what, for later windows."""
        if due.part != EXPOSURES:
            return
        if due.rows and self._tables is not None:
            shown = runtime.engine.relation(self._tables.shared.user_items())
            self.kept.keep(due.window, shown)
        else:  # the kept pairs may include rows that are gone; later windows make them from the log
            self.kept.forget(due.window)

    def _release(self, runtime: Runtime) -> None:
        if self._tables is not None:
            runtime.engine.drop(*self._tables.made)
        self.source.release(runtime.engine)
        self._tables = None


def _form(settings: RecommenderSettings, rules_of: Sequence[LoadedRule]) -> str:
    """All that the statements of a window depend on besides its logs; two recommenders may have the same."""
    paths = {name: {"path"} for name in settings.logs.named()}
    own = settings.model_dump_json(exclude={"name": True, "owner": True, "logs": paths})
    return digest(own + "".join(sorted(rule.definition for rule in rules_of)), 32)
