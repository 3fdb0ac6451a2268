"""One window through every check."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import duckdb
import pyarrow as pa

from monitor.core.columns import EXPOSURES, FEEDBACK, SAMPLES
from monitor.core.digest import digest
from monitor.core.results import Result, Status, Window
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
from monitor.metrics.catalogue import EXPOSURE_FAMILIES, FEEDBACK_FAMILIES
from monitor.metrics.family import Family
from monitor.metrics.history import WINDOW
from monitor.metrics.measure import measure_all
from monitor.metrics.plans import Plans
from monitor.models.check import ModelsCheck
from monitor.rollups.addends import families_of
from monitor.rollups.check import RollupCheck
from monitor.rules.check import RuleCheck
from monitor.rules.rule import LoadedRule
from monitor.settings.recommender import RecommenderSettings, is_user_group
from monitor.window.check import Check, Recommender, WindowJob
from monitor.window.tables import WindowTables, prepare
from monitor.window.together import Together, measure_together, together
from monitor.window.verdicts import mark_late, window_status

log = logging.getLogger(__name__)

_FAMILIES: Final[dict[Part, Sequence[Family]]] = {EXPOSURES: EXPOSURE_FAMILIES, FEEDBACK: FEEDBACK_FAMILIES}
"""What is measured of a part of a window."""
_PAIRS: Final = "together_pairs"


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
        *,
        in_a_row: bool = False,
    ) -> None:
        """`frames` are the rows of logs that are tables in memory and no files.

        `in_a_row`: the engine judges one window after the other of this recommender alone, so it keeps what
        the windows of a day have in common.
        """
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
        self.rollups = next((one.kept for one in self.checks if isinstance(one, RollupCheck)), None)
        self._logs = next(one for one in self.checks if isinstance(one, LogCheck))
        self._rule_check = next(one for one in self.checks if isinstance(one, RuleCheck))
        self._tables: WindowTables | None = None
        self._in_a_row = in_a_row
        self._anywhere = _is_the_same_anywhere(settings, self.rules)
        form = _form(settings, self.rules)
        self._plans: dict[Part, Plans] = {part: Plans((form, part)) for part in (EXPOSURES, FEEDBACK)}
        self._plans_together: dict[Part, Plans] = {
            part: Plans((form, part, "together")) for part in (EXPOSURES, FEEDBACK)
        }

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
        measured: Together | None = None,
    ) -> Evaluation:
        """Run every check on one window. A check that fails or takes too long does not stop the others.

        Args:
            runtime: the engines of this thread.
            due: the window and its part.
            before: the runs in the history. Their violations stay if the window cannot be judged now.
            alive: called before each check.
            measured: what `measure_together` gave for this part of the window.

        Raises:
            duckdb.InterruptException: the runtime was interrupted from outside.
            StoreError: the files that later windows need cannot be written. The window is not judged then.
        """
        evaluation = Evaluation(due)
        runtime.judged += 1
        runtime.fit(due.rows, anywhere=self._anywhere and due.part != SAMPLES)
        self._tables = None
        try:
            for check in self.checks:
                if check.part == due.part:
                    alive()
                    evaluation.runs.append(self._run(runtime, check, due, evaluation.costs, measured))
            self._remember(runtime, due, keeps_pairs=measured is not None and measured.keeps_pairs)
        finally:
            self._release(runtime)
        evaluation.runs = with_violations(evaluation.runs, before, lost=due.lost)
        return evaluation

    def add_up(self, runtime: Runtime, part: Part, window: Window) -> None:
        """Keep what a window adds up to, from the log, without judging it.

        Raises:
            StoreError: a file cannot be written.
        """
        assert self.rollups is not None
        due = Due(window, "", self.parts.timeline(part).rows(window), part=part)
        runtime.fit(due.rows, anywhere=self._anywhere)
        self._tables = None
        try:
            shared = self._prepared(runtime, due).shared
            for _ in measure_all(shared, self.settings.metrics, families=families_of(part)):
                pass
            self._remember(runtime, due)
        finally:
            self._release(runtime)

    def measure_together(
        self, runtime: Runtime, dues: Sequence[Due], alive: Callable[[], None] = lambda: None
    ) -> dict[tuple[Window, Part], Together]:
        """What consecutive windows give in one pass, for `evaluate`; the parts that can be measured so.

        `alive` is called before each pass.

        Raises:
            duckdb.InterruptException: the runtime was interrupted from outside.
        """
        found: dict[tuple[Window, Part], Together] = {}
        for part in _FAMILIES:
            mine = [due for due in dues if due.part == part and not due.is_kept]
            for run in together(sorted(mine, key=lambda due: due.window)):
                alive()  # a pass may take as long as a check
                measured = self._measured_together(runtime, run, part)
                found |= {(window, part): one for window, one in measured.items()}
        return found

    def _measured_together(self, runtime: Runtime, run: Sequence[Due], part: Part) -> dict[Window, Together]:
        windows = [due.window for due in run]
        runtime.fit(max(due.rows for due in run), anywhere=self._anywhere)
        if not runtime.engine.keeps_statements:
            return {}
        span = Window(windows[0].start, windows[-1].end)
        around = self.parts.span(span, part) if part == FEEDBACK else None
        made: list[str] = []
        try:
            with deadline(self.settings.deadline.total_seconds(), runtime.interrupt):
                found = measure_together(
                    runtime.engine, self.source, self.kept, windows, self.settings, _FAMILIES[part], around,
                    self._plans_together[part], made, in_a_row=self._in_a_row,
                )  # fmt: skip
                if found and part == EXPOSURES:
                    return self._with_rules_and_pairs(runtime, windows, found, made)
                return found
        except DeadlineExceeded:
            runtime.renew()
        except duckdb.InterruptException:
            raise
        except Exception as error:
            log.debug("%s: windows are measured one by one: %s", self.settings.name, readable(error))
            runtime.revived()
        finally:
            runtime.engine.drop(*made)
            self.source.release(runtime.engine)
        return {}

    def _with_rules_and_pairs(
        self, runtime: Runtime, windows: Sequence[Window], found: Mapping[Window, Together], made: list[str]
    ) -> dict[Window, Together]:
        """The windows with the results of their rules; and their pairs are kept."""
        shared = next(iter(found.values())).shared
        known = self.source.known(EXPOSURES)
        tables = WindowTables(shared, lambda: None, catalog=shared.catalog, known=known, made=made)
        seconds: dict[str, float] = {}
        rules: list[dict[str, Result]] = [{} for _ in windows]
        try:
            rules = self._rule_check.together(
                runtime.rules, runtime.engine, tables, len(windows), seconds,
                arrivals=not self.source.has_future(windows),
            )  # fmt: skip
        except duckdb.InterruptException:
            raise
        except Exception as error:
            log.debug("%s: rules are judged window by window: %s", self.settings.name, readable(error))
        if not self.kept.is_frozen:
            pairs = shared.user_items(WINDOW).get_name()
            made.append(_PAIRS)
            for window, one in found.items():
                runtime.engine.view_of_group(_PAIRS, pairs, WINDOW, one.number)
                self.kept.keep(window, runtime.engine.cursor.table(_PAIRS))
        return {
            window: replace(one, rules=rules[one.number], rule_seconds=seconds, keeps_pairs=True)
            for window, one in found.items()
        }

    def _run(
        self,
        runtime: Runtime,
        check: Check[WindowJob],
        due: Due,
        costs: dict[str, float],
        measured: Together | None,
    ) -> CheckRun:
        name = check.name
        tables = partial(self._prepared, runtime, due, measured)
        started = time.perf_counter()
        outcome: RunEnd = "ok"
        try:
            with deadline(self.settings.deadline.total_seconds(), runtime.interrupt):
                # A new job for each check: after an exceeded deadline the engines are new ones.
                job = WindowJob(due, runtime.engine, runtime.rules, tables, costs, measured)
                results = check.run(job)
        except DeadlineExceeded as exc:
            log.warning("%s: check %s of %s %s", self.settings.name, name, due.window.start, exc)
            outcome, results = "interrupted", check.failed(str(exc))
            runtime.renew()
            self._tables = None
        except (duckdb.InterruptException, StoreError):
            raise  # stopped from outside, or nothing can be stored: the window is judged again later
        except Exception as exc:
            log.exception("%s: check %s of %s failed", self.settings.name, name, due.window.start)
            ended = runtime.revived()
            outcome, results = "error", check.failed(ended or readable(exc))
            if ended:
                self._tables = None
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

    def _prepared(self, runtime: Runtime, due: Due, measured: Together | None = None) -> WindowTables:
        if self._tables is None:
            # Metrics of feedback have a history of actions alone.
            looked_back = due.part != EXPOSURES if measured is None else measured.looked_back
            around = self.parts.span(due.window, due.part) if due.part == FEEDBACK else None
            self._tables = prepare(
                runtime.engine, self.source, due.window, self.settings, self.kept, around,
                plans=self._plans[due.part], in_a_row=self._in_a_row,
                looks_back=not looked_back or bool(self.settings.slices.by),
            )  # fmt: skip
        return self._tables

    def _remember(self, runtime: Runtime, due: Due, *, keeps_pairs: bool = False) -> None:
        """Keep who was shown what, for later windows, and what adds up to days.

        `keeps_pairs`: the first was done when several windows were measured together.
        """
        if self.rollups is not None and due.part in self.rollups.sums:
            if self._tables is None:
                self.rollups.forget(due.part, due.window)
            else:
                self.rollups.keep(runtime.engine, due.part, due.window, self._tables.shared)
        if due.part != EXPOSURES or keeps_pairs or self.kept.is_frozen:
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


def _is_the_same_anywhere(settings: RecommenderSettings, rules_of: Sequence[LoadedRule]) -> bool:
    """Whether every engine gives the same results.

    Not those of a rule that speaks a dialect, and a group of users has other users on each.
    """
    grouped = any(map(is_user_group, settings.slices.by))
    return not grouped and not any(rule.speaks_a_dialect for rule in rules_of)


def _form(settings: RecommenderSettings, rules_of: Sequence[LoadedRule]) -> str:
    """All that the statements of a window depend on besides its logs; two recommenders may have the same."""
    paths = {name: {"path"} for name in settings.logs.named()}
    own = settings.model_dump_json(exclude={"name": True, "owner": True, "logs": paths})
    return digest(own + "".join(sorted(rule.definition for rule in rules_of)), 32)
